/** Keeps the use of each limited scope: bounded in number, and removed once nothing counts any more. */
import type { RateLimitKey, RateLimits, RateUnit, RateWindow } from '../../spec/rate-limit.ts'
import { RATE_UNITS } from '../../spec/rate-limit.ts'
import type { TaskLimit } from '../../store/tokens/lease-store.ts'
import { createWindow, expire, shiftParts, type Window } from './window.ts'

type ScopeKind = 'installation' | 'provider' | 'model' | 'project' | 'token' | 'end_user'

type Scope = {
  readonly kind: ScopeKind
  /** Unique among all scopes. */
  readonly id: string
  /** As a client sees it: `token tok_x`. */
  readonly name: string
  readonly counters: Counter[]
  /** By the steady clock. */
  used_at: number
  /** The counters of the limits that were looked up last. */
  limited: Limited | undefined
  /** Its name in the store. */
  lease_name?: string
}

export type Counter = {
  readonly key: RateLimitKey
  readonly scope: Scope
  /** The place of its unit in the amounts of a call; `CALLS` where it counts what is open at a time. */
  readonly unit: number
  /** The total alone, where it counts what is open at a time. */
  readonly window: Window
  readonly is_concurrent: boolean
  /** The limit, as the last call found it. */
  limit: number
  /** How much of the limit this process may use, until a time by the steady clock. */
  held: number
  held_until: number
  /** What other processes held or used of it when the store was asked last, and until when that may count. */
  others: number
  others_until: number
  /**
   * What processes have used of it that have ended and did not count in Valkey then, and until when that is known. What
   * they had counted there before counts twice: nobody can tell it apart.
   */
  apart: number
  apart_until: number
  /** Until when the store is not asked for more. */
  denied_until: number
  /** What was used since the store was asked last, and what calls wait for. */
  recent: number
  asked: number
  /** Whether its use is reported next time, and need not be noted before. */
  is_noted: boolean
  /** How many calls count in it, or may do so soon, and whether it is to be reported: until then it is not forgotten. */
  users: number
  /** How many calls wait for it, and the last round of the queue in which one of them did not fit. */
  waiting: number
  blocked_in: number
}

/** Counters and their limits, by the same place. */
export type Limited = {
  readonly of: RateLimits
  readonly counters: Counter[]
  readonly limits: number[]
  readonly tasks: TaskLimit[]
}

/** The place of calls after those of the units. */
export const CALLS = RATE_UNITS.length

type ScopesParts = {
  /** The most end users that are counted apart; read at each use. */
  maxEndUsers(): number
  /** Whether a new counter may use all of its limit, because no other process does. */
  is_shared: boolean
}

export type Scopes = {
  of(kind: Exclude<ScopeKind, 'end_user'>, name: string, now: number): Scope
  /** Of one end user of a token or a project; one for all further ones, where too many are counted. */
  endUser(owner: string, name: string, now: number): Scope
  /** The counters of these limits; undefined: there are none. */
  limited(scope: Scope, limits: RateLimits | undefined): Limited | undefined
  /** Increases when scopes were forgotten: what was looked up before must be looked up again. */
  readonly version: number
  readonly size: number
  counters(): Generator<Counter>
}

/** Beyond it, scopes other than end users are forgotten where nothing counts. */
const MOST_SCOPES = 50_000
/** The order of end users is that of their last use to this precision. */
const TOUCH_MS = 1_000
/** How many of the oldest end users are looked at before a new one counts with others. */
const LOOKED_AT = 8
/** Of the end users, those of one owner may take up this part. */
const OWNER_PART = 0.5
/** No end user has this name: a name is never empty. */
const OTHERS = ''

export function createScopes({ maxEndUsers, is_shared }: ScopesParts): Scopes {
  const scopes = new Map<string, Scope>()
  const endUsers = createEndUserScopes(maxEndUsers)
  let sweep_at = MOST_SCOPES

  /** Forgets what has used nothing within its windows. */
  function sweep(now: number): void {
    for (const [id, scope] of scopes) if (isIdle(scope, now)) scopes.delete(id)
    sweep_at = Math.max(MOST_SCOPES, 2 * scopes.size)
    all.version++
  }

  function counterOf(scope: Scope, key: RateLimitKey): Counter {
    const found = scope.counters.find((one) => one.key === key)
    if (found) return found
    const counter = newCounter(scope, key, is_shared)
    scope.counters.push(counter)
    return counter
  }

  const all: Scopes & { version: number } = {
    version: 0,
    of(kind, name, now) {
      const id = `${kind}:${name}`
      let scope = scopes.get(id)
      if (!scope) {
        if (scopes.size >= sweep_at) sweep(now)
        scope = newScope(kind, id, kind === 'installation' ? 'the installation' : `${kind} ${name}`)
        scopes.set(id, scope)
      }
      scope.used_at = now
      return scope
    },

    endUser: endUsers.of,

    limited(scope, limits) {
      if (limits === undefined) return undefined
      if (scope.limited?.of === limits) return scope.limited
      const keys = Object.keys(limits) as RateLimitKey[]
      const counted = keys.filter((key) => limits[key] !== undefined && key !== 'tasks_in_flight')
      const { tasks_in_flight: limit } = limits
      if (counted.length === 0 && limit === undefined) return undefined
      scope.limited = {
        of: limits,
        counters: counted.map((key) => counterOf(scope, key)),
        limits: counted.map((key) => limits[key] ?? 0),
        tasks: limit === undefined ? [] : [{ name: scope.name, columns: columnsOf(scope), limit }],
      }
      return scope.limited
    },

    *counters() {
      for (const scope of scopes.values()) yield* scope.counters
      for (const scope of endUsers.all()) yield* scope.counters
    },

    get size() {
      return scopes.size + endUsers.size
    },
  }
  return all
}

