/**
 * Gateways are killed at random times under calls of all kinds, while their store is halted now and then: afterwards the
 * ledger adds up, agrees with the provider's own count, and no budget and no rate limit was exceeded.
 *
 * `GATEHOUSE_KILLS=300` kills more often, and prints the counts; `GATEHOUSE_SEED` changes the calls and the times.
 */
import { describe, expect, it } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LedgerEntry } from '../src/store/ledger/ledger-entry.ts'
import { openStore } from '../src/store/open-store.ts'
import {
  CONCURRENT_REQUESTS,
  gatehouse,
  type KillResult,
  type KillRun,
  killRun,
  lockDatabase,
  type SentCall,
} from './kit/kill-run.ts'
import { FILM, TASK_PRICES } from './kit/kill-tasks.ts'
import { startPostgres } from './kit/postgres.ts'

const IS_LONG = process.env.GATEHOUSE_KILLS !== undefined
const KILLS = Number(process.env.GATEHOUSE_KILLS ?? 12)
const SEED = Number(process.env.GATEHOUSE_SEED ?? 1)
/** Each of the four runs has its part of the kills. */
const KILLS_OF_RUN = Math.ceil(KILLS / 4)
const NANO = 1_000_000_000
/** Per minute, of one token, and of the project of two tokens. */
const LIMITS = { token: 60, project: 100 }
/** Output tokens per minute, of one token. */
const METERED = 600
/** Units of the currency: tokens of output. A run of some seconds uses them up. */
const BUDGETS = { token: 40 * KILLS_OF_RUN, project: 60 * KILLS_OF_RUN }
/** The longest time between admission and arrival at the provider. */
const MAX_TRANSIT_MS = 5_000
/**
 * A complete response is recorded before its end is sent; the end of a stream may reach its client just before that, and a
 * process may be halted in between on a machine under load.
 */
const STREAM_LOSS_MS = 100
const FAR_FUTURE = 3_999_999_000_000
const EVERYTHING = { from: 0, to: 4_000_000_000 }

/** Tokens by the limits that they have; the provider's count is compared for all of them. */
async function createTokens(environment: Record<string, string>): Promise<Record<string, string>> {
  const create = async (name: string, ...flags: string[]) => {
    const { secret } = await gatehouse(['token', 'create', '--name', name, ...flags], environment)
    return secret as string
  }
  await gatehouse(['project', 'create', 'limited', '--limit', `requests_per_minute=${LIMITS.project}`], environment)
  await gatehouse(['project', 'create', 'paid', '--budget', `${BUDGETS.project}/total`], environment)
  return {
    plain: await create('plain'),
    limited: await create('limited', '--project', 'limited', '--limit', `requests_per_minute=${LIMITS.token}`),
    limited_too: await create('limited_too', '--project', 'limited'),
    paid: await create('paid', '--project', 'paid', '--budget', `${BUDGETS.token}/total`),
    paid_too: await create('paid_too', '--project', 'paid'),
    metered: await create('metered', '--limit', `output_tokens_per_minute=${METERED}`),
    parallel: await create('parallel', '--limit', `concurrent_requests=${CONCURRENT_REQUESTS}`),
  }
}

type Compared = { call: SentCall; entries: LedgerEntry[] }

async function run(settings: Omit<KillRun, 'kills' | 'seed'>) {
  const { calls, tasks, orders, admitted, environment } = await killRun(
    { ...settings, kills: KILLS_OF_RUN, seed: SEED },
    createTokens,
  )
  const store = await openStore({
    url: settings.database_url ?? `sqlite:${environment.GATEHOUSE_DATA_DIR}/gatehouse.db`,
  })
  const compared: Compared[] = []
  const faults: string[] = []
  try {
    while ((await store.ledger.interruptLapsed(FAR_FUTURE)) > 0); // as a later process does once their leases have lapsed
    for (const call of calls) compared.push({ call, entries: await store.ledger.ofCall(call.request_id) })
    for (const { task_id, kind } of tasks)
      if (task_id !== undefined) faults.push(...taskFaults(kind, await store.ledger.ofCall(task_id)))
    const { rows } = await store.ledger.usage({ by: ['model'], ...EVERYTHING })
    const { tasks: unfinished } = await gatehouse(['task', 'list', '--status', 'unfinished'], environment)
    if ((unfinished as unknown[]).length > 0) faults.push(`unfinished tasks: ${JSON.stringify(unfinished)}`)
    const failed = await store.tasks.list({ statuses: ['FAILURE'], limit: 10_000 })
    const inDoubt = failed.filter(({ model, fail_code }) => model === FILM && fail_code === 'submit_outcome_unknown')
    const charged = rows.find(({ model }) => model === FILM)?.amount ?? 0n
    faults.push(
      ...orderFaults(orders, {
        charged: Number(charged) / NANO,
        in_doubt: inDoubt.length,
        failures: failed
          .filter(({ model }) => model === FILM)
          .map(({ fail_code }) => fail_code)
          .join(' '),
      }),
    )
    expect(await store.ledger.differences(EVERYTHING)).toEqual([])
  } finally {
    await store.close()
  }
  const reconciled = await gatehouse(['ledger', 'reconcile'], environment)
  return { compared, tasks, orders, admitted, faults, reconciled }
}

