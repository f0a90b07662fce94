/** One step of one task: at most one call to its provider, then one durable write that says what is next. */
import { isEnded } from './lifecycle.ts'
import { cancel } from './steps/cancel.ts'
import type { ClaimedTask } from './steps/claimed-task.ts'
import { copy } from './steps/copy.ts'
import { giveUp, watchLate } from './steps/deadline.ts'
import { poll } from './steps/poll.ts'
import { prepare } from './steps/prepare.ts'
import { isProceeding, proceedInDoubt } from './steps/proceed.ts'
import { doubt, send } from './steps/send.ts'

export async function takeStep(claimed: ClaimedTask): Promise<void> {
  const { task, clock } = claimed
  if (isEnded(task)) return watchLate(claimed)
  if (task.cancel_asked_at !== null && (await cancel(claimed))) return
  if (clock.now() >= task.deadline_at * 1000) return giveUp(claimed)
  if (task.status === 'NOT_START') return prepare(claimed)
  if (task.sent_at === null) return send(claimed)
  if (task.operation === null) return doubt(claimed)
  if (isProceeding(task.operation)) return proceedInDoubt(claimed)
  if (task.made) return copy(claimed, task.made)
  return poll(claimed)
}
