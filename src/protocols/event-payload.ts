/** Decodes one event or list item of a provider's response: a JSON object, or the error that it reports. */
import { parseJsonKeeping } from '../kit/exact-json.ts'
import { isRecord, type JsonRecord, parseJson } from '../kit/json.ts'
import type { SseEvent } from '../kit/sse.ts'
import type { GatewayError } from '../spec/error.ts'
import { type Faults, holdsError } from './upstream.ts'

type PayloadParts = {
  faults: Faults
  /** The body has ended, so its last event may be incomplete. */
  atEnd: boolean
  /** Whether an event reports an error in a form that is specific to this protocol. */
  isFailure?: ((payload: JsonRecord, event: string) => boolean) | undefined
  /** The members with arguments of tools, whose numbers keep their digits. */
  exact?: readonly string[] | undefined
}

/** The marker after which OpenAI-shaped providers send nothing. */
export const isDoneMark = (data: string): boolean => data.length < 64 && data.trim() === '[DONE]'

/**
 * The object in an event, or the error that it reports; undefined if the event has no content. Some providers send
 * empty data or a comment after `data:` to keep a connection alive, and some wrap the object in a list.
 */
export function payloadOf(
  { event, data }: SseEvent,
  { faults, atEnd, isFailure, exact }: PayloadParts,
): JsonRecord | GatewayError | undefined {
  if (data === '' || data.charCodeAt(0) === 58 || isDoneMark(data)) return undefined
  const parsed = exact ? parseJsonKeeping(data, exact) : parseJson(data)
  const payload: unknown = Array.isArray(parsed) ? parsed[0] : parsed
  if (!isRecord(payload)) {
    if (parsed === undefined && atEnd) return undefined
    return event === 'error' ? faults.inAnswer(data) : faults.notUnderstood('sent an event that is not a JSON object')
  }
  return event === 'error' || holdsError(payload) || isFailure?.(payload, event) ? faults.inAnswer(payload) : payload
}

/** The same of a parsed value that is no event. Throws the error. */
export function objectIn(parsed: unknown, faults: Faults): JsonRecord {
  const payload: unknown = Array.isArray(parsed) && parsed.length > 0 ? parsed[0] : parsed
  if (!isRecord(payload)) throw faults.notUnderstood('sent something that is not a JSON object')
  if (holdsError(payload)) throw faults.inAnswer(payload)
  return payload
}
