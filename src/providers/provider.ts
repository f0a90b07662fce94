/** The contract of a provider. A provider has a member for each family that it serves, and lacks the others. */
import type { CallLimits, TargetRules } from '../config/schema/routing-schema.ts'
import type { Abortable } from '../kit/abortable.ts'
import type { ChatChunk, ChatCompletion, ChatRequest } from '../protocols/shared/canonical.ts'
import type { Faults } from '../protocols/shared/upstream.ts'
import type { EmbeddingInput, EmbeddingRequest } from '../spec/embedding-request.ts'
import type { EndpointFamily } from '../spec/endpoint-family.ts'
import type { ErrorDetail, GatewayError } from '../spec/error.ts'
import type { ImageOperation, ImageOrder, ImageUsage } from '../spec/image-request.ts'
import type { ModerationInput, ModerationResult } from '../spec/moderation-request.ts'
import type { PriceVersion } from '../spec/price.ts'
import type { FailCode, Json, RemoteFile } from '../spec/task.ts'
import type { ThreeDOrder } from '../spec/three-d-request.ts'
import type { VideoOrder } from '../spec/video-request.ts'
import type { SpeechProvider, TranscriptionProvider } from './audio.ts'
import type { BatchProvider } from './batches/batch-provider.ts'
import type { ProviderHealth } from './health.ts'
import type { OrderList } from './orders/order-list.ts'
import type { RealtimeProvider } from './realtime.ts'
import type { DirectProvider } from './upstream/direct.ts'

export type { Limits } from '../config/schema/limits-schema.ts'
export type { ModelConfig } from '../config/schema/schema.ts'
export type {
  ChatChunk,
  ChatCompletion,
  ChatRequest,
  ChunkChoice,
  Delta,
  Message,
} from '../protocols/shared/canonical.ts'
export type { MediaReader } from '../protocols/shared/upstream.ts'

/** Error responses for a provider that simulates them: the same errors as after a real HTTP response. */
export type SimulatedErrors = {
  fromResponse(response: {
    model: string
    status: number
    retry_after: number | undefined
    message: string
  }): GatewayError
  /** What an HTTP status says of an order: `accepted: 'no'` where the order was certainly not accepted. */
  acceptance(status: number): Pick<ErrorDetail, 'accepted'>
}

/** One chat request on its way to one target. */
export type ChatCall = {
  /** The provider's own name of the model. */
  model: string
  /** Within the model's limits, defaults filled in, `null`s removed; `request.model` is the full public id. */
  request: ChatRequest
  /** Our request id, for correlation at the provider. */
  request_id: string
}

export type ChatProvider = {
  /**
   * Returns the whole response in the inner chat type. `usage` is absent when the provider returned none.
   * Throws GatewayError; rejects at once when `signal` is aborted.
   */
  complete(call: ChatCall, signal: AbortSignal): Promise<ChatCompletion>
  /**
   * The response in chunks, batched as they arrived: one item holds the chunks of one read, so a fast stream costs one
   * step per read, not one per event. Normal completion means the provider finished its response: an end without a
   * finish is thrown as `upstream_cut`. A chunk with `usage` holds the provider's counts so far; the last one counts.
   * `id`, `created` and `model` of a chunk are the provider's and may be wrong; `families/chat/` sets its own.
   * Throws GatewayError before the first item for an error response; ends at once when `signal` is aborted.
   */
  chunks(call: ChatCall, signal: AbortSignal): AsyncIterable<ChatChunk[]>
  /** The provider's own token count of the prompt; absent where it has no such API. Throws GatewayError. */
  countTokens?(call: ChatCall, signal: AbortSignal): Promise<number>
}

/** One order of work that takes minutes, on its way to one target. */
export type OrderCall<Order> = {
  model: string
  /** Within the model's limits, defaults filled in, media in their fields; `request.model` is the full public id. */
  request: Order
  /** Our id of the task, for correlation at the provider. */
  task_id: string
  /** The same for every attempt of this order at this target; sent where the provider accepts such keys. */
  idempotency_key: string
  /** Whose order it is, for a provider that shares its capacity; never sent. */
  owner?: string
  /** Records that the order leaves now; see `awaits_before_send`. */
  beforeSend?: () => Promise<void>
}
export type VideoCall = OrderCall<VideoOrder>
export type ThreeDCall = OrderCall<ThreeDOrder>

/** A file that the provider holds, or one whose bytes came with the response or are on this machine. */
export type RemoteOutput =
  | RemoteFile
  | { content_type: string; open(signal: AbortSignal): Promise<ReadableStream<Uint8Array>> }

export type TaskProgress =
  /** In progress. `status` is absent where the provider's status is unknown; `progress` is a percentage. */
  | { status?: 'QUEUED' | 'IN_PROGRESS'; progress?: number; retry_after_seconds?: number }
  /** The order is done, and a second one has to follow, which `proceed` sends. */
  | { status: 'PROCEED' }
  /** `expires_at`: until when the provider stores the files, where it says so. Unix seconds. */
  | { status: 'SUCCESS'; outputs: RemoteOutput[]; expires_at?: number }
  /** `fail_reason` is for the client and holds no secret. */
  | { status: 'FAILURE'; fail_code: FailCode; fail_reason: string }

