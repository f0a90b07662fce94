/** Which targets may still take an order. */
import type { CatalogueModel } from '../../models/catalogue.ts'
import type { Target } from '../../providers/provider.ts'
import type { Task } from '../../spec/task.ts'
import { kindOf } from '../order-kinds.ts'
import type { ClaimedTask } from './claimed-task.ts'

export const targetName = (provider: string, model: string): string => `${provider}/${model}`

/** The task's model, while it is in the catalogue and served. Whether its token may use it was checked when it was accepted. */
export const modelOf = ({ catalogue, task }: ClaimedTask): CatalogueModel | undefined =>
  catalogue.serving(task.model, task.family)

/** Those that make such things, in the operator's order. */
export const targetsOf = (claimed: ClaimedTask): Target[] =>
  (modelOf(claimed)?.targets ?? []).filter(
    ({ provider }) => kindOf(claimed.task.family).vendorOf(provider) !== undefined,
  )

export const nextTarget = (targets: Target[], tried: Task['tried']): Target | undefined =>
  targets.find(({ provider, model }) => !tried.includes(targetName(provider.id, model)))
