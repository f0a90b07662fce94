/** OpenAI-shaped vendors of images, on loopback in their true shapes: whole, streamed, edited, refused, as tasks. */
import { afterEach, describe, expect, test } from 'bun:test'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateImage } from 'ai'
import OpenAI, { toFile } from 'openai'
import type { ProviderConfig } from '../src/config/schema.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { openPort } from './kit/served.ts'
import {
  type Answer,
  failure,
  hang,
  hangUp,
  raw,
  startVendor,
  stream,
  type Vendor,
  type VendorRequest,
  whole,
} from './kit/vendor.ts'

const KEY = 'sk-secret-key-of-ours'
type Json = Record<string, unknown>

/** The smallest PNG, of one pixel; and as an image that is another one. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const JPEG = Buffer.from([0xff, 0xd8, 0xff, 0xe0, 1, 2, 3, 4]).toString('base64')
const URI = `data:image/png;base64,${PNG}`
const bytesOf = (base64: string) => new Uint8Array(Buffer.from(base64, 'base64'))

const USAGE = {
  total_tokens: 107,
  input_tokens: 7,
  output_tokens: 100,
  input_tokens_details: { text_tokens: 7, image_tokens: 0, unseen: 1 },
  output_tokens_details: { image_tokens: 100, text_tokens: 0 },
}
/** As api.openai.com answers for a GPT image model. */
const made = (...images: string[]) => ({
  created: 1_780_000_000,
  background: 'opaque',
  data: images.map((b64_json) => ({ b64_json, unseen: true })),
  output_format: 'png',
  quality: 'high',
  size: '1024x1024',
  usage: USAGE,
  unseen: { more: 1 },
})

const started: { vendor: Vendor; gateway: TestGateway }[] = []
afterEach(async () => {
  for (const { vendor, gateway } of started.splice(0)) {
    await gateway[Symbol.asyncDispose]()
    await vendor.stop()
  }
})

async function open(
  { model = 'gpt-image-2', config = {} }: { model?: string; config?: Partial<ProviderConfig> },
  ...answers: Answer[]
) {
  const vendor = startVendor(...answers)
  const gateway = await startGateway({
    sandbox: false,
    providers: { v: { base_url: vendor.url, key: KEY, ...config } },
    models: { 'v/m': { families: ['image-generation'], targets: [{ provider: 'v', model }] } },
  })
  started.push({ vendor, gateway })
  const ask = async (more: Json = {}, path = 'generations') => {
    const answer = await gateway.call(`/v1/images/${path}`, { json: { model: 'v/m', prompt: 'A kite', ...more } })
    return { status: answer.status, body: (await answer.json()) as Json, headers: answer.headers }
  }
  return { vendor, gateway, ask }
}

/** A form as it came to the vendor. */
async function formOf(request: VendorRequest | undefined): Promise<FormData> {
  const { headers, bytes } = request ?? { headers: {} as Record<string, string>, bytes: new Uint8Array() }
  return new Response(new Uint8Array(bytes), { headers: { 'content-type': headers['content-type'] ?? '' } }).formData()
}

/** A file as a vendor's storage hands it out. */
function file(base64: string, content_type: string): Answer {
  const bytes = Buffer.from(base64, 'base64')
  const head = `HTTP/1.1 200 OK\r\ncontent-type: ${content_type}\r\ncontent-length: ${bytes.length}\r\n\r\n`
  return raw(Buffer.concat([Buffer.from(head), bytes]))
}

const ports: { vendor: Vendor; close: () => Promise<void> }[] = []
afterEach(async () => {
  for (const { vendor, close } of ports.splice(0)) {
    await close()
    await vendor.stop()
  }
})

