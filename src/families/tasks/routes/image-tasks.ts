/** Images as tasks (`async: true`): how they are submitted. */
import type { Context } from '../../../http/context.ts'
import type { ImageOperation, ImageRequest } from '../../../spec/image-request.ts'
import { IMAGE_FAMILIES } from '../order-kinds.ts'
import { encodeTaskCreated } from '../task-response.ts'
import { submitOrder, type TaskApi, type TaskApiParts } from './task-api.ts'

export const IMAGE_TASKS: TaskApi = {
  path: '/v1/images/generations',
  id: 'task_id',
  tag: 'Images',
  thing: 'image',
  families: IMAGE_FAMILIES,
}

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