/**
 * A provider of work that takes minutes. Each method makes at most a few short upstream calls; none waits for the end.
 * All throw GatewayError.
 */
export type OrderProvider<Order> = {
  /**
   * Sends the order. Resolves only when the provider has accepted it. A GatewayError with `detail.accepted: 'no'` says that
   * it was certainly not accepted (never sent, or `acceptanceOf` the response); any other error leaves the order in doubt.
   * `outputs`: the files of a provider that returns them at once; its status is then not polled.
   */
  start(call: OrderCall<Order>, signal: AbortSignal): Promise<{ operation: Json; outputs?: RemoteOutput[] }>
  /**
   * Whether `start` awaits `call.beforeSend` right before the order is written to the wire: until then it is certainly
   * not sent, however long its preparation takes. Absent: it counts as sent from the call of `start` on.
   */
  awaits_before_send?: true
  /** Polls the progress. An error says nothing about the task: it is polled again later. */
  status(operation: Json, signal: AbortSignal): Promise<TaskProgress>
  /**
   * Sends the order that follows on one whose status is PROCEED, by the same rules as `start`. All that it needs is in
   * the operation. Absent where one order is enough.
   */
  proceed?(
    operation: Json,
    call: Pick<OrderCall<Order>, 'task_id' | 'idempotency_key'>,
    signal: AbortSignal,
  ): Promise<{ operation: Json }>
  /** Cancels the task at the provider; absent where the provider cannot cancel. Resolves when the provider has agreed. */
  cancel?(operation: Json, signal: AbortSignal): Promise<void>
  /** Headers with which a file of this provider is fetched (its key, for a URL of its own); absent: none. */
  outputHeaders?(url: string): Record<string, string>
  /** How long the provider stores its outputs, where its documentation says so: copying is not retried for longer. */
  retention_seconds?: number
  /** Looks up orders in doubt in the provider's list; absent where it has none in which an order can be recognised. */
  orderList?: OrderList<OrderCall<Order>>
  /** Whether the same order, sent twice with the same key, is certainly one order at the provider. */
  resubmit: 'safe' | 'unsafe'
  /** With `safe`: how long the provider remembers a key. Absent: forever. */
  key_seconds?: number
}
export type VideoProvider = OrderProvider<VideoOrder>
export type ThreeDProvider = OrderProvider<ThreeDOrder> // outputs: the requested format, then others, then a preview

export type EmbeddingCall = {
  model: string
  inputs: EmbeddingInput[]
  /** The other fields of the request: `dimensions`, `input_type`, `user`. */
  request: Pick<EmbeddingRequest, 'dimensions' | 'input_type' | 'user'>
  request_id: string
}

export type EmbeddingProvider = {
  /** How many inputs one call may have; longer lists are split. Absent: any number. */
  max_inputs?(model: string): number
  /** How many tokens all inputs of one call may have together; likewise. */
  max_tokens?(model: string): number
  /** Whether inputs may be token numbers. */
  accepts_tokens: boolean
  /** One vector an input, in order. `prompt_tokens` is absent when the provider returned none. Throws GatewayError. */
  embed(call: EmbeddingCall, signal: AbortSignal): Promise<{ embeddings: number[][]; prompt_tokens?: number }>
}

type RerankCall = {
  model: string
  query: string
  documents: string[]
  /** Never above the number of documents. */
  top_n: number
  max_tokens_per_doc?: number
  request_id: string
}

export type RerankProvider = {
  /** In any order; `index` is a place in `documents`. Throws GatewayError. */
  rerank(
    call: RerankCall,
    signal: AbortSignal,
  ): Promise<{
    results: { index: number; relevance_score: number }[]
    prompt_tokens?: number
    search_units?: number
  }>
}

type ModerationCall = { model: string; inputs: ModerationInput[]; request_id: string }

export type ModerationProvider = {
  /** One result for each input, in order. `prompt_tokens` is absent when the provider gave none. Throws GatewayError. */
  moderate(call: ModerationCall, signal: AbortSignal): Promise<{ results: ModerationResult[]; prompt_tokens?: number }>
}

export type ImageCall = { model: string; request: ImageOrder; request_id: string }

/** An image that came with the response, or one that the provider holds. */
export type GeneratedImage = ({ base64: string; content_type?: string } | { url: string }) & { revised_prompt?: string }

export type ImageEvent =
  | { type: 'partial'; index: number; base64: string }
  | { type: 'done'; images: GeneratedImage[]; usage?: ImageUsage }

