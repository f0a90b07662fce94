/** Shares the hands that deliver callbacks: no receiver, and no token, may hold them all. */
import type { Clock } from '../kit/clock.ts'

/** A receiver that answers; and one that did not, the last time: each hand there is lost for a whole time-out. */
const CONCURRENCY_PER_HOST = 4
const CONCURRENCY_PER_SILENT_HOST = 1
/** No turn is put off longer: a receiver that is back should not wait for what was reckoned while it was away. */
const LONGEST_WAIT_MILLISECONDS = 600_000
const SHORTEST_WAIT_MILLISECONDS = 1_000
/** Receivers beyond that many, with nothing in hand, are forgotten. */
const MOST_PLACES = 1_000

/** `host`: name and port of the receiver. */
export type Asker = { host: string; token_id: string }

export type Turns = {
  /** A hand, or when to come back: those who wait stand in line, each a little later than the one before. */
  take(asker: Asker): Turn | { due_ms: number }
}
export type Turn = { end(was: { answered: boolean }): void }

type Place = {
  limit: number
  in_hand: number
  /** What the last one took. */
  took_ms: number
  /** When the last one in line has its turn. */
  line_ms: number
}

export function createTurns({ concurrency, clock }: { concurrency: number; clock: Clock }): Turns {
  const places = new Map<string, Place>()

  function placeOf(name: string, limit: number): Place {
    const place = places.get(name) ?? { limit, in_hand: 0, took_ms: SHORTEST_WAIT_MILLISECONDS, line_ms: 0 }
    places.delete(name) // those that were used last stand last
    places.set(name, place)
    return place
  }

  function forget(): void {
    for (const [name, place] of places) {
      if (places.size <= MOST_PLACES) return
      if (place.in_hand === 0) places.delete(name)
    }
  }

  return {
    take({ host, token_id }) {
      const receiver = placeOf(`host ${host}`, Math.min(CONCURRENCY_PER_HOST, concurrency))
      const token = placeOf(`token ${token_id}`, Math.max(1, Math.floor(concurrency / 2)))
      forget()
      const now_ms = clock.now()
      for (const place of [receiver, token]) {
        if (place.in_hand >= place.limit) return { due_ms: standInLine(place, now_ms) }
      }
      receiver.in_hand++
      token.in_hand++
      return {
        end({ answered }) {
          for (const place of [receiver, token]) {
            place.in_hand--
            place.took_ms = clock.now() - now_ms
          }
          receiver.limit = answered ? Math.min(CONCURRENCY_PER_HOST, concurrency) : CONCURRENCY_PER_SILENT_HOST
        },
      }
    },
  }
}

function standInLine(place: Place, now_ms: number): number {
  place.line_ms = Math.max(place.line_ms, now_ms) + Math.max(1, place.took_ms / place.limit)
  const wait_ms = Math.min(Math.max(place.line_ms - now_ms, SHORTEST_WAIT_MILLISECONDS), LONGEST_WAIT_MILLISECONDS)
  return Math.round(now_ms + wait_ms)
}
