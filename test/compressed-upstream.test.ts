/** A vendor that compresses a response despite `identity`: the gateway decompresses it within bounds, or rejects it. */
import { describe, expect, test } from 'bun:test'
import { brotliCompressSync, constants, createGzip, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { startGateway } from './kit/gateway.ts'
import { chunk, chunks, completion, startVendor, type Vendor, type Wire } from './kit/vendor.ts'

const br = (bytes: Uint8Array) => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } })
const COMPRESS: Record<string, (bytes: Uint8Array) => Uint8Array> = {
  gzip: gzipSync,
  deflate: deflateSync,
  br,
  zstd: zstdCompressSync,
}

const answerWith =
  (coding: string, body: Uint8Array, { status = 200, type = 'application/json' } = {}) =>
  async ({ write }: Wire) => {
    await write(
      `HTTP/1.1 ${status} X\r\ncontent-type: ${type}\r\ncontent-encoding: ${coding}\r\ncontent-length: ${body.length}\r\n\r\n`,
    )
    await write(body)
  }

const chat = (stream = false) => ({ model: 'vendor/m', messages: [{ role: 'user', content: 'Hello' }], stream })

async function gatewayWith(vendor: Vendor, kind: 'chatcompat' | 'perplexity' = 'chatcompat', config: object = {}) {
  const providers = { vendor: { kind, base_url: vendor.url, key: 'sk-canary-0123456789' } } as const
  return await startGateway({
    providers,
    models: { 'vendor/m': { families: ['chatcompat', 'embeddings'] } },
    ...config,
  })
}

for (const [coding, compress] of Object.entries(COMPRESS)) {
  describe(`a vendor that responds in ${coding}`, () => {
    test('is read as usual, whole and as a stream', async () => {
      const vendor = startVendor()
      await using gateway = await gatewayWith(vendor)
      const text = Buffer.from(JSON.stringify(completion('Hello')))
      vendor.answer(answerWith(coding, compress(text)))
      const whole = await gateway.chat(chat())
      expect([whole.status, (await whole.json()).choices[0].message.content]).toEqual([200, 'Hello'])
      const events = chunks('Hel', 'lo').map((event) => `data: ${JSON.stringify(event)}\n\n`)
      const stream = Buffer.from(`${events.join('')}data: [DONE]\n\n`)
      vendor.answer(answerWith(coding, compress(stream), { type: 'text/event-stream' }))
      const streamed = await (await gateway.chat(chat(true))).text()
      expect(streamed).toContain('"content":"lo"')
      expect(streamed).toEndWith('data: [DONE]\n\n')
      expect(vendor.requests.map(({ headers }) => headers['accept-encoding'])).toEqual(['identity', 'identity'])
      await vendor.stop()
    })

    test('fills memory with at most a hundred times its bytes', async () => {
      const vendor = startVendor()
      await using gateway = await gatewayWith(vendor)
      const bomb = compress(Buffer.alloc(100 * 1024 * 1024, ' '))
      vendor.answer(answerWith(coding, bomb))
      const response = await gateway.chat(chat())
      const { error } = await response.json()
      expect([response.status, error.code]).toEqual([502, 'bad_upstream_response'])
      expect(error.message).toContain('grows to more than 100 times its size')
      await vendor.stop()
    })

    test('may compress its errors, and cannot fill memory with them', async () => {
      const vendor = startVendor()
      await using gateway = await gatewayWith(vendor)
      const error = Buffer.from(JSON.stringify({ error: { message: 'No such model here.', code: 'model_not_found' } }))
      vendor.answer(answerWith(coding, compress(error), { status: 422 }))
      expect(await (await gateway.chat(chat())).text()).toContain('No such model here.')
      vendor.answer(answerWith(coding, compress(Buffer.alloc(100 * 1024 * 1024)), { status: 422 }))
      expect((await gateway.chat(chat())).status).toBe(400)
      await vendor.stop()
    })
  })
}

test('a decompressed whole response is limited to 64 MiB', async () => {
  const vendor = startVendor()
  await using gateway = await gatewayWith(vendor)
  const noise = new Uint8Array(new Uint32Array(16_384).map((_, at) => Math.imul(at, 2654435761)).buffer)
  const row = Buffer.concat([noise, Buffer.alloc(noise.length * 40)])
  const large = gzipSync(Buffer.concat(Array.from({ length: 26 }, () => row)))
  vendor.answer(answerWith('gzip', large))
  const { error } = await (await gateway.chat(chat())).json()
  expect(error.message).toContain('answered with more than 67108864 bytes')
  await vendor.stop()
})

