/** The one reader of what an event of a provider's stream holds: a JSON object, or the error that it reports. */
import { isRecord, type JsonRecord, parseJson } from '../kit/json.ts'
import type { SseEvent } from '../kit/sse.ts'
import type { GatewayError } from '../spec/error.ts'
import { holdsError } from './provider-error.ts'
import type { Faults } from './upstream.ts'

type PayloadParts = {
  faults: Faults
  /** The body has ended: its last event may be cut off. */
  atEnd: boolean
  /** Whether an event reports an error in a form that only this protocol has. */
  isFailure?: ((payload: JsonRecord, event: string) => boolean) | undefined
}

/** The mark after which OpenAI-shaped providers send nothing. */
export const isDoneMark = (data: string): boolean => data.length < 64 && data.trim() === '[DONE]'

/**
 * The object that an event holds, or the error that it reports; undefined for an event without meaning. Some providers
 * keep a connection alive with empty data or with a comment after `data:`, and some put a list around the object.
 */
export function payloadOf(
  { event, data }: SseEvent,
  { faults, atEnd, isFailure }: PayloadParts,
): JsonRecord | GatewayError | undefined {
  if (data === '' || data.charCodeAt(0) === 58 || isDoneMark(data)) return undefined
  const parsed = parseJson(data)
  const payload: unknown = Array.isArray(parsed) ? parsed[0] : parsed
  if (!isRecord(payload)) {
    if (parsed === undefined && atEnd) return undefined
    return event === 'error' ? faults.inAnswer(data) : faults.notUnderstood('sent an event that is not a JSON object')
  }
  return event === 'error' || holdsError(payload) || isFailure?.(payload, event) ? faults.inAnswer(payload) : payload
}
