/** The contract of a provider. A family that a provider does not serve is a member that it does not have. */

import type { ChatChunk, ChatCompletion, ChatRequest } from '../protocols/canonical.ts'
import type { Faults } from '../protocols/upstream.ts'
import type { EmbeddingInput, EmbeddingRequest } from '../spec/embedding-request.ts'
import type { EndpointFamily } from '../spec/endpoint-family.ts'
import type { ErrorDetail, GatewayError } from '../spec/error.ts'
import type { ImageOperation, ImageOrder, ImageUsage } from '../spec/image-request.ts'
import type { ModerationInput, ModerationResult } from '../spec/moderation-request.ts'
import type { FailCode, Json, RemoteFile } from '../spec/task.ts'
import type { ThreeDOrder } from '../spec/three-d-request.ts'
import type { VideoOrder } from '../spec/video-request.ts'

/** A row of the catalogue, for a provider that brings models of its own. */
export type { Limits, ModelConfig } from '../config/schema.ts'
/** Reads the images of a request. */
export type { MediaReader } from '../protocols/upstream.ts'

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
  /** The vendor's own name of the model. */
  model: string
  /** Within the model's limits, defaults filled in, `null`s gone; `request.model` is the full public id. */
  request: ChatRequest
  /** Our request id, for correlation at the vendor. */
  request_id: string
}

export type ChatProvider = {
  /**
   * The whole answer, in the specification's words. `usage` is absent when the vendor gave none.
   * Throws GatewayError; rejects at once when `signal` is aborted.
   */
  complete(call: ChatCall, signal: AbortSignal): Promise<ChatCompletion>
  /**
   * The answer in chunks, batched as they came off the wire: one item holds the chunks of one read, so a fast stream
   * costs one step a read, not one an event. Normal completion means the vendor finished its answer: an end without
   * a finish is thrown as `upstream_cut`. A chunk whose `usage` is set carries the vendor's counts so far, the last
   * one wins. `id`, `created` and `model` of a chunk are the vendor's and may be wrong; the chat room puts its own.
   * Throws GatewayError before the first item for a refusal; ends at once when `signal` is aborted.
   */
  chunks(call: ChatCall, signal: AbortSignal): AsyncIterable<ChatChunk[]>
  /** How many tokens the vendor says that the prompt has; absent where it cannot be asked. Throws GatewayError. */
  countTokens?(call: ChatCall, signal: AbortSignal): Promise<number>
}

/** One order of something that takes minutes, on its way to one target. */
export type OrderCall<Order> = {
  /** The vendor's own name of the model. */
  model: string
  /** Within the model's limits, defaults filled in, media in their fields; `request.model` is the full public id. */
  request: Order
  /** Our id of the task, for correlation at the vendor. */
  task_id: string
  /** The same for every attempt of this order at this target; sent on where the vendor takes such keys. */
  idempotency_key: string
}
export type VideoCall = OrderCall<VideoOrder>
export type ThreeDCall = OrderCall<ThreeDOrder>

/** A file that the vendor holds, or one whose bytes came with the answer or lie on this machine. */
export type RemoteOutput =
  | RemoteFile
  | { content_type: string; open(signal: AbortSignal): Promise<ReadableStream<Uint8Array>> }

/** What a vendor says of a task. */
export type TaskProgress =
  /** Still at it. `status` is absent where the vendor's word is not known; `progress` is a percentage. */
  | { status?: 'QUEUED' | 'IN_PROGRESS'; progress?: number; retry_after_seconds?: number }
  /** The order is done, and another one has to follow, which `proceed` sends. */
  | { status: 'PROCEED' }
  /** `expires_at`: until when the vendor keeps the files, where it says so. Unix seconds. */
  | { status: 'SUCCESS'; outputs: RemoteOutput[]; expires_at?: number }
  /** `fail_reason` is for the client and holds no secret. */
  | { status: 'FAILURE'; fail_code: FailCode; fail_reason: string }

/**
 * A vendor that takes orders for what takes minutes. Each method makes at most a few short upstream calls; none waits
 * for the end. All throw GatewayError.
 */
export type OrderProvider<Order> = {
  /**
   * Sends the order. Resolves only when the provider has accepted it. A GatewayError with `detail.accepted: 'no'` says that
   * it was certainly not accepted (never sent, or `acceptanceOf` the answer); any other error leaves the order in doubt.
   * `made`: what a vendor that answers at once has made; its status is then not asked for.
   */
  start(call: OrderCall<Order>, signal: AbortSignal): Promise<{ operation: Json; outputs?: RemoteOutput[] }>
  /** Asks for the progress. An error says nothing of the task: it is asked again later. */
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
  /** Tells the vendor to stop; absent where it cannot be told. Resolves when the vendor has agreed. */
  cancel?(operation: Json, signal: AbortSignal): Promise<void>
  /** Headers with which a file of this vendor is fetched (its key, for an address of its own); absent: none. */
  outputHeaders?(url: string): Record<string, string>
  /** How long the vendor keeps what it has made, where its documentation says so: copying is not retried for longer. */
  retention_seconds?: number
  /**
   * Looks up an order in doubt, by its key, by what it was labelled with, or by its time. Undefined: it is not there,
   * which says little, since lists lag behind. Absent where the provider cannot be asked.
   */
  findOrder?(call: OrderCall<Order>, signal: AbortSignal): Promise<{ operation: Json } | undefined>
  /** Whether the same order, sent twice with the same key, is certainly one order at the vendor. */
  resubmit: 'safe' | 'unsafe'
  /** Where it is: how long the provider remembers a key. Absent: for ever. */
  key_seconds?: number
}
export type VideoProvider = OrderProvider<VideoOrder>
/** The asked format comes first in its outputs, then other formats, then a preview. */
export type ThreeDProvider = OrderProvider<ThreeDOrder>

