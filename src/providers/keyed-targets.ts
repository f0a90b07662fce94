/** The targets of a provider with several keys: one for each key that may call the model. */
import type { TargetRules } from '../config/schema/routing-schema.ts'
import type { ProviderConfig } from '../config/schema/schema.ts'
import { matchesGlob } from '../kit/glob.ts'
import type { Provider, Target } from './provider.ts'

/** A provider with one of its keys. */
export type KeyedProvider = { provider: Provider; name: string; weight: number; models: readonly string[] | undefined }

/** `weight`: of the target of the model. */
type RoutedTarget = TargetRules &
  Pick<Target, 'model' | 'prices'> & { weight?: number | undefined; priority?: number | undefined }

/** `provider`: for where it has no several keys. */
type Keyed = { provider: Provider; keys: readonly KeyedProvider[] }

const mayCall = ({ models }: KeyedProvider, model: string): boolean =>
  models?.some((pattern) => matchesGlob(pattern, model)) ?? true

/** `key`: the name of its key, null where it has only one. `is_key_missing`: another one was looked for. */
export type FoundProvider = { provider: Provider; key: string | null; is_key_missing?: true }

/** Its default name is its position, from 1. */
export const nameOfKey = ({ name }: { name?: string | undefined }, index: number): string => name ?? String(index + 1)

export const keyNamed = ({ keys = [] }: ProviderConfig, name: string): string | undefined =>
  keys.find((key, index) => nameOfKey(key, index) === name)?.key

/** The provider with the key of this name; with none of that name, or with null, with the first that may call the model. */
export function withKey({ provider, keys }: Keyed, model: string, name: string | null): FoundProvider {
  const named = name === null ? undefined : keys.find((key) => key.name === name)
  if (named) return { provider: named.provider, key: named.name }
  const first = keys.find((key) => mayCall(key, model)) ?? keys[0]
  const found = { provider: first?.provider ?? provider, key: first?.name ?? null }
  return name === null ? found : { ...found, is_key_missing: true }
}

/** They share the weight of the target. */
export function keyedTargets(
  { model, weight = 1, priority = 0, when, timeouts, prices }: RoutedTarget,
  { provider, keys }: Keyed,
): Target[] {
  if (keys.length === 0) return [{ provider, model, weight, priority, when, timeouts, prices }]
  const fitting = keys.filter((key) => mayCall(key, model))
  const total = fitting.reduce((sum, key) => sum + key.weight, 0)
  const shared = { weight, shares: fitting.map((key) => ({ name: key.name, weight: key.weight })) }
  return fitting.map((key) => ({
    provider: key.provider,
    model,
    key: key.name,
    keys: shared,
    weight: total === 0 ? weight : (weight * key.weight) / total,
    priority,
    when,
    timeouts,
    prices,
  }))
}
