/** Videos in the API of the specification (2.5 to 2.7, section 4). */
import type { Route } from '../../../http/context.ts'
import { VideoRequest } from '../../../spec/video-request.ts'
import { VIDEO_FAMILIES } from '../order-kinds.ts'
import { parseVideo } from '../parse-order.ts'
import { cancelRoute, listRoute, statusRoute } from './read-task.ts'
import { type CreateParts, createRoute, type TaskApi, type TaskApiParts } from './task-api.ts'

const API: TaskApi = {
  path: '/v1/video/generations',
  id: 'task_id',
  tag: 'Videos',
  thing: 'video',
  families: VIDEO_FAMILIES,
  files: '/v1/videos/{video_id}/content',
}

export function videoGenerationRoutes(parts: TaskApiParts): Route[] {
  return [createRoute(parts, API, CREATE), listRoute(parts, API), statusRoute(parts, API), cancelRoute(parts, API)]
}

const CREATE: CreateParts<'video-generation'> = {
  order: { family: 'video-generation', parse: parseVideo },
  operation: {
    summary: 'Create a video',
    description:
      'Returns a `task_id` as soon as the task is stored; from then on it is not lost. The task reports whether the video could be generated. The error for an invalid value lists the values that the model accepts.',
    request: VideoRequest,
    files: ['image', 'last_image', 'images', 'video'],
    example: {
      model: 'sandbox/text-to-video',
      prompt: 'A paper boat on a pond, early morning',
      aspect_ratio: '16:9',
      duration: 4,
      size: '720p',
      audio_enable: false,
    },
  },
}
