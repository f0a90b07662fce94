/** Kling's own API: orders by text or by image, each asked for on its own path, signed with a key pair. */
import { createHmac } from 'node:crypto'
import type { Clock } from '../../kit/clock.ts'
import { unixSeconds } from '../../kit/clock.ts'
import { isRecord, type JsonRecord } from '../../kit/json.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Json } from '../../spec/task.ts'
import type { VideoOrder } from '../../spec/video-request.ts'
import { createOrderClient, type OrderClient, operationId, withId } from '../orders/order-client.ts'
import type { ErrorClassifier } from '../orders/order-error.ts'
import {
  assertSupportedFields,
  ratioOf,
  tierOf,
  toBareBase64,
  unsupportedValue,
  withExtras,
} from '../orders/order-fields.ts'
import type { Provider, TaskProgress, VideoCall } from '../provider.ts'
import type { AdapterParts } from '../settings.ts'

/** The vendor's own advice: a token lives for half an hour, and is valid a little before it was made. */
const TOKEN_SECONDS = 1800
const EARLIER_SECONDS = 5
/** A new one is made this long before the end, so that none runs out on its way. */
const RENEW_SECONDS = 300

/** No such resource. */
const UNKNOWN_TASK = 1203

/** Which path a task is asked for on depends on which one it was ordered on. */
const WAYS = ['text2video', 'image2video'] as const
type Way = (typeof WAYS)[number]

export function createKling(parts: AdapterParts): Provider {
  const token = createToken(parts)
  const vendor = createOrderClient(parts, {
    kind: 'kling',
    base_url: 'https://api-singapore.klingai.com/v1',
    ...(token ? { headers: () => ({ authorization: `Bearer ${token()}` }) } : {}),
    classifyError: judge,
  })
  return {
    id: parts.id,
    kind: 'kling',
    video: {
      // `external_task_id` is said to be unique in an account, but not what a second order with it comes to.
      resubmit: 'unsafe',
      async start(call, signal) {
        const { way, body } = writeOrder(call, parts.id)
        const answer = await vendor.submit({ path: `/videos/${way}`, body, model: call.model, signal })
        return { operation: { id: vendor.readId(dataOf(answer).task_id), way } }
      },
      // "task_id or external_task_id" is what its path takes; 1203 and 404 say that there is none.
      async findOrder(call, signal) {
        const { way } = writeOrder(call, parts.id)
        const { status, payload } = await vendor.get(withId(`/videos/${way}`, call.task_id), signal)
        const answer = isRecord(payload) ? payload : {}
        if (status === 404 || Number(answer.code) === UNKNOWN_TASK) return undefined
        if (status !== 200 || Number(answer.code ?? 0) !== 0) throw vendor.unreadable(status)
        const { task_id, task_info } = dataOf(answer)
        const name = isRecord(task_info) ? task_info.external_task_id : undefined
        if (typeof name === 'string' && name !== call.task_id) return undefined
        return { operation: { id: vendor.readId(task_id), way } }
      },
      async status(operation, signal) {
        const path = withId(`/videos/${wayOf(operation)}`, operationId(operation))
        return vendor.poll(path, signal, (answer) => readTask(dataOf(answer), vendor))
      },
    },
  }
}

/** A ready `key` is used as it is; without one, tokens are made of the key pair. */
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

function writeOrder({ model, request, task_id }: VideoCall, upstream: string): { way: Way; body: JsonRecord } {
  assertSupportedFields(request, upstream, ['image', 'last_image', 'negative_prompt', 'audio_enable'])
  const { image, last_image } = request
  const way = image === undefined && last_image === undefined ? 'text2video' : 'image2video'
  const body = withExtras(
    {
      model_name: model,
      prompt: request.prompt || undefined,
      negative_prompt: request.negative_prompt,
      image: image === undefined ? undefined : toBareBase64(image),
      image_tail: last_image === undefined ? undefined : toBareBase64(last_image),
      // From an image, the image's own ratio is what counts, and there is no field for another.
      aspect_ratio: way === 'text2video' ? ratioOf(request) : undefined,
      mode: modeOf(request, upstream),
      duration: request.duration === undefined ? undefined : String(request.duration),
      // Only models from 2.6 on know the field, and they are silent without it.
      sound: request.audio_enable ? 'on' : undefined,
      external_task_id: task_id,
    },
    request.metadata,
    'kling',
    ['sound'],
  )
  return { way, body }
}

/** Sizes go by the names of two modes. */
function modeOf({ size }: VideoOrder, upstream: string): string | undefined {
  const tier = tierOf(size)
  if (tier === undefined) return undefined
  if (tier === '720p') return 'std'
  if (tier === '1080p') return 'pro'
  throw unsupportedValue('size', `The upstream "${upstream}" makes 720p and 1080p, not ${size}.`)
}

const STATUSES: Record<string, TaskProgress> = {
  submitted: { status: 'QUEUED' },
  processing: { status: 'IN_PROGRESS' },
}

function readTask(task: JsonRecord, vendor: OrderClient): TaskProgress {
  const status = vendor.readStatus(task.task_status)
  if (status === 'succeed') {
    const videos = isRecord(task.task_result) ? task.task_result.videos : undefined
    return vendor.success(Array.isArray(videos) ? videos.map((video) => (isRecord(video) ? video.url : undefined)) : [])
  }
  if (status === 'failed') return vendor.failure('generation_failed', task.task_status_msg)
  return STATUSES[status] ?? {}
}

function wayOf(operation: Json): Way {
  const way = WAYS.find((known) => isRecord(operation) && operation.way === known)
  if (way) return way
  throw new GatewayError('internal_error', 'What was stored of the order is not of this kind of provider.')
}

/** The vendor's own codes, which come in every answer; 0 is success. */
const STATUS_OF_CODE: Record<number, number | 'policy'> = {
  1000: 401, // the key pair or its token
  1001: 401,
  1002: 401,
  1003: 401,
  1004: 401,
  1100: 402, // the account: something is wrong with it, in arrears, its package used up
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
  1304: 403, // the address of the gateway is not on the account's list
  5000: 500,
  5001: 503,
  5002: 504,
}

const judge: ErrorClassifier = (payload, status) => {
  const code = isRecord(payload) ? Number(payload.code ?? 0) : 0
  if (code === 0 || Number.isNaN(code)) return undefined
  // A code that is not known, in an answer that went well otherwise: nobody knows what it means.
  return STATUS_OF_CODE[code] ?? (status < 300 ? 502 : undefined)
}

const dataOf = (answer: JsonRecord): JsonRecord => (isRecord(answer.data) ? answer.data : {})

const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)
