/** Images as tasks (`async: true`): submitted, read, listed, canceled, downloaded. */
import type { Context, Route } from '../../../http/context.ts'
import type { ImageOperation, ImageRequest } from '../../../spec/image-request.ts'
import { IMAGE_FAMILIES } from '../order-kinds.ts'
import { encodeTaskCreated } from '../task-response.ts'
import { contentRoute } from './content.ts'
import { cancelRoute, listRoute, statusRoute } from './read-task.ts'
import { submitOrder, type TaskApi, type TaskApiParts } from './task-api.ts'

export const IMAGE_TASKS: TaskApi = {
  path: '/v1/images/generations',
  id: 'task_id',
  tag: 'Images',
  thing: 'image',
  families: IMAGE_FAMILIES,
}

export const imageTaskRoutes = (parts: TaskApiParts): Route[] => [
  listRoute(parts, IMAGE_TASKS),
  statusRoute(parts, IMAGE_TASKS),
  cancelRoute(parts, IMAGE_TASKS),
  contentRoute(parts, { ...IMAGE_TASKS, media: ['image/png', 'image/jpeg', 'image/webp'] }),
]

/** Accepts a request for images as a task. */
export async function orderImages(
  parts: TaskApiParts,
  { request, operation }: { request: ImageRequest; operation: ImageOperation },
  context: Context,
): Promise<Response> {
  // Each file has its own link: bytes in a response that is requested repeatedly would be of no use.
  const { response_format: _, async: __, stream: ___, ...rest } = request
  const order = { family: 'image-generation', request: { ...rest, operation } } as const
  const { task, headers } = await submitOrder(parts, context, order)
  return Response.json(encodeTaskCreated(task), { headers })
}
