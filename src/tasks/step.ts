/** One step of one task: at most one thing asked of its vendor, then one durable write that says what is next. */
import { isEnded } from './lifecycle.ts'
import { cancel } from './steps/cancel.ts'
import { copy } from './steps/copy.ts'
import { giveUp, watchLate } from './steps/deadline.ts'
import type { Held } from './steps/held.ts'
import { poll } from './steps/poll.ts'
import { prepare } from './steps/prepare.ts'
import { isProceeding, proceedInDoubt } from './steps/proceed.ts'
import { doubt, send } from './steps/send.ts'

export async function takeStep(held: Held): Promise<void> {
  const { task, clock } = held
  if (isEnded(task)) return watchLate(held)
  if (task.cancel_asked_at !== null && (await cancel(held))) return
  if (clock.now() >= task.deadline_at * 1000) return giveUp(held)
  if (task.status === 'NOT_START') return prepare(held)
  if (task.sent_at === null) return send(held)
  if (task.operation === null) return doubt(held)
  if (isProceeding(task.operation)) return proceedInDoubt(held)
  if (task.made) return copy(held, task.made)
  return poll(held)
}
