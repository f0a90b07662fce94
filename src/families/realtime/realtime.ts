/** The realtime family: each response of a session is one call, which is sent when it may begin and answered when it has ended. */
import type { Call, Meter } from '../../calls/call.ts'
import type { Family } from '../../calls/family.ts'
import type { Pipeline } from '../../calls/pipeline.ts'
import type { Clock } from '../../kit/clock.ts'
import type { Catalogue } from '../../models/catalogue.ts'
import type { Target } from '../../providers/provider.ts'
import type { RealtimeApi, RealtimeConnection, RealtimeListener } from '../../providers/realtime.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Caller } from '../../spec/token.ts'
import { NO_UNITS, type Units } from '../../spec/usage.ts'

/** What a response has delivered so far. */
export type Delivered = { characters?: number; audio_tokens?: number }

/** What an event tells of a model besides that of the session, which transcribes the input. */
export type InputTranscription = {
  /** The provider's name of that model; empty: there is none. */
  transcriber?: string
  /** By the part of its item, with what the provider has counted. */
  transcribed?: { id: string; units: Units } | undefined
}

type TurnMeter = Meter<Units> & {
  delivered(part: Delivered): void
  /** What the provider has counted; undefined: nothing. */
  reported(units: Units | undefined): void
}

type Turn = {
  readonly model: string
  readonly target: Target
  readonly meter: TurnMeter
  /** The input tokens of the response before it, which those of this one contain. */
  readonly earlier_tokens: number
  readonly max_output_tokens: number
  /** Limits and budgets have admitted it. */
  onAdmitted(): void
  /** Resolves when it has ended; rejects where it failed before anything was delivered. */
  readonly ended: Promise<void>
}

type RealtimeFamily = Family<Turn, Turn, void, TurnMeter>

const CHARACTERS_A_TOKEN = 4
/** Input that a client can add between two responses: some 13 minutes of speech, which no turn has. */
const MOST_NEW_TOKENS = 8_192
const EXPECTED_NEW_TOKENS = 200
const EXPECTED_OUTPUT_TOKENS = 300

/** `is_admitted: false`: a response that the provider has begun by itself, although limits or budgets refuse it. */
export function createRealtime({ is_admitted }: { is_admitted: boolean }): RealtimeFamily {
  return {
    endpoint: () => 'realtime',
    modelOf: ({ model }) => model,
    fit: (_model, turn) => turn,
    meter: ({ meter }) => meter,
    estimate: ({ earlier_tokens, max_output_tokens }) => ({
      expected: unitsOf(earlier_tokens + EXPECTED_NEW_TOKENS, Math.min(EXPECTED_OUTPUT_TOKENS, max_output_tokens)),
      most: unitsOf(earlier_tokens + MOST_NEW_TOKENS, max_output_tokens),
    }),
    ...(is_admitted ? {} : { is_admitted }),
    policy: 'until_answered',
    is_hedged: false,
    is_observed: false,
    targets: ({ target }) => [target],
    async send(_target, turn) {
      turn.onAdmitted()
      await turn.ended
    },
  }
}

/** Input that a model besides that of the session has transcribed already: only its price is that of a transcription. */
export const createTranscribed = (): RealtimeFamily => ({
  ...createRealtime({ is_admitted: false }),
  endpoint: () => 'audio-transcription',
  fit: ({ targets }, turn) => ({
    ...turn,
    target: targets.find(({ provider }) => provider.id === turn.target.provider.id) ?? turn.target,
  }),
})

/** All of it may be audio. */
const unitsOf = (input_tokens: number, output_tokens: number): Units => ({
  input_tokens,
  output_tokens,
  input_audio_tokens: input_tokens,
  output_audio_tokens: output_tokens,
  requests: 1,
})

export function createTurnMeter(): TurnMeter {
  let characters = 0
  let audio_tokens = 0
  let counted: Units | undefined

  const hasDelivered = () => characters > 0 || audio_tokens > 0

  return {
    delivered(part) {
      characters += part.characters ?? 0
      audio_tokens += part.audio_tokens ?? 0
    },
    reported(units) {
      counted = units ?? counted
    },
    usage() {
      if (counted) return counted
      if (!hasDelivered()) return NO_UNITS // it was canceled or has failed before its first part
      const output_tokens = Math.ceil(characters / CHARACTERS_A_TOKEN + audio_tokens)
      return {
        input_tokens: 0,
        output_tokens,
        output_audio_tokens: Math.ceil(audio_tokens),
        requests: 1,
        estimated: true,
      }
    },
    units: (units) => units,
    hasCounted: () => counted !== undefined || hasDelivered(),
    hasDelivered,
  }
}

type Connecting = { api: RealtimeApi; request_id: string; listener: RealtimeListener }

/** Connects to the first target that opens a session: nothing has been sent to those before it. */
export async function connectToFirst(
  [first, ...others]: [Target, ...Target[]],
  prepare: (target: Target) => Connecting,
  signal: AbortSignal,
): Promise<RealtimeConnection> {
  const { listener, ...session } = prepare(first)
  try {
    const provider = first.provider.realtime
    if (!provider) throw new GatewayError('no_available_channel', 'The provider has no realtime API.')
    return await provider.connect({ model: first.model, ...session }, listener, signal)
  } catch (thrown) {
    const [next, ...rest] = others
    if (!next || signal.aborted) throw thrown
    return connectToFirst([next, ...rest], prepare, signal)
  }
}

export const tooOld = () =>
  new GatewayError('websocket_connection_limit_reached', 'The session is 60 minutes old: open another one.')

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
  catalogue: Pick<Catalogue, 'serving'>
  /** Of responses that are admitted, of those that the provider begins although they are refused, and of transcribed input. */
  families: { admitted: RealtimeFamily; refused: RealtimeFamily; transcribed: RealtimeFamily }
  /** The caller that a token makes now; undefined: it was revoked. */
  callerOf(token_id: string): Promise<Caller | undefined>
  clock: Clock
  connection_id: string
  start: TurnStart
}

export function createTurns({ pipeline, catalogue, families, callerOf, clock, ...session }: TurnParts) {
  const { connection_id, start } = session
  let count = 0
  const transcribed = new Set<string>()
  let transcriber = ''

  async function send(kind: keyof TurnParts['families'], turn: Turn): Promise<void> {
    // Its limits, and whether it is valid at all, may have changed since the session was opened. What is refused and used
    // nevertheless is recorded for it also where it was revoked.
    const caller = (await callerOf(start.caller.token_id)) ?? (kind === 'admitted' ? undefined : start.caller)
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
    /** Records input that was transcribed once, at the price of its model where the catalogue has it, else of the session's. */
    addTranscription(transcription: InputTranscription, { model, target }: Pick<Turn, 'model' | 'target'>): void {
      transcriber = transcription.transcriber || transcriber
      const { id, units } = transcription.transcribed ?? {}
      if (id === undefined || transcribed.has(id)) return
      transcribed.add(id)
      const meter = createTurnMeter()
      meter.reported(units)
      const ended = Promise.resolve()
      const own = catalogue.serving(`${target.provider.id}/${transcriber}`, 'audio-transcription')?.id
      const turn = {
        model: own ?? model,
        target,
        meter,
        earlier_tokens: 0,
        max_output_tokens: 0,
        onAdmitted() {},
        ended,
      }
      send(own === undefined ? 'refused' : 'transcribed', turn).catch(() => {}) // its failure is logged with the call
    },
    begin(kind: 'admitted' | 'refused', parts: Omit<Turn, 'onAdmitted' | 'ended'>): OpenTurn {
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