describe('a generation', () => {
  test('of a GPT image model has its words and no others; its images, prompts and counts come back', async () => {
    const answer = made(PNG, JPEG)
    Object.assign(answer.data[1] ?? {}, { revised_prompt: 'A red kite' })
    const { vendor, ask } = await open({}, whole(answer))
    const asked = {
      n: 2,
      size: 'auto',
      quality: 'high',
      background: 'opaque',
      output_format: 'png',
      output_compression: 90,
      moderation: 'low',
      user: 'u',
    }
    const { status, body } = await ask({ ...asked, style: 'vivid', response_format: 'b64_json' })
    expect(status).toBe(200)
    expect(body.data).toEqual([{ b64_json: PNG }, { b64_json: JPEG, revised_prompt: 'A red kite' }])
    expect(body.usage).toEqual({
      input_tokens: 7,
      output_tokens: 100,
      total_tokens: 107,
      input_tokens_details: { text_tokens: 7, image_tokens: 0 },
    })
    const [request] = vendor.requests
    expect([request?.path, request?.headers.authorization]).toEqual(['/v1/images/generations', `Bearer ${KEY}`])
    expect(request?.json()).toEqual({ model: 'gpt-image-2', prompt: 'A kite', ...asked })
  })

  test('of another model is asked for its bytes, without a size that says nothing', async () => {
    const { vendor, ask } = await open({ model: 'flux-1' }, whole({ data: [{ b64_json: URI }] }))
    const { body } = await ask({ size: 'auto', seed: 5, negative_prompt: 'rain', aspect_ratio: '16:9' })
    expect(body.data).toEqual([{ b64_json: PNG }])
    expect(vendor.requests[0]?.json()).toEqual({
      model: 'flux-1',
      prompt: 'A kite',
      seed: 5,
      negative_prompt: 'rain',
      aspect_ratio: '16:9',
      response_format: 'b64_json',
    })
  })

  test.each([
    ['base64', 'base64'],
    ['url', 'url'],
    ['none', undefined],
  ] as const)('is asked by the word %s where the operator says so', async (image_response_format, word) => {
    const { vendor, ask } = await open({ model: 'x', config: { quirks: { image_response_format } } }, whole(made(PNG)))
    expect((await ask()).status).toBe(200)
    expect(vendor.requests[0]?.json().response_format).toBe(word)
  })

  test('honours what the operator drops and renames, and the vendor’s own options', async () => {
    const config = { fields: { drop: ['user', 'response_format'], rename: { size: 'image_size' } } }
    const { vendor, ask } = await open({ model: 'x', config }, whole(made(PNG)))
    await ask({ user: 'u', size: '512x512', metadata: { chatcompat: { steps: 4, n: 9, model: 'y' }, other: { a: 1 } } })
    expect(vendor.requests[0]?.json()).toEqual({ model: 'x', prompt: 'A kite', image_size: '512x512', steps: 4 })
  })

  test('whose image lies at the vendor is fetched there, with the key only at its own address', async () => {
    const { vendor, ask } = await open({ model: 'x' })
    vendor.answer(whole({ images: [{ url: `${vendor.origin}/files/1.png` }], timings: {} }), file(PNG, 'image/png'))
    expect((await ask()).body.data).toEqual([{ b64_json: PNG }])
    expect(vendor.requests[1]).toMatchObject({ method: 'GET', path: '/files/1.png' })
    expect(vendor.requests[1]?.headers.authorization).toBe(`Bearer ${KEY}`)
  })

  test('whose image lies at an address that is not public is not fetched', async () => {
    const { ask } = await open({ model: 'x' }, whole({ data: [{ url: 'http://127.0.0.1:9/1.png' }] }))
    expect(await ask()).toMatchObject({ status: 502, body: { error: { code: 'bad_upstream_response' } } })
  })

  test('given by link is kept and had from here', async () => {
    const { gateway, ask } = await open({}, whole(made(PNG)))
    const { body } = await ask({ response_format: 'url' })
    const { pathname, search } = new URL((body.data as { url: string }[])[0]?.url ?? '')
    const file = await gateway.call(`${pathname}${search}`)
    expect(Buffer.from(await file.bytes()).toString('base64')).toBe(PNG)
  })

  test.each([
    ['gpt-image-2', { seed: 1 }, 'seed'],
    ['chatgpt-image-latest', { aspect_ratio: '1:1' }, 'aspect_ratio'],
    ['dall-e-3', { output_format: 'webp' }, 'output_format'],
  ])('of %s with what it does not have is refused before anything is sent', async (model, more, param) => {
    const { vendor, ask } = await open({ model })
    expect(await ask(more)).toMatchObject({ status: 400, body: { error: { code: 'unsupported_parameter', param } } })
    expect(vendor.requests).toHaveLength(0)
  })
})

