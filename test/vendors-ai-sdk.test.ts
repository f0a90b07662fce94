/** The vendors behind AI SDK packages, each against a loopback vendor that responds in the vendor's own format. */
import { afterEach, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DEFAULT_OUTPUTS } from '../src/config/config.ts'
import type { ProviderConfig } from '../src/config/schema/schema.ts'
import { discoverProviders } from '../src/providers/discover.ts'
import type { RemoteOutput, VideoCall, VideoProvider } from '../src/providers/provider.ts'
import { createProvider } from '../src/providers/registry.ts'
import { GatewayError } from '../src/spec/error.ts'
import type { VideoOrder } from '../src/spec/video-request.ts'
import {
  BLACK_FOREST_LABS,
  CASES,
  type Case,
  FAL,
  FILM,
  fixture,
  GOOGLE,
  KEY,
  PICTURE,
  PNG,
  PNG_URI,
  REPLICATE,
  type Refusal,
  refusal,
  type Sent,
  VERTEX,
  VERTEX_HOME,
  XAI,
} from './kit/ai-sdk-cases.ts'
import type { manualClock } from './kit/clock.ts'
import { startGateway } from './kit/gateway.ts'
import { testCall } from './kit/pipeline.ts'
import { providerParts } from './kit/provider-parts.ts'
import { TINY_MP4 } from './kit/tiny-files.ts'
import { type Answer, reset, startVendor, type Vendor, whole } from './kit/vendor.ts'

const SIGNAL = new AbortController().signal

const started: Vendor[] = []
afterEach(async () => {
  for (const vendor of started.splice(0)) await vendor.stop()
})

const partsOf = (config: ProviderConfig, environment: Record<string, string> = {}) =>
  providerParts(config, { environment })

type Opened = { vendor: Vendor; video: VideoProvider; logged: () => string; clock: ReturnType<typeof manualClock> }

function open(given: Case, ...answers: Answer[]): Opened {
  const vendor = startVendor(...answers)
  started.push(vendor)
  const parts = partsOf({ kind: given.kind, base_url: vendor.origin + given.version, key: KEY, ...given.config })
  const { video } = createProvider(parts)
  if (!video) throw new Error('the provider serves no videos')
  return { vendor, video, logged: parts.logged, clock: parts.clock }
}

/** A case has an order of its own where the vendor's smallest order differs from that of the others. */
const callOf = (given: Case, order: Partial<VideoOrder> = given.order ?? {}, model = given.model): VideoCall => ({
  model,
  request: {
    model: `acme/${model}`,
    prompt: 'A red kite',
    n: 1,
    aspect_ratio: '16:9',
    duration: 4,
    size: '720p',
    audio_enable: false,
    ...order,
  },
  task_id: 'task_0123456789abcdefghijABCDEFGHIJ45',
  idempotency_key: 'the-key',
})

async function errorOf(work: Promise<unknown>): Promise<GatewayError> {
  const thrown = await work.then(
    (value) => value,
    (error: unknown) => error,
  )
  if (thrown instanceof GatewayError) return thrown
  throw new Error(`expected a GatewayError, found ${JSON.stringify(thrown)} ${thrown}`)
}

function expectSent(request: Vendor['requests'][number] | undefined, sent: Sent): void {
  expect(request?.method).toBe(sent.method ?? 'POST')
  expect(request?.path).toBe(sent.path)
  if (sent.body !== undefined) expect(request?.json()).toEqual(sent.body as Record<string, unknown>)
  for (const [name, value] of Object.entries(sent.headers ?? {})) expect(request?.headers[name]).toBe(value)
}

const named = (given: Case) => [given.kind, given] as const

