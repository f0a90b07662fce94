/**
 * Videos in the contentgen form: a task is an operation, `POST /v1beta/models/{model}:predictLongRunning`, and its files
 * are downloaded by name.
 */
import Type from 'typebox'
import { bodyLimits, readJson } from '../../../http/body.ts'
import type { Context, Route } from '../../../http/context.ts'
import { memberOf } from '../../../kit/json.ts'
import { fieldsIn, predictRequest, withPath } from '../../../protocols/contentgen/client/predict.ts'
import { ContentgenError, contentgenErrorBody } from '../../../spec/contentgen-error.ts'
import { GatewayError } from '../../../spec/error.ts'
import { titled } from '../../../spec/fields.ts'
import { MODEL_PARAMETER } from '../../../spec/operation.ts'
import { readUserFields } from '../../shared/call-options.ts'
import { encodeOperation, encodePublishedOperation, idInFile, VideoOperation } from '../operation-response.ts'
import { VIDEO_FAMILIES } from '../order-kinds.ts'
import { parseVideo } from '../parse-order.ts'
import { contentRoute } from './content.ts'
import {
  linksFor,
  ORDER_ERRORS,
  ORDER_HEADERS,
  RETRY_HEADERS,
  submitOrder,
  type TaskApiParts,
  taskHeaders,
} from './task-api.ts'
import { VIDEOS } from './videos.ts'

/** Canonical field -> the client's path. */
const FIELDS = {
  prompt: 'instances[0].prompt',
  image: 'instances[0].image',
  last_image: 'instances[0].lastFrame',
  images: 'instances[0].referenceImages',
  video: 'instances[0].video',
  n: 'parameters.sampleCount',
  seconds: 'parameters.durationSeconds',
  aspect_ratio: 'parameters.aspectRatio',
  size: 'parameters.resolution',
  negative_prompt: 'parameters.negativePrompt',
  seed: 'parameters.seed',
  audio_enable: 'parameters.generateAudio',
}
/** What the errors of a model's limits name. */
const ERROR_FIELDS = { ...FIELDS, duration: FIELDS.seconds }
const MEDIA = ['image', 'last_image', 'images', 'video']
/** Places of the vendor's, and a mask, which no other API has. */
const REFUSED = ['instances[0].mask', 'parameters.storageUri', 'parameters.pubsubTopic']

const FORMAT: Pick<Route, 'encodeError' | 'errorSchema'> = {
  encodeError: contentgenErrorBody,
  errorSchema: ContentgenError,
}
const TAG = 'Videos, contentgen'

const FetchOperation = titled('FetchOperationRequest', {
  operationName: Type.String({ minLength: 1, description: 'The `name` of the operation.' }),
})

type MethodRoute = Omit<Route, 'method' | 'path' | 'shown' | 'hidden' | 'exclusive'>

/** The methods of models, by their names. */
export function videoMethods(parts: TaskApiParts): Record<'predictLongRunning' | 'fetchPredictOperation', MethodRoute> {
  return { predictLongRunning: createRoute(parts), fetchPredictOperation: fetchRoute(parts) }
}

const createRoute = (parts: TaskApiParts): MethodRoute => ({
  ...FORMAT,
  operation: {
    summary: 'Create a video, in the contentgen shape',
    description:
      'Returns an operation; its task is the same in all APIs of videos. Parameters that only tune are ignored.',
    tag: TAG,
    params: MODEL_PARAMETER,
    request: predictRequest('VideoPredictRequest', {
      instance: '`prompt`, and the media `image`, `lastFrame`, `referenceImages` and `video`.',
      parameters:
        '`sampleCount`, `durationSeconds`, `aspectRatio`, `resolution`, `negativePrompt`, `seed` and `generateAudio`.',
    }),
    response: VideoOperation,
    responseHeaders: ORDER_HEADERS,
    errors: ORDER_ERRORS,
    example: { instances: [{ prompt: 'A paper boat on a pond, early morning' }], parameters: { durationSeconds: 4 } },
  },
  async handle(context) {
    const body = await readJson(context.request, bodyLimits(context, 'media', parts))
    context.noteFields(body)
    readUserFields(context, memberOf(body, 'user'), memberOf(body, 'safety_identifier'))
    const model = context.params.model ?? ''
    // A repeated order with a known key gets its task, whatever has become of the model.
    if (!context.request.headers.has('idempotency-key'))
      parts.pipeline.authorize(context, { family: 'video-generation', model })
    try {
      const fields = fieldsIn(body, { fields: FIELDS, media: MEDIA, refused: REFUSED })
      const order = { family: 'video-generation', request: parseVideo({ ...fields, model }) } as const
      const { task, headers } = await submitOrder(parts, context, order)
      return Response.json(encodeOperation(task, linksFor(parts, context)), { headers })
    } catch (thrown) {
      throw withPath(thrown, ERROR_FIELDS)
    }
  },
})

