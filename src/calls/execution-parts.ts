/** Declares what prepared calls share: the parts of the pipeline that they are executed with. */
import type { Clock } from '../kit/clock.ts'
import type { AttemptAdmission } from './admission.ts'
import type { CallEvents, TraceAttempt } from './call.ts'
import type { Plans } from './plan.ts'
import type { Router } from './routing/router.ts'

export type ExecutionParts = {
  router: Pick<Router, 'attempt' | 'only' | 'candidates'>
  plans: Pick<Plans, 'gatesOf' | 'guardsOf'>
  /** Undefined: providers have no limits. */
  attempts: AttemptAdmission | undefined
  /** Undefined: no traces are recorded. */
  traceAttempt?: TraceAttempt | undefined
  events: Pick<CallEvents, 'attemptStarted' | 'attemptFailed'>
  clock: Clock
  /** Sends a prepared call, and settles it. */
  answer(prepared: never): Promise<unknown>
}
