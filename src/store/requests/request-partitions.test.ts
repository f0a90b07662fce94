/** The request log in partitions, on a real PostgreSQL. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { startPostgres } from '../../../test/kit/postgres.ts'
import { requestRow } from '../../../test/kit/request-rows.ts'
import { plansOfPostgres, stepsOf } from '../../../test/kit/statement-plans.ts'
import { copyStore } from '../backup/copy-store.ts'
import { restoreBackup } from '../backup/restore-backup.ts'
import { writeBackup } from '../backup/write-backup.ts'
import type { Engine } from '../engine.ts'
import { openPostgres, withMigrationLock } from '../engines/postgres.ts'
import { type PartitionStep, partitionRequests, planPartitions } from '../engines/postgres-partition.ts'
import { MIGRATIONS, migrateWithin } from '../migrate.ts'
import { readSchema, schemaProblem, tooNewText } from '../schema-state.ts'
import { eraseRequests, requestLogStore } from './request-log.ts'
import { keepPartitions, partitionsOf } from './request-partitions.ts'
import type { RequestFilter, RequestLogStore, RequestPosition, RequestRow } from './request-row.ts'

const DAY = 86_400_000
const NOW = Date.UTC(2026, 0, 1, 12)
/** The first day with a partition of its own. */
const FIRST = Date.UTC(2026, 0, 8)
const OTHERS = Object.keys(MIGRATIONS).filter((name) => name < '0046')

let url: string
let engine: Engine
let log: RequestLogStore
beforeEach(async () => {
  url = await (await startPostgres()).createDatabase()
  engine = await openPostgres(url)
  log = requestLogStore(engine)
})
afterEach(async () => {
  await engine.close()
  await (await startPostgres()).dropDatabase(url)
})

/** Of 13 days, from one a week before the first partition; those of the last two have none. */
const rows: RequestRow[] = Array.from({ length: 260 }, (_, at) =>
  requestRow({
    row_id: at + 1,
    at_ms: FIRST - 7 * DAY + Math.floor(at / 2) * (DAY / 10),
    request_id: `req_${at}`,
    model: at % 3 ? 'a' : 'b',
    status: at % 5 ? 200 : 429,
    error: at % 5 ? null : 'rate_limit_exceeded',
    end_user: at % 7 ? null : 'ann',
    tags: at % 4 ? [] : ['tagged'],
    cost: at,
  }),
)

async function partition(): Promise<void> {
  await partitionRequests(url, { now_ms: NOW })
  await keepPartitions(engine.db, { now_ms: FIRST, before_ms: 0 })
}

async function partitionKilled(before: PartitionStep): Promise<void> {
  const script = join(import.meta.dir, '../../../test/kit/partitioning-process.ts')
  const child = Bun.spawn([process.execPath, script, url, String(NOW), before], { stdin: 'ignore' })
  expect(await child.exited).not.toBe(0)
}

async function pages(filter: RequestFilter, order: 'asc' | 'desc'): Promise<number[]> {
  const ids: number[] = []
  let after: RequestPosition | undefined
  do {
    const page = await log.search({ filter, limit: 9, order, ...(after && { after }) })
    ids.push(...page.rows.map(({ row_id }) => row_id))
    after = page.next
  } while (after)
  return ids
}

const FILTERS: RequestFilter[] = [
  {},
  { model: 'b' },
  { tag: 'tagged' },
  { tag: 'tagged', model: 'b' },
  { status: 4, end_user: 'ann' },
  { min_cost: 250 },
  { from_ms: FIRST - DAY, to_ms: FIRST + 2 * DAY, model: 'a' },
  { request_id: 'req_200' },
]
const searches = async () => {
  const found: number[][] = []
  for (const filter of FILTERS) found.push(await pages(filter, 'desc'), await pages(filter, 'asc'))
  return found
}

const count = async (table: string) =>
  Number(
    (await sql<{ rows: number }>`select count(*) as rows from ${sql.table(table)}`.execute(engine.db)).rows[0]?.rows,
  )

