/** Contract of a vendor behind AI SDK packages: one row, with a member for each family that it serves. */
import type { Provider } from '../provider.ts'
import type { AdapterParts } from '../settings.ts'
import type { PackageFetch } from '../upstream/transport-fetch.ts'
import type { SpeechFamily, SpeechModel, TranscriptionFamily, TranscriptionModel } from './audio-family.ts'
import type { ChatFamily, ChatModel } from './chat/chat-family.ts'
import type { ImageFamily, ImageModel } from './images/image-family.ts'
import type { EmbeddingFamily, EmbeddingModel, RerankFamily, RerankingModel } from './text-families.ts'
import type { VideoFamily, VideoModel } from './video/video-family.ts'

type PlainRequest = { url: string; headers: Record<string, string> }

/** Where a vendor is reached, and how a request of its package changes before it is sent. */
export type Endpoint = {
  /** The base URL that the package uses; the configured `base_url` replaces it when a request is sent. */
  baseUrl: string
  /** The base URL of this family, given a configured one that may be written for another family of the same vendor. */
  adaptBaseUrl?(configured: string): string
  /** Further hosts of the vendor, by https only, that may receive the key. */
  hosts?: RegExp
  /** Headers that need a request of their own (a token that expires), made before anything is sent to the model. */
  authorize?(signal: AbortSignal): Promise<Record<string, string>>
  rewrite?(request: PlainRequest, model: string): PlainRequest
}

/** One family of a vendor: what all families have, with the endpoint's members that differ for this one. */
export type Family<Package, Model> = Partial<Endpoint> & {
  /** The package's name for its options, where it differs for this family. */
  namespace?: string
  /** The package's function that returns the model of a name. */
  factory(sdk: Package): (model: string) => Model
}

type PackageSettings = { key: string; fetch: PackageFetch; baseUrl: string }

type VendorRow<Package> = Endpoint & {
  /** Environment variables of the key; the first that is set wins. Default: those of the kind in `config/schema/provider-kinds.ts`. */
  keyVariables?: readonly string[]
  /** The key, where the configuration has it elsewhere than in `key`. */
  key?: string
  /** It works without a configured key. */
  needsNoKey?: true
  /** The package's name for its options. Default: the kind. */
  namespace?: string
  /** Loads the package, at the first use, and creates its provider. */
  load(settings: PackageSettings): Promise<Package>
  chat?: Family<Package, ChatModel> & ChatFamily
  embeddings?: Family<Package, EmbeddingModel> & EmbeddingFamily
  images?: Family<Package, ImageModel> & ImageFamily
  rerank?: Family<Package, RerankingModel> & RerankFamily
  speech?: Family<Package, SpeechModel> & SpeechFamily
  transcription?: Family<Package, TranscriptionModel> & TranscriptionFamily
  video?: Family<Package, VideoModel> & VideoFamily
  /** Families that are served without the package. */
  others?(parts: AdapterParts): Partial<Provider>
}

/** A row whose package only the row itself needs to know. */
export type AiSdkVendor = VendorRow<unknown>

/** Infers the type of the package, so that each `factory` is checked against it. */
export const vendor = <Package>(row: VendorRow<Package>): AiSdkVendor => row
