/** The adapters of our own for vendors of videos, each against a loopback vendor that answers in the vendor's shapes. */
import { afterEach, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DEFAULT_TIMEOUTS } from '../src/config/config.ts'
import type { ProviderConfig, ProviderKind } from '../src/config/schema.ts'
import { createLog } from '../src/kit/log.ts'
import type { Provider, TaskProgress, VideoCall, VideoProvider } from '../src/providers/provider.ts'
import { createProvider } from '../src/providers/registry.ts'
import { createTransport } from '../src/providers/transport.ts'
import { type ErrorCode, GatewayError } from '../src/spec/error.ts'
import type { Json } from '../src/spec/task.ts'
import type { VideoOrder } from '../src/spec/video-request.ts'
import { manualClock } from './kit/clock.ts'
import { type Answer, reset, startVendor, type Vendor, whole } from './kit/vendor.ts'

const KEY = 'key-of-the-operator'
const SIGNAL = new AbortController().signal
const PNG = 'iVBORw0KGgoAAAANSUhEUg'
const TASK_ID = 'task_0123456789abcdefghijABCDEFGHIJ45'

type Sent = { method?: string; path: string; body?: unknown; headers?: Record<string, string> }
type Refusal = { says: string; answer: Answer; code: ErrorCode; taken: 'no' | undefined; retry_after?: number }

type Case = {
  kind: ProviderKind
  /** The path of the base URL. */
  version: string
  config?: Partial<ProviderConfig>
  model: string
  order: Partial<VideoOrder>
  sent: Sent
  operation: Json
  asked: Sent
  /** Fixture -> what it says of the task. */
  states: Record<string, TaskProgress>
  /** A word for the state that nobody knows yet. */
  strange: unknown
  refusals: Refusal[]
  images: { says: string; order: Partial<VideoOrder>; model?: string; sent: Sent }[]
  /** Orders that are refused before anything is sent, by field. */
  unable: { order: Partial<VideoOrder>; model?: string; param: string }[]
  cancels?: Sent
}

const fixture = (kind: string, name: string): unknown =>
  JSON.parse(readFileSync(join(import.meta.dir, 'fixtures', kind, `${name}.json`), 'utf8'))

const refusal = (status: number, body: unknown, code: ErrorCode, taken?: 'no'): Refusal => ({
  says: `${status} ${JSON.stringify(body)}`,
  answer: whole(body, { status }),
  code,
  taken,
})
const limited = (body: unknown): Refusal => ({
  says: '429 with retry-after',
  answer: whole(body, { status: 429, headers: { 'retry-after': '17' } }),
  code: 'rate_limit_exceeded',
  taken: 'no',
  retry_after: 17,
})

