/**
 * The process is killed at every point of a batch, and restarted, or frozen for longer than its leases; in the end each line has
 * one result, and the results, the calls that the provider has counted and the ledger agree. `GATEHOUSE_KILLS=1000` kills more
 * often, and the one batch has up to 1,000 lines; with fewer than 100 some points are skipped.
 */
import { Database } from 'bun:sqlite'
import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { BATCH_CRASH_POINTS, type BatchCrashPoint } from '../src/families/tasks/crash-points.ts'
import type { BatchPlan } from './kit/batch-gateway.ts'
import { startBatchVendor } from './kit/batch-vendor.ts'
import { linesIn, type ResultLine } from './kit/batches.ts'
import { compiled } from './kit/compiled.ts'
import { firstLine, TOKEN } from './kit/gateway-process.ts'
import { randomFrom } from './kit/kill-run.ts'
import { startPostgres } from './kit/postgres.ts'

const KILLS = Number(process.env.GATEHOUSE_KILLS ?? 8)
const LINES = 25
/** Of the batch that is killed again and again. */
const MANY_LINES = Math.min(1_000, Math.max(100, KILLS * 10))
/** Of the clocks of processes. */
const SPEED = 5
/** So far the clock of the next process is ahead: the leases of 60 s of the one before have expired. */
const AHEAD_MILLISECONDS = 61_000
/** A process that has not reached its point by then is killed where it is. */
const KILL_MILLISECONDS = 3_000

/** A part of results is full after some 25 of these. */
const ANSWER_BYTES = 20_000

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-batches-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** A provider that counts its calls by the text of their message. */
function startVendor(answer_bytes: number) {
  const calls = new Map<string, number>()
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const { messages } = (await request.json()) as { messages: { content: string }[] }
      const text = messages[0]?.content ?? ''
      calls.set(text, (calls.get(text) ?? 0) + 1)
      return Response.json({
        id: 'c',
        object: 'chat.completion',
        created: 1,
        model: 'chat',
        choices: [
          { index: 0, message: { role: 'assistant', content: text.padEnd(answer_bytes) }, finish_reason: 'stop' },
        ],
        usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
      })
    },
  })
  return { calls, created: () => 0, url: `http://127.0.0.1:${server.port}/v1`, stop: () => server.stop(true) }
}

const PROGRAM = await compiled('batch-gateway')
const spawn = () => Bun.spawn([PROGRAM], { stdin: 'pipe', stdout: 'pipe', stderr: 'inherit' })
/** Loads its modules while the one before it runs. */
let next = spawn()
let started = 0
afterAll(() => next.kill('SIGKILL'))

async function startProcess(plan: BatchPlan, ahead_ms = started++ * AHEAD_MILLISECONDS) {
  const child = next
  next = spawn()
  child.stdin.write(`${JSON.stringify({ ...plan, ahead_ms })}\n`)
  await child.stdin.end()
  const url = firstLine(child.stdout)
  url.catch(() => {}) // it may be killed before it listens
  const call = async (path: string, init: RequestInit = {}) =>
    fetch(`${await url}${path}`, { ...init, headers: { authorization: `Bearer ${TOKEN}`, ...init.headers } })
  const json = async <T>(path: string, init?: RequestInit) => (await (await call(path, init)).json()) as T
  return { child, url, call, json }
}
type Process = Awaited<ReturnType<typeof startProcess>>

const lineOf = (custom_id: string) => ({
  custom_id,
  method: 'POST',
  url: '/v1/chat/completions',
  body: { model: 'acme/chat', messages: [{ role: 'user', content: custom_id }] },
})

/** A client sees a kill as a broken connection. */
async function submit(gateway: Process, name: string, exactly_once: boolean, count = LINES): Promise<void> {
  const form = new FormData()
  form.append('purpose', 'batch')
  const lines = Array.from({ length: count }, (_, at) => JSON.stringify(lineOf(`${name}-${at}`)))
  form.append('file', new File([lines.join('\n')], `${name}.jsonl`))
  const { id } = await gateway.json<{ id: string }>('/v1/files', { method: 'POST', body: form })
  const created = { input_file_id: id, endpoint: '/v1/chat/completions', completion_window: '24h', exactly_once }
  const headers = { 'content-type': 'application/json' }
  const metadata = { name }
  await gateway.json('/v1/batches', { method: 'POST', headers, body: JSON.stringify({ ...created, metadata }) })
}

