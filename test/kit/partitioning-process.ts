/** Partitions the request log, and is killed before a step. */
import { type PartitionStep, partitionRequests } from '../../src/store/engines/postgres-partition.ts'

const [url = '', now_ms, killed_at] = process.argv.slice(2) as [string, string, PartitionStep | undefined]
await partitionRequests(url, {
  now_ms: Number(now_ms),
  onStep(step) {
    if (step === killed_at) process.kill(process.pid, 'SIGKILL')
  },
})
