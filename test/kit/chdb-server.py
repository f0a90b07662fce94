"""Serves the HTTP interface of ClickHouse, as far as the gateway uses it, on chDB: its engine in one process, without a server."""
import re
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit

from chdb import session

engine = session.Session(sys.argv[1])


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
        before = parse_qs(urlsplit(self.path).query).get("query", [""])[0]
        try:
            answer = engine.query(f"{before}\n{body}" if before else body, "JSONEachRow")
            self.answer(200, bytes(answer.bytes() or b"") if answer is not None else b"")
        except Exception as error:  # its message begins with "Code: 60."
            code = re.search(r"Code: (\d+)", str(error))
            self.answer(500, str(error).encode(), code.group(1) if code else "0")

    def answer(self, status, body, code=None):
        self.send_response(status)
        if code:
            self.send_header("x-clickhouse-exception-code", code)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


server = HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
