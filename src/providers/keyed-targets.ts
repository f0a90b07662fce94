/** The targets of a provider with several keys: one for each key that may call the model. */
import type { TargetRules } from '../config/routing-schema.ts'
import { matchesGlob } from '../kit/glob.ts'
import type { Provider, Target } from './provider.ts'

/** A provider with one of its keys. */
export type KeyedProvider = { provider: Provider; name: string; weight: number; models: readonly string[] | undefined }

/** `weight`: of the target of the model. */
type RoutedTarget = TargetRules &
  Pick<Target, 'model' | 'prices'> & { weight?: number | undefined; priority?: number | undefined }

/** `provider`: for where it has no several keys. */
type Keyed = { provider: Provider; keys: readonly KeyedProvider[] }

export const mayCall = ({ models }: KeyedProvider, model: string): boolean =>
  models?.some((pattern) => matchesGlob(pattern, model)) ?? true

/** They share the weight of the target. */
export function keyedTargets(
  { model, weight = 1, priority = 0, when, timeouts, prices }: RoutedTarget,
  { provider, keys }: Keyed,
): Target[] {
  if (keys.length === 0) return [{ provider, model, weight, priority, when, timeouts, prices }]
  const fitting = keys.filter((key) => mayCall(key, model))
  const total = fitting.reduce((sum, key) => sum + key.weight, 0)
  return fitting.map((key) => ({
    provider: key.provider,
    model,
    key: key.name,
    weight: total === 0 ? weight : (weight * key.weight) / total,
    priority,
    when,
    timeouts,
    prices,
  }))
}