describe('a partitioned request log', () => {
  test('finds, pages and counts as before, and stores a row once', async () => {
    await log.append(rows)
    const before = [await searches(), await log.facets({})]
    await sql`delete from request_log where at_ms >= ${FIRST}`.execute(engine.db)
    await sql`delete from request_tags where at_ms >= ${FIRST}`.execute(engine.db)
    await sql`delete from request_minutes`.execute(engine.db)
    await partition()
    await log.append(rows, { is_repeated: false })
    await log.append(rows)
    expect([await searches(), await log.facets({})]).toEqual(before)
    expect(await count('request_log')).toBe(260)
    expect(await count('request_log_20260108')).toBe(20)
    expect(await count('request_log_other')).toBe(40)
    expect(await log.find([1, 150, 260])).toHaveLength(3)
  })

  test('is made while rows are written, of which none fails or is lost', async () => {
    let written = 0
    let is_done = false
    const write = async () => {
      while (!is_done) await log.append([requestRow({ row_id: ++written, at_ms: NOW, request_id: `req_${written}` })])
    }
    const writing = Promise.all(Array.from({ length: 4 }, write))
    await partitionRequests(url, { now_ms: NOW })
    is_done = true
    await writing
    expect(await count('request_log')).toBe(written)
    expect(await partitionsOf(engine.db, 'request_log')).toEqual(['request_log_other', 'request_log_until_20260108'])
    expect(await partitionRequests(url, { now_ms: NOW })).toMatchObject({ is_done: true })
  })

  test.each(['index', 'check', 'exchange'] as PartitionStep[])(
    'is made by the next try where the one before was killed before the step %s, and rows are written between them',
    async (step) => {
      await log.append(rows.slice(0, 99))
      await partitionKilled(step)
      await log.append(rows.slice(99, 120))
      expect(await planPartitions(url, { now_ms: NOW })).toMatchObject({ is_done: false, until_ms: FIRST })
      await partition()
      await log.append(rows.slice(120))
      expect(await pages({}, 'asc')).toEqual(rows.map(({ row_id }) => row_id))
    },
  )

  test('refuses no row where the command was killed: gateways drop its check, unless a command runs', async () => {
    await partitionKilled('exchange')
    const row = requestRow({ row_id: 1, at_ms: FIRST, tags: ['tagged'] })
    await withMigrationLock(url, async () => {
      await log.prune(0)
      await expect(log.append([row])).rejects.toThrow('request_log_until')
    })
    await log.prune(0)
    await log.append([row])
    expect(await pages({ tag: 'tagged' }, 'asc')).toEqual([1])
  })

  test('drops days that are over, with their tags and feedback, and deletes other rows one by one', async () => {
    await partition()
    await log.append(rows)
    const feedback = { score: 1, text: null, created_ms: 1 }
    for (const row_id of [141, 161]) await log.addFeedback({ row_id, ...feedback })
    const prune = async (before_ms: number) => {
      while (await log.prune(before_ms));
      return pages({}, 'asc')
    }
    const from = (ms: number) => rows.filter(({ at_ms }) => at_ms >= ms).map(({ row_id }) => row_id)
    expect(await prune(FIRST - 2 * DAY)).toEqual(from(FIRST - 2 * DAY))
    expect(await prune(FIRST - 1)).toEqual(from(FIRST - DAY))
    expect(await partitionsOf(engine.db, 'request_log')).toContain('request_log_until_20260108')
    expect(await prune(FIRST)).toEqual(from(FIRST))
    expect(await partitionsOf(engine.db, 'request_log')).not.toContain('request_log_until_20260108')
    expect(await prune(FIRST + DAY - 1)).toEqual(from(FIRST))
    expect(await log.feedback([141, 161])).toHaveLength(2)
    expect(await prune(FIRST + DAY)).toEqual(from(FIRST + DAY))
    expect((await log.feedback([141, 161])).map(({ row_id }) => row_id)).toEqual([161])
    expect(await partitionsOf(engine.db, 'request_tags')).not.toContain('request_tags_20260108')
    expect(await count('request_tags')).toBe(
      rows.filter(({ at_ms, tags }) => at_ms >= FIRST + DAY && tags.length > 0).length,
    )
    expect(await prune(FIRST + 5 * DAY)).toEqual(from(FIRST + 5 * DAY))
  })

  test('is searched and deleted by the indexes of those days that are asked for', async () => {
    await partition()
    await log.append(rows)
    const from_ms = FIRST + 2 * DAY
    const plans = await plansOfPostgres({
      url,
      async work({ requestLog }) {
        const filters = FILTERS.filter(({ tag, request_id }) => tag === undefined && request_id === undefined)
        for (const one of filters)
          await requestLog.search({ filter: { ...one, from_ms, to_ms: from_ms + DAY }, limit: 9 })
        await requestLog.prune(FIRST - 1)
      },
      of: /^\s*(select|delete).* request_(log|tags)\b.*at_ms [<>]/s,
      settings: ['enable_seqscan = off', 'enable_bitmapscan = off', 'enable_sort = off'],
    })
    const partitions = (part: string) =>
      new Set(stepsOf(plans, part).flatMap((step) => / on request_(?:log|tags)_(\w+)/.exec(step)?.[1] ?? []))
    expect(partitions('request_log as examined')).toEqual(new Set(['20260110']))
    expect(partitions('delete from request_log')).toEqual(new Set(['until_20260108']))
    expect(stepsOf(plans).filter((step) => step.includes('Seq Scan'))).toEqual([])
  })

  test('leaves a day that is read to the next time, without waiting for the reader', async () => {
    await partition()
    await log.append(rows)
    await engine.db.transaction().execute(async (reads) => {
      await sql`select 1 from request_log limit 1`.execute(reads)
      await keepPartitions(engine.db, { now_ms: FIRST, before_ms: FIRST + DAY })
      expect(await partitionsOf(engine.db, 'request_log')).toContain('request_log_20260108')
    })
    await keepPartitions(engine.db, { now_ms: FIRST, before_ms: FIRST + DAY })
    expect(await partitionsOf(engine.db, 'request_log')).not.toContain('request_log_20260108')
  })

  test('gets its next days once, however many processes make them', async () => {
    await partitionRequests(url, { now_ms: NOW })
    const other = await openPostgres(url)
    const at = { now_ms: FIRST - DAY, before_ms: 0 }
    await Promise.all([engine, other, engine, other].map(({ db }) => keepPartitions(db, at)))
    await keepPartitions(other.db, at)
    await other.close()
    expect((await partitionsOf(engine.db, 'request_log')).slice(0, 3)).toEqual([
      'request_log_20260108',
      'request_log_20260109',
      'request_log_20260110',
    ])
  })

  test('keeps rows of a day that had no partition in time', async () => {
    await partitionRequests(url, { now_ms: NOW })
    await log.append([requestRow({ row_id: 1, at_ms: FIRST + 5 })])
    await keepPartitions(engine.db, { now_ms: FIRST, before_ms: 0 })
    expect(await partitionsOf(engine.db, 'request_log')).not.toContain('request_log_20260108')
    expect(await partitionsOf(engine.db, 'request_log')).toContain('request_log_20260109')
    expect(await pages({}, 'asc')).toEqual([1])
  })

  test('loses the rows of a person in all partitions', async () => {
    await partition()
    await log.append(rows)
    const { requests } = await engine.write((write) => eraseRequests(write, { end_user: 'ann' }))
    expect(requests).toBe(rows.filter(({ end_user }) => end_user === 'ann').length)
    expect(await pages({ end_user: 'ann' }, 'asc')).toEqual([])
  })

  test('refuses the builds before it with the reason, and later migrations keep that', async () => {
    await partition()
    const old = await readSchema(engine.db, OTHERS)
    expect(old.status).toBe('too new')
    expect(schemaProblem(old)).toContain('it needs a build with 46 or later')
    expect(tooNewText('x', old, OTHERS.at(-1))).toContain(
      'builds from schema 46 on can use it, since the request log is partitioned',
    )
    await sql`update schema_compatibility set schema = 1`.execute(engine.db)
    await engine.write((write) => migrateWithin(write))
    expect(await readSchema(engine.db, Object.keys(MIGRATIONS))).toMatchObject({ status: 'current', oldest: 46 })
  })

  test('is copied to SQLite, and from there into a database that can be partitioned, but not over one that is', async () => {
    await partition()
    await log.append(rows)
    await engine.close()
    const directory = mkdtempSync(join(tmpdir(), 'gatehouse-partitions-'))
    const file = `sqlite:${join(directory, 'gatehouse.db')}`
    const target = await (await startPostgres()).createDatabase()
    try {
      expect((await copyStore({ from: url, to: file })).rows).toMatchObject({ request_log: 260, request_tags: 65 })
      expect((await copyStore({ from: file, to: target })).rows).toMatchObject({ request_log: 260 })
      await partitionRequests(target, { now_ms: FIRST + 6 * DAY })
      const copied = await openPostgres(target)
      const log = requestLogStore(copied)
      await log.append([requestRow({ row_id: 999, at_ms: FIRST + 14 * DAY })])
      expect((await log.search({ filter: {}, limit: 500 })).rows.slice(1)).toEqual(rows.toReversed())
      await copied.close()
      await expect(copyStore({ from: target, to: url })).rejects.toThrow('already, and was not changed')
    } finally {
      rmSync(directory, { recursive: true })
      await (await startPostgres()).dropDatabase(target)
      engine = await openPostgres(url)
    }
  })

  test('is backed up, and restored as one table that older builds can use', async () => {
    await partition()
    await log.append(rows)
    const directory = mkdtempSync(join(tmpdir(), 'gatehouse-partitions-'))
    const target = await (await startPostgres()).createDatabase()
    try {
      const path = join(directory, 'gatehouse.tar')
      await writeBackup({ url, path, version: '1.2.3', made_at: '2026-01-01T00:00:00.000Z', outputs: { bucket: 'b' } })
      await restoreBackup({ path, url: target, outputs: undefined })
      const restored = await openPostgres(target)
      expect(await partitionsOf(restored.db, 'request_log')).toEqual([])
      expect((await requestLogStore(restored).search({ filter: {}, limit: 500 })).rows).toEqual(rows.toReversed())
      expect((await readSchema(restored.db, OTHERS)).status).toBe('newer')
      await restored.close()
    } finally {
      rmSync(directory, { recursive: true })
      await (await startPostgres()).dropDatabase(target)
    }
  })
})
