/** The task families, one row each: which providers generate it, which limits apply, which request fields are media. */
import type { CatalogueModel } from '../../models/catalogue.ts'
import { applyImageLimits } from '../../models/image-limits.ts'
import { applyThreeDLimits } from '../../models/three-d-limits.ts'
import { applyVideoLimits } from '../../models/video-limits.ts'
import type { OrderProvider, Provider } from '../../providers/provider.ts'
import type { EndpointFamily } from '../../spec/endpoint-family.ts'
import type { ImageOperation, ImageRequest } from '../../spec/image-request.ts'
import { THREE_D_MEDIA_FIELDS, type ThreeDRequest } from '../../spec/three-d-request.ts'
import { MEDIA_FIELDS, type VideoRequest } from '../../spec/video-request.ts'
import { imageOrderProvider } from './image-order-provider.ts'

/** The request of each family that becomes a task. */
type Requests = {
  'video-generation': VideoRequest
  'chatcompat-video': VideoRequest
  '3d-generation': ThreeDRequest
  'image-generation': ImageTaskRequest
}
/** The operation (one of three) is part of the order. */
type ImageTaskRequest = ImageRequest & { operation: ImageOperation }
export type TaskFamily = keyof Requests
type TaskRequest = Requests[TaskFamily]
/** A request with the family of its API: the model must declare that family. */
export type FamilyRequest = { [family in TaskFamily]: { family: family; request: Requests[family] } }[TaskFamily]

/** A provider of any of them: it receives the result of `applyLimits` of its own row. */
export type TaskProvider = OrderProvider<object>

type OrderKind<Order> = {
  /** The part of a provider that generates it. */
  providerFor(provider: Provider): TaskProvider | undefined
  /** The request within the limits of this model; throws GatewayError with the field and its allowed values. */
  applyLimits(model: CatalogueModel, request: Order): object
  /** Fields that may be megabytes: they are stored apart from the row that every read of a task loads. */
  media: readonly string[]
  /** The type of an output, and thus its file extension, if the provider does not report one. */
  content_type: string
  /** The path below which its files are served: `{path}/{task_id}/content`. */
  content_path: string
  /** How long the order itself may take, where the provider responds only after the generation. Default 60. */
  order_seconds?: number
}

const VIDEO: OrderKind<VideoRequest> = {
  providerFor: ({ video }) => video,
  applyLimits: applyVideoLimits,
  media: MEDIA_FIELDS,
  content_type: 'video/mp4',
  content_path: '/v1/videos',
}

const KINDS: { [family in TaskFamily]: OrderKind<Requests[family]> } = {
  'video-generation': VIDEO,
  'chatcompat-video': VIDEO,
  '3d-generation': {
    providerFor: ({ threeD }) => threeD,
    applyLimits: applyThreeDLimits,
    media: THREE_D_MEDIA_FIELDS,
    content_type: 'model/gltf-binary',
    content_path: '/v1/3d/generations',
  },
  'image-generation': {
    providerFor: ({ images }) => images && imageOrderProvider(images),
    applyLimits: (model, { operation, ...request }) => applyImageLimits(model, request, operation),
    media: ['images', 'mask'],
    content_type: 'image/png',
    content_path: '/v1/images/generations',
    order_seconds: 300,
  },
}

/** Videos have two APIs, and each shows the tasks of both. */
export const VIDEO_FAMILIES = ['video-generation', 'chatcompat-video'] as const satisfies TaskFamily[]
export const IMAGE_FAMILIES = ['image-generation'] as const satisfies TaskFamily[]
export const THREE_D_FAMILIES = ['3d-generation'] as const satisfies TaskFamily[]

/** The row of a task's family. Tasks of other families cannot be submitted. */
export function kindOf(family: EndpointFamily): OrderKind<TaskRequest> {
  if (Object.hasOwn(KINDS, family)) return KINDS[family as TaskFamily]
  throw new Error(`The family ${family} has no tasks.`)
}
