/** The responses of one session as calls of the pipeline: each is admitted, then open until it is finished or fails, then settled once. */
import type { Call } from '../../calls/call.ts'
import type { Pipeline } from '../../calls/pipeline.ts'
import type { Clock } from '../../kit/clock.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Caller } from '../../spec/token.ts'
import type { RealtimeFamily, Turn } from './realtime.ts'

export type OpenTurn = Turn & {
  /** Rejects where limits, budgets or the token refuse it. */
  admitted: Promise<void>
  finish(): void
  fail(error: GatewayError): void
}

export type TurnStart = {
  caller: Caller
  call: Pick<Call, 'end_user' | 'session'>
}

export type TurnParts = {
  pipeline: Pipeline
  /** Of responses that are admitted, and of those that the provider begins although they are refused. */
  families: { admitted: RealtimeFamily; refused: RealtimeFamily }
  /** The caller that a token makes now; undefined: it was revoked. */
  callerOf(token_id: string): Promise<Caller | undefined>
  clock: Clock
  connection_id: string
  start: TurnStart
}

type Turns = {
  begin(kind: keyof TurnParts['families'], turn: Omit<Turn, 'onAdmitted' | 'ended'>): OpenTurn
}

export function createTurns({ pipeline, families, callerOf, clock, connection_id, start }: TurnParts): Turns {
  let count = 0

  async function send(kind: keyof TurnParts['families'], turn: Turn): Promise<void> {
    // Its limits, and whether it is valid at all, may have changed since the session was opened. What is refused and used
    // nevertheless is recorded for it also where it was revoked.
    const caller = (await callerOf(start.caller.token_id)) ?? (kind === 'refused' ? start.caller : undefined)
    if (!caller) throw new GatewayError('invalid_api_key', 'The token is not valid any more.')
    count++
    const call: Call = {
      ...start.call,
      request_id: `${connection_id}-${count}`,
      caller,
      signal: new AbortController().signal,
      arrived: clock.steady(),
      is_detached: true,
      options: { no_fallback: true },
    }
    await pipeline.prepare(families[kind], call, turn).send()
  }

  return {
    begin(kind, parts) {
      const admitted = Promise.withResolvers<void>()
      const ended = Promise.withResolvers<void>()
      const turn: OpenTurn = {
        ...parts,
        onAdmitted: admitted.resolve,
        ended: ended.promise,
        admitted: admitted.promise,
        finish: ended.resolve,
        fail: ended.reject,
      }
      // Whoever does not wait for them reads the events of the session.
      ended.promise.catch(() => {})
      admitted.promise.catch(() => {})
      void send(kind, turn).then(undefined, admitted.reject)
      return turn
    },
  }
}

/** Responses that a client has asked for and the provider has not begun, each with the id of the event that asked. */
export function createRequestedTurns() {
  const turns = new Map<OpenTurn, string | undefined>()
  return {
    size: () => turns.size,
    add: (turn: OpenTurn, event_id: string | undefined) => void turns.set(turn, event_id),
    /** The one that the provider begins next. */
    next(): OpenTurn | undefined {
      const [turn] = turns.keys()
      if (turn) turns.delete(turn)
      return turn
    },
    /** The provider has refused the event. */
    refuse(event_id: string) {
      for (const [turn, own] of turns) {
        if (own !== event_id) continue
        turns.delete(turn)
        turn.fail(new GatewayError('upstream_invalid_request', 'The upstream refused the response.'))
      }
    },
    clear(): OpenTurn[] {
      const all = [...turns.keys()]
      turns.clear()
      return all
    },
  }
}

type Work = () => void | Promise<void>

/** What an event takes in memory besides its text while it waits. */
const WAITING_EVENT_BYTES = 1_024

/** Events of a client that wait for the connection, or behind a response that waits to be admitted. */
export function createWaitingEvents(parts: { isConnected(): boolean; max_bytes: number; onTooMany(): void }) {
  const { isConnected, max_bytes, onTooMany } = parts
  let waiting: Work[] = []
  let waiting_bytes = 0
  let isDraining = false

  /** In the order in which they came: a response that waits to be admitted holds what follows it. */
  async function drain(): Promise<void> {
    if (isDraining) return
    isDraining = true
    try {
      for (let work = waiting.shift(); work; work = isConnected() ? waiting.shift() : undefined) {
        const later = work()
        if (later) await later
      }
    } finally {
      isDraining = false
    }
  }

  return {
    drain,
    add(length: number, work: Work) {
      const bytes = length + WAITING_EVENT_BYTES
      waiting_bytes += bytes
      waiting.push(() => {
        waiting_bytes -= bytes
        return work()
      })
      if (waiting_bytes > max_bytes) onTooMany()
      else if (isConnected()) void drain()
    },
    clear() {
      waiting = []
    },
  }
}