describe('an edit', () => {
  test('of several images with a mask is a form of their bytes', async () => {
    const { vendor, ask } = await open({}, whole(made(PNG)))
    const image = [URI, `data:image/jpeg;base64,${JPEG}`]
    const { status } = await ask({ image, mask: PNG, n: 2, input_fidelity: 'high', size: '1024x1024' }, 'edits')
    expect(status).toBe(200)
    const [request] = vendor.requests
    const form = await formOf(request)
    expect(request?.path).toBe('/v1/images/edits')
    expect([...new Set(form.keys())].sort()).toEqual([
      'image[]',
      'input_fidelity',
      'mask',
      'model',
      'n',
      'prompt',
      'size',
    ])
    expect([form.get('model'), form.get('prompt'), form.get('n')]).toEqual(['gpt-image-2', 'A kite', '2'])
    const files = [...form.getAll('image[]'), form.get('mask')] as File[]
    expect(files.map(({ type, name }) => [type, name])).toEqual([
      ['image/png', 'image-0.png'],
      ['image/jpeg', 'image-1.jpeg'],
      ['image/png', 'mask-2.png'],
    ])
    expect(new Uint8Array(await (files[0] as File).arrayBuffer())).toEqual(bytesOf(PNG))
    expect(new Uint8Array(await (files[1] as File).arrayBuffer())).toEqual(bytesOf(JPEG))
  })

  test('of one image names it without a list', async () => {
    const { vendor, ask } = await open({}, whole(made(PNG)))
    await ask({ image: URI }, 'edits')
    expect((await formOf(vendor.requests[0])).getAll('image')).toHaveLength(1)
  })

  test('a variation has its own path and no prompt', async () => {
    const { vendor, ask } = await open({ model: 'dall-e-2' }, whole(made(PNG)))
    expect((await ask({ image: URI, prompt: undefined }, 'variations')).status).toBe(200)
    const form = await formOf(vendor.requests[0])
    expect([vendor.requests[0]?.path, form.has('prompt'), form.get('response_format')]).toEqual([
      '/v1/images/variations',
      false,
      'b64_json',
    ])
  })

  test('of what cannot be read is refused before anything is sent', async () => {
    const { vendor, ask } = await open({})
    const image = `data:image/png;base64,${Buffer.from('no image').toString('base64')}`
    expect(await ask({ image }, 'edits')).toMatchObject({
      status: 400,
      body: { error: { code: 'input_media_invalid', param: 'image' } },
    })
    expect(vendor.requests).toHaveLength(0)
  })
})

/** What the vendor says, and what the client hears of it; whether a task may ask another target. */
const REFUSALS: [what: string, answer: Answer, status: number, code: string, fail_code: string][] = [
  [
    'a wrong field',
    failure(400, { message: 'Unknown parameter: x', type: 'invalid_request_error', param: 'x' }),
    400,
    'upstream_invalid_request',
    'invalid_input',
  ],
  [
    'refused content',
    failure(400, { message: 'Your request was rejected by the safety system.', code: 'moderation_blocked' }),
    400,
    'content_policy_violation',
    'content_policy_violation',
  ],
  ['a bad key', failure(401, { code: 'invalid_api_key' }), 502, 'upstream_auth', 'upstream_auth'],
  ['no credit', failure(429, { code: 'insufficient_quota' }), 503, 'no_available_channel', 'insufficient_quota'],
  ['an unknown model', failure(404, { code: 'model_not_found' }), 502, 'bad_upstream_response', 'model_unavailable'],
]

