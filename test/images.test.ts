/** Images: synchronous, as a stream, as a task; with common client libraries, against the sandbox. */
import { afterAll, describe, expect, test } from 'bun:test'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { createCanvas, loadImage } from '@napi-rs/canvas'
import { generateImage } from 'ai'
import OpenAI, { toFile } from 'openai'
import OldOpenAI from 'openai-6'
import { sniff } from '../src/kit/sniff.ts'
import { startGateway } from './kit/gateway.ts'
import { openPort } from './kit/served.ts'
import { TINY_PNG_BASE64 } from './kit/tiny-files.ts'
import { type Answer, failure, hangUp, startVendor, whole } from './kit/vendor.ts'

const port = await openPort()
afterAll(() => port.close())
const client = new OpenAI({ apiKey: port.token, baseURL: port.url, maxRetries: 0 })
const MODEL = 'sandbox/image'

const bytesOf = (base64 = '') => new Uint8Array(Buffer.from(base64, 'base64'))
const sizeOf = async (bytes: Uint8Array) => {
  const { width, height } = await loadImage(Buffer.from(bytes))
  return `${width}x${height}`
}
const post = (path: string, json: object) => port.gateway.call(path, { json })

/** A square of one colour. */
async function square(colour: string): Promise<Uint8Array<ArrayBuffer>> {
  const canvas = createCanvas(64, 64)
  const context = canvas.getContext('2d')
  context.fillStyle = colour
  context.fillRect(0, 0, 64, 64)
  return new Uint8Array(canvas.encodeSync('png'))
}

/** The colour at a position, given as fractions of the width and height. */
async function colourAt(bytes: Uint8Array, x: number, y: number): Promise<number[]> {
  const image = await loadImage(Buffer.from(bytes))
  const canvas = createCanvas(image.width, image.height)
  const context = canvas.getContext('2d')
  context.drawImage(image, 0, 0)
  return [...context.getImageData(Math.floor(x * image.width), Math.floor(y * image.height), 1, 1).data]
}

describe('POST /v1/images', () => {
  const PNG = `data:image/png;base64,${TINY_PNG_BASE64}`
  const reference = (url: unknown) => ({ type: 'image_url', image_url: { url } })

  test('creates images with their type and the counts under the names of OpenRouter', async () => {
    const body = { model: MODEL, prompt: 'A kite', n: 2, size: '512x512', output_format: 'webp', seed: null, other: 1 }
    const response = await post('/v1/images', body)
    const { created, data, usage } = await response.json()
    expect([response.status, created]).toEqual([200, expect.any(Number)])
    expect(data).toHaveLength(2)
    for (const { b64_json, media_type } of data) {
      expect([media_type, sniff(bytesOf(b64_json)), await sizeOf(bytesOf(b64_json))]).toEqual([
        'image/webp',
        'image/webp',
        '512x512',
      ])
    }
    expect(Object.keys(usage)).toEqual(['prompt_tokens', 'completion_tokens', 'total_tokens'])
    expect(usage.total_tokens).toBe(usage.prompt_tokens + usage.completion_tokens)
  })

  test('edits the images of "input_references"', async () => {
    const url = `data:image/png;base64,${Buffer.from(await square('red')).toString('base64')}`
    const response = await post('/v1/images', { model: MODEL, prompt: 'Sign it', input_references: [reference(url)] })
    const { data } = await response.json()
    expect(response.status).toBe(200)
    expect(await colourAt(bytesOf(data[0].b64_json), 0.02, 0.02)).toEqual([255, 0, 0, 255])
  })

  test('takes as many references as the model', async () => {
    const asked = (count: number) =>
      post('/v1/images', { model: MODEL, prompt: 'x', input_references: Array(count).fill(reference(PNG)) })
    expect((await asked(16)).status).toBe(200)
    const refused = await asked(17)
    expect([refused.status, (await refused.json()).error.param]).toEqual([400, 'input_references'])
  })

  test.each([
    [{ prompt: undefined }, 'prompt'],
    [{ n: 0 }, 'n'],
    [{ stream: true }, 'stream'],
    [{ resolution: '4K' }, 'resolution'],
    [{ input_references: [] }, 'input_references'],
    [{ input_references: [reference(5)] }, 'input_references[0].image_url.url'],
    [{ input_references: [reference('no image')] }, 'input_references[0]'],
    [{ input_references: [{ ...reference(PNG), type: 'video_url' }] }, 'input_references[0].type'],
  ])('refuses %j by the name of its field', async (fields, param) => {
    const response = await post('/v1/images', { model: MODEL, prompt: 'A kite', ...fields })
    const { error } = await response.json()
    expect([response.status, error.param]).toEqual([400, param])
    expect(error.message).toContain(`"${param}"`)
  })
})

