/** Which targets may still take an order. */
import type { CatalogueModel, Target } from '../../models/catalogue.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Task } from '../../spec/task.ts'
import { kindOf } from '../order-kinds.ts'
import type { Held } from './held.ts'

export const targetName = (provider: string, model: string): string => `${provider}/${model}`

/** The task's model, while it is in the catalogue and served. Its token was asked about when it was accepted. */
export function modelOf({ catalogue, task }: Held): CatalogueModel | undefined {
  const anyone = { token_id: task.token_id, mayUseModel: () => true, mayUseFamily: () => true }
  try {
    return catalogue.require(task.model, task.family, anyone).model
  } catch (error) {
    if (error instanceof GatewayError) return undefined
    throw error
  }
}

/** Those that make such things, in the operator's order. */
export const targetsOf = (held: Held): Target[] =>
  (modelOf(held)?.targets ?? []).filter(({ provider }) => kindOf(held.task.family).vendorOf(provider) !== undefined)

export const nextTarget = (targets: Target[], tried: Task['tried']): Target | undefined =>
  targets.find(({ provider, model }) => !tried.includes(targetName(provider.id, model)))
