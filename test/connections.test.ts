/** From socket to socket: what a client does to its connection, the vendor behind the gateway feels, and nothing stays. */
import { afterEach, describe, expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import { openPort, type Port } from './kit/served.ts'
import { type Answer, chunk, completion, hang, startVendor, stream, type Vendor, whole } from './kit/vendor.ts'

const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0)) await close()
})

async function start(
  server: NonNullable<Parameters<typeof openPort>[0]>['server'] = {},
): Promise<Port & { vendor: Vendor }> {
  const vendor = startVendor()
  const port = await openPort({ providers: { v: { base_url: vendor.url } }, models: { 'v/m': {} }, server })
  open.push(
    () => port.close(),
    () => vendor.stop(),
  )
  return { ...port, vendor }
}

/** A connection on which a chat request was sent. */
function ask({ url, token }: Port, more: object = {}): Socket {
  const body = JSON.stringify({ model: 'v/m', messages: [{ role: 'user', content: 'Hello' }], ...more })
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1' })
  socket.on('error', () => {})
  open.push(() => socket.destroy())
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${token}\r\n` +
      `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
  return socket
}

/** Waits until the text has come. */
const until = (socket: Socket, wanted: string): Promise<string> =>
  new Promise((resolve, reject) => {
    let text = ''
    const look = (piece: Buffer) => {
      text += piece.toString('latin1')
      if (!text.includes(wanted)) return
      socket.off('data', look)
      resolve(text)
    }
    socket.on('data', look)
    socket.once('close', () => reject(new Error(`closed too early, after: ${text}`)))
  })

/** How the requests ended, as the log has it, once none is open. */
async function outcomes({ gateway }: Port): Promise<string[]> {
  await gateway.instance.drain({ deadline_ms: 20_000 })
  const lines = gateway
    .logged()
    .split('\n')
    .filter((line) => line.includes('"event":"request"'))
  return lines.map((line) => JSON.parse(line).outcome)
}

const endless = (said: () => void): Answer =>
  stream(
    (async function* () {
      for (;;) {
        said()
        yield `data: ${JSON.stringify(chunk({ content: 'x'.repeat(10_000) }))}\n\n`
      }
    })(),
  )

describe('a client that leaves', () => {
  test.each([
    ['a whole answer, before its first byte', {}, hang(), undefined],
    ['a stream, before its first byte', { stream: true }, hang(), undefined],
    ['a stream, in its middle', { stream: true }, stream([chunk({ content: 'Hello' })], { hangAfter: 1 }), 'Hello'],
  ])('%s, ends the request to the provider', async (_, more, answer, seen) => {
    const port = await start()
    port.vendor.answer(answer)
    const client = ask(port, more)
    const { aborted: gone } = await port.vendor.request()
    if (seen) await until(client, seen)
    client.destroy()
    await gone
    await port.vendor.idle()
    expect(await outcomes(port)).toEqual(['client_gone'])
  })

  test('with a stream that never pauses, ends the request to the provider', async () => {
    const port = await start()
    port.vendor.answer(endless(() => {}))
    const client = ask(port, { stream: true })
    await until(client, 'xxx')
    client.destroy()
    await port.vendor.idle()
    expect(await outcomes(port)).toEqual(['client_gone'])
  })

  test('two thousand times leaves no connection and no open request, and logs each request', async () => {
    const port = await start()
    port.vendor.otherwise(stream([chunk({ content: 'Hello' })], { hangAfter: 1 }))
    const leave = async (_: unknown, index: number) => {
      const client = ask(port, { stream: true })
      if (index % 2 === 0) await until(client, 'Hello')
      client.destroy()
    }
    // Some at a time, as many as two cores take without waiting.
    for (let round = 0; round < 40; round++) await Promise.all(Array.from({ length: 50 }, leave))
    const ended = await outcomes(port)
    await port.vendor.idle()
    expect(port.vendor.connections()).toBe(0)
    // A connection that was closed before its request was read in full has no request, and no line.
    expect(ended.length).toBeGreaterThanOrEqual(1000)
    expect(new Set(ended)).toEqual(new Set(['client_gone']))
  }, 120_000)
})