describe.each(CASES.map(named))('%s', (kind, given) => {
  const accepted = () => whole(fixture(kind, 'accepted'))

  test("sends an order once, in the vendor's format, and stores only its response", async () => {
    const { vendor, video } = open(given, accepted())
    expect(await video.start(callOf(given), SIGNAL)).toEqual({ operation: given.operation })
    expectSent(vendor.requests[0], given.sent)
    expect(vendor.requests).toHaveLength(1)
  })

  test.each(Object.entries(given.states))('maps the task response %s', async (name, progress) => {
    const { vendor, video } = open(given, whole(fixture(kind, name), { status: given.statuses?.[name] ?? 200 }))
    const result = await video.status(given.operation, SIGNAL)
    const local = JSON.parse(JSON.stringify(result).replaceAll(vendor.origin, '{origin}'))
    const outputs =
      'outputs' in result
        ? result.outputs.map((output, at) => ('open' in output ? output : local.outputs[at]))
        : undefined
    expect({ ...local, ...(outputs ? { outputs } : {}) }).toEqual(progress)
    expectSent(vendor.requests[0], { method: 'GET', ...given.query })
    expect(vendor.requests).toHaveLength(1)
  })

  test('keeps the status of a task whose state is unknown', async () => {
    const { video } = open(given, given.unknownState)
    expect(await video.status(given.operation, SIGNAL)).toEqual({})
  })

  test('does not end a task on an object without a state', async () => {
    const { video } = open(given, whole({}), whole({ status: 7, output: [], task: null, seed: 'x' }))
    for (let round = 0; round < 2; round++) {
      const result = await video.status(given.operation, SIGNAL).catch((error: unknown) => error)
      if (!(result instanceof GatewayError)) expect(result).toEqual({})
    }
  })

  test('passes on retry-after of a status response', async () => {
    const [name = ''] = Object.keys(given.states)
    const status = given.statuses?.[name] ?? 200
    const { video } = open(given, whole(fixture(kind, name), { status, headers: { 'retry-after': '9' } }))
    expect(await video.status(given.operation, SIGNAL)).toMatchObject({ retry_after_seconds: 9 })
  })

  test.each<[string, Answer]>([
    ['no JSON', whole('<html>', { headers: { 'content-type': 'text/html' } })],
    ['401', whole({ detail: 'who are you?' }, { status: 401 })],
    ['404', whole({ detail: 'not found' }, { status: 404 })],
    ['429', whole({ detail: 'slow down' }, { status: 429 })],
    ['500', whole({ detail: 'oops' }, { status: 500 })],
    ['503 that is no JSON', whole('busy', { status: 503 })],
    ['a redirect elsewhere', whole('', { status: 302, headers: { location: 'https://elsewhere.example/x' } })],
    ['a broken connection', reset()],
  ])('throws for %s in place of a task status, without ending the task', async (_, answer) => {
    const { vendor, video } = open(given, answer)
    const error = await errorOf(video.status(given.operation, SIGNAL))
    expect(error.detail.accepted).toBeUndefined()
    // A GET on a kept connection may be repeated by the runtime; these are on a new one.
    expect(vendor.requests).toHaveLength(1)
  })

  test.each([
    ...given.refusals,
    refusal(500, { message: 'oops' }, 'bad_upstream_response', 'open'),
    refusal(503, { message: 'later' }, 'server_is_overloaded', 'open'),
    refusal(409, { message: 'conflict' }, 'bad_upstream_response', 'open'),
    refusal(502, { message: 'bad gateway' }, 'bad_upstream_response', 'open'),
    refusal(504, { message: 'gateway timeout' }, 'upstream_timeout', 'open'),
    {
      title: '502 that is no JSON',
      answer: whole('<html>', { status: 502 }),
      code: 'bad_upstream_response',
      accepted: undefined,
    },
    {
      title: 'a redirect',
      answer: whole('', { status: 307, headers: { location: 'https://elsewhere.example/x' } }),
      code: 'bad_upstream_response',
      accepted: undefined,
    },
    { title: 'an answer that is not JSON', answer: whole('ok'), code: 'bad_upstream_response', accepted: undefined },
    { title: 'an answer without an id', answer: whole({}), code: 'bad_upstream_response', accepted: undefined },
  ] as Refusal[])(
    'maps the order response "$title" to $code, accepted: $accepted',
    async ({ answer, code, accepted, retry_after }) => {
      const { vendor, video, logged } = open(given, answer)
      const error = await errorOf(video.start(callOf(given), SIGNAL))
      expect([error.code, error.detail.accepted, error.detail.retry_after]).toEqual([code, accepted, retry_after])
      for (const text of [error.message, String(error.cause ?? ''), logged()]) {
        expect(text).not.toContain(KEY)
        expect(text).not.toContain(String(vendor.port))
        expect(text).not.toContain('kite')
      }
      expect(vendor.requests).toHaveLength(1)
    },
  )

  test('leaves acceptance in doubt when the connection breaks after the order, and sends it once', async () => {
    const { vendor, video } = open(given, reset(), accepted())
    const error = await errorOf(video.start(callOf(given), SIGNAL))
    expect(error.code).toBe('bad_upstream_response')
    expect(error.detail.accepted).toBeUndefined()
    expect(vendor.requests).toHaveLength(1)
  })

  test('leaves acceptance in doubt when the response is cut', async () => {
    const { vendor, video } = open(given, async (wire) => {
      await wire.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{"id')
      wire.close()
    })
    expect((await errorOf(video.start(callOf(given), SIGNAL))).detail.accepted).toBeUndefined()
    expect(vendor.requests).toHaveLength(1)
  })

  test('reports an order as not accepted when nothing listens', async () => {
    const { vendor, video } = open(given)
    await vendor.stop()
    expect(await errorOf(video.start(callOf(given), SIGNAL))).toMatchObject({
      code: 'upstream_unreachable',
      detail: { accepted: 'no' },
    })
  })

  test('does not send an order of a client that has disconnected', async () => {
    const { vendor, video } = open(given)
    expect((await errorOf(video.start(callOf(given), AbortSignal.abort()))).detail.accepted).toBe('no')
    expect(vendor.requests).toHaveLength(0)
  })

  test.each(given.media)('encodes media and options: $title', async ({ order, model, body }) => {
    const { vendor, video } = open(given, accepted())
    await video.start(callOf(given, order, model), SIGNAL)
    const sent = vendor.requests[0]?.json() ?? {}
    expect(kind === 'replicate' ? sent.input : sent).toMatchObject(body)
  })

  test.each(given.unsupported)(
    'refuses an unsupported $param before anything is sent',
    async ({ order, model, param }) => {
      const { vendor, video } = open(given)
      const error = await errorOf(video.start(callOf(given, order, model), SIGNAL))
      expect([error.status, error.detail.param, error.detail.accepted]).toEqual([400, param, 'no'])
      expect(vendor.requests).toHaveLength(0)
    },
  )

  test(
    given.cancels ? 'cancels a task, and throws when the vendor refuses' : 'does not support cancellation',
    async () => {
      const { vendor, video } = open(
        given,
        whole({ status: 'ok' }, { status: 202 }),
        whole({ detail: 'no' }, { status: 409 }),
      )
      if (!given.cancels) return void expect(video.cancel).toBeUndefined()
      await video.cancel?.(given.operation, SIGNAL)
      expectSent(vendor.requests[0], given.cancels)
      await errorOf(video.cancel?.(given.operation, SIGNAL) ?? Promise.resolve())
      expect(vendor.requests).toHaveLength(2)
    },
  )

  test('throws for a stored operation of another kind without calling the vendor', async () => {
    const { vendor, video } = open(given)
    for (const stored of [{}, null, 'x', { id: '1' }, { model: given.model }]) {
      expect((await errorOf(video.status(stored, SIGNAL))).code).toBe('internal_error')
    }
    expect(vendor.requests).toHaveLength(0)
  })

  test('announces an order right before it leaves, and does not send it if that fails', async () => {
    const { vendor, video } = open(given, accepted())
    const seen: number[] = []
    const beforeSend = async () => void seen.push(vendor.requests.length)
    await video.start({ ...callOf(given), beforeSend }, SIGNAL)
    expect([...seen, vendor.requests.length, video.awaits_before_send]).toEqual([0, 1, true])
    const refused = video.start({ ...callOf(given), beforeSend: async () => Promise.reject(new Error('full')) }, SIGNAL)
    expect((await errorOf(refused)).detail.accepted).toBe('no')
    expect(vendor.requests).toHaveLength(1)
  })

  test('never repeats an order', () => expect(open(given).video.resubmit).toBe('unsafe'))
})

const SHARED = {
  ...FAL,
  operation: {
    model: FAL.model,
    operation: { responseUrl: 'https://queue.fal.run/x/requests/1', submitUrl: 'https://queue.fal.run/x' },
  },
}

describe('all video vendors', () => {
  test.each([
    ['fal', 'FAL_KEY'],
    ['replicate', 'REPLICATE_API_TOKEN'],
    ['google', 'GEMINI_API_KEY'],
    ['google-vertex', 'GOOGLE_VERTEX_API_KEY'],
    ['alibaba', 'DASHSCOPE_API_KEY'],
    ['minimax', 'MINIMAX_API_KEY'],
    ['xai', 'XAI_API_KEY'],
    ['black-forest-labs', 'BFL_API_KEY'],
  ] as const)('%s reads its key from %s, and without one is refused with the name of the provider', (kind, name) => {
    expect(() => createProvider(partsOf({ kind }))).toThrow(/^providers\.acme needs a key/)
    expect(() => createProvider(partsOf({ kind }, { [name]: KEY }))).not.toThrow()
    expect(() => createProvider(partsOf({ kind, key: 'a key' }))).toThrow('providers.acme.key')
  })

  test('no source file imports a package statically', () => {
    const files = readdirSync(join(import.meta.dir, '../src'), { recursive: true, encoding: 'utf8' })
    const early = files
      .filter((name) => name.endsWith('.ts'))
      .filter((name) => {
        const text = readFileSync(join(import.meta.dir, '../src', name), 'utf8')
        return [...text.matchAll(/^import (?!type )[^;]*?from '@ai-sdk\//gm)].length > 0
      })
    expect(early).toEqual([])
  })

  test('never send the key to a URL of another host that a response names', async () => {
    const other = startVendor()
    started.push(other)
    const elsewhere = [
      {
        ...FAL,
        operation: { model: 'm', operation: { responseUrl: `${other.origin}/r`, submitUrl: `${other.origin}/s` } },
      },
      { ...REPLICATE, operation: { model: 'm', operation: { getUrl: 'https://api.replicate.com.evil.example/v1/p' } } },
      {
        ...BLACK_FOREST_LABS,
        operation: { model: 'm', operation: { requestId: 'i', pollingUrl: 'https://evil.example/p?id=i' } },
      },
      {
        ...BLACK_FOREST_LABS,
        operation: { model: 'm', operation: { requestId: 'i', pollingUrl: 'http://api.eu1.bfl.ai/p?id=i' } },
      },
    ]
    for (const given of elsewhere) {
      const { vendor, video } = open(given)
      expect((await errorOf(video.status(given.operation, SIGNAL))).code).toBe('bad_upstream_response')
      expect(vendor.requests.length + other.requests.length).toBe(0)
    }
  })

  test('follow a redirect only within the vendor', async () => {
    const { vendor, video } = open(
      SHARED,
      whole('', { status: 302, headers: { location: '/moved' } }),
      whole(fixture('fal', 'done')),
    )
    expect(await video.status(SHARED.operation, SIGNAL)).toMatchObject({ status: 'SUCCESS' })
    expect(vendor.requests.map(({ path }) => path)).toEqual(['/x/requests/1', '/moved'])
  })

  test("store URLs of a proxy at base_url as the vendor's, and call the proxy again", async () => {
    const vendor = startVendor()
    started.push(vendor)
    const base_url = `${vendor.origin}/to-fal`
    const { video } = createProvider(partsOf({ kind: 'fal', key: KEY, base_url }))
    vendor.answer(whole({ request_id: '1', response_url: `${base_url}/x/requests/1` }), whole(fixture('fal', 'done')))
    const order = await video?.start(callOf(FAL), SIGNAL)
    expect(JSON.stringify(order)).toContain('https://queue.fal.run/x/requests/1')
    await video?.status(order?.operation ?? null, SIGNAL)
    expect(vendor.requests.map(({ path }) => path)).toEqual(['/to-fal/fal-ai/veo3.1', '/to-fal/x/requests/1'])
    expect(vendor.requests[1]?.headers.authorization).toBe(`Key ${KEY}`)
  })

  test('call fal models outside fal-ai at their own path', async () => {
    const { vendor, video } = open(FAL, whole(fixture('fal', 'accepted')), whole(fixture('fal', 'accepted')))
    await video.start(callOf(FAL, {}, 'bytedance/seedance-2.0/text-to-video'), SIGNAL)
    await video.start(callOf(FAL, {}, 'veo3'), SIGNAL)
    expect(vendor.requests.map(({ path }) => path)).toEqual(['/bytedance/seedance-2.0/text-to-video', '/fal-ai/veo3'])
  })

  test('send no audio field to a Google model without sound', async () => {
    const { vendor, video } = open(VERTEX, whole(fixture('google-vertex', 'accepted')))
    await video.start(callOf(VERTEX, {}, 'veo-2.0-generate-001'), SIGNAL)
    expect(vendor.requests[0]?.json().parameters).toEqual({
      sampleCount: 1,
      aspectRatio: '16:9',
      resolution: '720p',
      durationSeconds: 4,
    })
  })

  test('send a Google access token as a bearer token, not as a key', async () => {
    const { vendor, video } = open(VERTEX, whole(fixture('google-vertex', 'pending')))
    await video.status(VERTEX.operation, SIGNAL)
    expect(vendor.requests[0]?.headers.authorization).toBe(`Bearer ${KEY}`)
    expect(vendor.requests[0]?.headers).not.toHaveProperty('x-goog-api-key')
  })

  test('send a pinned Replicate version to its own path', async () => {
    const { vendor, video } = open(REPLICATE, whole(fixture('replicate', 'accepted')))
    await video.start(callOf(REPLICATE, {}, 'owner/name:5c7d5dc6'), SIGNAL)
    expectSent(vendor.requests[0], { path: '/v1/predictions' })
    expect(vendor.requests[0]?.json().version).toBe('5c7d5dc6')
  })

  test('apply fields.drop, fields.rename and request_defaults', async () => {
    const given: Case = {
      ...FAL,
      config: {
        headers: { 'X-Team': 'blue' },
        fields: { drop: ['audio_enable'], rename: { last_image: 'tail_image_url', images: 'image_urls' } },
        request_defaults: { auto_fix: true, loop: true },
      },
    }
    const { vendor, video } = open(given, whole(fixture('fal', 'accepted')))
    await video.start(
      callOf(given, { last_image: PNG, images: [PNG, PICTURE], metadata: { fal: { loop: false } } }),
      SIGNAL,
    )
    expect(vendor.requests[0]?.json()).toEqual({
      prompt: 'A red kite',
      aspect_ratio: '16:9',
      duration: '4s',
      resolution: '720p',
      auto_fix: true,
      loop: false,
      tail_image_url: PNG_URI,
      image_urls: [PNG_URI, PICTURE],
    })
    expect(vendor.requests[0]?.headers['x-team']).toBe('blue')
  })

  test('log ignored tuning parameters, without the prompt', async () => {
    const { video, logged } = open(XAI, whole(fixture('xai', 'accepted')))
    await video.start(callOf(XAI, { seed: 7 }), SIGNAL)
    expect(logged()).toContain('"feature":"seed"')
    expect(logged()).not.toContain('kite')
  })

  test('keep the key and URLs with a key out of a fail_reason', async () => {
    const result = {
      ...(fixture('replicate', 'failed') as object),
      error: `bad ${KEY} at https://a.example/x?key=abc123 Bearer abcdefgh`,
    }
    const { video } = open(REPLICATE, whole(result))
    const text = JSON.stringify(await video.status(REPLICATE.operation, SIGNAL))
    for (const secret of [KEY, 'abc123', 'abcdefgh']) expect(text).not.toContain(secret)
  })

  test('read a small file from a data URI in the response', async () => {
    const output = [`data:video/webm;base64,${Buffer.from('the film').toString('base64')}`]
    const done = { ...(fixture('replicate', 'done') as object), output }
    const { video } = open(REPLICATE, whole(done))
    const result = await video.status(REPLICATE.operation, SIGNAL)
    const [file] = 'outputs' in result ? result.outputs : []
    if (!file || !('open' in file)) throw new Error('nothing to open')
    expect(file.content_type).toBe('video/webm')
    expect(await new Response(await file.open(SIGNAL)).text()).toBe('the film')
  })

  test.each(CASES.filter(({ kind }) => kind !== 'google-vertex').map(named))(
    '%s sends no key header when no key is configured for a proxy',
    async (kind, { version, ...given }) => {
      const vendor = startVendor(whole(fixture(kind, 'accepted')))
      started.push(vendor)
      const { video } = createProvider(partsOf({ kind, base_url: vendor.origin + version }))
      await video?.start(callOf({ ...given, version }), SIGNAL)
      const headers = vendor.requests[0]?.headers ?? {}
      for (const name of ['authorization', 'x-key', 'x-goog-api-key']) expect(headers[name]).toBeUndefined()
    },
  )

  test('accept that an edited video keeps its frame and length at xAI', async () => {
    const { vendor, video } = open(XAI, whole(fixture('xai', 'accepted')))
    await video.start(callOf(XAI, { video: FILM }), SIGNAL)
    expectSent(vendor.requests[0], {
      path: '/v1/videos/edits',
      body: { model: XAI.model, prompt: 'A red kite', video: { url: FILM } },
    })
  })

  test('throw for a task unknown at Black Forest Labs, without ending it', async () => {
    const { video } = open(BLACK_FOREST_LABS, whole(fixture('black-forest-labs', 'lost')))
    expect((await errorOf(video.status(BLACK_FOREST_LABS.operation, SIGNAL))).code).toBe('bad_upstream_response')
  })
})

describe('output files', () => {
  test('of Google are fetched with the key in a header, only from the base URL', async () => {
    const { vendor, video } = open(GOOGLE, whole(fixture('google', 'done')))
    const result = await video.status(GOOGLE.operation, SIGNAL)
    expect(JSON.stringify(result)).not.toContain(KEY)
    const [first] = 'outputs' in result ? result.outputs : []
    expect(first && 'url' in first ? first.url : '').toStartWith(vendor.origin)
    expect(video.outputHeaders?.(`${vendor.origin}/v1beta/files/a`)).toEqual({ 'x-goog-api-key': KEY })
    for (const url of ['https://elsewhere.example/files/a', 'nonsense']) expect(video.outputHeaders?.(url)).toEqual({})
  })

  test.each(CASES.filter((given) => given.kind !== 'google').map(named))(
    'of %s are fetched without the key',
    (_, given) => {
      const { vendor, video } = open(given)
      for (const url of [`${vendor.origin}/file`, 'https://elsewhere.example/a'])
        expect(video.outputHeaders?.(url)).toEqual({})
    },
  )

  const bytesOf = async (output: RemoteOutput | undefined) => {
    if (!output || !('open' in output)) throw new Error('nothing to open')
    return Buffer.from(await new Response(await output.open(SIGNAL)).arrayBuffer())
  }
  const firstOf = async (video: VideoProvider) => {
    const result = await video.status(VERTEX.operation, SIGNAL)
    return 'outputs' in result ? result.outputs[0] : undefined
  }

  test('of Vertex AI come in the response', async () => {
    const { video } = open(VERTEX, whole(fixture('google-vertex', 'done')))
    expect((await bytesOf(await firstOf(video))).toString('base64')).toBe('AAAAIGZ0eXBpc29t')
  })

  test('of Vertex AI are read from a bucket with the credentials', async () => {
    const vendor = startVendor(
      whole(fixture('google-vertex', 'done-in-bucket')),
      whole('the film'),
      whole('', { status: 404 }),
      whole('', { status: 403 }),
    )
    started.push(vendor)
    const options = { project: 'p1', storage_url: vendor.origin }
    const { video } = createProvider(
      partsOf({ kind: 'google-vertex', key: KEY, base_url: vendor.origin + VERTEX_HOME, options }),
    )
    if (!video) throw new Error('the provider serves no videos')
    const output = await firstOf(video)
    expect((await bytesOf(output)).toString()).toBe('the film')
    expectSent(vendor.requests[1], {
      method: 'GET',
      path: '/bucket-1/out%20put/sample_0.mp4',
      headers: { authorization: `Bearer ${KEY}` },
    })
    expect((await errorOf(bytesOf(output))).code).toBe('output_gone')
    expect((await errorOf(bytesOf(output))).code).toBe('bad_upstream_response')
  })
})

describe('media that Google accepts only as bytes', () => {
  const opened = (read: (value: string) => Promise<{ bytes: Uint8Array; content_type: string }>) => {
    const vendor = startVendor(whole(fixture('google', 'accepted')))
    started.push(vendor)
    const media = { read, check: () => Promise.resolve() }
    const { video } = createProvider({ ...partsOf({ kind: 'google', key: KEY, base_url: vendor.url }), media })
    if (!video) throw new Error('the provider serves no videos')
    return { vendor, video }
  }

  test('are fetched from their URL before the order', async () => {
    const { vendor, video } = opened(async () => ({ bytes: Buffer.from(PNG, 'base64'), content_type: 'image/webp' }))
    await video.start(callOf(GOOGLE, { image: PICTURE, images: ['gs://bucket/a.png'] }), SIGNAL)
    expect(vendor.requests[0]?.json().instances).toEqual([
      {
        prompt: 'A red kite',
        image: { bytesBase64Encoded: Buffer.from(PNG, 'base64').toString('base64'), mimeType: 'image/webp' },
        referenceImages: [{ image: { gcsUri: 'gs://bucket/a.png', mimeType: 'image/png' }, referenceType: 'asset' }],
      },
    ])
  })

  test('leave the order unsent when they cannot be fetched', async () => {
    const { vendor, video } = opened(() => Promise.reject(new GatewayError('invalid_value', 'It is not there.')))
    const error = await errorOf(video.start(callOf(GOOGLE, { image: PICTURE }), SIGNAL))
    expect(error.detail).toMatchObject({ param: 'image', accepted: 'no' })
    expect(vendor.requests).toHaveLength(0)
  })
})

describe('Vertex AI authenticates', () => {
  /** The vendor issues the tokens too. */
  const opened = async (credentials: Record<string, unknown> | undefined, config: Partial<ProviderConfig> = {}) => {
    const vendor = startVendor()
    started.push(vendor)
    const options = credentials
      ? { project: 'p1', credentials: { ...credentials, token_uri: `${vendor.origin}/token` } }
      : {}
    const parts = partsOf({ kind: 'google-vertex', base_url: vendor.origin + VERTEX_HOME, options, ...config })
    const { video } = createProvider(parts)
    if (!video) throw new Error('the provider serves no videos')
    return { vendor, video, clock: parts.clock }
  }
  const granted = (access_token: string) => whole({ access_token, expires_in: 3600, token_type: 'Bearer' })
  const pending = () => whole(fixture('google-vertex', 'pending'))

  test('with an express-mode key, which is not a bearer token', async () => {
    const { vendor, video } = await opened(undefined, { key: KEY })
    vendor.answer(whole(fixture('google-vertex', 'accepted')))
    await video.start(callOf(VERTEX, {}), SIGNAL)
    expect(vendor.requests[0]?.headers).toMatchObject({ 'x-goog-api-key': KEY })
    expect(vendor.requests[0]?.headers.authorization).toBeUndefined()
  })

  test.each([1024, 2048])(
    'with a service account and a key of %d bits: a signed assertion for a token, which is cached until shortly before it expires',
    async (modulusLength) => {
      const pair = await crypto.subtle.generateKey(
        { name: 'RSASSA-PKCS1-v1_5', modulusLength, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-256' },
        true,
        ['sign', 'verify'],
      )
      const body = Buffer.from(await crypto.subtle.exportKey('pkcs8', pair.privateKey)).toString('base64')
      const private_key = `-----BEGIN PRIVATE KEY-----\n${body.replace(/(.{64})/g, '$1\n')}\n-----END PRIVATE KEY-----\n`
      const account = { type: 'service_account', client_email: 'a@p1.example', private_key, private_key_id: 'k1' }
      const { vendor, video, clock } = await opened(account)
      vendor.answer(granted('token-1'), pending(), pending(), granted('token-2'), pending())
      await video.status(VERTEX.operation, SIGNAL)
      clock.advance(3479_000)
      await video.status(VERTEX.operation, SIGNAL)
      clock.advance(1_000)
      await video.status(VERTEX.operation, SIGNAL)
      expect(vendor.requests.map(({ path, headers }) => [path.split(':')[1] ?? path, headers.authorization])).toEqual([
        ['/token', undefined],
        ['fetchPredictOperation', 'Bearer token-1'],
        ['fetchPredictOperation', 'Bearer token-1'],
        ['/token', undefined],
        ['fetchPredictOperation', 'Bearer token-2'],
      ])
      expect(vendor.requests.some(({ headers }) => 'x-goog-api-key' in headers)).toBe(false)
      const form = new URLSearchParams(vendor.requests[0]?.body)
      expect(form.get('grant_type')).toBe('urn:ietf:params:oauth:grant-type:jwt-bearer')
      const [head = '', claims = '', signature = ''] = form.get('assertion')?.split('.') ?? []
      expect(JSON.parse(Buffer.from(head, 'base64url').toString())).toEqual({ alg: 'RS256', typ: 'JWT', kid: 'k1' })
      const now = (clock.now() - 3480_000) / 1000
      expect(JSON.parse(Buffer.from(claims, 'base64url').toString())).toEqual({
        iss: 'a@p1.example',
        scope: 'https://www.googleapis.com/auth/cloud-platform',
        aud: `${vendor.origin}/token`,
        iat: now,
        exp: now + 3600,
      })
      const signed = Buffer.from(`${head}.${claims}`)
      expect(
        await crypto.subtle.verify('RSASSA-PKCS1-v1_5', pair.publicKey, Buffer.from(signature, 'base64url'), signed),
      ).toBe(true)
    },
  )

  test("with a refresh token of a user's login", async () => {
    const { vendor, video } = await opened({
      type: 'authorized_user',
      client_id: 'c',
      client_secret: 's',
      refresh_token: 'r',
    })
    vendor.answer(granted('token-1'), pending())
    await video.status(VERTEX.operation, SIGNAL)
    expect(Object.fromEntries(new URLSearchParams(vendor.requests[0]?.body))).toEqual({
      grant_type: 'refresh_token',
      client_id: 'c',
      client_secret: 's',
      refresh_token: 'r',
    })
  })

  test.each<[string, Record<string, unknown>, Answer[]]>([
    [
      'refused',
      { type: 'authorized_user', client_id: 'c', client_secret: 'canary', refresh_token: 'r' },
      [whole({ error: 'invalid_grant' }, { status: 400 })],
    ],
    ['empty', { type: 'authorized_user', client_id: 'c', client_secret: 'canary', refresh_token: 'r' }, [whole({})]],
    ['not to be had with a broken key', { type: 'service_account', client_email: 'a', private_key: 'canary' }, []],
    ['not to be had with nothing', { type: 'service_account', secret: 'canary' }, []],
  ])('not when the token is %s, and sends no order', async (_, credentials, answers) => {
    const { vendor, video } = await opened(credentials)
    vendor.answer(...answers)
    const error = await errorOf(video.start(callOf(VERTEX, {}), SIGNAL))
    expect([error.code, error.detail.accepted]).toEqual(['upstream_auth', 'no'])
    expect(error.message).not.toContain('canary')
    expect(vendor.requests).toHaveLength(answers.length)
  })

  test.each<[string, ProviderConfig, Record<string, string>]>([
    ['credentials without a project', { options: { credentials: 'metadata' } }, {}],
    ['a location that is none', { options: { project: 'p', location: 'evil.example/', credentials: 'metadata' } }, {}],
    ['nothing', { options: { project: 'p' } }, {}],
  ])('not with %s, and refuses the configuration', (_, config, environment) => {
    expect(() => createProvider(partsOf({ kind: 'google-vertex', ...config }, environment))).toThrow('providers.acme')
  })
})

describe('through the whole gateway, from the order to the file', () => {
  const FILM_BYTES = Buffer.from(TINY_MP4)

  /** The files of the fixture are at the vendor. */
  const doneAt = (kind: string, origin: string) =>
    JSON.parse(
      JSON.stringify(fixture(kind, 'done'))
        .replace(/https:\/\/(?!generativelanguage)[^"]+\.mp4[^"]*/g, `${origin}/made.mp4`)
        .replace('AAAAIGZ0eXBpc29t', FILM_BYTES.toString('base64')),
    )

  test.each(CASES.map(named))('%s generates a video that the gateway stores', async (kind, given) => {
    const vendor = startVendor()
    started.push(vendor)
    const [first = ''] = Object.keys(given.states)
    const answers = [
      whole(fixture(kind, 'accepted')),
      whole(fixture(kind, first), { status: given.statuses?.[first] ?? 200 }),
      whole('busy', { status: 503 }),
      whole(doneAt(kind, vendor.origin)),
    ]
    const film = whole(FILM_BYTES.toString('latin1'), { headers: { 'content-type': 'video/mp4' } })
    vendor.otherwise((wire) => (/made|files/.test(wire.request.path) ? film : (answers.shift() ?? film))(wire))
    const directory = await mkdtemp(join(tmpdir(), 'gatehouse-vendors-'))
    await using gateway = await startGateway({
      providers: {
        acme: { kind, key: KEY, base_url: vendor.origin + given.version, private_addresses: true, ...given.config },
      },
      models: { [`acme/${given.model}`]: { families: ['video-generation'], video: { n: 4 } } },
      outputs: { ...DEFAULT_OUTPUTS, directory },
    })
    const { tasks } = gateway.instance
    const { n = 1, ...order } = { size: '720p', duration: 5, ...given.order }
    const { task } = await tasks.submit({
      request: { model: `acme/${given.model}`, prompt: 'A red kite', ...order, ...(n > 1 ? { n } : {}) },
      family: 'video-generation',
      call: testCall({ token_id: 't1', mayUseModel: () => true, mayUseFamily: () => true }),
      base_url: 'https://gate.example',
    })
    const read = async () => (await tasks.findAny(task.task_id)) ?? task
    for (let round = 0; round < 40 && !['SUCCESS', 'FAILURE'].includes((await read()).status); round++) {
      await tasks.idle()
      gateway.clock.advance(20_000)
    }
    const ended = await read()
    expect([ended.status, ended.fail_code, ended.fail_reason]).toEqual(['SUCCESS', '', ''])
    const [file] = ended.outputs
    expect(file).toMatchObject({ content_type: 'video/mp4', bytes: FILM_BYTES.length })
    expect(JSON.stringify(ended.outputs)).not.toContain(vendor.origin)
    const orders = vendor.requests.filter(({ path }) => path === given.sent.path)
    expect(orders).toHaveLength(1)
    expect(gateway.logged()).not.toContain(KEY)
    await rm(directory, { recursive: true })
  })
})

describe('presets', () => {
  test.each([
    ['fal', 'FAL_KEY'],
    ['replicate', 'REPLICATE_API_TOKEN'],
    ['minimax', 'MINIMAX_API_KEY'],
    ['black-forest-labs', 'BFL_API_KEY'],
  ])('%s serves videos with the key in %s; a key alone creates no provider', (preset, name) => {
    const provider = createProvider(partsOf({ preset }, { [name]: KEY }))
    expect([provider.kind as string, provider.chat, typeof provider.video]).toEqual([preset, undefined, 'object'])
    expect(discoverProviders({ [name]: KEY })).toEqual({})
  })

  test.each([
    ['xai', 'XAI_API_KEY', 'chatcompat'],
    ['alibaba', 'DASHSCOPE_API_KEY', 'chatcompat'],
    ['gemini', 'GEMINI_API_KEY', 'contentgen-compat'],
  ])('%s serves chat and videos with one key', (preset, name, kind) => {
    for (const provider of [
      createProvider(partsOf({ preset }, { [name]: KEY })),
      createProvider(partsOf({ preset, key: KEY, headers: { 'x-team': 'blue' } })),
    ]) {
      expect([provider.kind, typeof provider.chat, typeof provider.video]).toEqual([kind, 'object', 'object'])
    }
    // No vendor without a key, and with a configured base_url the path for videos is unknown.
    expect(createProvider(partsOf({ preset })).video).toBeUndefined()
    expect(createProvider(partsOf({ preset, key: KEY, base_url: 'https://proxy.example/v1' })).video).toBeUndefined()
  })

  test('for chat only serve no videos', () => {
    expect(createProvider(partsOf({ preset: 'groq', key: KEY })).video).toBeUndefined()
  })
})
