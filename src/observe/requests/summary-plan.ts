/** Finds the stored sums that answer a summary: sums are kept of scopes and by one dimension more, not of every combination. */
import { type GatewayError, invalidValue } from '../../spec/error.ts'
import { PARTS_OF, type Scope, SUM_DIMENSIONS, type SumDimension } from '../../store/requests/sum-row.ts'

export type SummaryFilter = Partial<Record<SumDimension, string>>

export type SummaryPlan = {
  scope: Scope
  /** By which the series are; undefined: one series. */
  by?: SumDimension
  /** The only part of the scope that is asked for. */
  part?: { kind: SumDimension; key: string }
  /** The key of the one series. */
  key: string | null
  /** The scope is this project, and `by` is token: tokens have sums of their own. */
  own_project?: string
}

/** Throws invalid_value. */
export function planSummary({ by: given, filter }: { by: SumDimension | 'none'; filter: SummaryFilter }): SummaryPlan {
  const names = SUM_DIMENSIONS.filter((name) => filter[name] !== undefined)
  const keyOf = (name: SumDimension): string => filter[name] ?? ''
  // By a dimension that has one value there is one series.
  const isOne = given === 'none' || filter[given] !== undefined
  const key = given === 'none' ? null : (filter[given] ?? null)
  const by = isOne ? undefined : given
  const [first, second] = names
  if (first === undefined) return { scope: { kind: 'all', key: '' }, ...(by && { by }), key }
  if (second === undefined) {
    const scope = { kind: first, key: keyOf(first) }
    if (by === undefined) return { scope, key }
    if (!PARTS_OF[first].includes(by)) throw notKept(given, names)
    return { scope, by, key, ...(first === 'project' && by === 'token' && { own_project: scope.key }) }
  }
  if (names.length > 2 || by !== undefined) throw notKept(given, names)
  const scoped = first === 'project' && second !== 'model' && second !== 'provider' ? [second, first] : [first, second]
  for (const [kind, part] of [scoped, scoped.toReversed()] as [SumDimension, SumDimension][]) {
    if (!PARTS_OF[kind].includes(part)) continue
    return { scope: { kind, key: keyOf(kind) }, part: { kind: part, key: keyOf(part) }, key }
  }
  throw notKept(given, names)
}

function notKept(by: string, names: readonly string[]): GatewayError {
  const kept = SUM_DIMENSIONS.map((name) => `${name} by ${PARTS_OF[name].join(', ')}`).join('; ')
  const message = `No sums are kept for ${names.join(' and ')} by ${by}. Without a filter there are sums by each; of one ${kept}; with two filters, only by none, where the first has sums by the second.`
  return invalidValue('by', message)
}
