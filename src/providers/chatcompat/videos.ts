/** Kind `chatcompat-video`: an upstream with OpenAI's video API, such as another Gatehouse or New API. */
import { asRecord, isRecord, type JsonRecord, recordsIn } from '../../kit/json.ts'
import type { VideoOrder } from '../../spec/video-request.ts'
import { createOrderClient, isHttpUrl, type OrderClient, operationId, withId } from '../orders/order-client.ts'
import { type ErrorClassifier, throwNeverSent } from '../orders/order-error.ts'
import {
  assertSupportedFields,
  pixelsOf,
  ratioOf,
  toMediaUrl,
  unsupportedValue,
  withExtras,
  withoutEmpty,
} from '../orders/order-fields.ts'
import { type ListedOrder, type OrderList, secondsOf } from '../orders/order-list.ts'
import type { Provider, VideoCall } from '../provider.ts'
import { type AdapterParts, withFieldRules } from '../settings.ts'
import { formOf } from './form.ts'
import { orderIdIn, readVideo } from './video-response.ts'

/** What an operator may choose; the first is the default. */
const CHOICES = {
  /** `/videos`, or the specification's `/video/generations`. */
  api: ['videos', 'video-generations'],
  body: ['json', 'multipart'],
  /** The place of a first frame in a JSON body: the object of the official API, or a string in `image`. */
  image_as: ['input_reference', 'image'],
  /** How a task is canceled: not at all, by DELETE of the video, by POST of a cancel below the task. */
  cancel: ['no', 'delete', 'post'],
  /** Whether orders in doubt are looked up in the list at `/videos`, and whether that list is complete. */
  list: ['yes', 'no', 'complete'],
} as const
type Choices = { [name in keyof typeof CHOICES]: (typeof CHOICES)[name][number] }

export function createChatcompatVideo(parts: AdapterParts): Provider {
  const { id, config } = parts
  const choices = choicesOf(id, config.options ?? {})
  const client = createOrderClient(parts, { kind: 'chatcompat-video', classifyError })
  const tasks = choices.api === 'videos' ? '/videos' : '/video/generations'
  const write = choices.api === 'videos' ? writeVideo : writeGeneration
  const origin = new URL(client.base_url).origin

  async function bodyOf(call: VideoCall, signal: AbortSignal) {
    const body = withFieldRules(write(call, parts, choices), config.fields ?? {})
    if (choices.body === 'json') return body
    const { image } = call.request
    return multipart(body, image === undefined ? undefined : await fileOf(image, parts, signal), call.task_id)
  }

  return {
    id,
    kind: 'chatcompat-video',
    video: {
      resubmit: config.options?.idempotent === true ? 'safe' : 'unsafe',
      awaits_before_send: true,
      key_seconds: keySecondsOf(id, config.options ?? {}),
      async start(call, signal) {
        const response = await client.submit({
          path: tasks,
          body: await bodyOf(call, signal),
          headers: { 'idempotency-key': call.idempotency_key },
          signal,
          call,
        })
        return { operation: { id: client.readId(...orderIdIn(response)) } }
      },
      async status(operation, signal) {
        const task = operationId(operation)
        const contentUrl = `${client.base_url}${withId('/videos', task)}/content`
        return client.poll(withId(tasks, task), signal, (response) => readVideo(response, client, contentUrl))
      },
      ...(choices.cancel === 'no'
        ? {}
        : {
            async cancel(operation, signal) {
              const task = operationId(operation)
              await (choices.cancel === 'delete'
                ? client.send('DELETE', withId('/videos', task), signal)
                : client.send('POST', `${withId('/video/generations', task)}/cancel`, signal))
            },
          }),
      ...(isListed(choices, config.options ?? {}) ? { orderList: listOf(client, parts, choices) } : {}),
      outputHeaders: (url) => (URL.parse(url)?.origin === origin ? client.headers() : {}),
    },
  }
}

/** Where keys are honoured, a repetition finds the order; the other API lists tasks without their prompts. */
const isListed = ({ api, list }: Choices, { idempotent }: JsonRecord): boolean =>
  list !== 'no' && api === 'videos' && idempotent !== true

/** OpenAI, "List videos": newest first, each with its prompt, seconds and size. */
function listOf(client: OrderClient, parts: AdapterParts, choices: Choices): OrderList<VideoCall> {
  return {
    absent: choices.list === 'complete' ? 'not accepted' : 'unknown',
    since: (_, since, signal) =>
      client.listOrders(since, signal, {
        path: ({ last }) => `/videos?limit=100&order=desc${last ? `&after=${encodeURIComponent(last.id)}` : ''}`,
        read(payload) {
          const { data, has_more } = asRecord(payload)
          if (!Array.isArray(data)) return undefined
          return { orders: recordsIn(data).map((video) => listed(video, client)), isLast: has_more !== true }
        },
      }),
    fieldsOf(call) {
      const { image, last_image, images, video } = call.request
      // The list does not show media: another order of the same prompt may be of another picture.
      if ([image, last_image, images, video].some((media) => media !== undefined)) return undefined
      const { prompt, seconds, size } = writeVideo(call, parts, choices)
      return { always: { prompt }, where_shown: withoutEmpty({ seconds, size }) }
    },
  }
}

