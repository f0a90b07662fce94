/**
 * Sums of one period by scope: all calls, or those of one project, token, model, provider, end user or tag. Each scope has
 * its total, and the largest parts of it by other dimensions.
 */
import {
  addSum,
  decodeSum,
  emptySum,
  encodeSum,
  largest,
  type MinuteSums,
  type RequestSum,
  type StoredSum,
  sumAt,
} from './request-sum.ts'
import { PARTS_OF, type Scope, type ScopeKind, type SumDimension } from './sum-row.ts'

/** Of one dimension, the parts of a scope that are stored: so many with the most calls, and as many with the highest charge. */
const MOST_PARTS = 10
const MOST_PARTS_OF_ALL = 50

export type ScopeSums = { total: RequestSum; parts: Map<SumDimension, Map<string, RequestSum>> }

/** By kind and key, joined by NUL. */
export type SumsByScope = Map<string, ScopeSums>

export const scopeId = ({ kind, key }: Scope): string => `${kind}\0${key}`

export function scopeOf(id: string): Scope {
  const at = id.indexOf('\0')
  return { kind: id.slice(0, at) as ScopeKind, key: id.slice(at + 1) }
}

/** The sums of `only` these scopes, or of all. */
export function toScopes(minute: MinuteSums, only?: ReadonlySet<string>): SumsByScope {
  const scopes: SumsByScope = new Map()
  function add(kind: ScopeKind, keys: Partial<Record<SumDimension, string>>, sum: RequestSum): void {
    const key = kind === 'all' ? '' : keys[kind]
    if (key === undefined || (kind !== 'all' && key === '')) return
    const id = scopeId({ kind, key })
    if (only && !only.has(id)) return
    const scope = scopeAt(scopes, id)
    addSum(scope.total, sum)
    for (const name of PARTS_OF[kind]) {
      const part = keys[name]
      if (part !== undefined) addSum(partAt(scope, name, part), sum)
    }
  }
  for (const [id, sum] of minute.groups) {
    const [project, token, model, provider] = id.split('\0')
    const keys = { project, token, model, provider } as Record<'project' | 'token' | 'model' | 'provider', string>
    for (const kind of ['all', 'project', 'token', 'model', 'provider'] as const) add(kind, keys, sum)
  }
  for (const name of ['user', 'tag'] as const) {
    for (const [id, sum] of name === 'user' ? minute.users : minute.tags) {
      const at = id.indexOf('\0')
      const [project, key] = [id.slice(0, at), id.slice(at + 1)]
      add(name, { project, [name]: key }, sum)
      addNamed(scopes, { name, project, key, sum, only })
    }
  }
  return scopes
}

type Named = {
  name: 'user' | 'tag'
  project: string
  key: string
  sum: RequestSum
  only: ReadonlySet<string> | undefined
}

/** End users and tags are parts of all calls and of their project, whose totals contain their calls already. */
function addNamed(scopes: SumsByScope, { name, project, key, sum, only }: Named): void {
  const ids = [scopeId({ kind: 'all', key: '' })]
  if (project !== '') ids.push(scopeId({ kind: 'project', key: project }))
  for (const id of ids) if (!only || only.has(id)) addSum(partAt(scopeAt(scopes, id), name, key), sum)
}

export function scopeAt(scopes: SumsByScope, id: string): ScopeSums {
  let scope = scopes.get(id)
  if (!scope) {
    scope = { total: emptySum(), parts: new Map() }
    scopes.set(id, scope)
  }
  return scope
}

function partAt({ parts }: ScopeSums, name: SumDimension, key: string): RequestSum {
  let sums = parts.get(name)
  if (!sums) {
    sums = new Map()
    parts.set(name, sums)
  }
  return sumAt(sums, key)
}

export function addScope(scope: ScopeSums, added: ScopeSums): void {
  addSum(scope.total, added.total)
  for (const [name, sums] of added.parts) for (const [key, sum] of sums) addSum(partAt(scope, name, key), sum)
}

/** The part of a row that is one dimension of its scope, as JSON text; null: none. */
export function encodeParts(scope: ScopeSums, kind: ScopeKind, name: SumDimension): string | null {
  const sums = scope.parts.get(name)
  if (!sums || sums.size === 0) return null
  // The only part of a scope mostly is its total, as with the project of a token.
  const [only] = sums.keys()
  if (sums.size === 1 && isSame(sums.get(only ?? ''), scope.total)) return JSON.stringify([[only]])
  const kept = largest(sums, kind === 'all' ? MOST_PARTS_OF_ALL : MOST_PARTS)
  return JSON.stringify([...kept].map(([key, sum]) => [key, ...encodeSum(sum)]))
}

const isSame = (part: RequestSum | undefined, { calls, cost, charge }: RequestSum): boolean =>
  part?.calls === calls && part.cost === cost && part.charge === charge

/** `is_cut`: there may be further ones. `only`: the others are passed over. */
export function decodeParts(
  stored: string | null | undefined,
  { total, kind, only }: { total: StoredSum; kind: ScopeKind; only?: ReadonlySet<string> | undefined },
): { parts: Map<string, RequestSum>; is_cut: boolean } {
  const sums = new Map<string, RequestSum>()
  const parts = stored ? (JSON.parse(stored) as [string, ...(StoredSum | [])][]) : []
  for (const [key, ...sum] of parts)
    if (!only || only.has(key)) sums.set(key, decodeSum(sum.length === 0 ? total : (sum as StoredSum)))
  return { parts: sums, is_cut: parts.length >= (kind === 'all' ? MOST_PARTS_OF_ALL : MOST_PARTS) }
}
