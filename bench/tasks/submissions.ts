/** Orders a second, each durable before it is answered, beside what the disk can do. */
import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { percentile } from '../figures.ts'
import { cpuSeconds, endGroup } from '../processes.ts'
import { startTestGateway, startVendor, submit } from './gateway.ts'
import type { Figure, TaskBench } from './run.ts'

const CONNECTIONS = [1, 16, 64, 256]

export async function measureSubmissions({ dir, plan }: TaskBench): Promise<Figure[]> {
  const figures: Figure[] = [
    { name: 'one row, one commit, as the disk has it', value: commitsASecond(dir, plan.seconds), unit: '/s' },
  ]
  // Nothing is ordered meanwhile but one at a time: what is measured is the taking on.
  const vendor = await startVendor(dir, [600, 600], 30)
  const gateway = await startTestGateway(dir, 'submissions', { vendor: vendor.url, concurrency: 1 })
  try {
    await submit(gateway, 0)
    for (const connections of CONNECTIONS) {
      const times: number[] = []
      const [from, used] = [performance.now(), cpuSeconds(gateway.group)]
      const end = from + plan.seconds * 1000
      const hand = async () => {
        while (performance.now() < end) {
          const start = performance.now()
          await submit(gateway, times.length)
          times.push(performance.now() - start)
        }
      }
      await Promise.all(Array.from({ length: connections }, hand))
      const seconds = (performance.now() - from) / 1000
      const name = `orders over ${connections} connection${connections === 1 ? '' : 's'}`
      figures.push({ name, value: times.length / seconds, unit: '/s' })
      figures.push({ name: `${name}, p99`, value: percentile(times, 99), unit: 'ms' })
      figures.push({
        name: `${name}, processor`,
        value: ((cpuSeconds(gateway.group) - used) * 1000) / times.length,
        unit: 'ms each',
      })
    }
    return figures
  } finally {
    await endGroup(gateway.group)
    await endGroup(vendor.group)
  }
}

/** How many transactions of one small row a second the disk makes durable, by the same SQLite with the same settings. */
function commitsASecond(dir: string, seconds: number): number {
  const file = new Database(join(dir, 'floor.db'))
  file.run('pragma journal_mode = wal')
  file.run('pragma synchronous = full')
  file.run('create table rows (text text)')
  const insert = file.query('insert into rows values (?)')
  const end = performance.now() + seconds * 1000
  let count = 0
  for (; performance.now() < end; count++) insert.run('x'.repeat(500))
  file.close()
  return count / seconds
}