function listed(video: JsonRecord, client: OrderClient): ListedOrder {
  const { prompt, seconds, size, created_at } = video
  const id = client.readId(video.id)
  const length = typeof seconds === 'number' ? String(seconds) : seconds
  return { id, operation: { id }, created_at: secondsOf(created_at), fields: { prompt, seconds: length, size } }
}

/** As long as another Gatehouse remembers a key, which is also the usual time. */
const KEY_HOURS = 24

/** How long the upstream recognises a repeated order. */
function keySecondsOf(id: string, { key_hours = KEY_HOURS }: JsonRecord): number {
  if (typeof key_hours === 'number' && key_hours > 0) return key_hours * 3600
  throw new Error(`providers.${id}.options.key_hours must be a number of hours above 0, such as ${KEY_HOURS}`)
}

function choicesOf(id: string, options: JsonRecord): Choices {
  const chosen = Object.entries(CHOICES).map(([name, allowed]) => {
    const value = options[name] ?? allowed[0]
    if ((allowed as readonly unknown[]).includes(value)) return [name, value]
    throw new Error(`providers.${id}.options.${name} must be one of ${allowed.join(', ')}`)
  })
  return Object.fromEntries(chosen) as Choices
}

/** The official fields, and those that this upstream also accepts by `fields.allow`. */
function writeVideo({ model, request }: VideoCall, { id, config }: AdapterParts, choices: Choices): JsonRecord {
  const allowed = config.fields?.allow ?? []
  assertSupportedFields(request, id, ['image', ...CHANGES.filter((field) => allowed.includes(field))])
  const { image } = request
  const pixels = pixelsOf(request.size ?? (request.aspect_ratio && '720p'), ratioOf(request))
  return withExtras(
    {
      model,
      prompt: request.prompt,
      seconds: request.duration === undefined ? undefined : String(request.duration),
      size: pixels && `${pixels.width}x${pixels.height}`,
      ...(image === undefined || choices.body === 'multipart'
        ? {}
        : choices.image_as === 'image'
          ? { image }
          : { input_reference: { image_url: toMediaUrl(image) } }),
      ...Object.fromEntries(FURTHER.filter((field) => allowed.includes(field)).map((field) => [field, request[field]])),
      metadata: metadataOf(request),
    },
    request.metadata,
    'chatcompat-video',
    DECIDED,
  )
}

/** The specification's fields were checked before: no extra may replace one. */
const DECIDED = ['n', 'duration', 'seconds', 'size', 'width', 'height', 'audio_enable']

const CHANGES = ['last_image', 'images', 'video', 'negative_prompt', 'audio_enable', 'n'] as const
const FURTHER = [...CHANGES, 'seed', 'aspect_ratio', 'duration'] as const

/** The specification's own fields (2.5), as they are. */
function writeGeneration({ model, request }: VideoCall): JsonRecord {
  const { model: _, n, metadata: __, ...fields } = request
  const own = { model, ...fields, ...(n > 1 ? { n } : {}), metadata: metadataOf(request) }
  return withExtras(own, request.metadata, 'chatcompat-video', DECIDED)
}

/** Other providers' extras may be meant for the provider behind this upstream. */
function metadataOf({ metadata = {} }: VideoOrder): JsonRecord | undefined {
  const { model: _, 'chatcompat-video': __, ...rest } = metadata
  return Object.keys(rest).length > 0 ? rest : undefined
}

type File = { bytes: Uint8Array; content_type: string }

/** Reads the bytes of an image before anything is ordered, so that a failure leaves no order in doubt. */
async function fileOf(value: string, parts: AdapterParts, signal: AbortSignal): Promise<File> {
  if (!isHttpUrl(value)) {
    const [, given = '', base64 = ''] = /^data:([^;,]*);base64,(.*)$/s.exec(toMediaUrl(value)) ?? []
    const content_type = /^image\/[\w.+-]+$/.test(given) ? given : 'image/png' // it becomes a header
    return { bytes: Buffer.from(base64, 'base64'), content_type }
  }
  if (!parts.media) {
    throw unsupportedValue('image', `The upstream "${parts.id}" accepts an image here only as data, not as a URL.`)
  }
  return parts.media.read(value, signal).catch(throwNeverSent)
}

/** A form with the same bytes for the same order: some upstreams compare the bodies of one key. */
function multipart(body: JsonRecord, file: File | undefined, task_id: string) {
  const kind = /^image\/(\w+)/.exec(file?.content_type ?? '')?.[1] ?? 'png' // some read only the extension of the name
  const files = file ? [{ ...file, name: 'input_reference', filename: `image.${kind}` }] : []
  return formOf(body, files, `gatehouse-${task_id}`)
}

const codeIn = (payload: unknown): string => {
  const error = isRecord(payload) && isRecord(payload.error) ? payload.error : payload
  return isRecord(error) && typeof error.code === 'string' ? error.code : ''
}

/** New API returns 403 for an account without credit. */
const classifyError: ErrorClassifier = (payload, status) =>
  status >= 400 &&
  status < 500 &&
  /^(insufficient_user_quota|insufficient_quota|pre_consume_token_quota_failed)$/.test(codeIn(payload))
    ? 402
    : undefined