type Listed = {
  id: string
  status: string
  metadata: { name: string }
  output_file_id: string | null
  error_file_id: string | null
}

async function allBatches(gateway: Process): Promise<Listed[]> {
  const found: Listed[] = []
  for (let after = ''; ; ) {
    const query = after === '' ? '' : `&after=${after}`
    const page = await gateway.json<{ data: Listed[]; has_more: boolean }>(`/v1/batches?limit=100${query}`)
    found.push(...page.data)
    if (!page.has_more) return found
    after = page.data.at(-1)?.id ?? ''
  }
}

async function waitForAll(gateway: Process): Promise<Listed[]> {
  for (let round = 0; round < 1_500; round++) {
    const batches = await allBatches(gateway)
    if (batches.every(({ status }) => status === 'completed')) return batches
    await Bun.sleep(200)
  }
  throw new Error(
    `Not all batches have completed: ${JSON.stringify((await allBatches(gateway)).map(({ status }) => status))}`,
  )
}

async function linesOf(gateway: Process, batch: Listed): Promise<ResultLine[]> {
  const lines: ResultLine[] = []
  for (const id of [batch.output_file_id, batch.error_file_id])
    if (id !== null) lines.push(...linesIn(await (await gateway.call(`/v1/files/${id}/content`)).text()))
  return lines
}

type Mode = 'called again' | 'once' | 'native'
type Engine = 'sqlite' | 'postgres'

/** What the vendor counts, whoever executes the lines. */
function vendorOf(mode: Mode, answer_bytes = 0) {
  if (mode !== 'native') return startVendor(answer_bytes)
  const { executed: calls, url, stop, created } = startBatchVendor({ polls: 0 })
  return { calls, created, url: `${url}/v1`, stop }
}
type Vendor = ReturnType<typeof vendorOf>

async function planFor(mode: Mode, engine: Engine, vendor: Vendor): Promise<BatchPlan> {
  const data_dir = mkdtempSync(join(directory, 'run-'))
  const file = `sqlite:${join(data_dir, 'gatehouse.db')}`
  const store_url = engine === 'sqlite' ? file : await (await startPostgres()).createDatabase()
  const shared = { token: TOKEN, speed: SPEED, epoch_ms: Date.now(), is_native: mode === 'native' }
  return { ...shared, store_url, data_dir, vendor_url: vendor.url }
}

/** Whether it reached the point; otherwise it is killed where it is. */
async function died(gateway: Process, after_ms = KILL_MILLISECONDS): Promise<boolean> {
  await gateway.url.catch(() => {}) // how long it takes to start is not counted
  let isLate = false
  const late = setTimeout(() => {
    isLate = true
    gateway.child.kill('SIGKILL')
  }, after_ms)
  await gateway.child.exited
  clearTimeout(late)
  return !isLate
}

async function select<T>({ store_url }: BatchPlan, query: string): Promise<T[]> {
  if (store_url.startsWith('sqlite:')) {
    const database = new Database(store_url.slice('sqlite:'.length))
    const rows = database.query(query).all() as T[]
    database.close()
    return rows
  }
  const client = new Client({ connectionString: store_url })
  await client.connect()
  const { rows } = await client.query(query)
  await client.end()
  return rows
}

/** By kind; `given_up`: calls that ended without the usage of a response. */
async function ledgerOf(plan: BatchPlan): Promise<Map<string, number>> {
  const kinds = 'select kind, cast(count(*) as integer) as entries from ledger_entries group by kind'
  const given_up = `select 'given_up' as kind, cast(count(*) as integer) as entries from ledger_entries where kind = 'call' and (estimated > 0 or price is null)`
  const rows = await select<{ kind: string; entries: number }>(plan, `${kinds} union all ${given_up}`)
  return new Map(rows.map(({ kind, entries }) => [kind, entries]))
}

/** How often the ledger has each call, without those that it has reversed. */
async function entriesOf(plan: BatchPlan): Promise<Map<string, number>> {
  const net = "cast(sum(case kind when 'reversal' then -1 else 1 end) as integer)"
  const rows = await select<{ call_id: string; entries: number }>(
    plan,
    `select call_id, ${net} as entries from ledger_entries group by call_id`,
  )
  return new Map(rows.map(({ call_id, entries }) => [call_id, entries]))
}

/** Whether no batch is left of which a process could be killed. */
const hasEnded = async (plan: BatchPlan): Promise<boolean> =>
  (await select(plan, "select batch_id from batches where status <> 'completed'")).length === 0

