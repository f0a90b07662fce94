/** What all adapters of chat models do with the members of an answer. */
import { type Clock, unixSeconds } from '../kit/clock.ts'
import { randomAlphanumerics } from '../kit/secret.ts'

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