describe('a synchronous image', () => {
  for (const [name, Client] of [
    ['openai 7', OpenAI],
    ['openai 6', OldOpenAI],
  ] as const) {
    test(`${name} gets its bytes in the requested size and format`, async () => {
      // Only one of the two versions is typed here; both are called in the same way.
      const { images } = new Client({ apiKey: port.token, baseURL: port.url, maxRetries: 0 }) as OpenAI
      for (const [output_format, type] of [
        ['png', 'image/png'],
        ['jpeg', 'image/jpeg'],
        ['webp', 'image/webp'],
      ] as const) {
        const answer = await images.generate({ model: MODEL, prompt: 'A kite', size: '512x512', output_format })
        const bytes = bytesOf(answer.data?.[0]?.b64_json)
        expect([sniff(bytes), await sizeOf(bytes)]).toEqual([type, '512x512'])
        expect(answer.output_format).toBe(output_format)
        expect(answer.usage?.output_tokens).toBe(256)
      }
    })
  }

  test('the AI SDK generates several different ones', async () => {
    const provider = createOpenAICompatible({ name: 'gatehouse', apiKey: port.token, baseURL: port.url })
    const { images } = await generateImage({
      model: provider.imageModel(MODEL),
      prompt: 'A kite',
      n: 2,
      size: '256x256',
    })
    expect(images.map(({ mediaType }) => mediaType)).toEqual(['image/png', 'image/png'])
    expect(images[0]?.base64).not.toBe(images[1]?.base64)
  })

  test('the same prompt and seed give the same image, another prompt gives another', async () => {
    const imageOf = async (prompt: string, seed: number) => {
      const answer = await post('/v1/images/generations', { model: MODEL, prompt, seed, size: '256x256' })
      return (await answer.json()).data[0].b64_json as string
    }
    const [one, same, other, seeded] = await Promise.all([
      imageOf('A kite', 1),
      imageOf('A kite', 1),
      imageOf('A kiln', 1),
      imageOf('A kite', 2),
    ])
    expect(same).toBe(one)
    expect(other).not.toBe(one)
    expect(seeded).not.toBe(one)
  })

  test('with a URL is stored, and served without a token until the link expires', async () => {
    const answer = await client.images.generate({ model: MODEL, prompt: 'A kite', n: 2, response_format: 'url' })
    const urls = answer.data?.map(({ url = '' }) => url) ?? []
    expect(urls).toHaveLength(2)
    for (const url of urls) {
      const { pathname, search } = new URL(url)
      const file = await port.gateway.call(`${pathname}${search}`, { headers: { authorization: '' } })
      expect([file.status, file.headers.get('content-type')]).toEqual([200, 'image/png'])
      expect(await sizeOf(await file.bytes())).toBe('1024x1024')
      const forged = await port.gateway.call(`${pathname}${search}x`, { headers: { authorization: '' } })
      expect(forged.status).toBe(403)
    }
    const { data } = await (await port.gateway.call('/v1/images/generations')).json()
    expect(data.tasks[0]).toMatchObject({ status: 'SUCCESS', progress: '100%' })
    expect(data.tasks[0].outputs).toHaveLength(2)
  })
})