const RUNWAY_TASK = '/v1/tasks/17f20503-6c24-4c16-946b-35dbbce2af2f'
const RUNWAY: Case = {
  kind: 'runway',
  version: '/v1',
  model: 'gen4.5',
  order: { seed: 7, metadata: { runway: { model: 'other', duration: 10, outputFormat: 'mp4' }, luma: { loop: true } } },
  sent: {
    path: '/v1/text_to_video',
    headers: { authorization: `Bearer ${KEY}`, 'x-runway-version': '2024-11-06', 'content-type': 'application/json' },
    body: {
      model: 'gen4.5',
      promptText: 'A red kite',
      ratio: '1280:720',
      duration: 4,
      seed: 7,
      outputFormat: 'mp4',
    },
  },
  operation: { id: '17f20503-6c24-4c16-946b-35dbbce2af2f' },
  asked: { path: RUNWAY_TASK },
  states: {
    queued: { status: 'QUEUED' },
    throttled: { status: 'QUEUED' },
    running: { status: 'IN_PROGRESS', progress: 42 },
    done: {
      status: 'SUCCESS',
      outputs: [{ url: 'https://dnznrvs05pmza.cloudfront.net/0b1c2d3e.mp4?_jwt=eyJhbGciOi' }],
    },
    'failed-policy': {
      status: 'FAILURE',
      fail_code: 'content_policy_violation',
      fail_reason: 'Your content was flagged.',
    },
    'failed-asset': {
      status: 'FAILURE',
      fail_code: 'input_media_invalid',
      fail_reason: 'The asset could not be read.',
    },
    'failed-internal': {
      status: 'FAILURE',
      fail_code: 'upstream_error',
      fail_reason: 'An unexpected error occurred.',
    },
    canceled: { status: 'FAILURE', fail_code: 'canceled', fail_reason: 'The task was canceled at the upstream.' },
  },
  strange: { id: 'x', status: 'UPSCALING' },
  refusals: [
    refusal(401, { error: 'The API key is not valid.' }, 'upstream_auth', 'no'),
    refusal(400, { error: 'You do not have enough credits to run this task.' }, 'no_available_channel', 'no'),
    refusal(400, { error: '`ratio` must be one of 1280:720' }, 'upstream_invalid_request', 'no'),
    refusal(400, { error: 'The prompt did not pass our content moderation.' }, 'content_policy_violation', 'no'),
    limited({ error: 'Too many requests' }),
  ],
  images: [
    {
      says: 'one image by address is the first frame',
      order: { image: 'https://files.example/a.png' },
      sent: {
        path: '/v1/image_to_video',
        body: {
          model: 'gen4.5',
          promptText: 'A red kite',
          promptImage: 'https://files.example/a.png',
          ratio: '1280:720',
          duration: 4,
        },
      },
    },
    {
      says: 'two frames have their positions; base64 becomes a data URI',
      order: { image: PNG, last_image: 'data:image/jpeg;base64,/9j/4A', aspect_ratio: '9:16', size: '1080p', seed: 3 },
      model: 'veo3.1',
      sent: {
        path: '/v1/image_to_video',
        body: {
          model: 'veo3.1',
          promptText: 'A red kite',
          promptImage: [
            { uri: `data:image/png;base64,${PNG}`, position: 'first' },
            { uri: 'data:image/jpeg;base64,/9j/4A', position: 'last' },
          ],
          ratio: '1080:1920',
          duration: 4,
          seed: 3,
          audio: false,
        },
      },
    },
    {
      says: 'references are a list, and a picture that is not a proportion has the pixels of its model',
      order: { images: ['https://files.example/a.png'], aspect_ratio: '4:3', audio_enable: true },
      model: 'seedance2',
      sent: {
        path: '/v1/text_to_video',
        body: {
          model: 'seedance2',
          promptText: 'A red kite',
          references: [{ uri: 'https://files.example/a.png' }],
          ratio: '1112:834',
          duration: 4,
          audio: true,
        },
      },
    },
  ],
  unable: [
    { order: { audio_enable: true }, param: 'audio_enable' },
    { order: { last_image: PNG }, param: 'last_image' },
    { order: { negative_prompt: 'rain' }, param: 'negative_prompt' },
    { order: { video: 'https://files.example/a.mp4' }, param: 'video' },
    { order: { n: 2 }, param: 'n' },
  ],
  cancels: { method: 'DELETE', path: RUNWAY_TASK },
}

const CASES: Case[] = [RUNWAY]

let vendor: Vendor | undefined
afterEach(() => vendor?.stop())

function open(given: Case, ...answers: Answer[]): { vendor: Vendor; provider: Provider; video: VideoProvider } {
  vendor = startVendor(...answers)
  const clock = manualClock()
  const log = createLog({ clock, level: 'silent', pretty: false, write: () => {} })
  const provider = createProvider({
    id: 'acme',
    config: { kind: given.kind, base_url: vendor.origin + given.version, key: KEY, ...given.config },
    timeouts: DEFAULT_TIMEOUTS,
    transport: createTransport({ clock, log }),
    clock,
    log,
    environment: {},
    manual: async () => [],
  })
  if (!provider.video) throw new Error('no videos here')
  return { vendor, provider, video: provider.video }
}

const callOf = (given: Case, order: Partial<VideoOrder> = {}, model = given.model): VideoCall => ({
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
  task_id: TASK_ID,
  idempotency_key: `${TASK_ID}:acme/${model}`,
})

async function errorOf(work: Promise<unknown>): Promise<GatewayError> {
  const thrown = await work.then(
    () => undefined,
    (error: unknown) => error,
  )
  if (thrown instanceof GatewayError) return thrown
  throw new Error(`expected a GatewayError, found ${thrown}`)
}

function expectSent(request: Vendor['requests'][number] | undefined, sent: Sent): void {
  expect(request?.method).toBe(sent.method ?? 'POST')
  expect(request?.path).toBe(sent.path)
  if (sent.body !== undefined) expect(request?.json()).toEqual(sent.body as Record<string, unknown>)
  for (const [name, value] of Object.entries(sent.headers ?? {})) expect(request?.headers[name]).toBe(value)
}

