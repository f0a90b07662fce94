/** Kling's own API: orders by text or by image, each polled on its own path, signed with a key pair. */
import { createHmac } from 'node:crypto'
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import { asRecord, type JsonRecord, memberOf } from '../../kit/json.ts'
import type { VideoOrder } from '../../spec/video-request.ts'
import { createOrderClient, dataOf, type OrderClient, operationId, wayOf, withId } from '../orders/order-client.ts'
import { classifyByCode, type ErrorClass } from '../orders/order-error.ts'
import {
  assertSupportedFields,
  ratioOf,
  tierOf,
  toBareBase64,
  unsupportedValue,
  withExtras,
} from '../orders/order-fields.ts'
import { secondsOf } from '../orders/order-list.ts'
import type { Provider, TaskProgress, VideoCall } from '../provider.ts'
import type { AdapterParts } from '../settings.ts'

/** As Kling recommends: a token is valid for half an hour, starting shortly before it was created. */
const TOKEN_SECONDS = 1800
const EARLIER_SECONDS = 5
/** A token is renewed this long before its end, so that none expires in transit. */
const RENEW_SECONDS = 300

/** No such resource. */
const UNKNOWN_TASK = 1203

/** A task is polled on the path on which it was ordered. */
const ROUTES = ['text2video', 'image2video'] as const
type Route = (typeof ROUTES)[number]

export function createKling(parts: AdapterParts): Provider {
  const token = createToken(parts)
  const client = createOrderClient(parts, {
    kind: 'kling',
    base_url: 'https://api-singapore.klingai.com/v1',
    ...(token ? { headers: () => ({ authorization: `Bearer ${token()}` }) } : {}),
    classifyError,
  })
  return {
    id: parts.id,
    kind: 'kling',
    video: {
      // `external_task_id` must be unique in an account, but what a second order with it does is not documented.
      resubmit: 'unsafe',
      awaits_before_send: true,
      async start(call, signal) {
        const { route, body } = writeOrder(call, parts.id)
        const response = await client.submit({ path: `/videos/${route}`, body, signal, call })
        return { operation: { id: client.readId(dataOf(response).task_id), way: route } }
      },
      orderList: {
        // That a task is unknown shortly after its order is not documented to prove anything.
        absent: 'unknown',
        // The path accepts "task_id or external_task_id"; 1203 and 404 mean that there is no such task.
        async since(call, _, signal) {
          const { route } = writeOrder(call, parts.id)
          const { status, payload } = await client.get(withId(`/videos/${route}`, call.task_id), signal)
          const response = asRecord(payload)
          if (status === 404 || Number(response.code) === UNKNOWN_TASK) return []
          if (status !== 200 || Number(response.code ?? 0) !== 0) throw client.unreadable(status)
          const { task_id, task_info, created_at } = dataOf(response)
          const name = memberOf(task_info, 'external_task_id')
          const label = typeof name === 'string' ? name : call.task_id
          const id = client.readId(task_id)
          return [{ id, operation: { id, way: route }, created_at: secondsOf(created_at), label }]
        },
      },
      async status(operation, signal) {
        const path = withId(`/videos/${wayOf(operation, ROUTES)}`, operationId(operation))
        return client.poll(path, signal, (response) => readTask(dataOf(response), client))
      },
    },
  }
}

/** A configured `key` is used as it is; without one, tokens are created from the key pair. */
function createToken({ id, config, clock, environment }: AdapterParts) {
  if (config.key) return undefined
  const access = textOf(config.options?.access_key) ?? environment?.KLING_ACCESS_KEY
  const secret = textOf(config.options?.secret_key) ?? environment?.KLING_SECRET_KEY
  if (!access || !secret) {
    throw new Error(
      `providers.${id} needs options.access_key and options.secret_key, or KLING_ACCESS_KEY and KLING_SECRET_KEY in ` +
        'the environment, or a ready token as key',
    )
  }
  let token = ''
  let until = 0
  return () => {
    if (unixSeconds(clock) + RENEW_SECONDS < until) return token
    ;({ token, until } = sign(access, secret, clock))
    return token
  }
}

/** A JSON web token, signed with HMAC and SHA-256 (RFC 7519). */
function sign(access: string, secret: string, clock: Clock): { token: string; until: number } {
  const now = unixSeconds(clock)
  const until = now + TOKEN_SECONDS
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signed = `${part({ alg: 'HS256', typ: 'JWT' })}.${part({ iss: access, exp: until, nbf: now - EARLIER_SECONDS })}`
  return { token: `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`, until }
}

function writeOrder({ model, request, task_id }: VideoCall, upstream: string): { route: Route; body: JsonRecord } {
  assertSupportedFields(request, upstream, ['image', 'last_image', 'negative_prompt', 'audio_enable'])
  const { image, last_image } = request
  const route = image === undefined && last_image === undefined ? 'text2video' : 'image2video'
  const body = withExtras(
    {
      model_name: model,
      prompt: request.prompt || undefined,
      negative_prompt: request.negative_prompt,
      image: image === undefined ? undefined : toBareBase64(image),
      image_tail: last_image === undefined ? undefined : toBareBase64(last_image),
      // With an image, the ratio is that of the image, and there is no field for another.
      aspect_ratio: route === 'text2video' ? ratioOf(request) : undefined,
      mode: modeOf(request, upstream),
      duration: request.duration === undefined ? undefined : String(request.duration),
      // Only models from 2.6 on have the field; without it they generate no sound.
      sound: request.audio_enable ? 'on' : undefined,
      external_task_id: task_id,
    },
    request.metadata,
    'kling',
    ['sound'],
  )
  return { route, body }
}

/** Two modes stand for the sizes. */
function modeOf({ size }: VideoOrder, upstream: string): string | undefined {
  const tier = tierOf(size)
  if (tier === undefined) return undefined
  if (tier === '720p') return 'std'
  if (tier === '1080p') return 'pro'
  throw unsupportedValue('size', `The upstream "${upstream}" generates 720p and 1080p, not ${size}.`)
}

const STATUSES: Record<string, TaskProgress> = {
  submitted: { status: 'QUEUED' },
  processing: { status: 'IN_PROGRESS' },
}

function readTask(task: JsonRecord, client: OrderClient): TaskProgress {
  const status = client.readStatus(task.task_status)
  if (status === 'succeed') {
    const videos = memberOf(task.task_result, 'videos')
    return client.success(Array.isArray(videos) ? videos.map((video) => memberOf(video, 'url')) : [])
  }
  if (status === 'failed') return client.failure('generation_failed', task.task_status_msg)
  return STATUSES[status] ?? {}
}

/** Kling's own codes, which are in every response; 0 is success. The rows from 1200 to 1304 are from memory. */
const STATUS_OF_CODE: Record<number, ErrorClass> = {
  1000: 401, // the key pair or its token
  1001: 401,
  1002: 401,
  1003: 401,
  1004: 401,
  1100: 402, // the account: a problem with it, in arrears, its resource package used up
  1101: 402,
  1102: 402,
  1103: 403, // the account may not use this
  1200: 400, // the request
  1201: 400,
  1202: 400,
  1203: 404, // no such resource, such as a model
  1300: 'policy',
  1301: 'policy',
  1302: 429, // too many requests, too many at a time
  1303: 429,
  1304: 403, // the gateway's IP address is not on the account's allow list
  5000: 500,
  5001: 503,
  5002: 504,
}

const classifyError = classifyByCode(STATUS_OF_CODE)

const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)
