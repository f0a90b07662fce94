/** The first step: the inputs are checked, and who makes it is chosen and written down. */
import { unixSeconds } from '../../kit/clock.ts'
import { advance } from '../lifecycle.ts'
import { nextAttempt } from '../poll-schedule.ts'
import { asGatewayError, type ClaimedTask, fail, nextTarget, targetsOf, within, write } from './claimed-task.ts'
import { mayPass, reasonFrom } from './fail-code.ts'

/** 2 + 4 + 8 + 16 seconds: longer than a server of files or the list of a provider's models is away at a restart. */
const TRIES = 5

export async function prepare(claimed: ClaimedTask): Promise<void> {
  const { task, clock } = claimed
  const fault = await inputFault(claimed)
  if (fault) return fault.isPassing ? retry(claimed, fault.fail) : fault.fail()
  const target = nextTarget(targetsOf(claimed), task.tried)
  if (!target) return retry(claimed, () => fail(claimed, 'model_unavailable', `No target serves "${task.model}" now.`))
  await write(claimed, 'prepare', {
    ...advance(task, { status: 'SUBMITTED', now: unixSeconds(clock) }),
    provider: target.provider.id,
    upstream_model: target.model,
    failures: 0,
    due_ms: clock.now(),
  })
}

async function inputFault(claimed: ClaimedTask): Promise<{ isPassing: boolean; fail(): Promise<void> } | undefined> {
  const { task, store, inputs, signal } = claimed
  const media = await store.tasks.inputs(task.task_id)
  if (!media) return undefined
  try {
    await within(signal, inputs.checkInputs(media, signal))
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

/** Nothing was sent yet, so there is time to see whether it passes. */
async function retry(claimed: ClaimedTask, giveUp: () => Promise<void>): Promise<void> {
  const failures = claimed.task.failures + 1
  if (failures >= TRIES) return giveUp()
  await write(claimed, 'prepare', {
    failures,
    due_ms: nextAttempt(claimed.task, failures, { now_ms: claimed.clock.now() }),
  })
}