describe('a client that reads nothing', () => {
  test('slows the provider down, and receives everything when it reads again', async () => {
    const port = await start()
    let said = 0
    port.vendor.answer(endless(() => said++))
    const client = ask(port, { stream: true })
    await until(client, 'xxx')
    client.pause()
    const before = process.memoryUsage.rss()
    // Full are the buffers when nothing more is said for a while; a kernel lets them grow step by step.
    for (let last = -1; last !== said; ) {
      last = said
      await Bun.sleep(200)
    }
    const full = said
    // The sockets on both sides of the gateway take up to some 40 MB, the kernel's; the gateway itself next to nothing.
    expect(full * 10_000).toBeLessThan(100_000_000)
    expect(process.memoryUsage.rss() - before).toBeLessThan(100_000_000)
    client.resume()
    while (said < full + 100) await Bun.sleep(1)
    client.destroy()
    await port.vendor.idle()
    expect(await outcomes(port)).toEqual(['client_gone'])
  })
})

describe('a connection', () => {
  test('is reused for one response after another: whole, streamed and errors', async () => {
    const port = await start()
    port.vendor.answer(whole(completion('Hello')), stream([chunk({ content: 'Hello' }), chunk({}, 'stop')]))
    const client = ask(port)
    await until(client, '"total_tokens":12')
    const again = (more: object) => {
      const body = JSON.stringify({ model: 'v/m', messages: [{ role: 'user', content: 'Hello' }], ...more })
      client.write(
        `POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${port.token}\r\n` +
          `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      )
    }
    again({ stream: true })
    await until(client, 'data: [DONE]\n\n\r\n0\r\n\r\n')
    again({ temperature: 9 })
    await until(client, '"code":"invalid_value"')
    again({})
    await until(client, '"total_tokens":12')
    // The bare connection that tells whether the vendor can be reached at all may have come first.
    expect(new Set(port.vendor.requests.map(({ connection }) => connection)).size).toBe(1)
    expect(port.vendor.requests.length).toBe(3)
  })

  /** Sends a body without looking at what comes back, as most libraries do; how it was answered. */
  async function sendBlindly(port: Port, { bytes, bearer = port.token }: { bytes: number; bearer?: string }) {
    const client = connect({ port: Number(new URL(port.url).port), host: '127.0.0.1' })
    open.push(() => client.destroy())
    let fault = ''
    client.on('error', ({ message }) => {
      fault = message
    })
    let text = ''
    client.on('data', (piece) => {
      text += piece.toString()
    })
    const answered = new Promise<void>(
      (resolve) => void client.once('data', () => resolve()).once('close', () => resolve()),
    )
    let go = () => {}
    client.on('drain', () => go()).on('close', () => go())
    client.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${bearer}\r\n` +
        `content-type: application/json\r\ncontent-length: ${bytes}\r\n\r\n`,
    )
    const piece = Buffer.alloc(100_000, ' ')
    for (let sent = 0; sent < bytes && !client.destroyed; sent += piece.length) {
      const more = new Promise<void>((resolve) => {
        go = resolve
      })
      if (!client.write(piece.subarray(0, bytes - sent))) await more
    }
    await answered
    return { status: Number(text.slice(9, 12)), text, fault, sent: client.bytesWritten }
  }

  test.each([
    ['too much', 'request_too_large', 413, {}],
    ['much with a bad token', 'invalid_api_key', 401, { bearer: 'sk-none' }],
  ])('that sends %s can send all of it, and receives the response: %s', async (_, code, status, more) => {
    const port = await start({ max_body_bytes: 1_000_000 })
    const answer = await sendBlindly(port, { bytes: 20_000_000, ...more })
    expect([answer.status, answer.fault]).toEqual([status, ''])
    expect(answer.text).toContain(`"code":"${code}"`)
    expect(answer.sent).toBeGreaterThan(20_000_000)
  })

  test('that sends more than anyone does by mistake is closed, and none of it is kept in memory', async () => {
    const port = await start({ max_body_bytes: 1_000_000 })
    const before = process.memoryUsage.rss()
    for (const bytes of [60_000_000, 1_000_000_000]) {
      const { sent } = await sendBlindly(port, { bytes })
      expect(sent).toBeLessThan(70_000_000)
      expect(process.memoryUsage.rss() - before).toBeLessThan(100_000_000)
    }
  })
})

test('a stop in the middle of a stream lets it finish, and then closes the connection', async () => {
  const port = await start()
  const rest = Promise.withResolvers<void>()
  port.vendor.answer(
    stream([chunk({ content: 'Hello' }), rest.promise, chunk({ content: ' world' }), chunk({}, 'stop')]),
  )
  const client = ask(port, { stream: true })
  await until(client, 'Hello')
  const end = until(client, 'data: [DONE]\n\n')
  const closed = new Promise<void>((resolve) => void client.once('close', () => resolve()))
  const stopped = port.close({ deadline_ms: 60_000 })
  open.splice(0, 1) // it is closed here
  rest.resolve()
  expect(await end).toContain('world')
  await Promise.all([stopped, closed])
})
