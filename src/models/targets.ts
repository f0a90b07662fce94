/** Which target of a model answers: the first that will, each asked once, while nothing has been said to the client. */
import { GatewayError } from '../spec/error.ts'
import type { Target } from './catalogue.ts'

export type Answered<T> = { target: Target; answer: T }

/** The answer of the first target that gives one. A refusal that another target would share is thrown at once. */
export async function firstToAnswer<T>(
  targets: Target[],
  signal: AbortSignal,
  ask: (target: Target) => Promise<T>,
): Promise<Answered<T>> {
  let refusal: unknown
  for (const target of targets) {
    try {
      return { target, answer: await ask(target) }
    } catch (error) {
      refusal = error
      if (signal.aborted || !isWorthAnotherTarget(error)) break
    }
  }
  throw refusal ?? new GatewayError('no_available_channel', 'No target serves this model.')
}

/** Whether the fault lies with this target rather than with the request: it is broken, overloaded or out of reach. */
function isWorthAnotherTarget(error: unknown): boolean {
  return (
    error instanceof GatewayError && (error.status >= 500 || error.status === 429) && error.code !== 'internal_error'
  )
}
