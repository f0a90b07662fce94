/** Many tasks in flight at once: how soon a finished one can be seen, and what following them all costs. */
import { Database } from 'bun:sqlite'
import { percentile } from '../figures.ts'
import { cpuSeconds, endGroup, residentBytes } from '../processes.ts'
import { startTestGateway, startVendor, submit } from './gateway.ts'
import type { Figure, TaskBench } from './run.ts'

const MIB = 1024 * 1024
/** As a vendor is: a film takes one to two minutes, an answer 30 ms. */
const FILM_SECONDS: [number, number] = [60, 120]
const LATENCY_MILLISECONDS = 30
/** Steps at a time: 2,500 answers of 30 ms a second want 75. */
const CONCURRENCY = 256
/** How often the rows are looked at, from outside, so that no question of a client hastens a task. */
const LOOK_MILLISECONDS = 100
const TASK_ID_LENGTH = 'task_'.length + 32

export async function measureInFlight({ dir, plan, progress }: TaskBench): Promise<Figure[]> {
  const vendor = await startVendor(dir, FILM_SECONDS, LATENCY_MILLISECONDS)
  const gateway = await startTestGateway(dir, 'in-flight', { vendor: vendor.url, concurrency: CONCURRENCY })
  try {
    const before = residentBytes(gateway.group)
    let next = 0
    const hand = async () => {
      while (next < plan.in_flight) await submit(gateway, next++)
    }
    await Promise.all(Array.from({ length: 32 }, hand))
    const orders = () => ledgerOf(vendor.url)
    while ((await orders()).orders.length < plan.in_flight) await Bun.sleep(LOOK_MILLISECONDS)
    // All are ordered and none is done: what following them costs by itself.
    const [from, used, asked] = [performance.now(), cpuSeconds(gateway.group), (await orders()).polls]
    let most = 0
    for (let look = 0; look < 100; look++) {
      await Bun.sleep(LOOK_MILLISECONDS)
      most = Math.max(most, residentBytes(gateway.group))
    }
    const seconds = (performance.now() - from) / 1000
    const share = (cpuSeconds(gateway.group) - used) / seconds
    const polls = ((await orders()).polls - asked) / seconds
    progress(`  ${plan.in_flight} in flight; waiting for their ends`)
    const late = await latenesses(gateway.database, orders, plan.in_flight)
    const name = `${plan.in_flight.toLocaleString('en-US')} tasks in flight`
    return [
      { name: `${name}: done until visible, p50`, value: percentile(late, 50), unit: 'ms' },
      {
        name: `${name}: done until visible, p99`,
        value: percentile(late, 99),
        unit: 'ms',
        goal: 'one poll interval, 4,000 to 6,000',
      },
      { name: `${name}: questions to the vendor`, value: polls, unit: '/s' },
      { name: `${name}: of one core`, value: share * 100, unit: '%' },
      { name: `${name}: memory of each`, value: (most - before) / plan.in_flight / 1024, unit: 'KiB' },
      { name: `${name}: resident at most`, value: most / MIB, unit: 'MiB' },
    ]
  } finally {
    await endGroup(gateway.group)
    await endGroup(vendor.group)
  }
}

type Ledger = { polls: number; orders: [key: string, done_ms: number][] }

async function ledgerOf(vendor: string): Promise<Ledger> {
  return (await fetch(`${vendor}/ledger`)).json() as Promise<Ledger>
}

/** For each task, milliseconds from the vendor's being done to the row's saying so. */
async function latenesses(database: string, ledger: () => Promise<Ledger>, count: number): Promise<number[]> {
  const file = new Database(database, { readonly: true })
  const ended = file.query<{ task_id: string }, [number]>(
    "select task_id from tasks where finish_time >= ? and status = 'SUCCESS'",
  )
  const seen = new Map<string, number>()
  while (seen.size < count) {
    await Bun.sleep(LOOK_MILLISECONDS)
    const now = Date.now()
    for (const { task_id } of ended.all(Math.floor(now / 1000) - 3)) if (!seen.has(task_id)) seen.set(task_id, now)
  }
  file.close()
  const { orders } = await ledger()
  return orders.map(([key, done_ms]) => (seen.get(key.slice(0, TASK_ID_LENGTH)) ?? Number.POSITIVE_INFINITY) - done_ms)
}
