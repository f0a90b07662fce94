/** The routes of images, in the OpenAI form: synchronous, as a stream with partial images, or as a task (`async`). */
import Type from 'typebox'
import type { Pipeline } from '../../calls/pipeline.ts'
import type { Context, Route } from '../../http/context.ts'
import { bodyOf } from '../../http/form-fields.ts'
import { jsonResponse } from '../../http/live.ts'
import { unixSeconds } from '../../kit/clock.ts'
import type { CatalogueModel } from '../../models/catalogue.ts'
import type { ErrorCode } from '../../spec/error.ts'
import { MODEL_REQUEST_ERRORS, UPSTREAM_ERRORS } from '../../spec/error-lists.ts'
import { parameter, titled } from '../../spec/fields.ts'
import { ImageAnswer, type ImageOperation, ImageRequest } from '../../spec/image-request.ts'
import { TaskCreated } from '../../spec/task.ts'
import type { FileInputs } from '../files/file-inputs.ts'
import { imageFiles } from '../files/file-references.ts'
import { callStream } from '../shared/event-stream.ts'
import { IMAGE_TASKS, orderImages } from '../tasks/routes/image-tasks.ts'
import { requestBaseUrl } from '../tasks/routes/request-parameters.ts'
import { linksToTask, readOrder, TASK_ERROR_FORMAT, type TaskApiParts } from '../tasks/routes/task-api.ts'
import type { createGeneratedFileStore } from '../tasks/store-generated.ts'
import type { ImageInput, Images } from './images.ts'
import { IMAGE_FORM, parseImageRequest } from './parse.ts'
import { base64Of, type ImageFile } from './stream-writer.ts'

/** Stores the files of generated images; returns their links in order. */
export type StoreImages = ReturnType<typeof createGeneratedFileStore>

type ImageRouteParts = TaskApiParts & {
  pipeline: Pipeline
  images: Images
  storeImages: StoreImages
  fileInputs: FileInputs
}

const ImageEventSchema = titled('ImageEvent', {
  type: Type.String({
    description: '`image_generation.partial_image`, `image_generation.completed`, `image_edit.*`.',
  }),
  b64_json: Type.String(),
  partial_image_index: Type.Optional(Type.Integer()),
  created_at: Type.Integer(),
})

const ROUTES: { path: string; operation: ImageOperation; summary: string; description: string; example: object }[] = [
  {
    path: '/v1/images/generations',
    operation: 'generate',
    summary: 'Create images',
    description:
      '`response_format: url` returns signed links that expire, `b64_json` the bytes. With `stream: true` the response is a stream of events, with partial images if the model has them. With `async: true` the response is a task, as for videos.',
    example: { model: 'sandbox/image', prompt: 'A lighthouse in fog', size: '1024x1024' },
  },
  {
    path: '/v1/images/edits',
    operation: 'edit',
    summary: 'Edit images',
    description: 'Edits one or more images: files of a form (`image`, `image[]`, `mask`), URLs or data URIs.',
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
    description: 'Varies one image, if the model supports it.',
    example: {
      model: 'sandbox/image',
      image:
        'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    },
  },
]

export function imageRoutes(parts: ImageRouteParts): Route[] {
  const { pipeline, images, storeImages, fileInputs, settings, clock } = parts
  async function whole(input: ImageInput, context: Context): Promise<Response> {
    const prepared = pipeline.prepare(images.whole, context, input)
    const { answer: generated, model, work } = await prepared.send()
    const { background, quality, size } = work.order
    const links = work.response_format === 'url' ? await stored(model) : undefined
    const answer: ImageAnswer = {
      created: unixSeconds(clock),
      data: generated.files.map((file, index) => dataOf(file, links?.[index])),
      output_format: generated.files[0]?.content_type.replace('image/', '') ?? 'png',
      ...(background === undefined ? {} : { background }),
      ...(quality === undefined ? {} : { quality }),
      ...(size === undefined ? {} : { size }),
      ...(generated.usage ? { usage: generated.usage } : {}),
    }
    return jsonResponse(answer, { context, clock, headers: prepared.headers })

    function stored({ id, keep_days }: CatalogueModel): Promise<string[]> {
      const { prompt, n } = work.order
      const request = { model: id, prompt, operation: input.operation, n, ...(size === undefined ? {} : { size }) }
      const base_url = requestBaseUrl(context.request, settings)
      const files = { family: 'image-generation', model: id, keep_days, request, base_url, ...generated } as const
      return storeImages(files, context)
    }
  }

  async function streamed(input: ImageInput, context: Context): Promise<Response> {
    const { send, headers } = pipeline.prepareStream(images.stream, context, input)
    return callStream(send(), context, { headers, settings, clock })
  }

  return ROUTES.map(({ path, operation, summary, description, example }) => ({
    ...TASK_ERROR_FORMAT,
    method: 'POST',
    path,
    operation: {
      summary,
      description,
      tag: 'Images',
      request: ImageRequest,
      files: operation === 'edit' ? ['image', 'mask'] : ['image'],
      headers: {
        'Idempotency-Key': parameter(
          'With `async: true`: the same key with the same body within 24 hours returns the first task.',
        ),
      },
      response: Type.Union([ImageAnswer, TaskCreated], { description: 'A task with `async: true`, else the images.' }),
      stream: ImageEventSchema,
      links: linksToTask(IMAGE_TASKS, '/data/task_id'),
      errors: IMAGE_ERRORS,
      example,
    },
    async handle(context) {
      const posted = await readOrder(parts, context, 'image-generation')
      const body = await fileInputs.resolved(bodyOf(posted, IMAGE_FORM), imageFiles, context)
      const request = parseImageRequest(body)
      if (request.async) return orderImages(parts, { request, operation }, context)
      const input = { request, operation }
      return request.stream ? streamed(input, context) : whole(input, context)
    },
  }))
}

function dataOf({ bytes, revised_prompt }: ImageFile, url: string | undefined): ImageAnswer['data'][number] {
  const prompt = revised_prompt === undefined ? {} : { revised_prompt }
  return url === undefined ? { b64_json: base64Of(bytes), ...prompt } : { url, ...prompt }
}

const IMAGE_ERRORS: ErrorCode[] = [
  ...MODEL_REQUEST_ERRORS,
  'content_policy_violation',
  'idempotency_key_reused',
  'storage_quota_exceeded',
  ...UPSTREAM_ERRORS,
]