/** Runs the batches to their end, and compares lines, calls of the vendor and ledger. */
async function reconcile(plan: BatchPlan, { mode, vendor, count }: { mode: Mode; vendor: Vendor; count: number }) {
  const gateway = await startProcess(plan)
  const batches = await waitForAll(gateway)
  // Those of processes that have ended are recorded once their leases have.
  while ((await select(plan, 'select * from open_calls limit 1')).length > 0) await Bun.sleep(100)
  const all: ResultLine[] = []
  let [again, unknown] = [0, 0]
  for (const batch of batches) {
    const { name } = batch.metadata
    const lines = await linesOf(gateway, batch)
    const ids = Array.from({ length: count }, (_, at) => `${name}-${at}`)
    expect(lines.map(({ custom_id }) => custom_id).sort()).toEqual(ids.sort())
    for (const line of lines) {
      const calls = vendor.calls.get(line.custom_id) ?? 0
      all.push(line)
      if (line.called_again) again++
      if (line.error?.code === 'outcome_unknown') unknown++
      if (mode === 'once') {
        expect(line.called_again).toBeUndefined()
        if (line.error) expect([line.error.code, calls <= 1]).toEqual(['outcome_unknown', true])
        else expect([line.custom_id, calls]).toEqual([line.custom_id, 1])
      } else if (mode === 'native') {
        expect([line.custom_id, line.response?.status_code, calls]).toEqual([line.custom_id, 200, 1])
      } else {
        // A second call is always marked. A marked line may have been called once: the process died right before.
        const isMarked = calls === 1 || line.called_again === true
        expect([line.custom_id, line.response?.status_code, calls >= 1, isMarked]).toEqual([
          line.custom_id,
          200,
          true,
          true,
        ])
      }
    }
  }
  gateway.child.kill('SIGTERM')
  await gateway.child.exited
  const entries = await entriesOf(plan)
  for (const { id, custom_id, called_again, error } of all) {
    const [calls, charged] = [vendor.calls.get(custom_id) ?? 0, entries.get(id) ?? 0]
    // Whether a call was sent that was open when its process died is not known: the ledger has it.
    const isOpen = called_again ?? error?.code === 'outcome_unknown'
    expect([id, charged >= calls, isOpen || charged === calls]).toEqual([id, true, true])
  }
  const kinds = await ledgerOf(plan)
  const of = (kind: string) => kinds.get(kind) ?? 0
  const called = [...vendor.calls.values()].reduce((sum, calls) => sum + calls, 0)
  const net = of('call') + of('interrupted') - of('reversal')
  const found = { mode, batches: batches.length, lines: count, called, ...Object.fromEntries(kinds), again, unknown }
  process.stderr.write(`${JSON.stringify(found)}\n`)
  if (mode === 'native') expect([net, vendor.created()]).toEqual([called, batches.length])
  // A call that was open when its process died, or lost its batch to another one, is recorded whether or not it was sent.
  expect(net).toBeGreaterThanOrEqual(called)
  expect(net - called).toBeLessThanOrEqual(of('interrupted') + of('given_up'))
  return batches.length
}

const isOfMode = (mode: Mode) => (point: BatchCrashPoint) =>
  point.startsWith(mode === 'native' ? 'batch: line ' : 'batch: order ') === false

const EACH_MILLISECONDS = 20_000

test.each<[Mode, Engine]>([
  ['called again', 'sqlite'],
  ['once', 'postgres'],
  ['native', 'sqlite'],
  ['native', 'postgres'],
])(
  'after kills at every point, each line has one result, as provider and ledger say (%s, %s)',
  async (mode, engine) => {
    const vendor = vendorOf(mode)
    const plan = await planFor(mode, engine, vendor)
    const points = BATCH_CRASH_POINTS.filter(isOfMode(mode))
    let killed = 0
    for (let kill = 0; kill < KILLS / 4; kill++) {
      const point = points[(kill * 5 + (mode === 'native' ? 7 : 4)) % points.length] as BatchCrashPoint
      const nth = point.startsWith('batch: line ') ? 1 + ((kill * 7) % LINES) : 1
      const gateway = await startProcess({ ...plan, kill: { point, nth } })
      await submit(gateway, `kill-${kill}`, mode === 'once').catch(() => {})
      if (await died(gateway)) killed++
    }
    const batches = await reconcile(plan, { mode, vendor, count: LINES })
    expect(batches).toBeGreaterThanOrEqual(Math.floor(KILLS / 4) - killed)
    await vendor.stop()
  },
  KILLS * EACH_MILLISECONDS + 120_000,
)

