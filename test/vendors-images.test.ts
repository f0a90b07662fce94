/** OpenAI-compatible vendors of images on loopback: whole and streamed responses, edits, errors and tasks. */
import { afterEach, describe, expect, test } from 'bun:test'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateImage } from 'ai'
import OpenAI, { toFile } from 'openai'
import type { ProviderConfig } from '../src/config/schema/schema.ts'
import { startGateway, type TestGateway } from './kit/gateway.ts'
import { openPort } from './kit/served.ts'
import { TINY_JPEG, TINY_PNG_BASE64 } from './kit/tiny-files.ts'
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

/** A PNG of one pixel, and a JPEG as a different image. */
const PNG = TINY_PNG_BASE64
const JPEG = Buffer.from(TINY_JPEG).toString('base64')
const URI = `data:image/png;base64,${PNG}`
const bytesOf = (base64: string) => new Uint8Array(Buffer.from(base64, 'base64'))

const USAGE = {
  total_tokens: 107,
  input_tokens: 7,
  output_tokens: 100,
  input_tokens_details: { text_tokens: 7, image_tokens: 0, unseen: 1 },
  output_tokens_details: { image_tokens: 100, text_tokens: 0 },
}
/** The response of api.openai.com for a GPT image model. */
const imageResponse = (...images: string[]) => ({
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
  const request = async (more: Json = {}, path = 'generations') => {
    const answer = await gateway.call(`/v1/images/${path}`, { json: { model: 'v/m', prompt: 'A kite', ...more } })
    return { status: answer.status, body: (await answer.json()) as Json, headers: answer.headers }
  }
  return { vendor, gateway, request }
}

/** The form that the vendor received. */
async function formOf(request: VendorRequest | undefined): Promise<FormData> {
  const { headers, bytes } = request ?? { headers: {} as Record<string, string>, bytes: new Uint8Array() }
  return new Response(new Uint8Array(bytes), { headers: { 'content-type': headers['content-type'] ?? '' } }).formData()
}

/** A file, as a vendor's storage returns it. */
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
  test('of a GPT image model sends only its fields, and returns images, prompts and token counts', async () => {
    const answer = imageResponse(PNG, JPEG)
    Object.assign(answer.data[1] ?? {}, { revised_prompt: 'A red kite' })
    const { vendor, request } = await open({}, whole(answer))
    const fields = {
      n: 2,
      size: 'auto',
      quality: 'high',
      background: 'opaque',
      output_format: 'png',
      output_compression: 90,
      moderation: 'low',
      user: 'u',
    }
    const { status, body } = await request({ ...fields, style: 'vivid', response_format: 'b64_json' })
    expect(status).toBe(200)
    expect(body.data).toEqual([{ b64_json: PNG }, { b64_json: JPEG, revised_prompt: 'A red kite' }])
    expect(body.usage).toEqual({
      input_tokens: 7,
      output_tokens: 100,
      total_tokens: 107,
      input_tokens_details: { text_tokens: 7, image_tokens: 0 },
    })
    const [sent] = vendor.requests
    expect([sent?.path, sent?.headers.authorization]).toEqual(['/v1/images/generations', `Bearer ${KEY}`])
    expect(sent?.json()).toEqual({ model: 'gpt-image-2', prompt: 'A kite', ...fields })
  })

  test('of another model requests base64, and omits the size auto', async () => {
    const { vendor, request } = await open({ model: 'flux-1' }, whole({ data: [{ b64_json: URI }] }))
    const { body } = await request({ size: 'auto', seed: 5, negative_prompt: 'rain', aspect_ratio: '16:9' })
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
  ] as const)('sends the response_format that the quirk %s selects', async (image_response_format, value) => {
    const { vendor, request } = await open(
      { model: 'x', config: { quirks: { image_response_format } } },
      whole(imageResponse(PNG)),
    )
    expect((await request()).status).toBe(200)
    expect(vendor.requests[0]?.json().response_format).toBe(value)
  })

  test('drops and renames fields by configuration, and sends the options of the vendor', async () => {
    const config = { fields: { drop: ['user', 'response_format'], rename: { size: 'image_size' } } }
    const { vendor, request } = await open({ model: 'x', config }, whole(imageResponse(PNG)))
    await request({
      user: 'u',
      size: '512x512',
      metadata: { chatcompat: { steps: 4, n: 9, model: 'y' }, other: { a: 1 } },
    })
    expect(vendor.requests[0]?.json()).toEqual({ model: 'x', prompt: 'A kite', image_size: '512x512', steps: 4 })
  })

  test('downloads an image from the vendor, with the key', async () => {
    const { vendor, request } = await open({ model: 'x' })
    vendor.answer(whole({ images: [{ url: `${vendor.origin}/files/1.png` }], timings: {} }), file(PNG, 'image/png'))
    expect((await request()).body.data).toEqual([{ b64_json: PNG }])
    expect(vendor.requests[1]).toMatchObject({ method: 'GET', path: '/files/1.png' })
    expect(vendor.requests[1]?.headers.authorization).toBe(`Bearer ${KEY}`)
  })

  test('does not download an image from an address that is not public', async () => {
    const { request } = await open({ model: 'x' }, whole({ data: [{ url: 'http://127.0.0.1:9/1.png' }] }))
    expect(await request()).toMatchObject({ status: 502, body: { error: { code: 'bad_upstream_response' } } })
  })

  test('with response_format url stores the image and returns a link to it', async () => {
    const { gateway, request } = await open({}, whole(imageResponse(PNG)))
    const { body } = await request({ response_format: 'url' })
    const { pathname, search } = new URL((body.data as { url: string }[])[0]?.url ?? '')
    const file = await gateway.call(`${pathname}${search}`)
    expect(Buffer.from(await file.bytes()).toString('base64')).toBe(PNG)
  })

  test.each([
    ['gpt-image-2', { seed: 1 }, 'seed'],
    ['chatgpt-image-latest', { aspect_ratio: '1:1' }, 'aspect_ratio'],
    ['dall-e-3', { output_format: 'webp' }, 'output_format'],
  ])('of %s rejects an unsupported field before a request is sent', async (model, more, param) => {
    const { vendor, request } = await open({ model })
    expect(await request(more)).toMatchObject({
      status: 400,
      body: { error: { code: 'unsupported_parameter', param } },
    })
    expect(vendor.requests).toHaveLength(0)
  })
})