describe('a refusal', () => {
  test.each([
    ...REFUSALS,
    ['too many requests', failure(429, {}, { 'retry-after': '7' }), 429, 'rate_limit_exceeded', ''],
    ['an overload', failure(503), 503, 'server_is_overloaded', ''],
    ['a failure', failure(500), 502, 'bad_upstream_response', ''],
    [
      'an error with status 200',
      whole({ error: { message: 'x', code: 'rate_limit_exceeded' } }),
      502,
      'bad_upstream_response',
      '',
    ],
    ['an answer without an image', whole({ ...made(), data: [] }), 502, 'bad_upstream_response', ''],
    ['an answer without a list', whole({ created: 1 }), 502, 'bad_upstream_response', ''],
    ['a web page', whole('<html>'), 502, 'bad_upstream_response', ''],
    ['something that is no image', whole(made('AAAA')), 502, 'bad_upstream_response', ''],
    ['a connection that breaks', hangUp(), 502, 'bad_upstream_response', ''],
  ])('%s is told with its status, and one that may be charged not with 429', async (_, answer, status, code) => {
    const { gateway, ask } = await open({}, answer)
    const heard = await ask()
    expect([heard.status, (heard.body.error as Json).code]).toEqual([status, code])
    if (code === 'rate_limit_exceeded' && heard.headers.has('retry-after')) {
      expect(heard.headers.get('retry-after')).toBe('7')
    }
    expect(JSON.stringify(heard.body) + gateway.logged()).not.toContain(KEY)
  })
})

const partial = (b64_json: string, partial_image_index: number, kind = 'image_generation') => ({
  type: `${kind}.partial_image`,
  b64_json,
  partial_image_index,
  created_at: 1,
  size: '1024x1024',
  quality: 'high',
  background: 'auto',
  output_format: 'png',
  unseen: 1,
})
const completed = (b64_json: string, kind = 'image_generation') => ({
  type: `${kind}.completed`,
  b64_json,
  usage: USAGE,
})
/** Events with names, as OpenAI writes them. */
const named = (...events: { type: string }[]) =>
  events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)

async function streamed(gateway: TestGateway, more: Json = {}, path = 'generations') {
  const json = { model: 'v/m', prompt: 'A kite', stream: true, ...more }
  const answer = await gateway.call(`/v1/images/${path}`, { json })
  const text = await answer.text()
  const events = text.split('\n\n').flatMap((block) => {
    const data = /^data: (.*)$/m.exec(block)?.[1]
    return data === undefined ? [] : [JSON.parse(data) as Json]
  })
  return { status: answer.status, events, text }
}
const EVENTS = [partial(PNG, 0), { type: 'image_generation.unseen' }, partial(JPEG, 1), completed(PNG)]

