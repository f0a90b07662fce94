/** Chooses which target serves a call: each is tried at most once, in order, while nothing was sent to the client. */
import type { Target } from '../providers/provider.ts'
import { GatewayError } from '../spec/error.ts'

/**
 * `until_answered`: the next target is tried after any failure that lies with the target.
 * `until_accepted`: only after one that has certainly not accepted the request (`detail.accepted: 'no'`), for
 * requests that are charged each time.
 */
export type AttemptPolicy = 'until_answered' | 'until_accepted'

/** Notified of each attempt, in order. */
type AttemptObserver = {
  attemptStarted(target: Target): void
  attemptFailed(target: Target, error: unknown): void
}

type Attempts<Answer> = {
  signal: AbortSignal
  policy: AttemptPolicy
  execute(target: Target): Promise<Answer>
  observer: AttemptObserver
}

/** The answer of the first target that succeeds. Throws the last failure, or `no_available_channel` without targets. */
export async function tryTargets<Answer>(
  targets: readonly Target[],
  { signal, policy, execute, observer }: Attempts<Answer>,
): Promise<Answer> {
  let failure: unknown
  for (const target of targets) {
    observer.attemptStarted(target)
    try {
      return await execute(target)
    } catch (error) {
      failure = error
      observer.attemptFailed(target, error)
      if (signal.aborted || !mayTryNext(error, policy)) break
    }
  }
  throw failure ?? new GatewayError('no_available_channel', 'No provider is available for this model.')
}

const mayTryNext = (error: unknown, policy: AttemptPolicy): boolean =>
  error instanceof GatewayError &&
  isFaultOfTarget(error) &&
  (policy === 'until_answered' || error.detail.accepted === 'no')

/** Whether the target is broken, overloaded or unreachable; any other error would be the same at every target. */
const isFaultOfTarget = ({ status, code }: GatewayError): boolean =>
  (status >= 500 || status === 429) && code !== 'internal_error'