test('a stream in gzip arrives event by event', async () => {
  const vendor = startVendor()
  await using gateway = await gatewayWith(vendor)
  const next = Promise.withResolvers<void>()
  vendor.answer(async ({ write, close }) => {
    const gzip = createGzip()
    const pieces: Uint8Array[] = []
    gzip.on('data', (piece: Uint8Array) => pieces.push(piece))
    const sendEvent = async (content: string) => {
      gzip.write(`data: ${JSON.stringify(chunk({ content }))}\n\n`)
      await new Promise<void>((resolve) => gzip.flush(() => resolve()))
      await write(Buffer.concat(pieces.splice(0)))
    }
    await write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\n\r\n')
    await sendEvent('one')
    await next.promise
    await sendEvent('two')
    close()
  })
  const response = await gateway.chat(chat(true))
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  let received = ''
  while (!received.includes('one')) received += (await reader?.read())?.value ?? ''
  expect(received).not.toContain('two') // the vendor has not sent it yet
  next.resolve()
  while (!received.includes('two')) received += (await reader?.read())?.value ?? ''
  await reader?.cancel()
  await vendor.stop()
})

for (const coding of ['compress', 'gzip, br', 'aws-chunked', 'toString']) {
  test(`a body in "${coding}" is a bad_upstream_response`, async () => {
    const vendor = startVendor()
    await using gateway = await gatewayWith(vendor)
    vendor.answer(answerWith(coding, Buffer.from('{}')))
    const response = await gateway.chat(chat())
    const { error } = await response.json()
    expect([response.status, error.code]).toEqual([502, 'bad_upstream_response'])
    expect(error.message).toContain(coding.toLowerCase())
    await vendor.stop()
  })
}

test('a body that does not match its content-encoding is a bad_upstream_response', async () => {
  const vendor = startVendor()
  await using gateway = await gatewayWith(vendor)
  vendor.answer(answerWith('gzip', Buffer.from(JSON.stringify(completion('Hello')))))
  const { error } = await (await gateway.chat(chat())).json()
  expect(error.code).toBe('bad_upstream_response')
  expect(error.message).toContain('is not valid gzip')
  await vendor.stop()
})

describe('the connection of a body that cannot be read', () => {
  test.each(['gzip', 'compress'])('is closed, although the vendor goes on to send: %s', async (coding) => {
    const vendor = startVendor()
    await using gateway = await gatewayWith(vendor)
    const { promise: closed, resolve } = Promise.withResolvers<void>()
    vendor.answer(async ({ write, aborted }) => {
      await write(`HTTP/1.1 200 OK\r\ncontent-encoding: ${coding}\r\ntransfer-encoding: chunked\r\n\r\n5\r\nHello\r\n`)
      await aborted
      resolve()
    })
    expect((await gateway.chat(chat())).status).toBe(502)
    await closed
    await vendor.stop()
  })
})

test('an AI SDK package reads the decompressed body, within the limit', async () => {
  const vendor = startVendor()
  await using gateway = await gatewayWith(vendor, 'perplexity')
  vendor.answer(answerWith('br', br(Buffer.from(JSON.stringify(completion('Hello'))))))
  const good = await gateway.chat(chat())
  expect(await good.text()).toContain('Hello')
  expect(vendor.requests[0]?.headers['accept-encoding']).toBe('identity')
  vendor.answer(answerWith('br', br(Buffer.alloc(100 * 1024 * 1024, ' '))))
  const bad = await gateway.chat(chat())
  expect([bad.status, await bad.text()]).toEqual([502, expect.stringContaining('100 times its size')])
  await vendor.stop()
})

test.each(['gzip', 'br', 'zstd', 'deflate', 'GZIP', 'identity, gzip'])('a request in %s gets 415', async (coding) => {
  await using gateway = await startGateway()
  const headers = { 'content-encoding': coding }
  const response = await gateway.call('/v1/chat/completions', { json: { model: 'sandbox/general' }, headers })
  expect(response.status).toBe(415)
})