describe('a stream', () => {
  test.each([
    ['in one piece', {}],
    ['in pieces of three bytes', { chunkBytes: 3 }],
    ['that ends with its connection', { framing: 'close' as const, done: false }],
  ])('%s has its partial images, then the image with its counts', async (_, options) => {
    const { vendor, gateway } = await open({}, stream(named(...EVENTS), options))
    const { events } = await streamed(gateway, { partial_images: 2 })
    expect(events.map(({ type, b64_json, partial_image_index }) => [type, b64_json, partial_image_index])).toEqual([
      ['image_generation.partial_image', PNG, 0],
      ['image_generation.partial_image', JPEG, 1],
      ['image_generation.completed', PNG, undefined],
    ])
    expect(events[2]?.usage).toMatchObject({ total_tokens: 107 })
    expect(vendor.requests[0]?.json()).toEqual({
      model: 'gpt-image-2',
      prompt: 'A kite',
      stream: true,
      partial_images: 2,
    })
  })

  test('of an edit is a form as well', async () => {
    const kind = 'image_edit'
    const { vendor, gateway } = await open({}, stream(named(partial(PNG, 0, kind), completed(PNG, kind))))
    const { events } = await streamed(gateway, { partial_images: 1, image: URI }, 'edits')
    expect(events.map(({ type }) => type)).toEqual(['image_edit.partial_image', 'image_edit.completed'])
    const form = await formOf(vendor.requests[0])
    expect([form.get('stream'), form.get('partial_images')]).toEqual(['true', '1'])
  })

  for (const [how, options] of [
    ['cut', 'cutAfter'],
    ['torn', 'resetAfter'],
  ] as const) {
    test(`${how} after any event before its end is an error, and no image`, async () => {
      for (let after = 0; after < EVENTS.length; after++) {
        for (const framing of ['chunked', 'close'] as const) {
          const { gateway } = await open({}, stream(named(...EVENTS), { [options]: after, framing, done: false }))
          const { status, events, text } = await streamed(gateway, { partial_images: 2 })
          // What came in one read with the break may be lost with it.
          const error = status === 200 ? events.at(-1)?.error : JSON.parse(text).error
          expect(['upstream_cut', 'bad_upstream_response']).toContain((error as Json).code as string)
          if (status === 200) expect(events.at(-1)?.error).toMatchObject({ code: 'upstream_cut' })
          expect(events.length).toBeLessThanOrEqual(after + 1)
          expect(text).not.toContain('completed')
        }
      }
    })
  }

  test('of two images ends with the second', async () => {
    const events = [partial(PNG, 0), completed(PNG), completed(JPEG)]
    const { gateway } = await open({}, stream(named(...events), { hangAfter: events.length }))
    const { events: heard } = await streamed(gateway, { n: 2 })
    expect(heard.map(({ type, b64_json }) => [type, b64_json]).slice(-2)).toEqual([
      ['image_generation.completed', PNG],
      ['image_generation.completed', JPEG],
    ])
  })

  test('of two images, of which one was kept, is the other', async () => {
    const { gateway } = await open({}, stream(named(completed(PNG))))
    expect((await streamed(gateway, { n: 2 })).events.map(({ type }) => type)).toEqual(['image_generation.completed'])
  })

  test('that says no more after its image is at its end', async () => {
    const { gateway } = await open({}, stream(named(...EVENTS), { hangAfter: EVENTS.length }))
    expect((await streamed(gateway, { partial_images: 2 })).events.at(-1)?.type).toBe('image_generation.completed')
  })

  test('with an error in it tells that', async () => {
    const error = { type: 'error', error: { message: 'rejected by the safety system', code: 'moderation_blocked' } }
    const { gateway } = await open({}, stream(named(partial(PNG, 0), error)))
    const { events } = await streamed(gateway, { partial_images: 1 })
    expect(events.at(-1)?.error).toMatchObject({ code: 'bad_upstream_response' })
  })

  test('of a vendor that answers whole is its image', async () => {
    const { gateway } = await open({}, whole(made(PNG)))
    const { events } = await streamed(gateway, { partial_images: 2 })
    expect(events.map(({ type }) => type)).toEqual(['image_generation.completed'])
  })

  test('of a model that knows none is asked for whole, unless the operator says otherwise', async () => {
    const { vendor, gateway } = await open({ model: 'flux-1' }, whole(made(PNG)))
    expect((await streamed(gateway, { partial_images: 2 })).events).toHaveLength(1)
    expect(vendor.requests[0]?.json().stream).toBeUndefined()
    const config = { quirks: { image_stream: true } }
    const other = await open({ model: 'flux-1', config }, stream(named(...EVENTS)))
    expect((await streamed(other.gateway, { partial_images: 2 })).events).toHaveLength(3)
  })
})

describe('a client that leaves', () => {
  test.each([
    ['before the answer', [hang()], {}],
    ['within a stream', [stream(named(...EVENTS), { hangAfter: 1 })], { stream: true, partial_images: 2 }],
  ])('%s ends the connection to the vendor', async (_, answers, more) => {
    const { vendor, gateway } = await open({}, ...answers)
    const leaving = new AbortController()
    const json = { model: 'v/m', prompt: 'A kite', ...more }
    const asked = gateway.call('/v1/images/generations', { json, signal: leaving.signal })
    if ('stream' in more) {
      const reader = (await asked).body?.getReader()
      expect(new TextDecoder().decode((await reader?.read())?.value)).toContain('partial_image')
      await reader?.cancel()
    } else {
      await vendor.request()
      leaving.abort()
      await asked.catch(() => {})
    }
    expect((await vendor.aborted).path).toBe('/v1/images/generations')
  })
})

