/**
 * Fills a new store with what a gateway has after some weeks, without making calls: projects, tokens, models and request
 * rows with their sums. For tests in a browser and for benchmarks: `bun scripts/fill-store.ts <file> [empty|small|wide|large]`.
 */
import { createHash } from 'node:crypto'
import { constants, copyFileSync, existsSync, readFileSync, renameSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { sha256 } from '../src/kit/secret.ts'
import type { Engine } from '../src/store/engine.ts'
import { openSqlite } from '../src/store/engines/sqlite.ts'
import { MIGRATIONS } from '../src/store/migrate.ts'
import { insertRequests, requestLogStore } from '../src/store/requests/request-log.ts'
import type { RequestRow } from '../src/store/requests/request-row.ts'
import { addToSums, emptyMinute, type MinuteSums } from '../src/store/requests/request-sum.ts'
import { requestSumStore } from '../src/store/requests/request-sums.ts'
import { DAY_SECONDS, HOUR_SECONDS, putScopes } from '../src/store/requests/sum-rows.ts'
import { addScope, type SumsByScope, toScopes } from '../src/store/requests/sum-scopes.ts'
import { withMostNames } from '../src/store/requests/sum-upkeep.ts'
import type { Write } from '../src/store/tables.ts'
import { projectStore } from '../src/store/tokens/projects.ts'
import { tokenStore } from '../src/store/tokens/tokens.ts'
import { storedProject, storedToken } from '../test/kit/accounts.ts'
import { type Counts, createRandom, modelOf, projectOf, rowOf, teamOf, tokenOf } from './filled-rows.ts'

export const SIZES = {
  empty: { rows: 0, models: 0, tokens: 0, projects: 0, users: 0 },
  small: { rows: 2_000, models: 12, tokens: 20, projects: 4, users: 30 },
  /** The accounts and models of `large` with fewer rows: made in seconds. */
  wide: { rows: 50_000, models: 500, tokens: 10_000, projects: 200, users: 20_000 },
  large: { rows: 1_000_000, models: 500, tokens: 10_000, projects: 200, users: 20_000 },
} as const satisfies Record<string, Counts>
export type Size = keyof typeof SIZES
export const isSize = (text: string): text is Size => Object.hasOwn(SIZES, text)

const DAYS = 30
/** As the gateway keeps them by default. */
const MINUTES_KEPT_SECONDS = DAY_SECONDS
const HOURS_KEPT_SECONDS = 21 * DAY_SECONDS
const DAYS_KEPT_SECONDS = 1_100 * DAY_SECONDS
const ROWS_PER_TRANSACTION = 50_000
const ROWS_PER_APPEND = 1_000

/** The settings of a gateway that shows such a store: its models, each on the sandbox, and rows that are kept long enough. */
export function filledSettings(size: Size) {
  const names = Array.from({ length: SIZES[size].models }, (_, at) => modelOf(at))
  const models = Object.fromEntries(
    names.map((name) => [name, { targets: [{ provider: 'sandbox', model: 'general' }] }]),
  )
  return { models, keep_days: DAYS + 10 }
}

/**
 * A new file of SQLite. `now` in unix seconds: the last row is not younger. The same rows for the same `now`. The calls of
 * the last day are added as a gateway adds them; the others with the sums that it would have made of them since.
 */
export async function fillStore(path: string, { size, now }: { size: Size | Counts; now: number }): Promise<void> {
  const counts = typeof size === 'string' ? SIZES[size] : size
  const engine = await openSqlite(path)
  // The file is thrown away where this is interrupted.
  await sql`pragma synchronous = off`.execute(engine.db)
  await sql`pragma cache_size = -262144`.execute(engine.db)
  await addAccounts(engine, counts, now)
  if (counts.rows > 0) await addRequests(engine, counts, now)
  await sql`pragma wal_checkpoint(truncate)`.execute(engine.db)
  await engine.close()
}

async function addRequests(engine: Engine, counts: Counts, now: number): Promise<void> {
  const log = requestLogStore(engine)
  const first = await log.reserve(counts.rows)
  const random = createRandom()
  const start = now - DAYS * DAY_SECONDS
  let made = 0
  const next = (): RequestRow | undefined => {
    if (made === counts.rows) return undefined
    const at_ms = Math.floor((start + (made / counts.rows) * DAYS * DAY_SECONDS) * 1_000)
    return rowOf({ row_id: first + made++, at_ms, counts, random })
  }
  const recent = floor(now - MINUTES_KEPT_SECONDS, HOUR_SECONDS)
  const isOld = (one: RequestRow) => one.at_ms < recent * 1_000
  const indexes = await dropIndexes(engine)
  const sums = createSums(now)
  let row = next()
  while (row && isOld(row)) {
    await engine.db.transaction().execute(async (write) => {
      const rows: RequestRow[] = []
      for (; row && isOld(row) && rows.length < ROWS_PER_TRANSACTION; row = next()) {
        rows.push(row)
        await sums.add(write, row)
      }
      await insertRequests(write, rows)
    })
  }
  await engine.db.transaction().execute((write) => sums.end(write, recent))
  for (const index of indexes) await sql.raw(index).execute(engine.db)
  while (row) {
    const rows: RequestRow[] = []
    for (; row && rows.length < ROWS_PER_APPEND; row = next()) rows.push(row)
    await log.append(rows, { is_repeated: false })
  }
  const kept = { minutes: MINUTES_KEPT_SECONDS, hours: HOURS_KEPT_SECONDS, days: DAYS_KEPT_SECONDS }
  const upkeep = requestSumStore(engine)
  while (await upkeep.upkeep(now, kept));
}

/** The indexes of the rows, as statements that make them again: made at the end they take a fraction of the time. */
async function dropIndexes({ db }: Engine): Promise<string[]> {
  const { rows } = await sql<{ name: string; sql: string }>`
    select name, sql from sqlite_master
    where type = 'index' and sql is not null and tbl_name in ('request_log', 'request_sums')`.execute(db)
  for (const { name } of rows) await sql`drop index ${sql.ref(name)}`.execute(db)
  return rows.map((index) => index.sql)
}

/** Hours and days of rows that come in the order of time, each written once it is over. */
function createSums(now: number) {
  let hour = 0
  let minute: MinuteSums = emptyMinute()
  let day = 0
  let ofDay: SumsByScope = new Map()

  async function endHour(write: Write): Promise<void> {
    if (hour === 0) return
    const scopes = toScopes(minute)
    minute = emptyMinute()
    const all = [...scopes]
    const period = { period: HOUR_SECONDS, start: hour }
    if (hour >= now - HOURS_KEPT_SECONDS) await putScopes((work) => work(write), period, withMostNames(scopes))
    for (const [id, scope] of all) {
      const sums = ofDay.get(id)
      if (sums) addScope(sums, scope)
      else ofDay.set(id, scope)
    }
  }
  async function endDay(write: Write): Promise<void> {
    if (day > 0) await putScopes((work) => work(write), { period: DAY_SECONDS, start: day }, withMostNames(ofDay))
    ofDay = new Map()
  }
  return {
    async add(write: Write, row: RequestRow): Promise<void> {
      const start = floor(row.at_ms / 1_000, HOUR_SECONDS)
      if (start !== hour) {
        await endHour(write)
        if (floor(start, DAY_SECONDS) !== day) await endDay(write)
        hour = start
        day = floor(start, DAY_SECONDS)
      }
      addToSums(minute, row)
    },
    /** `until`: the start of the first hour without a row; its day is left to the gateway. */
    async end(write: Write, until: number): Promise<void> {
      await endHour(write)
      if (day < floor(until, DAY_SECONDS)) await endDay(write)
      const ended = { request_hours: until, request_days: floor(until, DAY_SECONDS) }
      for (const [noun, revision] of Object.entries(ended))
        await sql`update revisions set revision = ${revision} where noun = ${noun}`.execute(write)
    },
  }
}

const floor = (seconds: number, step: number): number => Math.floor(seconds / step) * step

/**
 * A SQLite file of its own for a test, a copy of one that is filled once a day for all tests. Where `GATEHOUSE_FILLED_DIR`
 * is not set, that one is in the directory for temporary files.
 */
export async function filledStore(size: Size, copy: string): Promise<void> {
  const now = Math.floor(Date.now() / 1_000)
  const hash = createHash('sha256')
  for (const name of ['fill-store.ts', 'filled-rows.ts']) hash.update(readFileSync(join(import.meta.dirname, name)))
  const newest = Object.keys(MIGRATIONS).sort().at(-1)
  const source = hash.digest('hex').slice(0, 8)
  const name = `gatehouse-${size}-${Math.floor(now / DAY_SECONDS)}-${newest}-${source}.db`
  const file = join(process.env.GATEHOUSE_FILLED_DIR ?? tmpdir(), name)
  if (!existsSync(file)) {
    const filling = `${file}.${process.pid}`
    await fillStore(filling, { size, now })
    renameSync(filling, file)
  }
  copyFileSync(file, copy, constants.COPYFILE_FICLONE)
}

async function addAccounts(engine: Engine, counts: Counts, now: number): Promise<void> {
  const [projects, tokens] = [projectStore(engine), tokenStore(engine)]
  const created_at = now - (DAYS + 1) * DAY_SECONDS
  const adding: Promise<unknown>[] = []
  for (let at = 0; at < counts.projects; at++)
    adding.push(projects.add(storedProject({ project_id: projectOf(at), name: teamOf(at), created_at })))
  for (let at = 0; at < counts.tokens; at++) adding.push(tokens.add(accountOf(at, counts, created_at)))
  await Promise.all(adding)
}

const accountOf = (at: number, counts: Counts, created_at: number) =>
  storedToken({
    token_id: tokenOf(at),
    project_id: projectOf(at % counts.projects),
    name: `${teamOf(at % counts.projects)}-service-${at}`,
    prefix: `sk-${at.toString(36).padStart(6, '0')}`,
    hash: sha256(`no secret ${at}`),
    created_at,
  })

if (import.meta.main) {
  const [path = '', size = 'large'] = process.argv.slice(2)
  if (path === '' || !isSize(size)) {
    process.stderr.write(`Usage: bun scripts/fill-store.ts <new file of SQLite> [${Object.keys(SIZES).join('|')}]\n`)
    process.exit(2)
  }
  const started = performance.now()
  await fillStore(path, { size, now: Math.floor(Date.now() / 1_000) })
  process.stdout.write(`${size}: ${Math.round((performance.now() - started) / 1_000)} s\n`)
}
