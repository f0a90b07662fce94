/** Checks `replaced_by`: every chain must end at an existing, active model of the same families. */
import { meantHint } from '../../kit/nearest.ts'
import type { ModelStatus } from '../../spec/model.ts'
import { familiesOfName } from '../schema/model-names.ts'

export type SuccessorNode = {
  /** What it answers; absent: what its name says. */
  families?: readonly string[] | undefined
  /** By whose first it is named for this. Absent: by its id. */
  targets?: readonly { model: string }[] | undefined
  status?: ModelStatus | undefined
  /** Unix seconds. */
  retired_at?: number | undefined
  replaced_by?: string | undefined
}

type SuccessorProblem = { id: string; kind: 'unknown' | 'cycle' | 'long' | 'retired' | 'family'; message: string }

/** Of the models that replace each other. Far above any real one; the time of the check grows with it. */
const LONGEST_CHAIN = 100

type SuccessorParts = {
  models: ReadonlyMap<string, SuccessorNode>
  /** Unix seconds: which models are retired depends on it. */
  now: number
  /** Whether an id that is not in `models` may exist elsewhere. Default: no. */
  mayExist?: (id: string) => boolean
}

/** At most one problem for each model that names a successor, in the order of `models`. */
export function checkSuccessors({ models, now, mayExist = () => false }: SuccessorParts): SuccessorProblem[] {
  const out: SuccessorProblem[] = []
  const named = new Map([...models].map(([id, model]) => [id, { ...model, families: familiesOf(id, model) }]))
  for (const [id, model] of named) {
    const found = model.replaced_by === undefined ? undefined : troubleOf({ id, model, models: named, now, mayExist })
    if (found) out.push({ id, ...found })
  }
  return out
}

type Trouble = Omit<SuccessorProblem, 'id'>
type Named = SuccessorNode & { families: readonly string[] }
type Step = { id: string; model: Named; models: ReadonlyMap<string, Named>; now: number; mayExist(id: string): boolean }

function troubleOf({ id, model, models, now, mayExist }: Step): Trouble | undefined {
  const chain = chainFrom(id, models)
  const [direct, ...later] = chain
  if (direct === undefined) return undefined
  if (chain.at(-1) === id) return { kind: 'cycle', message: `leads back to itself: ${[id, ...chain].join(' -> ')}` }
  if (chain.length > LONGEST_CHAIN)
    return { kind: 'long', message: `leads on through more than ${LONGEST_CHAIN} models` }
  const found = models.get(direct)
  if (!found) return mayExist(direct) ? undefined : unknown(direct, [...models.keys()])
  if (!sharesFamily(model, found)) return noSharedFamily(model, direct, found)
  const alive = chain.find((next) => !isRetired(models.get(next), now))
  const heir = alive === undefined ? undefined : models.get(alive)
  if (alive !== undefined && heir && !sharesFamily(model, heir)) return noSharedFamily(model, alive, heir)
  // A chain may run into a cycle further on; that is reported at the models of the cycle.
  if (alive !== undefined || models.get(chain.at(-1) ?? '')?.replaced_by !== undefined) return undefined
  const via = later.length === 0 ? '' : `, which leads to "${chain.at(-1)}"`
  return { kind: 'retired', message: `found "${direct}"${via}: retired itself; must lead to a model that is not` }
}

/** The chain of successors of a model; ends at the last, at an unknown one, at the first repeated one, or where it is too long. */
function chainFrom(id: string, models: ReadonlyMap<string, SuccessorNode>): string[] {
  const chain: string[] = []
  for (let next = models.get(id)?.replaced_by; next !== undefined; next = models.get(next)?.replaced_by) {
    if (chain.includes(next)) break
    chain.push(next)
    if (next === id || chain.length > LONGEST_CHAIN) break
  }
  return chain
}

function unknown(name: string, ids: string[]): Trouble {
  return { kind: 'unknown', message: `found "${name}", must be the id of a model${meantHint(name, ids)}` }
}

function noSharedFamily(model: Named, next: string, found: Named): Trouble {
  const has = found.families.join(', ')
  const needs = model.families.join(', ')
  return { kind: 'family', message: `found "${next}", which answers ${has}; must answer one of: ${needs}` }
}

function familiesOf(id: string, { families, targets }: SuccessorNode): readonly string[] {
  if (families) return families
  const named = familiesOfName(targets?.[0]?.model ?? id)
  // All chat families go together, so one of them is enough.
  return named.includes('chatcompat') ? ['chatcompat'] : named
}

/** A model whose families are unknown (an empty list) passes. */
function sharesFamily({ families: left }: Named, { families: right }: Named): boolean {
  return left.length === 0 || right.length === 0 || left.some((family) => right.includes(family))
}

/** An unknown model counts as active; its existence is checked elsewhere. */
const isRetired = (model: SuccessorNode | undefined, now: number): boolean =>
  model !== undefined && (model.status === 'retired' || (model.retired_at !== undefined && model.retired_at <= now))
