/** Well-formed HTTP/1.1 responses for tests: every framing with every body, and what heads may have. In latin1. */

export type ResponseCase = { name: string; text: string; status: number; body: string }

const ALL_BYTES = Array.from({ length: 256 }, (_, code) => String.fromCharCode(code)).join('')
const BODIES: Record<string, string> = {
  'an empty body': '',
  'one byte': 'a',
  'a text': 'hello',
  JSON: '{"id":"x","usage":{"total_tokens":3}}',
  'two events': 'data: {"a":1}\n\ndata: [DONE]\n\n',
  'UTF-8': Buffer.from('Größe 東京 🙂').toString('latin1'),
  'all bytes': ALL_BYTES,
  'what looks like a response': 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n0\r\n\r\n',
}

const head = (status: number, ...lines: string[]) =>
  `HTTP/1.1 ${status} Reason\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n`
const sized = (body: string) => head(200, `content-length: ${body.length}`) + body
const CHUNKED = head(200, 'transfer-encoding: chunked')
const chunk = (body: string, more = '') => (body === '' ? '' : `${body.length.toString(16)}${more}\r\n${body}\r\n`)
const pieces = (body: string) => [body.slice(0, body.length >> 1), body.slice(body.length >> 1)]

const FRAMINGS: Record<string, (body: string) => string> = {
  'with a length': sized,
  'in one chunk': (body) => `${CHUNKED}${chunk(body)}0\r\n\r\n`,
  'in two chunks': (body) =>
    `${CHUNKED}${pieces(body)
      .map((one) => chunk(one))
      .join('')}0\r\n\r\n`,
  'in chunks of one byte': (body) => `${CHUNKED}${[...body].map((one) => chunk(one)).join('')}0\r\n\r\n`,
  'in chunks with extensions': (body) => `${CHUNKED}${chunk(body, ';name=value;flag')}0;last\r\n\r\n`,
  'in chunks with trailers': (body) => `${CHUNKED}${chunk(body)}0\r\nx-sum: 1\r\nx-other: 2\r\n\r\n`,
  'in chunks with long sizes': (body) =>
    `${CHUNKED}${body === '' ? '' : `0000${body.length.toString(16).toUpperCase()}\r\n${body}\r\n`}000\r\n\r\n`,
  'until the connection closes': (body) => `${head(200, 'connection: close')}${body}`,
  'in HTTP/1.0': (body) => sized(body).replace('HTTP/1.1', 'HTTP/1.0'),
  'after interim responses': (body) => `${head(100)}${head(103, 'link: </a>')}${sized(body)}`,
}

const HEADERS = [
  'content-type: application/json',
  'Content-Type:application/json; charset=utf-8',
  'CONTENT-TYPE: text/event-stream',
  'x-request-id: req_1',
  'x-empty:',
  'x-spaces:  \t a b \t ',
  'x-latin1: gr\xfc\xdfe',
  "x!#$%&'*+-.^_`|~1: token",
  'x-colons: a:b: c',
  'x-quoted: "a, b"',
  `x-long: ${'v'.repeat(300)}`,
  'retry-after: 7',
  'set-cookie: a=b; Path=/',
  'connection: keep-alive',
  'connection: close',
  'keep-alive: timeout=5, max=100',
  'date: Mon, 23 Nov 2026 04:00:00 GMT',
  'server: bench',
  'vary: accept, origin',
  'transfer-encodings: chunked',
  'content-lengths: 1',
  'trailer: x-sum',
]

const STATUSES = [
  200, 201, 202, 203, 206, 226, 299, 300, 302, 400, 401, 402, 404, 408, 409, 413, 418, 422, 429, 500, 502, 503, 504,
  529, 599,
]

export const RESPONSES: ResponseCase[] = [
  ...Object.entries(FRAMINGS).flatMap(([framing, encode]) =>
    Object.entries(BODIES).map(([what, body]) => ({
      name: `${what} ${framing}`,
      text: encode(body),
      status: 200,
      body,
    })),
  ),
  ...HEADERS.map((line) => ({
    name: `the header "${line.slice(0, 40)}"`,
    text: `${head(200, line, 'content-length: 2')}ok`,
    status: 200,
    body: 'ok',
  })),
  ...STATUSES.map((status) => ({
    name: `status ${status}`,
    text: `${head(status, 'content-length: 2')}ok`,
    status,
    body: 'ok',
  })),
  { name: 'status 204', text: head(204), status: 204, body: '' },
  { name: 'status 304 with a length', text: head(304, 'content-length: 9'), status: 304, body: '' },
]
