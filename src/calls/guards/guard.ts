/** One guard as it is configured, and what it has decided of a call. */
import { type GuardConfig, type GuardSide, QUESTION_KINDS } from '../../config/schema/guard-schema.ts'
import { compileSchema, type SchemaCheck } from '../../kit/schema-check.ts'
import type { TraceContext } from '../../kit/trace-context.ts'
import type { ChatRequest } from '../../protocols/shared/canonical.ts'
import type { EndpointFamily } from '../../spec/endpoint-family.ts'
import type { Caller } from '../../spec/token.ts'
import { foreignTo, type IsForeign } from './languages.ts'
import { type Rules, rulesOf } from './rules.ts'

/** In the order of their weight: of several checks of one call the last one is recorded. */
export const GUARD_OUTCOMES = ['passed', 'would_replace', 'replaced', 'would_block', 'failed', 'blocked'] as const
export type GuardOutcome = (typeof GUARD_OUTCOMES)[number]

/** What is recorded of a guard: never the content. */
export type GuardResult = { name: string; on: GuardSide; outcome: GuardOutcome }

/** `texts` of `replace`: one for each that was asked about. */
export type Verdict = { action: 'pass' | 'block' } | { action: 'replace'; texts: readonly string[] }

export type GuardedCall = {
  readonly request_id: string
  readonly caller: Caller
  readonly signal: AbortSignal
  end_user?: string
  trace?: TraceContext | undefined
  options?: { readonly tags?: readonly string[] }
}

/** The chat request that an answer belongs to. */
export type Answered = { family: EndpointFamily; request: ChatRequest }

type GuardQuestion = {
  name: string
  config: GuardConfig
  on: GuardSide
  texts: readonly string[]
  call: GuardedCall
  /** Of kind schema, where the answer is to be repaired. */
  answered?: Answered
}

/** Asks a model or a service for the call. Rejects where there is no decision in time. */
export type AskGuard = (question: GuardQuestion) => Promise<Verdict>

export type Guard = {
  readonly name: string
  readonly config: GuardConfig
  readonly isObserving: boolean
  /** Absent: it asks, or has a schema. */
  readonly rules?: Rules
  /** Of kind limits, with languages. */
  readonly isForeign?: IsForeign
  /** Of kind schema. */
  readonly misfit?: SchemaCheck
}

export const asks = ({ config }: Pick<Guard, 'config'>): boolean =>
  (QUESTION_KINDS as readonly string[]).includes(config.kind)

/** Throws Error for a pattern or a schema that is none. */
export const createGuard = (name: string, config: GuardConfig): Guard => ({
  name,
  config,
  isObserving: config.mode === 'observe',
  ...(config.languages && { isForeign: foreignTo(config.languages) }),
  ...(config.kind === 'schema'
    ? { misfit: compileSchema(config.schema) }
    : !asks({ config }) && { rules: rulesOf(config) }),
})

export function checksSide({ config: { kind, on } }: Guard, side: GuardSide): boolean {
  if (kind === 'schema') return side === 'output'
  return on ? on.includes(side) : kind !== 'redact' || side === 'input'
}

export const restores = ({ config, isObserving }: Guard): boolean =>
  config.kind === 'redact' && config.restore === true && !isObserving