describe('an edit', () => {
  test('changes the image, and with a mask only where the mask is transparent', async () => {
    const image = await toFile(await square('#ff0000'), 'a.png', { type: 'image/png' })
    const answer = await client.images.edit({ model: MODEL, image, prompt: 'A kite', size: '256x256' })
    expect(await colourAt(bytesOf(answer.data?.[0]?.b64_json), 0.02, 0.5)).toEqual([255, 0, 0, 255])
    const canvas = createCanvas(64, 64)
    canvas.getContext('2d').fillRect(0, 0, 32, 64)
    const mask = await toFile(canvas.encodeSync('png'), 'mask.png', { type: 'image/png' })
    const masked = await client.images.edit({ model: MODEL, image, mask, prompt: 'A kite', size: '256x256' })
    const bytes = bytesOf(masked.data?.[0]?.b64_json)
    expect(await colourAt(bytes, 0.02, 0.5)).toEqual([255, 0, 0, 255])
    expect(await colourAt(bytes, 0.98, 0.5)).not.toEqual([255, 0, 0, 255])
  })

  test('of up to 16 images places them side by side', async () => {
    const [red, blue] = await Promise.all(
      ['#ff0000', '#0000ff'].map(async (colour) => toFile(await square(colour), 'a.png', { type: 'image/png' })),
    )
    const edit = async (count: number) =>
      await client.images.edit({
        model: MODEL,
        image: Array.from({ length: count }, (_, at) => (at === count - 1 ? blue : red)) as File[],
        prompt: 'A kite',
        size: '256x256',
      })
    for (const count of [2, 16]) {
      const bytes = bytesOf((await edit(count)).data?.[0]?.b64_json)
      expect(await colourAt(bytes, 0.02, 0.5)).toEqual([255, 0, 0, 255])
      expect(await colourAt(bytes, 0.98, 0.5)).toEqual([0, 0, 255, 255])
    }
    await expect(edit(17)).rejects.toMatchObject({ status: 400, param: 'image' })
  })

  test('accepts the image as a data URI too, and the field as a list', async () => {
    const uri = `data:image/png;base64,${Buffer.from(await square('#00ff00')).toString('base64')}`
    for (const image of [uri, [uri]]) {
      expect((await post('/v1/images/edits', { model: MODEL, prompt: 'x', image, size: '256x256' })).status).toBe(200)
    }
    const form = new FormData()
    form.set('model', MODEL)
    form.set('prompt', 'x')
    form.set('size', '256x256')
    form.append('image[]', new Blob([await square('#00ff00')], { type: 'image/png' }), 'a.png')
    const request = new Request('http://gate.test/v1/images/edits', {
      method: 'POST',
      headers: { authorization: `Bearer ${port.token}` },
      body: form,
    })
    expect((await port.gateway.instance.fetch(request)).status).toBe(200)
  })

  test('of a file that is not an image returns an error that names the field', async () => {
    const refused = await post('/v1/images/edits', { model: MODEL, prompt: 'x', image: 'AAAA' })
    const { error } = await refused.json()
    expect([refused.status, error.param]).toEqual([400, 'image'])
  })

  test('of a small file with too many pixels is rejected before it is decoded', async () => {
    const bytes = Buffer.from(await square('#ff0000'))
    bytes.writeUInt32BE(100_000, 16)
    bytes.writeUInt32BE(100_000, 20)
    const image = `data:image/png;base64,${bytes.toString('base64')}`
    const refused = await post('/v1/images/edits', { model: MODEL, prompt: 'x', image })
    const { error } = await refused.json()
    expect([refused.status, error.param]).toEqual([400, 'image'])
    expect(error.message).toContain('36000000 pixels')
  })

  test('without an image is rejected, and so are a generation with one and a variation of two', async () => {
    const uri = `data:image/png;base64,${Buffer.from(await square('#00ff00')).toString('base64')}`
    const cases: [string, object, string][] = [
      ['edits', { prompt: 'x' }, 'image'],
      ['generations', { prompt: 'x', image: uri }, 'image'],
      ['generations', { prompt: 'x', mask: uri }, 'mask'],
      ['edits', { image: uri }, 'prompt'],
      ['variations', { image: [uri, uri] }, 'image'],
    ]
    for (const [path, body, param] of cases) {
      const response = await post(`/v1/images/${path}`, { model: MODEL, ...body })
      const { error } = await response.json()
      expect([path, response.status, error.param]).toEqual([path, 400, param])
    }
    const varied = await client.images.createVariation({
      model: MODEL,
      image: await toFile(await square('#0000ff'), 'a.png', { type: 'image/png' }),
      size: '256x256',
    })
    expect(await sizeOf(bytesOf(varied.data?.[0]?.b64_json))).toBe('256x256')
  })
})

