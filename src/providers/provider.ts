/** What the house asks of a vendor: types only. A family that a vendor lacks is a member it lacks. */
import type { ChatChunk, ChatCompletion } from '../spec/chat-completion.ts'
import type { ChatRequest } from '../spec/chat-request.ts'

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
  whole(call: ChatCall, signal: AbortSignal): Promise<ChatCompletion>
  /**
   * The answer in chunks, batched as they came off the wire: one item holds the chunks of one read, so a fast stream
   * costs one step a read, not one an event. Normal completion means the vendor finished its answer: an end without
   * a finish is thrown as `upstream_cut`. A chunk whose `usage` is set carries the vendor's counts so far, the last
   * one wins. `id`, `created` and `model` of a chunk are the vendor's and may be wrong; the chat room puts its own.
   * Throws GatewayError before the first item for a refusal; ends at once when `signal` is aborted.
   */
  chunks(call: ChatCall, signal: AbortSignal): AsyncIterable<ChatChunk[]>
}

/** A client's way of speaking, for the lane in which bytes pass through (same dialect on both sides). */
export type Dialect = 'chatcompat' | 'chatcompat-response' | 'messages-compat' | 'contentgen-compat'

export type Provider = {
  /** The operator's name for it: the key in the configuration. */
  id: string
  kind: string
  chat?: ChatProvider
  relay?: { dialect: Dialect; send(body: unknown, signal: AbortSignal): Promise<Response> }
  /** The models that the vendor itself says it has; for discovery. Rejects with GatewayError. */
  listModels?(signal: AbortSignal): Promise<DiscoveredModel[]>
  /** Frees what the provider holds (connections, timers). */
  close?(): Promise<void>
}

export type DiscoveredModel = { model: string; created?: number }
