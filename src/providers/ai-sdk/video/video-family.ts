/** Contract of a vendor's row for videos behind AI SDK packages. */
import type {
  JSONObject,
  SharedV4Warning,
  Experimental_VideoModelV4CallOptions as VideoModelOptions,
  Experimental_VideoModelV4OperationStatusResult as VideoModelStatus,
} from '@ai-sdk/provider'
import type { ProviderKind } from '../../../config/schema/provider-kinds.ts'
import type { JsonRecord } from '../../../kit/json.ts'
import type { FailCode, JsonObject } from '../../../spec/task.ts'
import type { VideoOrder } from '../../../spec/video-request.ts'
import type { ErrorClassifier } from '../../orders/order-error.ts'
import type { MeaningfulField } from '../../orders/order-fields.ts'
import type { ExpectedFields, ListedOrder, OrderList } from '../../orders/order-list.ts'
import type { RemoteOutput } from '../../provider.ts'

export type { VideoModelOptions, VideoModelStatus }

/** What a vendor's response means, beyond what its package returns. For an absent member the package's result is used. */
export type VideoStatus = {
  status?: 'QUEUED' | 'IN_PROGRESS'
  progress?: number
  /** Not finished, whatever the package returns. */
  isPending?: true
  /** Finished; an empty list: without a video. */
  outputs?: RemoteOutput[]
  failure?: { fail_code?: FailCode; reason: string }
}

/** One order as options of the package. `extras` are the vendor's own, under its name in `providerOptions`. */
export type OrderOptions = Omit<VideoModelOptions, 'providerOptions' | 'abortSignal' | 'headers'> & {
  extras: JSONObject
}

/** What is used of a package's model; the packages bring several versions of its full type. */
export type VideoModel = {
  doStart?(options: VideoModelOptions): PromiseLike<{ operation: unknown; warnings: SharedV4Warning[] }>
  doStatus?(options: { operation: JsonObject; abortSignal: AbortSignal }): PromiseLike<VideoModelStatus>
}

/** A vendor's list of orders, in which an order in doubt is looked up. */
export type PackageOrderList = Pick<OrderList<never>, 'absent' | 'listed_seconds'> & {
  /** The URL of the first page; `base`: the configured base URL. */
  url(query: { model: string; since: number; base: string | undefined }): string
  /** The orders of a page, each with the operation of the package; undefined: it is no list. */
  read(
    payload: unknown,
    page: { model: string; url: string },
  ): { orders: ListedOrder[]; next: string | undefined } | undefined
  /** By which fields an order is recognised, given the body that the package sends. */
  fieldsOf(body: JsonRecord, model: string): ExpectedFields | undefined
}

export type VideoFamily = {
  /** A response that the package accepts to an order; the dry run of an order gets it. */
  acceptedResponse: unknown
  /**
   * In which form media go to the package: a URL or a data URI; a URL or bytes; or bytes only, so that media given by
   * URL are fetched first.
   */
  media: 'url' | 'url or bytes' | 'bytes'
  /** Changes the common options into those of this vendor's package. Throws for what it does not support. */
  adaptOptions?(options: OrderOptions, order: VideoOrder, model: string): OrderOptions
  /** Fields that the package drops without a warning, and that `adaptOptions` does not keep. */
  drops?: readonly MeaningfulField[]
  /** Whether it does not matter that the package ignores this. */
  mayIgnore?(warning: IgnoredFeature, order: VideoOrder): boolean
  classifyError?: ErrorClassifier
  read?(payload: unknown, status: number): VideoStatus | undefined
  /** Its package reports a response that it cannot read, or a 503, as a failed task, so its errors are ignored. */
  hasUnreliableErrors?: true
  /** The request that cancels an order, by what the package stored of it. */
  cancel?(operation: JsonObject): { method: 'POST' | 'PUT' | 'DELETE'; url: string } | undefined
  orderList?: PackageOrderList
  /** The headers with which a file at this URL is fetched, given whether it is at the origin of the base URL. */
  outputHeaders?(key: string, isOwn: boolean): Record<string, string>
}

/** A row as the parts of the video adapter see it. */
export type VideoVendor = VideoFamily & { kind: ProviderKind; namespace: string }

/** An option that the package warns it ignores. */
export type IgnoredFeature = { feature: string; details?: string | undefined }
