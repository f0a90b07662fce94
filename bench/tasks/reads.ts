/** Status reads with few and with many tasks stored: the time of one must not grow with their number. */
import { Database } from 'bun:sqlite'
import { percentile } from '../figures.ts'
import { cpuSeconds, endGroup } from '../processes.ts'
import { type GatewaySetup, get, startTestGateway, startVendor, submit } from './gateway.ts'
import type { Figure, TaskBench } from './run.ts'

const FEW = 1_000
const CONNECTIONS = 8

export async function measureReads({ dir, plan, progress }: TaskBench): Promise<Figure[]> {
  const vendor = await startVendor(dir, [600, 600], 30)
  const options = { vendor: vendor.url, concurrency: 1 }
  try {
    const few = await measureWith({ dir, options, name: 'few', stored: FEW, plan, progress })
    const many = await measureWith({ dir, options, name: 'many', stored: plan.stored, plan, progress })
    const both = (what: keyof Measured, name: string, unit: string): Figure[] => [
      { name: `${name}, ${FEW.toLocaleString('en-US')} stored`, value: few[what], unit },
      { name: `${name}, ${plan.stored.toLocaleString('en-US')} stored`, value: many[what], unit },
    ]
    return [
      ...both('reads', 'status reads', '/s'),
      ...both('p99', 'status reads, p99', 'ms'),
      { name: 'status reads, p99: many to few', value: many.p99 / few.p99, unit: '×', goal: 'at most 1.5' },
      ...both('processor', 'status reads, processor', 'ms each'),
      ...both('list_p99', 'a page of 20 of the list, p99', 'ms'),
    ]
  } finally {
    await endGroup(vendor.group)
  }
}

type Measured = { reads: number; p99: number; processor: number; list_p99: number }
type Setting = Pick<TaskBench, 'dir' | 'plan' | 'progress'> & {
  options: { vendor: string; concurrency: number }
  name: string
  stored: number
}

async function measureWith({ dir, options, name, stored, plan, progress }: Setting): Promise<Measured> {
  // The first start makes the tables, and one task to be like.
  const first = await startTestGateway(dir, name, options)
  await submit(first, 0)
  await endGroup(first.group)
  progress(`  storing ${stored.toLocaleString('en-US')} tasks`)
  const task_ids = fill(first.database, stored)
  const gateway = await startTestGateway(dir, name, options)
  try {
    const status = () => `/v1/video/generations/${task_ids[Math.floor(Math.random() * task_ids.length)]}`
    await timed(gateway, status, plan.seconds / 2)
    const used = cpuSeconds(gateway.group)
    const times = await timed(gateway, status, plan.seconds)
    const processor = ((cpuSeconds(gateway.group) - used) * 1000) / times.length
    const lists = await timed(gateway, () => '/v1/video/generations?limit=20', plan.seconds / 2)
    return {
      reads: times.length / plan.seconds,
      p99: percentile(times, 99),
      processor,
      list_p99: percentile(lists, 99),
    }
  } finally {
    await endGroup(gateway.group)
  }
}

async function timed(gateway: GatewaySetup, path: () => string, seconds: number): Promise<number[]> {
  const times: number[] = []
  const end = performance.now() + seconds * 1000
  const hand = async () => {
    while (performance.now() < end) {
      const start = performance.now()
      await get(gateway, path())
      times.push(performance.now() - start)
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, hand))
  return times
}

/** So many ended tasks like the one that is there, of the same token, over the last month. */
function fill(database: string, count: number): string[] {
  const file = new Database(database)
  file.run('pragma synchronous = off')
  const names = file
    .query<{ name: string }, []>("select name from pragma_table_info('tasks')")
    .all()
    .map(({ name }) => name)
  const task_ids = Array.from({ length: count }, (_, index) => `task_${String(index).padStart(32, '0')}`)
  const changed: Record<string, string> = {
    task_id: '?',
    submit_time: '?',
    status: "'SUCCESS'",
    progress: '100',
    finish_time: '?2 + 60',
    due_ms: 'null',
    leased_by: "''",
    outputs_expire_at: 'null',
  }
  const columns = names.map((name) =>
    (changed[name] ?? name).replace('?', name === 'task_id' ? '?1' : '?2').replace('?22', '?2'),
  )
  const insert = file.query(
    `insert into tasks (${names.join(', ')}) select ${columns.join(', ')} from tasks where task_id not like 'task_0000%' limit 1`,
  )
  const now = Math.floor(Date.now() / 1000)
  file.transaction(() => {
    for (const [index, task_id] of task_ids.entries()) insert.run(task_id, now - 60 - (index % 2_600_000))
  })()
  file.run('pragma wal_checkpoint(truncate)')
  file.close()
  return task_ids
}
