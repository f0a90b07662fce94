/** The first step: the inputs are checked, and who makes it is chosen and written down. */
import { unixSeconds } from '../../kit/clock.ts'
import { nextAttempt } from '../cadence.ts'
import { advance } from '../lifecycle.ts'
import { mayPass, reasonFrom } from './fail-code.ts'
import { asGatewayError, fail, type Held, within, write } from './held.ts'
import { nextTarget, targetsOf } from './targets.ts'

/** 2 + 4 + 8 + 16 seconds: longer than a server of files or the list of a provider's models is away at a restart. */
const TRIES = 5

export async function prepare(held: Held): Promise<void> {
  const { task, clock } = held
  const fault = await inputFault(held)
  if (fault) return fault.isPassing ? retry(held, fault.fail) : fault.fail()
  const target = nextTarget(targetsOf(held), task.tried)
  if (!target) return retry(held, () => fail(held, 'model_unavailable', `No target serves "${task.model}" now.`))
  await write(held, 'prepare', {
    ...advance(task, { status: 'SUBMITTED', now: unixSeconds(clock) }),
    provider: target.provider.id,
    upstream_model: target.model,
    failures: 0,
    due_ms: clock.now(),
  })
}

async function inputFault(held: Held): Promise<{ isPassing: boolean; fail(): Promise<void> } | undefined> {
  const { task, store, inputs, signal } = held
  const media = await store.tasks.inputs(task.task_id)
  if (!media) return undefined
  try {
    await within(signal, inputs.checkInputs(media, signal))
    return undefined
  } catch (error) {
    if (held.stopping()) throw error
    const known = asGatewayError(error)
    return {
      isPassing: mayPass(known),
      fail: () => fail(held, 'input_media_invalid', reasonFrom(known.message)),
    }
  }
}

/** Nothing was sent yet, so there is time to see whether it passes. */
async function retry(held: Held, giveUp: () => Promise<void>): Promise<void> {
  const failures = held.task.failures + 1
  if (failures >= TRIES) return giveUp()
  await write(held, 'prepare', {
    failures,
    due_ms: nextAttempt(held.task, failures, { now_ms: held.clock.now() }),
  })
}