/** A task has one entry, and more only where it was taken back in between. */
function taskFaults(kind: keyof typeof TASK_PRICES, entries: readonly LedgerEntry[]): string[] {
  const tasks = entries.filter((entry) => entry.kind === 'task' || entry.kind === 'reversal')
  const requests = tasks.reduce((sum, entry) => sum + entry.requests, 0)
  const amount = tasks.reduce((sum, entry) => sum + (entry.amount ?? 0), 0) / NANO
  const has_failed = tasks.some(({ errors }) => errors > 0)
  const isRight = requests === 1 && amount === (has_failed ? 0 : TASK_PRICES[kind])
  return isRight ? [] : [`a task (${kind}) has ${requests} requests and is charged ${amount}: ${JSON.stringify(tasks)}`]
}

/** Each order is charged once. One in doubt, whose task has failed, is not charged, but its cost is unknown. */
function orderFaults(
  orders: KillResult['orders'],
  { charged, in_doubt, failures }: { charged: number; in_doubt: number; failures: string },
): string[] {
  const prompts = new Set(orders.map(({ prompt }) => prompt))
  const due = orders.filter(({ end }) => end === 'completed').length * TASK_PRICES.video
  const twice = prompts.size < orders.length ? [`${orders.length} orders for ${prompts.size} videos`] : []
  if (charged <= due && charged >= due - in_doubt * TASK_PRICES.video) return twice
  return [...twice, `videos: charged ${charged}, ordered ${due}, in doubt ${in_doubt}, failed ${failures}`]
}

const asked = ({ call }: Compared) => call.received_ms !== undefined
const isMissing = (one: Compared) => asked(one) && one.entries.length === 0
const amountOf = ({ entries }: Compared) => entries.reduce((sum, { amount }) => sum + (amount ?? 0), 0)
const isMeasured = ({ entries }: Compared) => entries.every(({ kind, estimated }) => kind === 'call' && estimated === 0)

/** What is wrong with the entries of a call, in words; undefined: nothing. */
function faultOf(one: Compared): string | undefined {
  const { call, entries } = one
  const name = `${call.request_id} (${call.kind}, ${call.status}): `
  const requests = entries.reduce((sum, { requests }) => sum + requests, 0)
  if (entries.length > 0 && requests !== 1) return `${name}${requests} requests in the ledger`
  if (entries.length > 0 && isMeasured(one) && amountOf(one) !== call.generated * NANO && call.kind !== 'cut')
    return `${name}charged ${amountOf(one) / NANO}, generated ${call.generated}`
  const is_interrupted = entries.some(({ kind }) => kind === 'interrupted')
  if (is_interrupted && amountOf(one) < call.generated * NANO)
    return `${name}interrupted with ${amountOf(one) / NANO}, generated ${call.generated}`
  if (is_interrupted && call.process.killed_ms === undefined) return `${name}interrupted, its process was not killed`
  // The last bytes of a stream are sent before its end, which waits until it is recorded.
  const isAtEnd = call.kind === 'stream' && ageOf(one) <= STREAM_LOSS_MS
  if (call.is_complete && entries.length > 0 && !isMeasured(one) && !isAtEnd)
    return `${name}complete, but estimated, ${ageOf(one)} ms before a kill: ${JSON.stringify(entries)}`
  return undefined
}

/** What the provider received in the most crowded window; shorter than the limit's by the time that a call is under way. */
function mostInWindow(calls: readonly SentCall[], weightOf: (call: SentCall) => number = () => 1): number {
  const received = calls
    .flatMap((call) => (call.received_ms === undefined ? [] : [{ at: call.received_ms, weight: weightOf(call) }]))
    .sort((a, b) => a.at - b.at)
  let most = 0
  let sum = 0
  let first = 0
  for (const { at, weight } of received) {
    sum += weight
    for (let oldest = received[first]; oldest && at - oldest.at > 60_000 - MAX_TRANSIT_MS; oldest = received[++first])
      sum -= oldest.weight
    most = Math.max(most, sum)
  }
  return most
}

/** A client that has left does not know when its call ended. For how long before its process was killed a lost call had ended, in milliseconds; 0: it was open. */
const ageOf = ({ call }: Compared) => Math.max(0, (call.process.killed_ms ?? Number.POSITIVE_INFINITY) - call.ended_ms)

const STORES = {
  'on one SQLite file': (directory: string) => ({
    halt: () => lockDatabase(join(directory, 'data', 'gatehouse.db')),
  }),
  'on one PostgreSQL': async () => {
    const postgres = await startPostgres()
    return { database_url: await postgres.createDatabase(), halt: postgres.freeze }
  },
}

