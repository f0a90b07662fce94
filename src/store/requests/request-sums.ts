/** Reads sums of the request log by minute, hour or day, and keeps them: see `sum-upkeep.ts`. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Engine } from '../engine.ts'
import type { Database } from '../tables.ts'
import { addMinute, sumsUntil } from './minute-sums.ts'
import {
  addSum,
  decodeSum,
  emptyMinute,
  type MinuteSums,
  type RequestSum,
  type StoredSum,
  sumAt,
} from './request-sum.ts'
import { partColumn, type ScopeKind, type SumDimension, type SumsRow } from './sum-row.ts'
import { DAY_SECONDS, HOUR_SECONDS } from './sum-rows.ts'
import { decodeParts, scopeId, toScopes } from './sum-scopes.ts'
import { claimUpkeep, eachMinute, type KeptSums, upkeepStep } from './sum-upkeep.ts'

/** Seconds. */
export const SUM_STEPS = { minute: 60, hour: HOUR_SECONDS, day: DAY_SECONDS } as const
export type SumStep = keyof typeof SUM_STEPS

/** `from` and `to` in unix seconds, whole steps; `to` is not included. The scopes are of one kind. */
export type SumsQuery = {
  from: number
  to: number
  step: SumStep
  kind: ScopeKind
  keys: readonly string[]
  /** Which parts of the scopes are read. */
  by?: SumDimension | undefined
  /** Of the parts, only these. */
  only?: ReadonlySet<string> | undefined
}

/** `is_cut`: it may have further parts. */
export type SumPoint = { total: RequestSum; parts: Map<string, RequestSum>; is_cut: boolean }
/** By key of the scope, by start of the step. Where nothing was recorded, a point is missing. */
export type SumPoints = Map<string, Map<number, SumPoint>>

export type RequestSumStore = {
  read(query: SumsQuery): Promise<SumPoints>
  /** Whether this process keeps the sums in this minute (unix seconds). */
  claimUpkeep(now: number): Promise<boolean>
  /** One step of bounded size; false: nothing is left to do. */
  upkeep(now: number, kept: KeptSums): Promise<boolean>
}

export function requestSumStore(engine: Engine): RequestSumStore {
  return {
    read: (query) => readSums(engine.db, query),
    claimUpkeep: (now) => claimUpkeep(engine, now),
    upkeep: (now, kept) => upkeepStep(engine, now, kept),
  }
}

/** Each time from the longest period that is summed up and fits into a step. */
async function readSums(db: Database, query: SumsQuery): Promise<SumPoints> {
  const { from, to, step } = query
  const points: SumPoints = new Map()
  const isDaily = step === 'day'
  const days = isDaily ? Math.min(to, await sumsUntil(db, 'request_days')) : from
  const hours = step === 'minute' ? from : Math.min(to, await sumsUntil(db, 'request_hours'))
  if (isDaily && from < days) await readRows(db, { query, period: DAY_SECONDS, from, to: days }, points)
  const fromHour = Math.max(from, days)
  if (fromHour < hours) await readRows(db, { query, period: HOUR_SECONDS, from: fromHour, to: hours }, points)
  const fromMinute = Math.max(fromHour, hours)
  if (fromMinute < to) await readMinutes(db, { query, from: fromMinute, to }, points)
  return points
}

/** Some milliseconds of decoding; calls go on in between. */
const ROWS_PER_TURN = 100

type Range = { query: SumsQuery; from: number; to: number }

async function readRows(
  db: Database,
  { query, period, from, to }: Range & { period: number },
  points: SumPoints,
): Promise<void> {
  const { kind, keys, by, only, step } = query
  if (keys.length === 0) return
  const column = by && partColumn(by)
  const rows: (Pick<SumsRow, 'scope' | 'start' | 'total'> & Partial<SumsRow>)[] = await db
    .selectFrom('request_sums')
    .select(['scope', 'start', 'total', ...(column ? [column] : [])])
    .where((row) => row.and({ period, kind }))
    .where('scope', 'in', [...keys])
    .where('start', '>=', from)
    .where('start', '<', to)
    .execute()
  for (const [at, row] of rows.entries()) {
    if (at > 0 && at % ROWS_PER_TURN === 0) await nextTurn()
    const total = JSON.parse(row.total) as StoredSum
    const found = column ? decodeParts(row[column], { total, kind, only }) : { parts: new Map(), is_cut: false }
    addPoint(points, [row.scope, startOf(row.start, step)], { total: decodeSum(total), ...found })
  }
}

async function readMinutes(db: Database, { query, from, to }: Range, points: SumPoints): Promise<void> {
  const { kind, keys, by, step } = query
  const only = new Set(keys.map((key) => scopeId({ kind, key })))
  let start = 0
  let sums: MinuteSums = emptyMinute()
  const add = () => {
    const scopes = toScopes(sums, only)
    for (const key of keys) {
      const scope = scopes.get(scopeId({ kind, key }))
      if (scope)
        addPoint(points, [key, start], {
          total: scope.total,
          parts: (by && scope.parts.get(by)) ?? new Map(),
          is_cut: false,
        })
    }
    sums = emptyMinute()
  }
  await eachMinute(db, { from, to }, (row) => {
    const next = startOf(row.start, step)
    if (next !== start) add()
    start = next
    addMinute(sums, row)
  })
  add()
}

/** `added` belongs to the points afterwards. */
function addPoint(points: SumPoints, [key, start]: [string, number], added: SumPoint): void {
  let ofScope = points.get(key)
  if (!ofScope) {
    ofScope = new Map()
    points.set(key, ofScope)
  }
  const point = ofScope.get(start)
  if (!point) {
    ofScope.set(start, added)
    return
  }
  addSum(point.total, added.total)
  point.is_cut ||= added.is_cut
  for (const [name, sum] of added.parts) addSum(sumAt(point.parts, name), sum)
}

const startOf = (seconds: number, step: SumStep): number => Math.floor(seconds / SUM_STEPS[step]) * SUM_STEPS[step]