export type EmbeddingCall = {
  model: string
  inputs: EmbeddingInput[]
  /** What else was asked: `dimensions`, `input_type`, `user`. */
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
  /** One vector an input, in order. `prompt_tokens` is absent when the vendor gave none. Throws GatewayError. */
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

/** An image that came with the answer, or that lies at the vendor. */
export type GeneratedImage = ({ base64: string; content_type?: string } | { url: string }) & { revised_prompt?: string }

export type ImageEvent =
  | { type: 'partial'; index: number; base64: string }
  | { type: 'done'; images: GeneratedImage[]; usage?: ImageUsage }

export type ImageProvider = {
  /** What it can do; absent operations are refused before anything is sent. */
  operations: readonly ImageOperation[]
  /** Throws GatewayError; one with `detail.accepted: 'no'` says that it certainly was not taken. */
  generate(call: ImageCall, signal: AbortSignal): Promise<{ images: GeneratedImage[]; usage?: ImageUsage }>
  /** The same with partial images on the way; absent where the vendor has none. */
  stream?(call: ImageCall, partial_images: number, signal: AbortSignal): AsyncIterable<ImageEvent>
  /** Headers with which an image at the vendor is fetched; absent: none. */
  outputHeaders?(url: string): Record<string, string>
}

/** A client's way of speaking, for the lane in which bytes pass through (same dialect on both sides). */
export type Dialect = 'chatcompat' | 'chatcompat-response' | 'messages-compat' | 'contentgen-compat'

/** A chat request in the vendor's own dialect. */
export type PassthroughCall = ChatCall & {
  /** The client's own body, without what only the house understands; its `model` is the one that the client wrote. */
  body: Readonly<Record<string, unknown>>
  /** The client's headers that the dialect lets pass, names in lower case. */
  headers: Record<string, string>
}

/** An answer whose bytes are handed on: of status 2xx, and in the form that was asked for. */
export type PassthroughResponse = {
  /** The vendor's; what of them the client sees is the dialect's affair. */
  headers: Headers
  /** The next bytes of a stream; `undefined` at its end. */
  read(): Promise<Uint8Array | undefined>
  /** The whole body of an answer that is no stream. */
  text(): Promise<string>
  /** Done with it: `release` where it came to its end, else `drop`. */
  release(): void
  drop(): void
  faults: Faults
}

export type PassthroughProvider = {
  dialect: Dialect
  /**
   * Sends the client's request as it is, but for the model's name and what the house and the operator demand. An answer
   * in a form that cannot pass (a whole one where a stream was asked for) comes as chunks, to be written as always.
   * Throws GatewayError for a refusal; rejects at once when `signal` is aborted.
   */
  send(
    call: PassthroughCall,
    stream: boolean,
    signal: AbortSignal,
  ): Promise<PassthroughResponse | AsyncIterable<ChatChunk[]>>
  /** How many tokens the vendor says that such a request has; absent where it cannot be asked so. Throws GatewayError. */
  count?(call: PassthroughCall, signal: AbortSignal): Promise<number>
}

/** Whose requests have to keep to the lists in `allowed/`, and what the operator allows besides. */
export type PassthroughRules = { applies_to: 'limited_tokens' | 'all_tokens'; allow: readonly string[] }

export type Provider = {
  /** The operator's name for it: the key in the configuration. */
  id: string
  kind: string
  chat?: ChatProvider
  video?: VideoProvider
  threeD?: ThreeDProvider
  embeddings?: EmbeddingProvider
  rerank?: RerankProvider
  moderations?: ModerationProvider
  images?: ImageProvider
  /** Absent where the operator wants every answer translated. */
  passthrough?: PassthroughProvider
  /** What limited tokens may send beyond the lists; absent: nothing. */
  passthroughRules?: PassthroughRules
  /** The models that the vendor itself says it has; for discovery. Rejects with GatewayError. */
  listModels?(signal: AbortSignal): Promise<DiscoveredModel[]>
  /** Looks for its secrets in the deltas of one stream; undefined where it has none. */
  watchDeltas?(): { completes(text: string): boolean } | undefined
  /** Frees what the provider holds (connections, timers). */
  close?(): Promise<void>
}

/** The member of a provider that serves a family. */
export const SERVED_BY = {
  chatcompat: 'chat',
  'chatcompat-response': 'chat',
  'messages-compat': 'chat',
  'contentgen-compat': 'chat',
  rerank: 'rerank',
  embeddings: 'embeddings',
  moderations: 'moderations',
  'image-generation': 'images',
  'video-generation': 'video',
  '3d-generation': 'threeD',
  'chatcompat-video': 'video',
} as const satisfies Record<EndpointFamily, keyof Provider>

export type FamilyMember = (typeof SERVED_BY)[EndpointFamily]

export const servesFamily = (provider: Provider, family: EndpointFamily): boolean =>
  provider[SERVED_BY[family]] !== undefined

/** Who may serve a model: a provider, and the provider's own name of the model. */
export type Target = { provider: Provider; model: string }

export type DiscoveredModel = {
  model: string
  created?: number
  /** Where it is known to be of other families than chat's. */
  families?: EndpointFamily[]
}
