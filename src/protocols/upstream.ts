/** What a wire protocol needs to know about a request to a provider and its response. */
import { type Clock, unixSeconds } from '../kit/clock.ts'
import { randomAlphanumerics } from '../kit/secret.ts'
import type { GatewayError } from '../spec/error.ts'
import type { ChatRequest } from './canonical.ts'

/** A chat request to a provider. */
export type UpstreamCall = {
  /** The provider's name of the model. */
  model: string
  /** Within the model's limits, defaults filled in, `null`s removed; `request.model` is the full public id. */
  request: ChatRequest
}

/** A chat request of a client that uses the provider's own protocol. */
export type PassthroughUpstreamCall = UpstreamCall & {
  /** The client's body without the fields that only the gateway understands. Its `model` is the client's. */
  body: Readonly<Record<string, unknown>>
}

/** The errors of one provider's responses, with the provider's name and without its secrets. */
export type Faults = {
  /** The provider sent an error in place of a response; `payload` is what it sent. */
  inAnswer(payload: unknown): GatewayError
  notUnderstood(what: string, upstream_status?: number): GatewayError
  cut(): GatewayError
}

/** The body of a response: the next bytes, or `undefined` at its end. */
export type ByteSource = { read(): Promise<Uint8Array | undefined> }

/** Fetches a file that a request refers to by URL. */
export type MediaReader = {
  read(value: string, signal: AbortSignal, param?: string): Promise<{ bytes: Uint8Array; content_type: string }>
}

/** The operator's settings for the fields of a provider's request bodies. */
export type FieldRules = { allow: string[]; drop: string[]; rename: Record<string, string> }

/** The operator's settings that every protocol applies to request bodies. */
export type BodyOptions = { fields: FieldRules; request_defaults: Record<string, unknown> }

/** Replaces what a provider leaves out of its response. */
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

/** A non-empty text. Some providers send a missing id or name as `null` or `None` in quotes. */
export const namedText = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' && value !== 'null' && value !== 'None' ? value : undefined

export const newToolCallId = () => `call_${randomAlphanumerics(24)}`

/** A tool call's arguments as JSON text. Some providers send the object itself. */
export function argumentsText(value: unknown): string {
  if (typeof value === 'string') return value
  return value === undefined || value === null ? '' : JSON.stringify(value)
}
