/** Which target of a model answers: the first that will, each asked once, while nothing has been said to the client. */
import { GatewayError } from '../spec/error.ts'
import type { Target } from './catalogue.ts'

export type Answered<T> = { target: Target; answer: T }

/** The answer of the first target that gives one. A refusal that another target would share is thrown at once. */
export const firstToAnswer = <T>(
  targets: Target[],
  signal: AbortSignal,
  ask: (target: Target) => Promise<T>,
): Promise<Answered<T>> => firstOf(targets, signal, { ask, isOver: () => false })

type Asking<T> = {
  ask(target: Target): Promise<T>
  /** Whether nobody else may be asked after it. */
  isOver(error: unknown): boolean
}

async function firstOf<T>(targets: Target[], signal: AbortSignal, { ask, isOver }: Asking<T>): Promise<Answered<T>> {
  let refusal: unknown
  for (const target of targets) {
    try {
      return { target, answer: await ask(target) }
    } catch (error) {
      refusal = error
      if (signal.aborted || !isWorthAnotherTarget(error) || isOver(error)) break
    }
  }
  throw refusal ?? new GatewayError('no_available_channel', 'No target serves this model.')
}

/**
 * The same for what is paid for each time it is made: another target is asked only where the one before it has
 * certainly not taken the request (`detail.taken: 'no'`).
 */
export const firstToMake = <T>(
  targets: Target[],
  signal: AbortSignal,
  ask: (target: Target) => Promise<T>,
): Promise<Answered<T>> => firstOf(targets, signal, { ask, isOver: (error) => !wasNotTaken(error) })

const wasNotTaken = (error: unknown): boolean => error instanceof GatewayError && error.detail.taken === 'no'

/** Whether the fault lies with this target rather than with the request: it is broken, overloaded or out of reach. */
function isWorthAnotherTarget(error: unknown): boolean {
  return (
    error instanceof GatewayError && (error.status >= 500 || error.status === 429) && error.code !== 'internal_error'
  )
}