function newScope(kind: ScopeKind, id: string, name: string): Scope {
  return { kind, id, name, counters: [], used_at: 0, limited: undefined }
}

/** End users: at most so many are counted apart, and the least recently used of them are forgotten for others. */
function createEndUserScopes(maxEndUsers: () => number) {
  /** The least recently used first. */
  const endUsers = new Map<string, Scope>()
  const perOwner = new Map<string, number>()

  /** Whether there is a place for another end user of this owner. */
  function makePlace(owner: string, now: number): boolean {
    const most = maxEndUsers()
    if ((perOwner.get(owner) ?? 0) >= most * OWNER_PART) return forgetOldest(now, owner)
    return endUsers.size < most || forgetOldest(now)
  }

  function forgetOldest(now: number, owner?: string): boolean {
    let looked_at = 0
    for (const [id, scope] of endUsers) {
      if (owner !== undefined && ownerOf(id) !== owner) continue
      if (isIdle(scope, now)) {
        endUsers.delete(id)
        const left = (perOwner.get(ownerOf(id)) ?? 1) - 1
        if (left === 0) perOwner.delete(ownerOf(id))
        else perOwner.set(ownerOf(id), left)
        return true
      }
      if (++looked_at === LOOKED_AT) return false
    }
    return false
  }

  function of(owner: string, name: string, now: number): Scope {
    const id = `${owner} ${name}`
    const known = endUsers.get(id)
    if (known) {
      if (now - known.used_at > TOUCH_MS) {
        endUsers.delete(id)
        endUsers.set(id, known)
        known.used_at = now
      }
      return known
    }
    if (name !== OTHERS && !makePlace(owner, now)) return of(owner, OTHERS, now)
    const shown = name === OTHERS ? 'the end users that are not counted apart' : `end user ${JSON.stringify(name)}`
    const scope = newScope('end_user', `end_user:${id}`, `${shown} of ${owner}`)
    scope.used_at = now
    endUsers.set(id, scope)
    perOwner.set(owner, (perOwner.get(owner) ?? 0) + 1)
    return scope
  }

  return {
    of,
    all: () => endUsers.values(),
    get size() {
      return endUsers.size
    },
  }
}

/** Names of owners, such as `token tok_x`, have one space. */
const ownerOf = (id: string): string => id.slice(0, id.indexOf(' ', id.indexOf(' ') + 1))

/** What tasks of a scope have in common. */
function columnsOf({ kind, id }: Scope): TaskLimit['columns'] {
  switch (kind) {
    case 'model':
      return ['model']
    case 'project':
      return ['project_id']
    case 'token':
      return ['token_id']
    case 'end_user':
      return [id.startsWith('end_user:project ') ? 'project_id' : 'token_id', 'end_user']
    default:
      return []
  }
}

function newCounter(scope: Scope, key: RateLimitKey, is_shared: boolean): Counter {
  const { unit, window } = partsOf(key)
  return {
    key,
    scope,
    unit: unit === undefined ? CALLS : RATE_UNITS.indexOf(unit),
    window: createWindow(unit ?? 'requests', window ?? 'day'),
    is_concurrent: unit === undefined,
    limit: 0,
    held: is_shared ? 0 : Number.POSITIVE_INFINITY,
    held_until: is_shared ? 0 : Number.POSITIVE_INFINITY,
    others: 0,
    others_until: 0,
    apart: 0,
    apart_until: 0,
    denied_until: 0,
    recent: 0,
    asked: 0,
    is_noted: false,
    users: 0,
    waiting: 0,
    blocked_in: 0,
  }
}

/** The steady clock by which windows are counted has changed by so much. */
export function shiftTimes(counter: Counter, change_ms: number): void {
  shiftParts(counter.window, change_ms)
  counter.scope.used_at += change_ms / counter.scope.counters.length // once for all of them
  counter.held_until += change_ms
  counter.denied_until += change_ms
}

function partsOf(key: RateLimitKey): { unit?: RateUnit; window?: RateWindow } {
  const [unit, window] = key.split('_per_')
  return window === undefined ? {} : { unit: unit as RateUnit, window: window as RateWindow }
}

function isIdle({ counters }: Scope, now: number): boolean {
  for (const { window, users } of counters) {
    expire(window, now)
    if (window.total > 0 || users > 0) return false
  }
  return true
}