describe('a stream', () => {
  test('has partial images, then the complete image with its usage', async () => {
    const stream = await client.images.generate({
      model: MODEL,
      prompt: 'A kite',
      size: '256x256',
      stream: true,
      partial_images: 2,
    })
    const seen: string[] = []
    for await (const event of stream) {
      seen.push(event.type)
      expect(await sizeOf(bytesOf(event.b64_json))).toBe('256x256')
      if (event.type === 'image_generation.partial_image') expect(event.partial_image_index).toBe(seen.length - 1)
      else expect(event.usage.total_tokens).toBeGreaterThan(0)
    }
    expect(seen).toEqual([
      'image_generation.partial_image',
      'image_generation.partial_image',
      'image_generation.completed',
    ])
  })

  test('of an edit has the event names of edits', async () => {
    const image = await toFile(await square('#ff0000'), 'a.png', { type: 'image/png' })
    const stream = await client.images.edit({ model: MODEL, image, prompt: 'A kite', size: '256x256', stream: true })
    const seen: string[] = []
    for await (const event of stream) seen.push(event.type)
    expect(seen).toEqual(['image_edit.completed'])
  })

  describe('of a silent provider', () => {
    const silent = async () => {
      const answer = Promise.withResolvers<Answer>()
      const vendor = startVendor(async (wire) => (await answer.promise)(wire))
      const gateway = await startGateway({
        providers: { v: { base_url: vendor.url } },
        models: { 'v/m': { families: ['image-generation'] } },
      })
      const json = { model: 'v/m', prompt: 'A kite', stream: true }
      const coming = gateway.call('/v1/images/generations', { json })
      await vendor.request()
      return {
        gateway,
        coming,
        respondWith: answer.resolve,
        async [Symbol.asyncDispose]() {
          await gateway[Symbol.asyncDispose]()
          await vendor.stop()
        },
      }
    }

    test('starts with a keep-alive 15 s after the request, not earlier', async () => {
      await using stream = await silent()
      stream.gateway.clock.advance(14_999)
      await new Promise((resolve) => setImmediate(resolve))
      expect(Bun.peek.status(stream.coming)).toBe('pending')
      stream.gateway.clock.advance(1)
      const response = await stream.coming
      expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8'])
      stream.respondWith(
        whole({ created: 1, data: [{ b64_json: Buffer.from(await square('#00ff00')).toString('base64') }] }),
      )
      const blocks = (await response.text()).split('\n\n').filter(Boolean)
      expect(blocks).toEqual([': keep-alive', expect.stringContaining('image_generation.completed')])
    })

    test.each([
      [14_999, 502, /^\{"code":"bad_upstream_response"/],
      [15_000, 200, /^: keep-alive\n\n(event: error\n)?data: \{.*"bad_upstream_response"/],
    ])('that fails after %d ms returns the error with status %d', async (ms, status, text) => {
      await using stream = await silent()
      stream.gateway.clock.advance(ms)
      await new Promise((resolve) => setImmediate(resolve))
      stream.respondWith(failure(500))
      const response = await stream.coming
      expect(response.status).toBe(status)
      expect(await response.text()).toMatch(text)
    })
  })

  test('that is rejected before its first event returns the status of the error', async () => {
    const body = { model: MODEL, prompt: '@sandbox status=429 retry_after=7', stream: true }
    const response = await post('/v1/images/generations', body)
    expect([response.status, response.headers.get('retry-after')]).toEqual([429, '7'])
  })
})

describe('a task', () => {
  test('is accepted at once, and has its links when it has finished', async () => {
    const created = await (
      await post('/v1/images/generations', { model: MODEL, prompt: 'A kite', size: '256x256', n: 2, async: true })
    ).json()
    expect(created).toMatchObject({ code: 'success', message: '', fail_code: '' })
    const path = `/v1/images/generations/${created.data.task_id}`
    let task = (await (await port.gateway.call(`${path}?wait=30`)).json()).data
    while (task.status !== 'SUCCESS') {
      expect(task.status).not.toBe('FAILURE')
      task = (await (await port.gateway.call(`${path}?wait=30`)).json()).data
    }
    expect(task.outputs).toHaveLength(2)
    for (const url of task.outputs) {
      const { pathname, search } = new URL(url)
      const file = await port.gateway.call(`${pathname}${search}`, { headers: { authorization: '' } })
      expect(await sizeOf(await file.bytes())).toBe('256x256')
    }
    expect((await port.gateway.call(`/v1/video/generations/${created.data.task_id}`)).status).toBe(404)
  })

  test('with the same Idempotency-Key is the same task', async () => {
    const json = { model: MODEL, prompt: 'Once', size: '256x256', async: true }
    const headers = { 'idempotency-key': 'image-1' }
    const idOf = async () => {
      const answer = await port.gateway.call('/v1/images/generations', { json, headers })
      return (await answer.json()).data.task_id as string
    }
    expect(await idOf()).toBe(await idOf())
  })

  test('that the provider rejects has failed', async () => {
    const body = { model: MODEL, prompt: '@sandbox status=400', async: true }
    const { data } = await (await post('/v1/images/generations', body)).json()
    const path = `/v1/images/generations/${data.task_id}?wait=30`
    let task = (await (await port.gateway.call(path)).json()).data
    while (task.status !== 'FAILURE') task = (await (await port.gateway.call(path)).json()).data
    expect(task.fail_code).toBe('invalid_input')
  })
})

describe('several targets', () => {
  const success = whole({
    created: 1,
    data: [{ b64_json: TINY_PNG_BASE64 }],
  })

  async function outcomeOf(first: Answer) {
    const [one, two] = [startVendor(first), startVendor(success)]
    const gateway = await startGateway({
      providers: { one: { base_url: one.url }, two: { base_url: two.url } },
      models: {
        'house/image': {
          families: ['image-generation'],
          targets: [
            { provider: 'one', model: 'm' },
            { provider: 'two', model: 'm' },
          ],
        },
      },
    })
    const response = await gateway.call('/v1/images/generations', { json: { model: 'house/image', prompt: 'A kite' } })
    const text = await response.text()
    // Official clients retry by themselves unless `maxRetries` is 0.
    const isOpen = response.status !== 200
    expect(response.headers.get('x-should-retry')).toBe(isOpen ? 'false' : null)
    expect(text.includes('may have been charged')).toBe(isOpen)
    await gateway[Symbol.asyncDispose]()
    await Promise.all([one.stop(), two.stop()])
    return [response.status, one.requests.length, two.requests.length]
  }

  test('try the next one if the first has certainly not accepted the request', async () => {
    expect(await outcomeOf(failure(404))).toEqual([200, 1, 1])
    expect(await outcomeOf(failure(429))).toEqual([200, 1, 1])
  })

  test('return a retryable error if all of them rejected the request', async () => {
    const vendor = startVendor(failure(429))
    const gateway = await startGateway({
      providers: { v: { base_url: vendor.url } },
      models: { 'v/image': { families: ['image-generation'] } },
    })
    const response = await gateway.call('/v1/images/generations', { json: { model: 'v/image', prompt: 'A kite' } })
    expect([response.status, response.headers.get('x-should-retry')]).toEqual([429, null])
    expect(await response.text()).not.toContain('charged')
    await gateway[Symbol.asyncDispose]()
    await vendor.stop()
  })

  test('do not try the next one if the first may have accepted the request: nobody pays twice', async () => {
    expect(await outcomeOf(hangUp())).toEqual([502, 1, 0])
    expect(await outcomeOf(failure(500))).toEqual([502, 1, 0])
    expect(await outcomeOf(failure(503))).toEqual([503, 1, 0])
    expect(await outcomeOf(failure(504))).toEqual([504, 1, 0])
    expect(await outcomeOf(failure(409))).toEqual([502, 1, 0])
    expect(await outcomeOf(failure(307))).toEqual([502, 1, 0])
    // Not 429: a gateway in front of this one would send the request to its next target.
    expect(await outcomeOf(whole({ error: { code: 'rate_limit_exceeded', message: 'later' } }))).toEqual([502, 1, 0])
  })
})

test('that is broken is not returned, as bytes or as a link, and its order may have been charged', async () => {
  const half = Buffer.from(TINY_PNG_BASE64, 'base64').subarray(0, 50)
  const vendor = startVendor()
  vendor.otherwise(whole({ created: 1, data: [{ b64_json: half.toString('base64') }] }))
  const gateway = await startGateway({
    providers: { v: { base_url: vendor.url } },
    models: { 'v/image': { families: ['image-generation'] } },
  })
  for (const response_format of ['b64_json', 'url']) {
    const json = { model: 'v/image', prompt: 'A kite', response_format }
    const response = await gateway.call('/v1/images/generations', { json })
    const { error } = await response.json()
    expect([response.status, error.code]).toEqual([502, 'bad_upstream_response'])
    expect(error.message).toContain('is broken: it ends in the middle of its "IDAT" chunk.')
    expect(error.message).toContain('may have been charged')
  }
  await gateway[Symbol.asyncDispose]()
  await vendor.stop()
})

test('of a provider that returns more images than the maximum of a request, only the maximum is used', async () => {
  const image = { b64_json: TINY_PNG_BASE64 }
  const vendor = startVendor(...[16, 17].map((count) => whole({ created: 1, data: Array(count).fill(image) })))
  const gateway = await startGateway({
    providers: { v: { base_url: vendor.url } },
    models: { 'v/image': { families: ['image-generation'] } },
  })
  for (const _ of [16, 17]) {
    const response = await gateway.call('/v1/images/generations', { json: { model: 'v/image', prompt: 'A kite' } })
    expect((await response.json()).data).toHaveLength(16)
  }
  await gateway[Symbol.asyncDispose]()
  await vendor.stop()
})

describe('an error', () => {
  const refusals: [string, object, string, string][] = [
    ['an unsupported size', { size: '333x333' }, 'invalid_value', 'size'],
    ['more images than the model generates', { n: 11 }, 'invalid_value', 'n'],
    ['no image', { n: 0 }, 'invalid_value', 'n'],
    ['an unknown format', { output_format: 'gif' }, 'invalid_value', 'output_format'],
    ['no prompt', { prompt: ' ' }, 'missing_required_parameter', 'prompt'],
    ['a prompt too long', { prompt: 'x'.repeat(32_001) }, 'invalid_value', 'prompt'],
    ['partial images without a stream', { partial_images: 1 }, 'invalid_value', 'partial_images'],
    ['too many partial images', { stream: true, partial_images: 4 }, 'invalid_value', 'partial_images'],
    ['a stream of a task', { stream: true, async: true }, 'invalid_value', 'stream'],
    ['a callback without a task', { callback_url: 'https://example.com' }, 'invalid_value', 'callback_url'],
    ['a number as text', { n: '2' }, 'invalid_type', 'n'],
    ['an unsupported parameter', { negative_prompt: 'rain' }, 'unsupported_parameter', 'negative_prompt'],
  ]
  for (const [what, body, code, param] of refusals) {
    test(`for ${what} names the field`, async () => {
      const response = await post('/v1/images/generations', { model: MODEL, prompt: 'A kite', ...body })
      const { error, ...rest } = await response.json()
      expect([response.status, error.code, error.param]).toEqual([400, code, param])
      expect(rest).toMatchObject({ code, message: error.message, data: null })
    })
  }

  test('does not occur at the allowed side of each bound', async () => {
    for (const body of [
      { n: 10, size: '256x256' },
      { prompt: 'x'.repeat(32_000), size: '256x256' },
    ]) {
      expect((await post('/v1/images/generations', { model: MODEL, prompt: 'A kite', ...body })).status).toBe(200)
    }
    const stream = await post('/v1/images/generations', {
      model: MODEL,
      prompt: 'A kite',
      size: '256x256',
      stream: true,
      partial_images: 3,
    })
    expect((await stream.text()).split('\n\n').filter(Boolean)).toHaveLength(4)
  })

  test('for a model of another family names the family that it serves', async () => {
    const response = await post('/v1/images/generations', { model: 'sandbox/general', prompt: 'A kite' })
    expect((await response.json()).error.code).toBe('unsupported_endpoint')
  })
})
