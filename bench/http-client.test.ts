import { expect, test } from 'bun:test'
import { type Connection, connect, post, renderRequest } from './http-client.ts'

/** Serves one answer in pieces, each once the one before is on its way, and reports what the client made of it. */
async function readAnswer(pieces: string[]): Promise<{ status: number; body: string; free: boolean }> {
  const server = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data: async (socket) => {
        for (const piece of pieces) {
          socket.write(piece)
          socket.flush()
          await new Promise((resolve) => setImmediate(resolve))
        }
      },
    },
  })
  const url = `http://127.0.0.1:${server.port}/v1/chat/completions`
  const { promise, resolve } = Promise.withResolvers<{ connection: Connection; status: number }>()
  let body = ''
  const connection = await connect(url, 0, {
    piece: (_, text) => {
      body += text
    },
    answered: (answered, status) => resolve({ connection: answered, status }),
    closed: () => {},
  })
  post(connection, renderRequest({ url, headers: {}, body: '{}' }))
  const { status } = await promise
  connection.socket.end()
  server.stop(true)
  return { status, body, free: !connection.busy }
}

test('an answer of stated length ends with its last byte, wherever it is cut', async () => {
  const answer = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd'
  for (let cut = 1; cut < answer.length; cut++) {
    const read = await readAnswer([answer.slice(0, cut), answer.slice(cut)])
    expect(read).toEqual({ status: 200, body: 'abcd', free: true })
  }
})

test('a chunked answer ends with its empty chunk, wherever it is cut', async () => {
  const body = '6\r\nabc\r\n\n\r\n0\r\n\r\n'
  const answer = `HTTP/1.1 429 Too Many\r\ntransfer-encoding: chunked\r\n\r\n${body}`
  for (let cut = 1; cut < answer.length; cut++) {
    const read = await readAnswer([answer.slice(0, cut), answer.slice(cut)])
    expect(read).toEqual({ status: 429, body, free: true })
  }
})