describe.each(Object.entries(STORES))('four gateways %s that are killed under load', (where, newStore) => {
  const MODES = [
    ['with a durable ledger lose no call', true],
    ['lose no call of a normal ledger that had ended', false],
  ] as const
  it.each(MODES)(
    '%s, and exceed no limit and no budget',
    async (_, durable) => {
      const directory = mkdtempSync(join(tmpdir(), 'gatehouse-kills-'))
      /** The counts, if an expectation below fails. */
      let shown = ''
      try {
        const {
          compared,
          tasks,
          orders,
          admitted,
          faults: found,
          reconciled,
        } = await run({ directory, durable, ...(await newStore(directory)) })
        const missing = compared.filter(isMissing)
        const of = (...names: string[]) => compared.filter(({ call }) => names.includes(call.token))
        const callsOf = (...names: string[]) => of(...names).map(({ call }) => call)
        const chargedTo = (...names: string[]) => of(...names).reduce((sum, one) => sum + amountOf(one), 0) / NANO
        /** The provider's count; of a stream that broke off, what could be known of it. */
        const generatedFor = (...names: string[]) =>
          of(...names).reduce(
            (sum, one) =>
              sum + (one.entries.length > 0 && !isMeasured(one) ? amountOf(one) / NANO : one.call.generated),
            0,
          )
        const lost_tokens = (...names: string[]) =>
          of(...names)
            .filter(isMissing)
            .reduce((sum, { call }) => sum + call.generated, 0)
        const counts = {
          seed: SEED,
          kills: KILLS_OF_RUN,
          calls: compared.length,
          asked: compared.filter(asked).length,
          complete: compared.filter(({ call }) => call.is_complete).length,
          recorded: compared.filter(({ entries }) => entries.length > 0).length,
          interrupted: compared.filter(({ entries }) => entries.some(({ kind }) => kind === 'interrupted')).length,
          missing: missing.length,
          missing_complete: missing
            .filter(({ call }) => call.is_complete)
            .map((one) => `${one.call.kind} ${ageOf(one)}`),
          tasks: tasks.length,
          orders: orders.length,
          admitted,
          metered: mostInWindow(callsOf('metered'), ({ generated }) => generated),
          metered_whole: mostInWindow(
            callsOf('metered').filter(({ kind }) => kind !== 'aborted' && kind !== 'cut'),
            ({ generated }) => generated,
          ),
          per_minute: [mostInWindow(callsOf('limited')), mostInWindow(callsOf('limited', 'limited_too'))],
          charged: [chargedTo('paid'), chargedTo('paid', 'paid_too')],
          generated: [generatedFor('paid'), generatedFor('paid', 'paid_too')],
          budgets: [BUDGETS.token, BUDGETS.project],
          difference: reconciled.difference,
        }
        const text = `${where}, durable ${durable}: ${JSON.stringify(counts)}\n`
        if (IS_LONG) process.stderr.write(text)
        else shown = text
        const faults = [...found, ...compared.flatMap((one) => faultOf(one) ?? [])]
        expect(faults).toEqual([])
        expect(reconciled.difference).toBe(0)
        expect(counts.complete).toBeGreaterThan(5 * KILLS_OF_RUN)
        if (durable) {
          expect(missing.map(({ call }) => call)).toEqual([])
          expect(counts.interrupted).toBeGreaterThan(0) // the kills hit open calls
        } else {
          expect(counts.interrupted).toBe(0)
          const isLost = (one: Compared) =>
            one.call.is_complete && !(one.call.kind === 'stream' && ageOf(one) <= STREAM_LOSS_MS)
          expect(missing.filter(isLost).map(({ call }) => call)).toEqual([])
        }
        expect(admitted).toBe(CONCURRENT_REQUESTS) // killed processes hold nothing any more
        expect(orders.length).toBeGreaterThan(0)
        // Of calls that their client or their provider has cut off, nobody tells the gateway how much was generated.
        expect(counts.metered_whole).toBeLessThanOrEqual(METERED * 1.01)
        expect(mostInWindow(callsOf('limited'))).toBeLessThanOrEqual(LIMITS.token * 1.01)
        expect(mostInWindow(callsOf('limited', 'limited_too'))).toBeLessThanOrEqual(LIMITS.project * 1.01)
        expect(chargedTo('paid')).toBeLessThanOrEqual(BUDGETS.token)
        expect(chargedTo('paid', 'paid_too')).toBeLessThanOrEqual(BUDGETS.project)
        expect(generatedFor('paid')).toBeLessThanOrEqual(BUDGETS.token + lost_tokens('paid'))
        expect(generatedFor('paid', 'paid_too')).toBeLessThanOrEqual(BUDGETS.project + lost_tokens('paid', 'paid_too'))
        shown = ''
      } finally {
        process.stderr.write(shown)
        rmSync(directory, { recursive: true, force: true })
      }
    },
    240_000 + KILLS_OF_RUN * 30_000,
  )
})
