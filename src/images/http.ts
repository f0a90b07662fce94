/** Images over HTTP in the OpenAI shape: at once, as a stream with partial images, or as a task (`async`). */
import Type from 'typebox'
import type { ServerSettings } from '../config/config.ts'
import { bodyLimits } from '../http/body.ts'
import type { Context, Route } from '../http/context.ts'
import { asGatewayError } from '../http/errors.ts'
import { awaitStart, eventStream } from '../http/event-stream.ts'
import { readJsonOrForm } from '../http/multipart.ts'
import { type Clock, unixSeconds } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import { modelHeaders } from '../models/lifecycle.ts'
import { type ErrorCode, MODEL_REQUEST_ERRORS, UPSTREAM_ERRORS } from '../spec/error.ts'
import { ImageAnswer, type ImageOperation, ImageRequest } from '../spec/image-request.ts'
import type { AskedImages, Done, ImageFile, ImageNews, Images } from './images.ts'
import { parseImageRequest } from './parse.ts'
import { base64Of, createImageStreamWriter, type ImageStreamWriter } from './stream-writer.ts'

/** Images that were made, to be kept; by whom they were made is for the record. */
export type KeepImages = (
  made: { asked: AskedImages; done: Done; operation: ImageOperation },
  context: Context,
) => Promise<string[]>

/** Takes the request on as a task, and answers with it. */
export type OrderImages = (request: ImageRequest, operation: ImageOperation, context: Context) => Promise<Response>

type ImageRouteParts = {
  images: Images
  /** Stores the files; the links by which they are had, in their order. */
  keep: KeepImages
  order: OrderImages
  /** Read at each request: a reload changes them. */
  settings: ServerSettings
  clock: Clock
  log: Log
  /** The shape of errors that the tasks of this family have too. */
  errors: Pick<Route, 'writeError' | 'errorSchema'>
}

const ImageEventSchema = Type.Object(
  {
    type: Type.String({
      description: '`image_generation.partial_image`, `image_generation.completed`, `image_edit.*`.',
    }),
    b64_json: Type.String(),
    partial_image_index: Type.Optional(Type.Integer()),
    created_at: Type.Integer(),
  },
  { title: 'ImageEvent' },
)

const ROUTES: { path: string; operation: ImageOperation; summary: string; description: string; example: object }[] = [
  {
    path: '/v1/images/generations',
    operation: 'generate',
    summary: 'Create images',
    description:
      '`response_format: url` answers with signed links that expire, `b64_json` with the bytes. With `stream: true` the answer is a stream of events, with partial images where the model has them. With `async: true` the answer is a task, as for videos.',
    example: { model: 'sandbox/image', prompt: 'A lighthouse in fog', size: '1024x1024' },
  },
  {
    path: '/v1/images/edits',
    operation: 'edit',
    summary: 'Change images',
    description: 'Of one image or several, in a form as files (`image`, `image[]`, `mask`), else as URLs or data URIs.',
    example: {
      model: 'sandbox/image',
      prompt: 'Make the sky green',
      image:
        'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    },
  },
  {
    path: '/v1/images/variations',
    operation: 'variation',
    summary: 'Vary an image',
    description: 'Of one image, by models that have it.',
    example: {
      model: 'sandbox/image',
      image:
        'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    },
  },
]

export function imageRoutes({ images, keep, order, settings, clock, log, errors }: ImageRouteParts): Route[] {
  type Asking = { asked: AskedImages; operation: ImageOperation }

  async function whole({ asked, operation }: Asking, context: Context): Promise<Response> {
    const done = await images.make(asked, context)
    const { background, quality, size } = asked.order
    const links = asked.given === 'url' ? await keep({ asked, done, operation }, context) : undefined
    const answer: ImageAnswer = {
      created: unixSeconds(clock),
      data: done.files.map((file, index) => dataOf(file, links?.[index])),
      output_format: done.files[0]?.content_type.replace('image/', '') ?? 'png',
      ...(background === undefined ? {} : { background }),
      ...(quality === undefined ? {} : { quality }),
      ...(size === undefined ? {} : { size }),
      ...(done.usage ? { usage: done.usage } : {}),
    }
    return Response.json(answer, { headers: modelHeaders(asked, clock) })
  }

  async function* events(starting: Promise<AsyncIterable<ImageNews>>, writer: ImageStreamWriter, context: Context) {
    try {
      for await (const item of await starting) {
        if (item.type === 'partial') yield writer.partial(item.base64, item.index)
        else yield writer.completed(item.files, item.usage)
      }
    } catch (thrown) {
      const error = asGatewayError(context.signal.reason ?? thrown, { log, request_id: context.request_id })
      context.note.error = error.code
      yield writer.fail(error)
    }
  }

  async function streamed({ asked, operation }: Asking, partial: number, context: Context): Promise<Response> {
    const writer = createImageStreamWriter({ operation, order: asked.order, created: unixSeconds(clock) })
    const starting = images.stream(asked, partial, context)
    const silence = { arrived: context.arrived, keep_alive_ms: settings.keep_alive_seconds * 1000, clock }
    await awaitStart(starting, silence)
    context.note.stream = true
    return eventStream({
      ...silence,
      batches: events(starting, writer, context),
      headers: modelHeaders(asked, clock),
      abort: context.leave,
      onFirstByte() {
        context.note.first_byte_ms = clock.now() - context.arrived
      },
      onEnd: (outcome) => context.finish(context.note.error ? 'cut' : outcome),
    })
  }

  return ROUTES.map(({ path, operation, summary, description, example }) => ({
    ...errors,
    method: 'POST',
    path,
    operation: {
      summary,
      description,
      tag: 'Images',
      request: ImageRequest,
      files: operation === 'edit' ? ['image', 'mask'] : ['image'],
      response: ImageAnswer,
      stream: ImageEventSchema,
      errors: IMAGE_ERRORS,
      example,
    },
    async handle(context) {
      const limits = bodyLimits(settings, clock, 'media')
      const request = parseImageRequest(await readJsonOrForm(context.request, limits))
      if (request.async) return order(request, operation, context)
      const asking = { asked: images.ask(request, operation, context), operation }
      return request.stream ? streamed(asking, request.partial_images ?? 0, context) : whole(asking, context)
    },
  }))
}

function dataOf({ bytes, revised_prompt }: ImageFile, url: string | undefined): ImageAnswer['data'][number] {
  const told = revised_prompt === undefined ? {} : { revised_prompt }
  return url === undefined ? { b64_json: base64Of(bytes), ...told } : { url, ...told }
}

const IMAGE_ERRORS: ErrorCode[] = [
  ...MODEL_REQUEST_ERRORS,
  'content_policy_violation',
  'idempotency_key_reused',
  ...UPSTREAM_ERRORS,
]
