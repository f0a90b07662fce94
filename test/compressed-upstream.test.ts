/** A vendor that compresses what it was asked to send plain: inflated within bounds, or refused; whatever speaks to it. */
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

async function gatewayWith(vendor: Vendor, kind: 'chatcompat' | 'perplexity' = 'chatcompat') {
  const providers = { vendor: { kind, base_url: vendor.url, key: 'sk-canary-0123456789' } } as const
  return await startGateway({ providers, models: { 'vendor/m': { families: ['chatcompat', 'embeddings'] } } })
}

for (const [coding, compress] of Object.entries(COMPRESS)) {
  describe(`a vendor that answers in ${coding}`, () => {
    test('is read as any other, whole and as a stream', async () => {
      const vendor = startVendor()
      await using gateway = await gatewayWith(vendor)
      const text = Buffer.from(JSON.stringify(completion('Hello')))
      vendor.answer(answerWith(coding, compress(text)))
      const whole = await gateway.chat(chat())
      expect([whole.status, (await whole.json()).choices[0].message.content]).toEqual([200, 'Hello'])
      const events = chunks('Hel', 'lo').map((one) => `data: ${JSON.stringify(one)}\n\n`)
      const stream = Buffer.from(`${events.join('')}data: [DONE]\n\n`)
      vendor.answer(answerWith(coding, compress(stream), { type: 'text/event-stream' }))
      const streamed = await (await gateway.chat(chat(true))).text()
      expect(streamed).toContain('"content":"lo"')
      expect(streamed).toEndWith('data: [DONE]\n\n')
      expect(vendor.requests.map(({ headers }) => headers['accept-encoding'])).toEqual(['identity', 'identity'])
      await vendor.stop()
    })

    test('gets no more than a hundred times its bytes into memory', async () => {
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

    test('may say its errors so, and cannot fill memory with them', async () => {
      const vendor = startVendor()
      await using gateway = await gatewayWith(vendor)
      const refusal = Buffer.from(
        JSON.stringify({ error: { message: 'No such model here.', code: 'model_not_found' } }),
      )
      vendor.answer(answerWith(coding, compress(refusal), { status: 422 }))
      expect(await (await gateway.chat(chat())).text()).toContain('No such model here.')
      vendor.answer(answerWith(coding, compress(Buffer.alloc(100 * 1024 * 1024)), { status: 422 }))
      expect((await gateway.chat(chat())).status).toBe(400)
      await vendor.stop()
    })
  })
}

test('a whole answer may have 64 MiB once inflated, however few bytes came', async () => {
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

test('a stream in gzip comes event by event', async () => {
  const vendor = startVendor()
  await using gateway = await gatewayWith(vendor)
  const next = Promise.withResolvers<void>()
  vendor.answer(async ({ write, close }) => {
    const gzip = createGzip()
    const pieces: Uint8Array[] = []
    gzip.on('data', (piece: Uint8Array) => pieces.push(piece))
    const say = async (content: string) => {
      gzip.write(`data: ${JSON.stringify(chunk({ content }))}\n\n`)
      await new Promise<void>((resolve) => gzip.flush(() => resolve()))
      await write(Buffer.concat(pieces.splice(0)))
    }
    await write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\n\r\n')
    await say('one')
    await next.promise
    await say('two')
    close()
  })
  const response = await gateway.chat(chat(true))
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  let said = ''
  while (!said.includes('one')) said += (await reader?.read())?.value ?? ''
  expect(said).not.toContain('two') // the vendor has not sent it yet
  next.resolve()
  while (!said.includes('two')) said += (await reader?.read())?.value ?? ''
  await reader?.cancel()
  await vendor.stop()
})

for (const coding of ['compress', 'gzip, br', 'aws-chunked', 'toString']) {
  test(`a body in "${coding}" is a bad answer of the vendor's`, async () => {
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

test("a body that is not what it says is a bad answer of the vendor's", async () => {
  const vendor = startVendor()
  await using gateway = await gatewayWith(vendor)
  vendor.answer(answerWith('gzip', Buffer.from(JSON.stringify(completion('Hello')))))
  const { error } = await (await gateway.chat(chat())).json()
  expect(error.code).toBe('bad_upstream_response')
  expect(error.message).toContain('is no gzip')
  await vendor.stop()
})

test('an AI SDK package reads what was inflated, and never more than is allowed', async () => {
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

test('a request in gzip is answered 415', async () => {
  await using gateway = await startGateway()
  for (const coding of ['gzip', 'br', 'zstd', 'deflate', 'GZIP', 'identity, gzip']) {
    const headers = { 'content-encoding': coding }
    const response = await gateway.call('/v1/chat/completions', { json: { model: 'sandbox/general' }, headers })
    expect(response.status).toBe(415)
  }
})
