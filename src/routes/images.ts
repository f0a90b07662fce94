/** Images over HTTP in the OpenAI shape: at once, as a stream with partial images, or as a task (`async`). */
import Type from 'typebox'
import type { ServerSettings } from '../config/config.ts'
import { bodyLimits } from '../http/body.ts'
import type { Context, Route } from '../http/context.ts'
import { awaitStart, eventStream } from '../http/event-stream.ts'
import { fieldOf, readJsonOrForm } from '../http/multipart.ts'
import type { GeneratedImages, ImageInput, Images } from '../images/images.ts'
import { parseImageRequest } from '../images/parse.ts'
import { base64Of, type ImageFile } from '../images/stream-writer.ts'
import { type Clock, unixSeconds } from '../kit/clock.ts'
import type { CatalogueModel } from '../models/catalogue.ts'
import { modelHeaders } from '../models/lifecycle.ts'
import type { Pipeline } from '../pipeline/pipeline.ts'
import { type ErrorCode, MODEL_REQUEST_ERRORS, UPSTREAM_ERRORS } from '../spec/error.ts'
import { ImageAnswer, type ImageOperation, type ImageOrder, ImageRequest } from '../spec/image-request.ts'

/** Stores generated images; the target is recorded. */
type StoreImages = (
  made: { model: CatalogueModel; order: ImageOrder; operation: ImageOperation; generated: GeneratedImages },
  context: Context,
) => Promise<string[]>

/** Accepts the request as a task, and responds with it. */
type OrderImages = (request: ImageRequest, operation: ImageOperation, context: Context) => Promise<Response>

type ImageRouteParts = {
  pipeline: Pipeline
  images: Images
  /** Stores the files; returns their links in order. */
  keep: StoreImages
  order: OrderImages
  /** Read at each request, since a reload changes them. */
  settings: ServerSettings
  clock: Clock
  /** The error form that this family shares with its tasks. */
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

export function imageRoutes({ pipeline, images, keep, order, settings, clock, errors }: ImageRouteParts): Route[] {
  async function whole(input: ImageInput, context: Context): Promise<Response> {
    const { work, send, ...chosen } = pipeline.prepare(images.whole, context, input)
    const headers = modelHeaders(chosen, clock)
    const { answer: generated } = await send()
    const { background, quality, size } = work.order
    const { operation } = input
    const stored = { model: chosen.model, order: work.order, operation, generated }
    const links = work.response_format === 'url' ? await keep(stored, context) : undefined
    const answer: ImageAnswer = {
      created: unixSeconds(clock),
      data: generated.files.map((file, index) => dataOf(file, links?.[index])),
      output_format: generated.files[0]?.content_type.replace('image/', '') ?? 'png',
      ...(background === undefined ? {} : { background }),
      ...(quality === undefined ? {} : { quality }),
      ...(size === undefined ? {} : { size }),
      ...(generated.usage ? { usage: generated.usage } : {}),
    }
    return Response.json(answer, { headers })
  }

  async function streamed(input: ImageInput, context: Context): Promise<Response> {
    const { send, ...chosen } = pipeline.prepareStream(images.stream, context, input)
    const headers = modelHeaders(chosen, clock)
    const { started, parts, record, abandon } = send()
    const silence = { arrived: context.arrived, keep_alive_ms: settings.keep_alive_seconds * 1000, clock }
    await awaitStart(started, silence)
    context.note.stream = true
    return eventStream({
      ...silence,
      batches: parts,
      headers,
      abort: context.leave,
      onFirstByte() {
        context.note.first_byte_ms = clock.now() - context.arrived
      },
      async onEnd(outcome) {
        await abandon()
        if (record.error) context.note.error = record.error
        context.finish(record.error ? 'cut' : outcome)
      },
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
      const posted = await readJsonOrForm(context.request, limits)
      // An order that is repeated with its key gets its task, whatever has become of the model.
      if (!context.request.headers.has('idempotency-key'))
        pipeline.authorize(context, { family: 'image-generation', model: fieldOf(posted, 'model') })
      const request = parseImageRequest(posted)
      if (request.async) return order(request, operation, context)
      const input = { request, operation }
      return request.stream ? streamed(input, context) : whole(input, context)
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
