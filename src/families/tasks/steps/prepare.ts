/** The first step: checks the inputs, chooses a target and stores the choice. */
import { unixSeconds } from '../../../kit/clock.ts'
import { advance } from '../lifecycle.ts'
import { asGatewayError, type ClaimedTask, fail, retryLater, saveChange, withSignal } from './claimed-task.ts'
import { mayPass, reasonFrom } from './fail-code.ts'
import { chooseTarget, storedTarget, targetsOf } from './order-target.ts'

/** 2 + 4 + 8 + 16 seconds: longer than a restart of a file server, or a reload of a provider's model list, takes. */
const MAX_ATTEMPTS = 5

export async function prepare(claimed: ClaimedTask): Promise<void> {
  const { task, clock } = claimed
  const fault = await inputFault(claimed)
  if (fault) return fault.isPassing ? retry(claimed, fault.fail) : fault.fail()
  const target = await chooseTarget(claimed, await targetsOf(claimed), task.tried)
  if (!target)
    return retry(claimed, () => fail(claimed, 'model_unavailable', `No provider is available for "${task.model}" now.`))
  await saveChange(claimed, 'prepare', {
    ...advance(task, { status: 'SUBMITTED', now: unixSeconds(clock) }),
    ...storedTarget(target),
    failures: 0,
    due_ms: clock.now(),
  })
}

async function inputFault(claimed: ClaimedTask): Promise<{ isPassing: boolean; fail(): Promise<void> } | undefined> {
  const { task, store, inputs, signal } = claimed
  const media = await store.tasks.inputs(task.task_id)
  if (!media) return undefined
  try {
    await withSignal(signal, inputs.checkInputs(media, signal))
    return undefined
  } catch (error) {
    if (claimed.stopping()) throw error
    const known = asGatewayError(error)
    return {
      isPassing: mayPass(known),
      fail: () => fail(claimed, 'input_media_invalid', reasonFrom(known.message)),
    }
  }
}

/** Nothing was sent yet, so a retry is safe. */
async function retry(claimed: ClaimedTask, giveUp: () => Promise<void>): Promise<void> {
  await (claimed.task.failures + 1 >= MAX_ATTEMPTS ? giveUp() : retryLater(claimed, 'prepare'))
}
