/** What the one adapter for AI SDK packages must know of a vendor: a row of data and a few small functions. */
import type {
  JSONObject,
  SharedV4Warning,
  Experimental_VideoModelV4CallOptions as VideoModelOptions,
  Experimental_VideoModelV4OperationStatusResult as VideoModelStatus,
} from '@ai-sdk/provider'
import type { ProviderKind } from '../../config/provider-kinds.ts'
import type { FailCode, JsonObject } from '../../spec/task.ts'
import type { VideoOrder } from '../../spec/video-request.ts'
import type { ErrorClassifier } from '../orders/order-error.ts'
import type { RemoteOutput } from '../provider.ts'
import type { AdapterParts } from '../settings.ts'
import type { PackageFetch } from '../upstream/transport-fetch.ts'

export type AiSdkParts = AdapterParts

export type { VideoModelOptions, VideoModelStatus }

/** What a vendor's answer says beyond what its package hands on. Whatever is absent, the package's word stands. */
export type Said = {
  status?: 'QUEUED' | 'IN_PROGRESS'
  progress?: number
  /** Not done yet, whatever the package makes of it. */
  isPending?: true
  /** Done; with none, there was no video in it. */
  outputs?: RemoteOutput[]
  failure?: { fail_code?: FailCode; reason: string }
}

/** One order in the package's words. `extras` are the vendor's own fields, under its name in `providerOptions`. */
export type Wanted = Omit<VideoModelOptions, 'providerOptions' | 'abortSignal' | 'headers'> & { extras: JSONObject }

/** What is used of a package's model; the packages bring several versions of its full type. */
export type VideoModel = {
  doStart?(options: VideoModelOptions): PromiseLike<{ operation: unknown; warnings: SharedV4Warning[] }>
  doStatus?(options: { operation: JsonObject; abortSignal: AbortSignal }): PromiseLike<VideoModelStatus>
}

type MakeModel = (model: string) => VideoModel

export type AiSdkVendor = {
  kind: ProviderKind
  /** Where the package believes the vendor to be; `base_url` of the configuration replaces it on the way out. */
  home: string
  /** Environment variables of its key, the first that is set wins. */
  key_env: string[]
  /** It can be reached without a key of the configuration's. */
  needsNoKey?: true
  /** The package's own name for its fields. */
  namespace: string
  /** The package, loaded at the first use, and what it makes of a model's name. */
  load(at: { key: string; fetch: PackageFetch }): Promise<MakeModel>
  /** Hosts of the vendor's besides the base URL's, by https only; they may see the key. */
  hosts?: RegExp
  /** The last word on a request before it goes out. */
  send?(request: PlainRequest, model: string): PlainRequest
  /** Headers that must be asked for first (a token that expires); before anything is ordered. */
  authorize?(signal: AbortSignal): Promise<Record<string, string>>
  /** An answer to an order that the package takes for a good one: with it an order is rehearsed. */
  accepted: unknown
  /**
   * In which form media go to the package: an address or a data URI; an address or bytes; or bytes only, so that what
   * is given by its address is fetched first.
   */
  media: 'address' | 'address or bytes' | 'bytes'
  /** Changes what is common to all into what this vendor's package wants. Throws for what it cannot say. */
  write?(wanted: Wanted, order: VideoOrder, model: string): Wanted
  /** Fields that the package drops without a word, and that `write` does not save. */
  drops?: readonly Meaningful[]
  /** Whether it does not matter that the package ignores this. */
  tolerates?(warning: Unheard, order: VideoOrder): boolean
  judge?: ErrorClassifier
  read?(payload: unknown, status: number): Said | undefined
  /** Its package says of an answer that it cannot read, or of a 503, that the task has failed: not to be believed. */
  callsAnyFaultAnError?: true
  /** How the vendor is told to stop, by what the package stored of the order. */
  cancel?(operation: JsonObject): { method: 'POST' | 'PUT' | 'DELETE'; url: string } | undefined
  /** The headers with which a file at this address is fetched, given whether it lies at the base URL's origin. */
  outputHeaders?(key: string, isOwn: boolean): Record<string, string>
}

/** Fields that change what is made. */
export type Meaningful = 'image' | 'last_image' | 'images' | 'video' | 'negative_prompt' | 'audio_enable' | 'n'
export type PlainRequest = { url: string; headers: Record<string, string> }
/** A field of the package's words that it says it ignores. */
export type Unheard = { feature: string; details?: string | undefined }
