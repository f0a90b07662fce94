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

  async function send(family: RealtimeFamily, turn: Turn): Promise<void> {
    const { token_id } = start.caller
    // Its limits, and whether it is valid at all, may have changed since the session was opened.
    const caller = await callerOf(token_id)
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
    await pipeline.prepare(family, call, turn).send()
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
      void send(families[kind], turn).then(undefined, admitted.reject)
      return turn
    },
  }
}