export type ImageProvider = {
  /** The supported operations; others are rejected before anything is sent. */
  operations: readonly ImageOperation[]
  /** Throws GatewayError; one with `detail.accepted: 'no'` says that the request was certainly not accepted. */
  generate(call: ImageCall, signal: AbortSignal): Promise<{ images: GeneratedImage[]; usage?: ImageUsage }>
  /** The same with partial images before the end; absent where the provider has none. */
  stream?(call: ImageCall, partial_images: number, signal: AbortSignal): AsyncIterable<ImageEvent>
  /** Headers with which an image at the provider is fetched; absent: none. */
  outputHeaders?(url: string): Record<string, string>
}

/** The API that a client uses, for passthrough (the same on both sides). */
export type Dialect = 'chatcompat' | 'chatcompat-response' | 'messages-compat' | 'contentgen-compat'

/** A chat request in the provider's own dialect. */
export type PassthroughCall = ChatCall & {
  /** The client's own body, without the fields that only the gateway understands; its `model` is the one that the client wrote. */
  body: Readonly<Record<string, unknown>>
  /** The client's headers that the dialect passes on, names in lower case. */
  headers: Record<string, string>
}

/** A response whose bytes are passed on: with status 2xx, and in the requested form. */
export type PassthroughResponse = {
  headers: Headers
  read(): Promise<Uint8Array | undefined> // the next bytes of a stream; `undefined` at its end
  text(): Promise<string> // the whole body of a response that is not a stream
  readonly received?: string | undefined // the same, where it has arrived
  release(): void // call it when done, after the end of the body
  drop(): void // else this one
}

export type PassthroughProvider = {
  dialect: Dialect
  /**
   * Sends the client's request as it is, except for the model's name and what the gateway and the operator require. A
   * response in a form that cannot pass (a whole body where a stream was requested) is returned as chunks, to be encoded
   * as usual. Throws GatewayError for an error response; rejects at once when `signal` is aborted.
   */
  send(
    call: PassthroughCall,
    stream: boolean,
    signal: Abortable,
  ): Promise<PassthroughResponse | AsyncIterable<ChatChunk[]>>
  faultsOf(model: string, response: Pick<PassthroughResponse, 'headers'>): Faults // the errors in its response
  /** The provider's own token count of such a request; absent where it has no such API. Throws GatewayError. */
  count?(call: PassthroughCall, signal: AbortSignal): Promise<number>
}

/** Which tokens are restricted to the lists in `allowed/`, and what the operator allows in addition. */
export type PassthroughRules = { applies_to: 'limited_tokens' | 'all_tokens'; allow: readonly string[] }

export type Provider = {
  /** The operator's name for it: the key in the configuration. */
  id: string
  kind: string
  destination?: string // changes with the API that it calls and the settings of its requests, not with its keys
  chat?: ChatProvider
  video?: VideoProvider
  threeD?: ThreeDProvider
  embeddings?: EmbeddingProvider
  rerank?: RerankProvider
  moderations?: ModerationProvider
  speech?: SpeechProvider
  transcription?: TranscriptionProvider
  realtime?: RealtimeProvider
  images?: ImageProvider
  batches?: BatchProvider // of the vendor; absent where none are known
  /** Its paths that clients call by name; absent where the operator has allowed none. */
  direct?: DirectProvider
  /** Absent where the operator has turned passthrough off. */
  passthrough?: PassthroughProvider
  /** Further APIs of the same vendor, whose clients are passed through too. */
  otherPassthroughs?: PassthroughProvider[]
  /** How many calls may be open; absent: no limit. */
  callLimits?: CallLimits
  /** What its probes show; absent where it is not probed, and undefined before the first one. */
  health?(): ProviderHealth | undefined
  /** Fields of a chat request that it gets besides those that the gateway knows, as the operator has set. */
  forwarded_fields?: readonly string[]
  /** Its own APIs take `models` and `provider`. */
  takes_routing_fields?: true
  /** What limited tokens may send in addition to the lists; absent: nothing. */
  passthroughRules?: PassthroughRules
  /** The models that the provider itself lists; for discovery. Rejects with GatewayError. */
  listModels?(signal: AbortSignal): Promise<DiscoveredModel[]>
  /** Searches the deltas of one stream for the provider's secrets; undefined where it has none. */
  watchDeltas?(): { completes(text: string): boolean } | undefined
  /** Frees what the provider holds (connections, timers). */
  close?(): Promise<void>
}

/** A provider that may serve a model, with one of its keys. */
export type Target = TargetRules & {
  /** With several keys each has an object of its own. */
  provider: Provider
  model: string // the provider's own name
  /** The name of the key; absent where the provider has only one. */
  key?: string
  /** Its share within its priority; 0: only where no other is left. Absent: 1. */
  weight?: number
  /** Lower numbers are tried first. Absent: 0. */
  priority?: number
  /** What its provider charges: its own prices, or those of the model. Absent: not known. */
  prices?: readonly PriceVersion[] | undefined
}

export type DiscoveredModel = {
  model: string
  created?: number
  /** Set where it is known to belong to other families than chat. */
  families?: EndpointFamily[]
}
