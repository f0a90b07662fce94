/** What a wire protocol needs to know about a request to a provider and about its answer. */
import { type Clock, unixSeconds } from '../kit/clock.ts'
import { randomAlphanumerics } from '../kit/secret.ts'
import type { GatewayError } from '../spec/error.ts'
import type { ChatRequest } from './canonical.ts'

/** A chat request to a provider. */
export type UpstreamCall = {
  /** The provider's own name of the model. */
  model: string
  /** Within the model's limits, defaults filled in, `null`s removed; `request.model` is the full public id. */
  request: ChatRequest
}

/** A chat request of a client that speaks the provider's own protocol. */
export type PassthroughUpstreamCall = UpstreamCall & {
  /** The client's own body, without the fields that only the gateway understands; its `model` is the one that the client wrote. */
  body: Readonly<Record<string, unknown>>
}

/** The errors of one provider's answers, with the provider's name and without its secrets. */
export type Faults = {
  /** The provider sent an error where an answer was expected; `payload` is what it sent. */
  inAnswer(payload: unknown): GatewayError
  notUnderstood(what: string, upstream_status?: number): GatewayError
  cut(): GatewayError
}

/** The body of an answer: the next bytes, `undefined` at its end. */
export type ByteSource = { read(): Promise<Uint8Array | undefined> }

/** Fetches a file that a request names by its address. */
export type MediaReader = {
  read(value: string, signal: AbortSignal, param?: string): Promise<{ bytes: Uint8Array; content_type: string }>
}

/** What the operator says about the fields of a provider's request bodies. */
export type FieldRules = { allow: string[]; drop: string[]; rename: Record<string, string> }

/** The operator's settings that every protocol applies to the bodies it writes. */
export type BodyOptions = { fields: FieldRules; request_defaults: Record<string, unknown> }

/** Stands in for what a vendor leaves out of its answer. */
export type Fallback = { id: string; model: string; created: number }

export const fallbackOf = (
  prefix: string,
  { request_id, model }: { request_id: string; model: string },
  clock: Clock,
): Fallback => ({
  id: `${prefix}${request_id}`,
  model,
  created: unixSeconds(clock),
})

/** Members whose text says nothing: vendors write a missing id or name in these ways. */
export const namedText = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' && value !== 'null' && value !== 'None' ? value : undefined

export const newToolCallId = () => `call_${randomAlphanumerics(24)}`

/** A tool call's arguments as JSON text; some vendors send the object itself. */
export function argumentsText(value: unknown): string {
  if (typeof value === 'string') return value
  return value === undefined || value === null ? '' : JSON.stringify(value)
}