const OF_ONE: readonly BatchCrashPoint[] = ['batch: line answered', 'batch: line stored', 'batch: line started']
const OF_PARTS: readonly BatchCrashPoint[] = ['batch: part written', 'batch: part noted']
const LONGEST_MILLISECONDS = 400

/** Each fifth process is killed at some time after it has begun to run, each twentieth while it moves results. */
function killOf(kill: number, random: () => number): { point?: BatchCrashPoint; after_ms?: number } {
  if (kill % 5 === 4) return { after_ms: random() * LONGEST_MILLISECONDS }
  const points = kill % 20 === 10 ? OF_PARTS : OF_ONE
  return { point: points[Math.floor(random() * points.length)] as BatchCrashPoint }
}

test.each<[Mode, Engine]>([
  ['called again', 'sqlite'],
  ['once', 'sqlite'],
  ['called again', 'postgres'],
])(
  'one batch ends with one result for each line, however often its process is killed (%s, %s)',
  async (mode, engine) => {
    const vendor = vendorOf(mode, ANSWER_BYTES)
    const plan = { ...(await planFor(mode, engine, vendor)), concurrency: mode === 'once' ? 1 : 8 }
    const nth = Math.max(1, Math.floor((MANY_LINES * 0.9) / KILLS))
    const random = randomFrom(KILLS)
    let [killed, submitted, isOver] = [0, 0, true]
    const start = performance.now()
    for (let kill = 0; kill < KILLS; kill++) {
      const { point, after_ms } = killOf(kill, random)
      const gateway = await startProcess({
        ...plan,
        ...(point && { kill: { point, nth: OF_PARTS.includes(point) ? 1 : nth } }),
      })
      if (isOver) await submit(gateway, `many-${submitted++}`, mode === 'once', MANY_LINES).catch(() => {})
      if (await died(gateway, after_ms)) killed++
      isOver = await hasEnded(plan)
    }
    const seconds = Math.round((performance.now() - start) / 1000)
    process.stderr.write(`${killed} of ${KILLS} kills at their point, the others at some time; ${seconds} s\n`)
    expect(await reconcile(plan, { mode, vendor, count: MANY_LINES })).toBeGreaterThanOrEqual(1)
    await vendor.stop()
  },
  KILLS * EACH_MILLISECONDS + 180_000,
)

const FROZEN_AT = 20
const LEASE_MILLISECONDS = 60_000 / SPEED

/** All have completed. A store that is busy is late for a clock that is fast: it is asked again. */
async function listedAgain(gateway: Process): Promise<void> {
  while (
    !(await waitForAll(gateway).then(
      () => true,
      () => false,
    ))
  );
}

test.each<[Mode, Engine]>([
  ['called again', 'postgres'],
  ['once', 'sqlite'],
  ['once', 'postgres'],
  ['native', 'postgres'],
])(
  'a process that is frozen for longer than its leases, and goes on, adds nothing to what another one has done (%s, %s)',
  async (mode, engine) => {
    const vendor = vendorOf(mode)
    const plan = { ...(await planFor(mode, engine, vendor)), concurrency: 8 }
    const first = await startProcess(plan, 0)
    const frozen = Promise.withResolvers<void>()
    const { calls } = vendor
    const set = calls.set.bind(calls)
    // Calls are open then: the provider has received them, and the process cannot read its answers.
    calls.set = (text, count) => {
      if (calls.size === FROZEN_AT) {
        first.child.kill('SIGSTOP')
        frozen.resolve()
      }
      return set(text, count)
    }
    await submit(first, 'frozen', mode === 'once')
    await frozen.promise
    const second = await startProcess(plan, 0)
    // With SQLite it may be frozen with the lock of the file, for which the other one waits.
    await Promise.race([listedAgain(second), Bun.sleep(5 * LEASE_MILLISECONDS)])
    first.child.kill('SIGCONT')
    await Promise.all([first, second].map(listedAgain))
    for (const { child } of [first, second]) {
      child.kill('SIGTERM')
      await child.exited
    }
    expect(await reconcile(plan, { mode, vendor, count: LINES })).toBe(1)
    await vendor.stop()
  },
  300_000,
)