describe.each(CASES.map((given) => [given.kind, given] as const))('%s', (kind, given) => {
  const accepted = () => whole(fixture(kind, 'accepted'))

  test('an order is sent in the words of the vendor, and what it answers is all that is kept', async () => {
    const { vendor, video } = open(given, accepted())
    expect(await video.start(callOf(given, given.order), SIGNAL)).toEqual({ operation: given.operation })
    expectSent(vendor.requests[0], given.sent)
    expect(vendor.requests).toHaveLength(1)
  })

  test.each(Object.entries(given.states))('asked for the task, %s means what it means', async (name, progress) => {
    const { vendor, video } = open(given, whole(fixture(kind, name)))
    expect(await video.status(given.operation, SIGNAL)).toEqual(progress)
    expectSent(vendor.requests[0], { method: 'GET', ...given.asked })
  })

  test('a state that is not known yet keeps the one that was', async () => {
    const { video } = open(given, whole(given.strange))
    expect(await video.status(given.operation, SIGNAL)).toEqual({})
  })

  test.each<[string, Answer]>([
    ['no JSON', whole('<html>', { headers: { 'content-type': 'text/html' } })],
    ['a list', whole([])],
    ['an object without a state', whole({})],
    ['404', whole({ message: 'not found' }, { status: 404 })],
    ['500', whole({ message: 'oops' }, { status: 500 })],
    ['429', whole({ message: 'slow down' }, { status: 429 })],
    ['a broken connection', reset()],
  ])('%s in place of a state says nothing of the task: an error', async (_, answer) => {
    const { video } = open(given, answer)
    expect((await errorOf(video.status(given.operation, SIGNAL))).detail.taken).toBeUndefined()
  })

  test.each([
    ...given.refusals,
    refusal(500, { message: 'oops' }, 'bad_upstream_response', 'no'),
    refusal(503, { message: 'later' }, 'server_is_overloaded', 'no'),
    refusal(502, { message: 'bad gateway' }, 'bad_upstream_response'),
    refusal(504, { message: 'gateway timeout' }, 'upstream_timeout'),
    { says: 'an answer that is not JSON', answer: whole('ok'), code: 'bad_upstream_response', taken: undefined },
    { says: 'an answer without an id', answer: whole({}), code: 'bad_upstream_response', taken: undefined },
  ] as Refusal[])(
    'an order answered with $says is $code, taken: $taken',
    async ({ answer, code, taken, retry_after }) => {
      const { vendor, video } = open(given, answer)
      const error = await errorOf(video.start(callOf(given), SIGNAL))
      expect([error.code, error.detail.taken, error.detail.retry_after]).toEqual([code, taken, retry_after])
      expect(error.message).not.toContain(KEY)
      expect(error.message).not.toContain(String(vendor.port))
      expect(vendor.requests).toHaveLength(1)
    },
  )

  test('a connection that breaks after the order was read leaves open whether it was taken; it was sent once', async () => {
    const { vendor, video } = open(given, reset(), accepted())
    const error = await errorOf(video.start(callOf(given), SIGNAL))
    expect(error.detail.taken).toBeUndefined()
    expect(vendor.requests).toHaveLength(1)
  })

  test('an order that reached nobody was not taken', async () => {
    const { vendor, video } = open(given)
    await vendor.stop()
    expect((await errorOf(video.start(callOf(given), SIGNAL))).detail.taken).toBe('no')
  })

  test.each(given.images)('of media, $says', async ({ order, model, sent }) => {
    const { vendor, video } = open(given, accepted())
    await video.start(callOf(given, order, model), SIGNAL)
    expectSent(vendor.requests[0], sent)
  })

  test.each(given.unable)(
    'what it cannot honour is refused before anything is sent: $param',
    async ({ order, model, param }) => {
      const { vendor, video } = open(given)
      const error = await errorOf(video.start(callOf(given, order, model), SIGNAL))
      expect([error.status, error.detail.param, error.detail.taken]).toEqual([400, param, 'no'])
      expect(vendor.requests).toHaveLength(0)
    },
  )

  test(given.cancels ? 'it can be told to stop, and may refuse' : 'it cannot be told to stop', async () => {
    const { vendor, video } = open(given, whole('', { status: 204 }), whole({ message: 'no' }, { status: 409 }))
    if (!given.cancels) return void expect(video.cancel).toBeUndefined()
    await video.cancel?.(given.operation, SIGNAL)
    expectSent(vendor.requests[0], given.cancels)
    await errorOf(video.cancel?.(given.operation, SIGNAL) ?? Promise.resolve())
  })

  test('what was stored of an order of another kind is an error, not a question to the vendor', async () => {
    const { vendor, video } = open(given)
    expect((await errorOf(video.status({}, SIGNAL))).code).toBe('internal_error')
    expect(vendor.requests).toHaveLength(0)
  })
})
