/** What the one adapter for images behind AI SDK packages must know of a vendor: a row of data and a few small functions. */
import type { ImageModelV4CallOptions, JSONObject, SharedV4Warning } from '@ai-sdk/provider'
import type { ProviderKind } from '../../../config/provider-kinds.ts'
import type { JsonRecord } from '../../../kit/json.ts'
import type { ImageOperation, ImageOrder, ImageUsage } from '../../../spec/image-request.ts'
import type { FailCode } from '../../../spec/task.ts'
import type { ErrorClassifier } from '../../orders/order-error.ts'
import type { GeneratedImage } from '../../provider.ts'
import type { PackageFetch } from '../../upstream/transport-fetch.ts'
import type { PlainRequest } from '../vendor.ts'

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

type MakeImageModel = (model: string) => ImageModel

/** How a model is told the shape of an image: by the package's own fields, or by options of the vendor's. */
export type Shape =
  /** By width and height; a ratio becomes about a megapixel. */
  | { by: 'size'; options?: { width: string; height: string } }
  /** By a ratio; a size becomes the ratio that it has. */
  | { by: 'ratio'; among?: readonly string[]; option?: string }

/** What one model does with pictures. */
type Edits = {
  /** How many at a time. */
  most: number
  /** The colour in which its masks have what is to be changed; absent: it takes none. */
  mask?: 'white' | 'black'
}

/** What a vendor's answer says; undefined: nothing yet, or nothing but what its package makes of it. */
export type SaidOfImages = {
  /** Complete; with none, there was no image in it. */
  images?: GeneratedImage[]
  usage?: ImageUsage
  /** It will not be made. */
  failure?: { fail_code?: FailCode; reason: string }
}

/** Fields of a request that packages take as options of the vendor's own. */
export type OptionField =
  | 'quality'
  | 'style'
  | 'background'
  | 'output_format'
  | 'output_compression'
  | 'moderation'
  | 'negative_prompt'
  | 'user'

export type ImageVendor = {
  kind: ProviderKind
  /** Where the package believes the vendor to be; `base_url` of the configuration replaces it on the way out. */
  home: string
  /** Environment variables of its key, the first that is set wins. */
  key_env: string[]
  /** It can be reached without a key of the configuration's. */
  needsNoKey?: true
  /** The address for images behind a `base_url` that is written for another family of the same vendor. */
  imageUrl?(base_url: string): string
  /** Hosts of the vendor's besides the base URL's, by https only; they may see the key. */
  hosts?: RegExp
  /** Headers that must be asked for first (a token that expires). */
  authorize?(signal: AbortSignal): Promise<Record<string, string>>
  /** The last word on a request before it goes out. */
  send?(request: PlainRequest, model: string): PlainRequest
  /** A request that only asks how an order is, although it is no GET. */
  asks?: RegExp
  /** The package's own name for its options. */
  namespace: string
  /** The package, loaded at the first use, and what it makes of a model's name. */
  load(at: { key: string; fetch: PackageFetch }): Promise<MakeImageModel>
  /** Which models its package asks for images, and how their names are told from others. */
  only?: { models: RegExp; named: string }
  /** Default: generate and edit. */
  operations?: readonly ImageOperation[]
  shape(model: string): Shape
  /** How many images one call makes, where the package's own word is not to be believed. */
  most?(model: string): number
  /** The answer, after that to its order, by which its package waits a little and asks again. */
  waits?(receipt: JsonRecord): JsonRecord
  edits(model: string): Edits
  /** Pictures go to the package by their address or as bytes; as bytes only; or by their address only. */
  media: 'address or bytes' | 'bytes' | 'address'
  /** Our fields under their names among the package's options. */
  options?: { [field in OptionField]?: string }
  /** The vendor knows seeds. */
  hasSeed?: true
  /** What else its options need, by the order and the model. */
  write?(order: ImageOrder, model: string): JSONObject
  judge?: ErrorClassifier
  read?(payload: unknown, status: number): SaidOfImages | undefined
}
