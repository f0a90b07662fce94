/** Contract of a vendor's row for images behind AI SDK packages. */
import type { ImageModelV4CallOptions, JSONObject, SharedV4Warning } from '@ai-sdk/provider'
import type { ProviderKind } from '../../../config/schema/provider-kinds.ts'
import type { JsonRecord } from '../../../kit/json.ts'
import type { ImageOperation, ImageOrder, ImageUsage } from '../../../spec/image-request.ts'
import type { FailCode } from '../../../spec/task.ts'
import type { ErrorClassifier } from '../../orders/order-error.ts'
import type { GeneratedImage } from '../../provider.ts'

/** What is used of a package's model; the packages bring several versions of its full type. */
export type ImageModel = {
  maxImagesPerCall: number | undefined | ((options: { modelId: string }) => number | undefined | PromiseLike<unknown>)
  doGenerate(options: ImageModelV4CallOptions): PromiseLike<{
    images: string[] | Uint8Array[]
    warnings: SharedV4Warning[]
    usage?: PackageUsage | undefined
  }>
}
type PackageUsage = {
  inputTokens: number | undefined
  outputTokens: number | undefined
  totalTokens: number | undefined
}

/** How the shape of an image is given to a model: by the package's own fields, or by options of the vendor. */
export type Shape =
  /** By width and height; a ratio becomes about a megapixel. */
  | { by: 'size'; options?: { width: string; height: string } }
  /** By a ratio; a size becomes the ratio that it has. */
  | { by: 'ratio'; among?: readonly string[]; option?: string }

type Edits = {
  /** The most images in one request; 0: none. */
  max: number
  /** The colour of the area to change in its masks; absent: it supports no masks. */
  mask?: 'white' | 'black'
}

/** What a vendor's response means; undefined: not finished, or only the package can read it. */
export type ImageResult = {
  /** The work is complete; an empty list: without an image. */
  images?: GeneratedImage[]
  usage?: ImageUsage
  /** No image will be generated. */
  failure?: { fail_code?: FailCode; reason: string }
}

/** Fields of a request that are options of the vendor in packages. */
export const OPTION_FIELDS = [
  'quality',
  'style',
  'background',
  'output_format',
  'output_compression',
  'moderation',
  'negative_prompt',
  'user',
] as const
export type OptionField = (typeof OPTION_FIELDS)[number]

export type ImageFamily = {
  /** The path of a request that only queries the status of an order, although it is no GET. */
  queries?: RegExp
  /** Which models its package can call for images, and how their names differ from others. */
  only?: { models: RegExp; named: string }
  /** Default: generate and edit. */
  operations?: readonly ImageOperation[]
  shape(model: string): Shape
  /** How many images one call makes, where the package's own figure is wrong. */
  maxImages?(model: string): number
  /** The response, given the one to the order, after which the package waits and queries again. */
  pendingResponse?(receipt: JsonRecord): JsonRecord
  edits(model: string): Edits
  /** Images are passed to the package by URL or as bytes; as bytes only; or by URL only. */
  media: 'url or bytes' | 'bytes' | 'url'
  /** Our fields under their names among the package's options. */
  options?: { [field in OptionField]?: string }
  /** The vendor supports seeds. */
  hasSeed?: true
  /** Further options, by the order and the model. */
  moreOptions?(order: ImageOrder, model: string): JSONObject
  classifyError?: ErrorClassifier
  read?(payload: unknown, status: number): ImageResult | undefined
}

/** A row as the parts of the image adapter see it. */
export type ImageVendor = ImageFamily & { kind: ProviderKind; namespace: string }