/** Orders it as a task, and waits for its end. */
async function ordered(gateway: TestGateway, more: Json = {}, path = 'generations') {
  const json = { model: 'v/m', prompt: 'A kite', async: true, ...more }
  const taken = (await (await gateway.call(`/v1/images/${path}`, { json })).json()) as { data: { task_id: string } }
  for (let turn = 0; turn < 400; turn++) {
    await gateway.instance.tasks.idle()
    const answer = await gateway.call(`/v1/images/generations/${taken.data.task_id}`)
    const { data } = (await answer.json()) as { data: { status: string; fail_code: string; outputs?: string[] } }
    if (data.status === 'SUCCESS' || data.status === 'FAILURE') return data
    gateway.clock.advance(1000)
  }
  throw new Error('it did not end')
}

describe('a task', () => {
  test('of several images is ordered once, and its files are had by their links', async () => {
    const { vendor, gateway } = await open({}, whole(made(PNG, JPEG)))
    const { status, outputs = [] } = await ordered(gateway, { n: 2 })
    expect([status, outputs.length, vendor.requests.length]).toEqual(['SUCCESS', 2, 1])
    const files = await Promise.all(
      outputs.map(async (url) => {
        const { pathname, search } = new URL(url)
        return Buffer.from(await (await gateway.call(`${pathname}${search}`)).bytes()).toString('base64')
      }),
    )
    expect(files).toEqual([PNG, JPEG])
  })

  test('whose image lies at the vendor is copied from there', async () => {
    const { vendor, gateway } = await open({ model: 'x' })
    vendor.answer(whole({ data: [{ url: `${vendor.origin}/files/1.png` }] }), file(PNG, 'image/png'))
    const { status, outputs = [] } = await ordered(gateway)
    const { pathname, search } = new URL(outputs[0] ?? '')
    expect(status).toBe('SUCCESS')
    expect(Buffer.from(await (await gateway.call(`${pathname}${search}`)).bytes()).toString('base64')).toBe(PNG)
  })

  test('of an edit is a form', async () => {
    const { vendor, gateway } = await open({}, whole(made(PNG)))
    expect((await ordered(gateway, { image: [URI, URI], mask: URI }, 'edits')).status).toBe('SUCCESS')
    const form = await formOf(vendor.requests[0])
    expect([form.getAll('image[]').length, form.getAll('mask').length]).toEqual([2, 1])
  })

  test.each(REFUSALS.map(([what, answer, , , fail_code]) => [what, fail_code, answer] as const))(
    'that is refused for %s fails with %s',
    async (_, fail_code, answer) => {
      const { vendor, gateway } = await open({}, answer)
      expect(await ordered(gateway)).toMatchObject({ status: 'FAILURE', fail_code })
      expect(vendor.requests).toHaveLength(1)
    },
  )

  test('that is refused for the moment is ordered again', async () => {
    const { vendor, gateway } = await open({}, failure(429, {}, { 'retry-after': '2' }), failure(429), whole(made(PNG)))
    expect((await ordered(gateway)).status).toBe('SUCCESS')
    expect(vendor.requests).toHaveLength(3)
  })

  test.each([
    ['a connection that breaks', hangUp()],
    ['a proxy that lost its patience', failure(504)],
    ['a failure', failure(500)],
    ['an overload', failure(503)],
    ['a conflict', failure(409)],
    ['a redirect', failure(307)],
    ['an answer that cannot be read', whole('<html>')],
  ])('is not ordered again after %s: nobody knows', async (_, answer) => {
    const { vendor, gateway } = await open({}, answer)
    expect(await ordered(gateway)).toMatchObject({ status: 'FAILURE', fail_code: 'submit_outcome_unknown' })
    expect(vendor.requests).toHaveLength(1)
  })

  test('of a vendor that answers without an image has failed', async () => {
    const { vendor, gateway } = await open({}, whole({ ...made(), data: [] }))
    expect(await ordered(gateway)).toMatchObject({ status: 'FAILURE', fail_code: 'no_output' })
    expect(vendor.requests).toHaveLength(1)
  })

  test.each([
    ['content_policy_violation', { id: 'b', status: 'Request Moderated', result: null }],
    ['generation_failed', { id: 'b', status: 'Error', result: null }],
  ])('whose work has failed at the vendor fails with %s, and is not ordered again', async (fail_code, said) => {
    const vendor = startVendor()
    const gateway = await startGateway({
      sandbox: false,
      providers: { v: { kind: 'black-forest-labs', base_url: vendor.url, key: KEY } },
      models: { 'v/m': { families: ['image-generation'], targets: [{ provider: 'v', model: 'flux-pro-1.1' }] } },
    })
    started.push({ vendor, gateway })
    vendor.answer(whole({ id: 'b', polling_url: `${vendor.url}/get_result?id=b` }), whole(said))
    expect(await ordered(gateway)).toMatchObject({ status: 'FAILURE', fail_code })
    expect(vendor.requests).toHaveLength(2)
  })
})

