/** Applies operators' overrides to targets. Pure: rows in, the weight and the state of a target out. */
import type { Target } from '../../providers/provider.ts'
import type { Override, OverrideState } from '../../store/admin/override-store.ts'
import { targetName } from './target-state.ts'

/** Enough of a target to find what is set for it. */
export type OverridableTarget = Pick<Target, 'model' | 'key' | 'weight' | 'keys'> & {
  provider: Pick<Target['provider'], 'id'>
}

export type Overrides = {
  /** Why it gets no calls; undefined: it gets calls. */
  stateOf(target: OverridableTarget): OverrideState | undefined
  /** Its share of the calls of its priority, with what is set for it, its provider and its key. */
  weightOf(target: OverridableTarget): number
  /** What is set for it, its key and its provider, the most specific first. */
  of(target: OverridableTarget): Override[]
  disabledModels(): ReadonlySet<string>
}

export function createOverrides(rows: readonly Override[]): Overrides {
  const byName = new Map(rows.map((row) => [`${row.kind} ${row.name}`, row]))

  function of({ provider, model, key }: OverridableTarget): Override[] {
    const target = targetName({ provider, model })
    const names =
      key === undefined
        ? [`target ${target}`, `provider ${provider.id}`]
        : [`target ${target}#${key}`, `target ${target}`, `key ${provider.id}#${key}`, `provider ${provider.id}`]
    return names.flatMap((name) => byName.get(name) ?? [])
  }

  function stateOf(target: OverridableTarget): OverrideState | undefined {
    if (byName.size === 0) return undefined
    const states = of(target).map(({ state }) => state)
    return states.includes('disabled') ? 'disabled' : states.includes('drained') ? 'drained' : undefined
  }

  const weightSet = (kind: Override['kind'], name: string): number | undefined =>
    byName.get(`${kind} ${name}`)?.weight ?? undefined

  return {
    of,
    stateOf,
    weightOf(target) {
      const { provider, model, key, weight = 1, keys } = target
      if (byName.size === 0) return weight
      const name = targetName({ provider, model })
      const whole = weightSet('target', name) ?? weightSet('provider', provider.id)
      if (key === undefined || keys === undefined) return whole ?? weight
      const own = weightSet('target', `${name}#${key}`)
      if (own !== undefined) return own
      // The keys of a target share its weight; one that gets no calls leaves its share to the others.
      const shareOf = (one: { name: string; weight: number }) =>
        stateOf({ provider, model, key: one.name }) ? 0 : (weightSet('key', `${provider.id}#${one.name}`) ?? one.weight)
      const total = keys.shares.reduce((sum, one) => sum + shareOf(one), 0)
      const mine = keys.shares.find((one) => one.name === key)
      const base = whole ?? keys.weight
      return total === 0 || mine === undefined ? base : (base * shareOf(mine)) / total
    },
    disabledModels: () =>
      new Set(rows.filter(({ kind, state }) => kind === 'model' && state === 'disabled').map(({ name }) => name)),
  }
}

export const NO_OVERRIDES: Overrides = createOverrides([])
