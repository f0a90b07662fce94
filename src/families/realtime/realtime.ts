/** The realtime family: each response of a session is one call, which is sent when it may begin and answered when it has ended. */
import type { Meter } from '../../calls/call.ts'
import type { Family } from '../../calls/family.ts'
import type { Target } from '../../providers/provider.ts'
import type { RealtimeApi, RealtimeConnection, RealtimeListener } from '../../providers/realtime.ts'
import { GatewayError } from '../../spec/error.ts'
import { NO_UNITS, type Units } from '../../spec/usage.ts'

/** What a response has delivered so far. */
export type Delivered = { characters?: number; audio_tokens?: number }

type TurnMeter = Meter<Units> & {
  delivered(part: Delivered): void
  /** What the provider has counted; undefined: nothing. */
  reported(units: Units | undefined): void
}

/** One response of a session. */
export type Turn = {
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

export type RealtimeFamily = Family<Turn, Turn, void, TurnMeter>

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
