/** What `partitions.ts` measures beside many rows, by the store and the admin API of the gateway. */
import type { Client } from 'pg'
import type { Store } from '../src/store/store.ts'
import type { AdminGateway } from '../test/kit/admin.ts'
import { entry } from '../test/kit/ledger.ts'
import { DAY_MS } from './partition-rows.ts'
import { secondsOfPostgres } from './postgres-time.ts'
import { rowOf } from './request-searches.ts'

export const ROWS = Number(process.env.BENCH_ROWS ?? 3_000_000)
export const ENTRIES = Number(process.env.BENCH_ENTRIES ?? ROWS)
export const TASKS = Number(process.env.BENCH_TASKS ?? ROWS / 30)
export const DAYS = 30
export const PER_DAY = Math.round(ROWS / DAYS)
/** Of the table that is partitioned while it is written. */
export const CONVERTED = Math.round(ROWS / 10)
const BATCH = 400
const WRITERS = 4
const ROUNDS = 5
/** In the titles of the processes that serve the gateway's connections. */
const SESSIONS = 'postgres: gatehouse'
export const KEPT = { minutes: 86_400, hours: 21 * 86_400, days: 1_100 * 86_400 }
export const TODAY = Math.floor(Date.now() / DAY_MS) * DAY_MS
/** The first of the days; the last one is yesterday. */
export const START = TODAY - DAYS * DAY_MS

const started = performance.now()
export const print = (line: string) =>
  void process.stdout.write(`${((performance.now() - started) / 1000).toFixed(0).padStart(5)} s  ${line}\n`)
export const seconds = (ms: number) => `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 0)} s`

export async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return performance.now() - start
}

/** Appends as the recorder does until `until` has ended: rows a second, processor time of PostgreSQL, and the longest wait for one batch. */
export async function writeBeside(store: Store, url: string, until: Promise<unknown>): Promise<string> {
  const before = await secondsOfPostgres(url)
  let [is_done, rows, worst] = [false, 0, 0]
  const start = performance.now()
  const write = async () => {
    while (!is_done) {
      const first = await store.requestLog.reserve(BATCH)
      const span = { rows: BATCH, start_ms: Date.now(), span_ms: 1_000 }
      const batch = Array.from({ length: BATCH }, (_, one) => ({ ...rowOf(one, span), row_id: first + one }))
      const took = await timed(() => store.requestLog.append(batch, { is_repeated: false }))
      worst = Math.max(worst, took)
      rows += BATCH
    }
  }
  const writing = Promise.all(Array.from({ length: WRITERS }, write))
  await until
  is_done = true
  await writing
  const used = ((await secondsOfPostgres(url)) - before) / rows
  const rate = Math.round((rows * 1000) / (performance.now() - start))
  return `${rate} rows/s, ${(used * 1e6).toFixed(0)} us of PostgreSQL a row, longest wait of a batch ${worst.toFixed(0)} ms`
}

export const during = (ms: number): Promise<void> => Bun.sleep(ms)

async function appendEntries(store: Store, at_ms: number, count: number): Promise<number> {
  const ms = await timed(async () => {
    for (let at = 0; at < count; at += 500)
      await store.ledger.append(
        Array.from({ length: 500 }, (_, one) => {
          const [token, model] = [one % 100, Math.floor(one / 100) + ((at / 500) % 4) * 5]
          return entry({
            at_ms: at_ms + at,
            token_id: `tok_${String(token).padStart(16, '0')}`,
            project_id: `proj_${String(token % 10).padStart(16, '0')}`,
            model: `vendor-${model % 4}/model-${model}`,
            provider: `vendor-${model % 4}`,
          })
        }),
      )
  })
  return Math.round((count * 1000) / ms)
}

