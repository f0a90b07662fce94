/** Videos in the specification's own words (2.5 to 2.7, section 4). */
import type { Route } from '../../http/context.ts'
import { TaskCreated } from '../../spec/task.ts'
import { VideoRequest } from '../../spec/video-request.ts'
import { VIDEO_FAMILIES } from '../../tasks/order-kinds.ts'
import { parsePosted } from '../../tasks/parse-order.ts'
import { taskCreated } from '../../tasks/task-response.ts'
import { IDEMPOTENCY_KEY } from './request-parameters.ts'
import { cancelRoute, listRoute, statusRoute } from './task.ts'
import { FAMILY, ORDER_ERRORS, ORDER_TOLD, type TaskApi, type TaskApiParts, takeOrder } from './task-api.ts'

const API: TaskApi = {
  path: '/v1/video/generations',
  id: 'task_id',
  tag: 'Videos',
  thing: 'video',
  families: VIDEO_FAMILIES,
}

export function generationRoutes(parts: TaskApiParts): Route[] {
  return [createRoute(parts), listRoute(parts, API), statusRoute(parts, API), cancelRoute(parts, API)]
}

const createRoute = (parts: TaskApiParts): Route => ({
  ...FAMILY,
  method: 'POST',
  path: API.path,
  operation: {
    summary: 'Create a video',
    description:
      'Answers at once with a `task_id`, when the task is stored: from then on it is not lost. Whether the video could be made is told by the task. Which values a model takes, and its defaults, the refusal of any other value names.',
    tag: API.tag,
    request: VideoRequest,
    files: ['image', 'last_image', 'images', 'video'],
    headers: IDEMPOTENCY_KEY,
    response: TaskCreated,
    tells: ORDER_TOLD,
    errors: ORDER_ERRORS,
    example: {
      model: 'sandbox/text-to-video',
      prompt: 'A paper boat on a pond, early morning',
      aspect_ratio: '16:9',
      duration: 4,
      size: '720p',
      audio_enable: false,
    },
  },
  async handle(context) {
    const { task, headers } = await takeOrder(parts, context, { family: 'video-generation', parse: parsePosted })
    return Response.json(taskCreated(task), { headers })
  },
})
