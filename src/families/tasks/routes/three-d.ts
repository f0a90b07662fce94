/** 3D models over HTTP: submitted and read like videos (specification 2.6, 2.7). */
import type { Route } from '../../../http/context.ts'
import { THREE_D_TYPES, ThreeDRequest } from '../../../spec/three-d-request.ts'
import { THREE_D_FAMILIES } from '../order-kinds.ts'
import { parseThreeD } from '../parse-order.ts'
import { contentRoute } from './content.ts'
import { cancelRoute, listRoute, statusRoute } from './read-task.ts'
import { type CreateParts, createRoute, type TaskApi, type TaskApiParts } from './task-api.ts'

const API: TaskApi = {
  path: '/v1/3d/generations',
  id: 'task_id',
  tag: '3D models',
  thing: '3D model',
  families: THREE_D_FAMILIES,
}

export const threeDRoutes = (parts: TaskApiParts): Route[] => [
  createRoute(parts, API, CREATE),
  listRoute(parts, API),
  statusRoute(parts, API),
  cancelRoute(parts, API),
  contentRoute(parts, { ...API, media: [...new Set(Object.values(THREE_D_TYPES)), 'image/png'] }),
]

const CREATE: CreateParts<'3d-generation'> = {
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