/** An hour of calls as the recorder adds them, closed as the gateway does; then the same sums for all hours and days before. */
export async function closeHour(client: Client, store: Store): Promise<void> {
  const hour = Math.floor(Date.now() / 3_600_000 - 3) * 3_600
  const count = Math.round(PER_DAY / 24)
  const first = await store.requestLog.reserve(count)
  const span = { rows: count, start_ms: hour * 1000, span_ms: 3_600_000 }
  const rows = Array.from({ length: count }, (_, at) => ({ ...rowOf(at, span), row_id: first + at }))
  for (let at = 0; at < count; at += 100)
    await store.requestLog.append(rows.slice(at, at + 100), { is_repeated: false })
  const now = hour + 3_600 + 1_300
  const steps: number[] = []
  for (let isMore = true; isMore; ) {
    const start = performance.now()
    isMore = await store.requestSums.upkeep(now, KEPT)
    steps.push(performance.now() - start)
  }
  const [sum, most] = [steps.reduce((all, one) => all + one, 0), Math.max(...steps)]
  print(
    `closing an hour of ${count} calls: ${seconds(sum)} in ${steps.length} steps, the longest ${most.toFixed(0)} ms`,
  )
  const today = TODAY / 1000
  const others = (table: string, period: number, steps_back: number) =>
    client
      .query(`create temp table hour_sums as select * from ${table} where period = 3600 and start = ${hour}`)
      .then(async () => {
        await client.query(`update hour_sums set period = ${period}`)
        const base = period === 3_600 ? hour : today
        await client.query(
          `create temp table many as select hour_sums.*, n from hour_sums, generate_series(1, ${steps_back}) n`,
        )
        await client.query(`update many set start = ${base} - n * ${period}`)
        await client.query('alter table many drop column n')
        await client.query(`insert into ${table} select * from many on conflict do nothing`)
        await client.query('drop table hour_sums; drop table many')
      })
  print(`ledger beside ${ENTRIES} entries: ${await appendEntries(store, hour * 1000, 20_000)} entries/s`)
  for (const [table, hours] of [
    ['request_sums', 21 * 24],
    ['ledger_sums', DAYS * 24],
  ] as const) {
    await others(table, 3_600, hours)
    await others(table, 86_400, DAYS)
  }
  await client.query('analyze request_sums')
  await client.query('analyze ledger_sums')
}

export async function measureConsole(gateway: AdminGateway, url: string): Promise<void> {
  const now = Math.floor(Date.now() / 1000)
  const day = 86_400
  const token = 'tok_0000000000000000'
  const far = `to=${now - 25 * day}`
  const { next_cursor } = await gateway.read<{ next_cursor: string }>(`/requests?limit=100&${far}`)
  const paths = [
    '/requests',
    `/requests?token=${token}`,
    `/requests?token=${token}&model=vendor-0/model-0&error=any`,
    '/requests?status=5xx',
    '/requests?user=user-19999',
    '/requests?session=session-99999',
    '/requests?tag=rare',
    `/requests?model=vendor-5/model-59&${far}`,
    `/requests?limit=100&${far}&cursor=${next_cursor}`,
    '/requests/facets',
    `/requests/facets?model=vendor-0/model-0`,
    `/summary?start=${now - 30 * day}&end=${now}&step=day&by=model`,
    `/summary?start=${now - 7 * day}&end=${now}&step=hour&by=token`,
    '/usage?by=day,model',
    '/usage?by=day,project',
    `/usage?by=hour&token_id=${token}`,
    '/tasks',
  ]
  for (const path of paths) {
    const times: number[] = []
    await gateway.read(path)
    const before = await secondsOfPostgres(url, SESSIONS)
    for (let round = 0; round < ROUNDS; round++) times.push(await timed(() => gateway.read(path)))
    const used = ((await secondsOfPostgres(url, SESSIONS)) - before) / ROUNDS
    times.sort((a, b) => a - b)
    const [median = 0, worst = 0] = [times[Math.floor(ROUNDS / 2)], times.at(-1)]
    const spent = `${(used * 1000).toFixed(0).padStart(5)} ms of the server's processor`
    print(`  ${median.toFixed(0).padStart(6)} ms, at most ${worst.toFixed(0).padStart(6)}; ${spent}  ${path}`)
  }
}

export async function measureRetention(client: Client, store: Store, url: string): Promise<void> {
  const { rows } = await client.query('select row_id from request_log where at_ms < $1 limit 5000', [START + DAY_MS])
  for (const { row_id } of rows)
    await store.requestLog.addFeedback({ row_id: Number(row_id), score: 1, text: null, created_ms: START })
  const times: number[] = []
  const work = async () => {
    for (let day = 1; day <= 3; day++) {
      const ms = await timed(async () => {
        while (await store.requestLog.prune(START + day * DAY_MS));
      })
      times.push(ms)
    }
  }
  const beside = await writeBeside(store, url, work())
  print(`retention: days of ${PER_DAY} dropped in ${times.map(seconds).join(', ')}`)
  print(`writers meanwhile: ${beside}`)
  const keep = { minutes_days: 9_999, hours_days: 9_999, entries_days: DAYS - 1 }
  let pruned = 0
  const start = performance.now()
  while (performance.now() - start < 10_000 && (await store.ledger.prune(keep, TODAY / 1000))) pruned += 500
  print(`retention of the ledger: ${Math.round((pruned * 1000) / (performance.now() - start))} entries/s`)
}
