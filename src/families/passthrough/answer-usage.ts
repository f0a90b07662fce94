/** Counts what a call by name has used, at JSON pointers into its answer while that passes: a JSON body, or the events of a stream. */
import type { Meter } from '../../calls/call.ts'
import { COUNTED_UNITS, type CountedUnit, type PassthroughPath } from '../../config/schema/passthrough-schema.ts'
import { parseJson } from '../../kit/json.ts'
import { createSseParser, type SseParser } from '../../kit/sse.ts'
import { NO_UNITS, type Units } from '../../spec/usage.ts'

type Counts = Partial<Record<CountedUnit, number>>

export type AnswerMeter = Meter<Units> & {
  answered(status: number, content_type: string): void
  passed(bytes: Uint8Array): void
  ended(): void
}

/** A longer body is not read: its call counts as one whose answer has no usage. */
const MAX_READ_BYTES = 4 * 1024 * 1024

export function createAnswerMeter({ usage, most = {} }: Pick<PassthroughPath, 'usage' | 'most'>): AnswerMeter {
  const pointers = COUNTED_UNITS.flatMap((unit) => {
    const pointer = usage?.[unit]
    return pointer === undefined ? [] : [{ unit, steps: stepsOf(pointer) }]
  })
  const counts: Counts = {}
  let status: number | undefined
  let events: SseParser | undefined
  let pieces: Uint8Array[] | undefined
  let size = 0

  function count(value: unknown): void {
    for (const { unit, steps } of pointers) {
      const found = valueAt(value, steps)
      if (typeof found === 'number' && Number.isFinite(found) && found >= 0) counts[unit] = found
    }
  }

  function countEvents(found: readonly { data: string }[]): void {
    for (const { data } of found) count(parseJson(data))
  }

  return {
    answered(given, content_type) {
      status = given
      if (pointers.length === 0 || given >= 300) return
      if (/^text\/event-stream\b/i.test(content_type)) events = createSseParser(MAX_READ_BYTES)
      else if (/^[^;]*\bjson\b/i.test(content_type)) pieces = []
    },
    passed(bytes) {
      try {
        if (events) countEvents(events.push(bytes))
      } catch {
        events = undefined // an event beyond the limit
      }
      if (!pieces) return
      size += bytes.length
      if (size > MAX_READ_BYTES) pieces = undefined
      else pieces.push(bytes.slice())
    },
    ended() {
      try {
        if (events) countEvents(events.end())
      } catch {
        // The same.
      }
      if (pieces) count(parseJson(new TextDecoder().decode(Buffer.concat(pieces))))
      events = pieces = undefined
    },
    usage() {
      // The provider has refused it, or sent the client elsewhere.
      if (status === undefined || status >= 300) return NO_UNITS
      const isCounted = pointers.every(({ unit }) => counts[unit] !== undefined)
      return unitsOf(isCounted ? counts : { ...most, ...counts }, !isCounted)
    },
    units: (units) => units,
    hasCounted: () =>
      status !== undefined && (status >= 300 || pointers.every(({ unit }) => counts[unit] !== undefined)),
    hasDelivered: () => status !== undefined && status < 300,
  }
}

/** The most that a call can use, as configured. */
export const unitsOf = (counts: Counts, estimated = false): Units => ({
  input_tokens: 0,
  output_tokens: 0,
  ...counts,
  requests: 1,
  ...(estimated ? { estimated: true } : {}),
})

/** RFC 6901. */
const stepsOf = (pointer: string): string[] =>
  pointer
    .slice(1)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))

function valueAt(value: unknown, steps: readonly string[]): unknown {
  let at = value
  for (const step of steps) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, step)) return undefined
    at = (at as Record<string, unknown>)[step]
  }
  return at
}
