/** All task routes: videos in the specification's API (2.5 to 2.7, section 4) and in the chat-compatible one, images and 3D models. */
import type { Route } from '../../../http/context.ts'
import { THREE_D_TYPES, ThreeDRequest } from '../../../spec/three-d-request.ts'
import { VideoRequest } from '../../../spec/video-request.ts'
import { THREE_D_FAMILIES, VIDEO_FAMILIES } from '../order-kinds.ts'
import { parseThreeD, parseVideo } from '../parse-order.ts'
import { contentRoute } from './content.ts'
import { IMAGE_TASKS } from './image-tasks.ts'
import { operationRoutes } from './operations.ts'
import { readRoutes } from './read-task.ts'
import { type CreateParts, createRoute, type TaskApi, type TaskApiParts } from './task-api.ts'
import { VIDEOS, videosRoutes } from './videos.ts'

const VIDEO_GENERATIONS: TaskApi = {
  path: '/v1/video/generations',
  id: 'task_id',
  tag: 'Videos',
  thing: 'video',
  families: VIDEO_FAMILIES,
  files: '/v1/videos/{video_id}/content',
}

const CREATE_VIDEO: CreateParts<'video-generation'> = {
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

/** Submitted and read like videos (specification 2.6, 2.7). */
const THREE_D: TaskApi = {
  path: '/v1/3d/generations',
  id: 'task_id',
  tag: '3D models',
  thing: '3D model',
  families: THREE_D_FAMILIES,
}

const CREATE_THREE_D: CreateParts<'3d-generation'> = {
  order: { family: '3d-generation', parse: parseThreeD },
  operation: {
    summary: 'Create a 3D model',
    description:
      'Returns a `task_id` as soon as the task is stored; from then on it is not lost. One of `prompt`, `image` and `images` is required. The first of the `outputs` has the requested `format`; other files follow, a preview image last.',
    request: ThreeDRequest,
    files: ['image', 'images'],
    example: { model: 'sandbox/text-to-3d', prompt: 'A small clay teapot', format: 'glb', pbr: true },
  },
}

export const taskRoutes = (parts: TaskApiParts): Route[] => [
  createRoute(parts, VIDEO_GENERATIONS, CREATE_VIDEO),
  ...readRoutes(parts, VIDEO_GENERATIONS),
  ...videosRoutes(parts),
  contentRoute(parts, { ...VIDEOS, variants: ['video'], media: ['video/mp4'] }),
  ...operationRoutes(parts),
  createRoute(parts, THREE_D, CREATE_THREE_D),
  ...readRoutes(parts, THREE_D),
  contentRoute(parts, { ...THREE_D, media: [...new Set(Object.values(THREE_D_TYPES)), 'image/png'] }),
  ...readRoutes(parts, IMAGE_TASKS),
  contentRoute(parts, { ...IMAGE_TASKS, media: ['image/png', 'image/jpeg', 'image/webp'] }),
]
