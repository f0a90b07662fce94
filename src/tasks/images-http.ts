/** Images that were ordered as tasks (`async: true`): asked for, listed, canceled, downloaded. */
import type { Context, Route } from '../http/context.ts'
import type { ImageOperation, ImageRequest } from '../spec/image-request.ts'
import { contentRoute } from './content-http.ts'
import { type Face, type FaceParts, placeOrder } from './face.ts'
import { IMAGE_FAMILIES } from './order-kinds.ts'
import { cancelRoute, listRoute, statusRoute } from './task-http.ts'
import { taskCreated } from './task-writer.ts'

const FACE: Face = {
  path: '/v1/images/generations',
  id: 'task_id',
  tag: 'Images',
  thing: 'image',
  families: IMAGE_FAMILIES,
}

export const imageTaskRoutes = (parts: FaceParts): Route[] => [
  listRoute(parts, FACE),
  statusRoute(parts, FACE),
  cancelRoute(parts, FACE),
  contentRoute(parts, { ...FACE, media: ['image/png', 'image/jpeg', 'image/webp'] }),
]

/** Takes a request for images on as a task. */
export const imageOrders =
  (parts: FaceParts) =>
  async (request: ImageRequest, operation: ImageOperation, context: Context): Promise<Response> => {
    // Each file has its own link: bytes in an answer that is asked for again and again would serve nobody.
    const { response_format: _, async: __, stream: ___, ...rest } = request
    const asked = { family: 'image-generation', request: { ...rest, operation } } as const
    const { task, headers } = await placeOrder(parts, context, asked)
    return Response.json(taskCreated(task), { headers })
  }