/** How clients of Vertex AI poll. */
const fetchRoute = (parts: TaskApiParts): MethodRoute => ({
  ...FORMAT,
  operation: {
    summary: 'Retrieve the operation of a video, by its name in the body',
    description: 'How clients of Vertex AI poll. The operation is the one that `predictLongRunning` returned.',
    tag: TAG,
    params: { model: 'Not read: the name of the operation has the id of the task.' },
    request: FetchOperation,
    example: { operationName: 'models/sandbox/text-to-video/operations/task_0123456789abcdefghijABCDEFGHIJ12' },
    response: VideoOperation,
    responseHeaders: RETRY_HEADERS,
    errors: [
      'invalid_json',
      'missing_required_parameter',
      'task_not_exist',
      'request_timeout',
      'request_too_large',
      'unsupported_media_type',
    ],
  },
  async handle(context) {
    const body = await readJson(context.request, bodyLimits(context, 'text', parts))
    const name = memberOf(body, 'operationName')
    if (typeof name !== 'string') {
      const param = 'operationName'
      throw new GatewayError('missing_required_parameter', `"${param}" is required.`, { param })
    }
    const task = await find(parts, context, name.slice(name.lastIndexOf('/') + 1))
    return Response.json(encodePublishedOperation(task, linksFor(parts, context)), {
      headers: taskHeaders(parts, task),
    })
  },
})

async function find({ tasks }: TaskApiParts, context: Context, task_id: string) {
  const task = await tasks.find(task_id, context.caller, VIDEO_FAMILIES)
  context.note.model = task.model
  return task
}

/** Whether this is the model of a task, with or without the provider prefix. */
const isNamedBy = ({ model }: { model: string }, name: string): boolean => model === name || model.endsWith(`/${name}`)

const unknownOperation = (model: string, task_id: string): GatewayError =>
  new GatewayError('task_not_exist', `There is no operation "${task_id}" of the model "${model}".`)

const VERSIONS = ['/v1beta', '/v1', '/v1alpha', '/v1beta1']

/** Operations, and the files of ended ones, by their names. The first version is the documented one. */
export function operationRoutes(parts: TaskApiParts): Route[] {
  const content = contentRoute(parts, { ...VIDEOS, media: ['video/mp4'] })
  return VERSIONS.flatMap((version, index): Route[] => {
    const shown = (path: string) => (index === 0 ? { shown: `${version}/${path}` } : { hidden: true as const })
    return [
      {
        ...FORMAT,
        ...shown('models/{model}/operations/{task_id}'),
        method: 'GET',
        path: `${version}/models/:model{.+}/operations/:task_id`,
        exclusive: true,
        operation: {
          summary: 'Retrieve the operation of a video',
          description:
            'The operation that `predictLongRunning` returned, by its name. It is done once its files are stored.',
          tag: TAG,
          params: { model: 'The model of the operation.', task_id: 'The last part of its name.' },
          response: VideoOperation,
          responseHeaders: RETRY_HEADERS,
          errors: ['task_not_exist'],
        },
        async handle(context) {
          const { model = '', task_id = '' } = context.params
          const task = await find(parts, context, task_id)
          if (!isNamedBy(task, model)) throw unknownOperation(model, task_id)
          return Response.json(encodeOperation(task, linksFor(parts, context)), { headers: taskHeaders(parts, task) })
        },
      },
      {
        ...FORMAT,
        ...shown('files/{file}:download'),
        method: 'GET',
        path: `${version}/files/:file{.+:download}`,
        exclusive: true,
        operation: {
          ...content.operation,
          summary: 'Download a video by the name of its file',
          description: 'The address is `uri` of an operation. Supports range requests.',
          tag: TAG,
          params: { file: 'The name in `uri`.' },
          query: {},
        },
        handle(context) {
          const { task_id, index } = idInFile(context.params.file ?? '')
          context.params = { video_id: task_id, index }
          return content.handle(context)
        },
      },
    ]
  })
}