describe('an edit', () => {
  test('of several images with a mask is sent as a form with files', async () => {
    const { vendor, request } = await open({}, whole(imageResponse(PNG)))
    const image = [URI, `data:image/jpeg;base64,${JPEG}`]
    const { status } = await request({ image, mask: PNG, n: 2, input_fidelity: 'high', size: '1024x1024' }, 'edits')
    expect(status).toBe(200)
    const [sent] = vendor.requests
    const form = await formOf(sent)
    expect(sent?.path).toBe('/v1/images/edits')
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

  test('of one image sends one field `image`', async () => {
    const { vendor, request } = await open({}, whole(imageResponse(PNG)))
    await request({ image: URI }, 'edits')
    expect((await formOf(vendor.requests[0])).getAll('image')).toHaveLength(1)
  })

  test('that is a variation has its own path and no prompt', async () => {
    const { vendor, request } = await open({ model: 'dall-e-2' }, whole(imageResponse(PNG)))
    expect((await request({ image: URI, prompt: undefined }, 'variations')).status).toBe(200)
    const form = await formOf(vendor.requests[0])
    expect([vendor.requests[0]?.path, form.has('prompt'), form.get('response_format')]).toEqual([
      '/v1/images/variations',
      false,
      'b64_json',
    ])
  })

  test('of an unreadable image is rejected before a request is sent', async () => {
    const { vendor, request } = await open({})
    const image = `data:image/png;base64,${Buffer.from('not an image').toString('base64')}`
    expect(await request({ image }, 'edits')).toMatchObject({
      status: 400,
      body: { error: { code: 'input_media_invalid', param: 'image' } },
    })
    expect(vendor.requests).toHaveLength(0)
  })
})

/** A response of the vendor, the status and the code for the client, and the fail code of a task. */
const ERRORS: [title: string, answer: Answer, status: number, code: string, fail_code: string][] = [
  [
    'an unknown field',
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

describe('an error', () => {
  test.each([
    ...ERRORS,
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
    ['a response without an image', whole({ ...imageResponse(), data: [] }), 502, 'bad_upstream_response', ''],
    ['a response without a list', whole({ created: 1 }), 502, 'bad_upstream_response', ''],
    ['a web page', whole('<html>'), 502, 'bad_upstream_response', ''],
    ['bytes that are not an image', whole(imageResponse('AAAA')), 502, 'bad_upstream_response', ''],
    ['a broken connection', hangUp(), 502, 'bad_upstream_response', ''],
  ])(
    '%s is returned with its status, and never with 429 if the order may be charged',
    async (_, answer, status, code) => {
      const { gateway, request } = await open({}, answer)
      const response = await request()
      expect([response.status, (response.body.error as Json).code]).toEqual([status, code])
      if (code === 'rate_limit_exceeded' && response.headers.has('retry-after')) {
        expect(response.headers.get('retry-after')).toBe('7')
      }
      expect(JSON.stringify(response.body) + gateway.logged()).not.toContain(KEY)
    },
  )
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
/** Named events, as OpenAI sends them. */
const encodeEvents = (...events: { type: string }[]) =>
  events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)

async function requestStream(gateway: TestGateway, more: Json = {}, path = 'generations') {
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
  ])('%s has its partial images, then the image with its token counts', async (_, options) => {
    const { vendor, gateway } = await open({}, stream(encodeEvents(...EVENTS), options))
    const { events } = await requestStream(gateway, { partial_images: 2 })
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

  test('of an edit is sent as a form', async () => {
    const kind = 'image_edit'
    const { vendor, gateway } = await open({}, stream(encodeEvents(partial(PNG, 0, kind), completed(PNG, kind))))
    const { events } = await requestStream(gateway, { partial_images: 1, image: URI }, 'edits')
    expect(events.map(({ type }) => type)).toEqual(['image_edit.partial_image', 'image_edit.completed'])
    const form = await formOf(vendor.requests[0])
    expect([form.get('stream'), form.get('partial_images')]).toEqual(['true', '1'])
  })

  const BREAKS = (['cutAfter', 'resetAfter'] as const).flatMap((option) =>
    (['chunked', 'close'] as const).flatMap((framing) => EVENTS.map((_, after) => [option, after, framing] as const)),
  )
  test.each(BREAKS)('with %s %d and the framing %s is an error, without an image', async (option, after, framing) => {
    const { gateway } = await open({}, stream(encodeEvents(...EVENTS), { [option]: after, framing, done: false }))
    const { status, events, text } = await requestStream(gateway, { partial_images: 2 })
    // Events that arrive in one read with the break may be lost with it.
    const error = status === 200 ? events.at(-1)?.error : JSON.parse(text).error
    expect(['upstream_cut', 'bad_upstream_response']).toContain((error as Json).code as string)
    if (status === 200) expect(events.at(-1)?.error).toMatchObject({ code: 'upstream_cut' })
    expect(events.length).toBeLessThanOrEqual(after + 1)
    expect(text).not.toContain('completed')
  })

  test('of two images ends with the second', async () => {
    const events = [partial(PNG, 0), completed(PNG), completed(JPEG)]
    const { gateway } = await open({}, stream(encodeEvents(...events), { hangAfter: events.length }))
    const { events: received } = await requestStream(gateway, { n: 2 })
    expect(received.map(({ type, b64_json }) => [type, b64_json]).slice(-2)).toEqual([
      ['image_generation.completed', PNG],
      ['image_generation.completed', JPEG],
    ])
  })

  test('returns the remaining image when one of two is missing', async () => {
    const { gateway } = await open({}, stream(encodeEvents(completed(PNG))))
    expect((await requestStream(gateway, { n: 2 })).events.map(({ type }) => type)).toEqual([
      'image_generation.completed',
    ])
  })

  test('ends after the image even if the vendor keeps the connection open', async () => {
    const { gateway } = await open({}, stream(encodeEvents(...EVENTS), { hangAfter: EVENTS.length }))
    expect((await requestStream(gateway, { partial_images: 2 })).events.at(-1)?.type).toBe('image_generation.completed')
  })

  test('ends with the error of the vendor', async () => {
    const error = { type: 'error', error: { message: 'rejected by the safety system', code: 'moderation_blocked' } }
    const { gateway } = await open({}, stream(encodeEvents(partial(PNG, 0), error)))
    const { events } = await requestStream(gateway, { partial_images: 1 })
    expect(events.at(-1)?.error).toMatchObject({ code: 'bad_upstream_response' })
  })

  test('of a vendor that does not stream contains the image', async () => {
    const { gateway } = await open({}, whole(imageResponse(PNG)))
    const { events } = await requestStream(gateway, { partial_images: 2 })
    expect(events.map(({ type }) => type)).toEqual(['image_generation.completed'])
  })

  test('of a model without streams is requested as a whole, unless image_stream is set', async () => {
    const { vendor, gateway } = await open({ model: 'flux-1' }, whole(imageResponse(PNG)))
    expect((await requestStream(gateway, { partial_images: 2 })).events).toHaveLength(1)
    expect(vendor.requests[0]?.json().stream).toBeUndefined()
    const config = { quirks: { image_stream: true } }
    const other = await open({ model: 'flux-1', config }, stream(encodeEvents(...EVENTS)))
    expect((await requestStream(other.gateway, { partial_images: 2 })).events).toHaveLength(3)
  })
})

describe('a client that disconnects', () => {
  test.each([
    ['before the response', [hang()], {}],
    ['within a stream', [stream(encodeEvents(...EVENTS), { hangAfter: 1 })], { stream: true, partial_images: 2 }],
  ])('%s aborts the request to the vendor', async (_, answers, more) => {
    const { vendor, gateway } = await open({}, ...answers)
    const controller = new AbortController()
    const json = { model: 'v/m', prompt: 'A kite', ...more }
    const pending = gateway.call('/v1/images/generations', { json, signal: controller.signal })
    if ('stream' in more) {
      const reader = (await pending).body?.getReader()
      expect(new TextDecoder().decode((await reader?.read())?.value)).toContain('partial_image')
      await reader?.cancel()
    } else {
      await vendor.request()
      controller.abort()
      await pending.catch(() => {})
    }
    expect((await vendor.aborted).path).toBe('/v1/images/generations')
  })
})

/** Creates a task and waits until it ends. */
async function runTask(gateway: TestGateway, more: Json = {}, path = 'generations') {
  const json = { model: 'v/m', prompt: 'A kite', async: true, ...more }
  const accepted = (await (await gateway.call(`/v1/images/${path}`, { json })).json()) as { data: { task_id: string } }
  for (let attempt = 0; attempt < 400; attempt++) {
    await gateway.instance.tasks.idle()
    const answer = await gateway.call(`/v1/images/generations/${accepted.data.task_id}`)
    const { data } = (await answer.json()) as { data: { status: string; fail_code: string; outputs?: string[] } }
    if (data.status === 'SUCCESS' || data.status === 'FAILURE') return data
    gateway.clock.advance(1000)
  }
  throw new Error('the task did not end')
}

describe('a task', () => {
  test('of several images is one order, and its links return the files', async () => {
    const { vendor, gateway } = await open({}, whole(imageResponse(PNG, JPEG)))
    const { status, outputs = [] } = await runTask(gateway, { n: 2 })
    expect([status, outputs.length, vendor.requests.length]).toEqual(['SUCCESS', 2, 1])
    const files = await Promise.all(
      outputs.map(async (url) => {
        const { pathname, search } = new URL(url)
        return Buffer.from(await (await gateway.call(`${pathname}${search}`)).bytes()).toString('base64')
      }),
    )
    expect(files).toEqual([PNG, JPEG])
  })

  test('copies an image by URL from the vendor', async () => {
    const { vendor, gateway } = await open({ model: 'x' })
    vendor.answer(whole({ data: [{ url: `${vendor.origin}/files/1.png` }] }), file(PNG, 'image/png'))
    const { status, outputs = [] } = await runTask(gateway)
    const { pathname, search } = new URL(outputs[0] ?? '')
    expect(status).toBe('SUCCESS')
    expect(Buffer.from(await (await gateway.call(`${pathname}${search}`)).bytes()).toString('base64')).toBe(PNG)
  })

  test('of an edit is sent as a form', async () => {
    const { vendor, gateway } = await open({}, whole(imageResponse(PNG)))
    expect((await runTask(gateway, { image: [URI, URI], mask: URI }, 'edits')).status).toBe('SUCCESS')
    const form = await formOf(vendor.requests[0])
    expect([form.getAll('image[]').length, form.getAll('mask').length]).toEqual([2, 1])
  })

  test.each(ERRORS.map(([title, answer, , , fail_code]) => [title, fail_code, answer] as const))(
    'with the response %s fails with %s',
    async (_, fail_code, answer) => {
      const { vendor, gateway } = await open({}, answer)
      expect(await runTask(gateway)).toMatchObject({ status: 'FAILURE', fail_code })
      expect(vendor.requests).toHaveLength(1)
    },
  )

  test('is submitted again after 429', async () => {
    const { vendor, gateway } = await open(
      {},
      failure(429, {}, { 'retry-after': '2' }),
      failure(429),
      whole(imageResponse(PNG)),
    )
    expect((await runTask(gateway)).status).toBe('SUCCESS')
    expect(vendor.requests).toHaveLength(3)
  })

  test.each([
    ['a broken connection', hangUp()],
    ['a timeout of a proxy', failure(504)],
    ['a failure', failure(500)],
    ['an overload', failure(503)],
    ['a conflict', failure(409)],
    ['a redirect', failure(307)],
    ['a response that is not JSON', whole('<html>')],
  ])('is not submitted again after %s, because the order may have been accepted', async (_, answer) => {
    const { vendor, gateway } = await open({}, answer)
    expect(await runTask(gateway)).toMatchObject({ status: 'FAILURE', fail_code: 'submit_outcome_unknown' })
    expect(vendor.requests).toHaveLength(1)
  })

  test('fails when the response has no image', async () => {
    const { vendor, gateway } = await open({}, whole({ ...imageResponse(), data: [] }))
    expect(await runTask(gateway)).toMatchObject({ status: 'FAILURE', fail_code: 'no_output' })
    expect(vendor.requests).toHaveLength(1)
  })

  test.each([
    ['content_policy_violation', { id: 'b', status: 'Request Moderated', result: null }],
    ['generation_failed', { id: 'b', status: 'Error', result: null }],
  ])('that fails at the vendor has the fail code %s and is not submitted again', async (fail_code, taskState) => {
    const vendor = startVendor()
    const gateway = await startGateway({
      sandbox: false,
      providers: { v: { kind: 'black-forest-labs', base_url: vendor.url, key: KEY } },
      models: { 'v/m': { families: ['image-generation'], targets: [{ provider: 'v', model: 'flux-pro-1.1' }] } },
    })
    started.push({ vendor, gateway })
    vendor.answer(whole({ id: 'b', polling_url: `${vendor.url}/get_result?id=b` }), whole(taskState))
    expect(await runTask(gateway)).toMatchObject({ status: 'FAILURE', fail_code })
    expect(vendor.requests).toHaveLength(2)
  })
})

describe('client libraries', () => {
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

  test('openai 7 generates an image, edits several images, and reads a stream', async () => {
    const { vendor, openai } = await clientsOf(
      whole(imageResponse(PNG)),
      whole(imageResponse(JPEG)),
      stream(encodeEvents(...EVENTS)),
    )
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

  test('openai 7 gets a rejection with its error code', async () => {
    const { openai } = await clientsOf(
      failure(400, { message: 'rejected by the safety system', code: 'moderation_blocked' }),
    )
    const error = await openai.images
      .generate({ model: 'v/gpt-image-2', prompt: 'x' })
      .catch((reason: unknown) => reason)
    expect(error).toMatchObject({ status: 400, code: 'content_policy_violation' })
  })

  test('ai 7 generates images at a vendor of another kind, and edits one', async () => {
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
