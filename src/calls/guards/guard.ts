/** One guard as it is configured, and what it has decided of a call. */
import type { GuardConfig, GuardSide } from '../../config/schema/guard-schema.ts'
import { type Rules, rulesOf } from './rules.ts'

/** In the order of their weight: of several checks of one call the last one is recorded. */
export const GUARD_OUTCOMES = ['passed', 'would_replace', 'replaced', 'would_block', 'failed', 'blocked'] as const
export type GuardOutcome = (typeof GUARD_OUTCOMES)[number]

/** What is recorded of a guard: never the content. */
export type GuardResult = { name: string; on: GuardSide; outcome: GuardOutcome }

export type Guard = {
  readonly name: string
  readonly config: GuardConfig
  readonly isObserving: boolean
  readonly rules: Rules
}

/** Throws Error for a pattern that is none. */
export const createGuard = (name: string, config: GuardConfig): Guard => ({
  name,
  config,
  isObserving: config.mode === 'observe',
  rules: rulesOf(config),
})

export function checksSide({ config: { kind, on } }: Guard, side: GuardSide): boolean {
  return on ? on.includes(side) : kind !== 'redact' || side === 'input'
}

/** Whether it puts values back into the answer. */
export const restores = ({ config, isObserving }: Guard): boolean =>
  config.kind === 'redact' && config.restore === true && !isObserving