describe('the clients that people use', () => {
  const clientsOf = async (...answers: Answer[]) => {
    const vendor = startVendor(...answers)
    const port = await openPort({
      providers: {
        v: { base_url: vendor.url, key: KEY },
        g: { kind: 'google', base_url: `${vendor.origin}/v1beta`, key: KEY },
      },
      models: {
        'v/gpt-image-2': {},
        'g/gemini-2.5-flash-image': { families: ['image-generation'] },
      },
    })
    ports.push({ vendor, close: port.close })
    return {
      vendor,
      port,
      openai: new OpenAI({ apiKey: port.token, baseURL: port.url, maxRetries: 0 }),
      ai: createOpenAICompatible({ name: 'gatehouse', apiKey: port.token, baseURL: port.url }),
    }
  }

  test('openai 7 generates, changes several images, and follows a stream', async () => {
    const { vendor, openai } = await clientsOf(whole(made(PNG)), whole(made(JPEG)), stream(named(...EVENTS)))
    const model = 'v/gpt-image-2'
    const generated = await openai.images.generate({ model, prompt: 'A kite', quality: 'high', background: 'opaque' })
    expect([generated.data?.[0]?.b64_json, generated.usage?.total_tokens]).toEqual([PNG, 107])
    const image = await Promise.all(['a.png', 'b.png'].map((name) => toFile(bytesOf(PNG), name, { type: 'image/png' })))
    const mask = await toFile(bytesOf(PNG), 'mask.png', { type: 'image/png' })
    const edited = await openai.images.edit({ model, prompt: 'A kite', image, mask, input_fidelity: 'high' })
    expect(edited.data?.[0]?.b64_json).toBe(JPEG)
    const form = await formOf(vendor.requests[1])
    expect([form.getAll('image[]').length, form.getAll('mask').length]).toEqual([2, 1])
    const seen: string[] = []
    for await (const event of await openai.images.generate({ model, prompt: 'x', stream: true, partial_images: 2 })) {
      seen.push(`${event.type} ${event.b64_json}`)
    }
    expect(seen).toEqual([
      `image_generation.partial_image ${PNG}`,
      `image_generation.partial_image ${JPEG}`,
      `image_generation.completed ${PNG}`,
    ])
  })

  test('openai 7 hears a refusal in its own words', async () => {
    const { openai } = await clientsOf(
      failure(400, { message: 'rejected by the safety system', code: 'moderation_blocked' }),
    )
    const heard = await openai.images.generate({ model: 'v/gpt-image-2', prompt: 'x' }).catch((error: unknown) => error)
    expect(heard).toMatchObject({ status: 400, code: 'content_policy_violation' })
  })

  test('ai 7 generates images of a vendor of another kind, and changes one', async () => {
    const { vendor, ai } = await clientsOf()
    vendor.otherwise(
      whole({ candidates: [{ content: { parts: [{ inlineData: { mimeType: 'image/png', data: PNG } }] } }] }),
    )
    const model = ai.imageModel('g/gemini-2.5-flash-image')
    const { images } = await generateImage({ model, prompt: 'A kite', n: 2, size: '1024x1024' })
    expect(images.map(({ base64 }) => base64)).toEqual([PNG, PNG])
    const edited = await generateImage({ model, prompt: { text: 'Green', images: [bytesOf(PNG)] } })
    expect(edited.images).toHaveLength(1)
    expect(JSON.stringify(vendor.requests[2]?.json())).toContain(PNG)
  })
})
