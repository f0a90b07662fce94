/** The target of an order: chosen by the router, stored with the task, and the same one for every later step. */
import { eligibleTargets, type KnownFacts } from '../../../calls/routing/conditions.ts'
import { stateId } from '../../../calls/routing/target-state.ts'
import { unixSeconds } from '../../../kit/clock.ts'
import type { Target } from '../../../providers/provider.ts'
import type { JsonObject, Task } from '../../../spec/task.ts'
import { kindOf } from '../order-kinds.ts'
import { type ClaimedTask, modelOf } from './claimed-task.ts'
import { belowLimits } from './order-limits.ts'

/** `provider/model`, with `#key` where the provider has several: the id of what the router remembers of it. */
export const targetIdOf = ({ provider, upstream_model, provider_key }: Task): string =>
  stateId({
    provider: { id: provider },
    model: upstream_model,
    ...(provider_key === null ? {} : { key: provider_key }),
  })

/** The targets of the model that can generate outputs of the task's family and take its request (`when`). */
export async function targetsOf(claimed: ClaimedTask): Promise<readonly Target[]> {
  const { task, store, clock } = claimed
  const { family, call_options } = task
  const project_id = task.project_id ?? undefined
  const all = (modelOf(claimed)?.targets ?? []).filter(({ provider }) => kindOf(family).providerFor(provider))
  const inputs = all.some(({ when }) => when) ? await store.tasks.inputs(task.task_id) : undefined
  const facts = () => orderFacts(inputs)
  return eligibleTargets(all, { family, tags: call_options?.tags, project_id, facts, now: () => unixSeconds(clock) })
    .targets
}

/** `inputs`: the media of the request. An order has no size in tokens. */
export const orderFacts = (inputs: JsonObject | undefined): KnownFacts => ({
  hasTools: () => false,
  hasImages: () => Object.keys(inputs ?? {}).some((name) => name !== 'video'),
})

/**
 * `tried`: the ids of those that have certainly not accepted the order. One whose provider is at its rate limit comes after
 * all others. Undefined: there is no other.
 */
export async function chooseTarget(
  claimed: ClaimedTask,
  targets: readonly Target[],
  tried: readonly string[],
): Promise<Target | undefined> {
  return (await chooseBelowLimits(claimed, targets, tried)) ?? choose(claimed, targets, tried)
}

/** The same, without those that are at their limits. */
export async function chooseBelowLimits(
  claimed: ClaimedTask,
  targets: readonly Target[],
  tried: readonly string[],
): Promise<Target | undefined> {
  return choose(claimed, await belowLimits(claimed, targets), tried)
}

const choose = (claimed: ClaimedTask, targets: readonly Target[], tried: readonly string[]): Target | undefined =>
  claimed.router.choose(targets, { settings: modelOf(claimed)?.routing ?? {}, tried })

/** What is stored of a chosen target: the name of its key, never the key. */
export const storedTarget = ({ provider, model, key }: Target) => ({
  provider: provider.id,
  upstream_model: model,
  provider_key: key ?? null,
})

/** An order that is not sent yet goes with a key that is configured now: one that is stored may have been renamed. */
export function withCurrentKey(claimed: ClaimedTask): ClaimedTask {
  const { task, providerOf } = claimed
  const found = providerOf(task.provider, task.upstream_model, task.provider_key)
  return found ? { ...claimed, task: { ...task, provider_key: found.key } } : claimed
}

/** Sends an order, and tells the router how the target took it. */
export async function observed<T>(claimed: ClaimedTask, send: () => Promise<T>): Promise<T> {
  const { task, providerOf, router, stopping } = claimed
  const { provider: id, upstream_model: model, provider_key } = task
  const found = providerOf(id, model, provider_key)
  const key = found && found.key !== null ? { key: found.key } : {}
  const end = found && router.begin({ provider: found.provider, model, ...key })
  try {
    const answer = await send()
    end?.()
    return answer
  } catch (error) {
    end?.({ error, isAborted: stopping() })
    throw error
  }
}
