/** The render jobs of the sandbox: waiting, running, finished, and deleted after a while. */
import type { Clock } from '../../../src/kit/clock.ts'
import type { StoredOrder } from './order-directives.ts'
import type { Plan, RenderWorkers } from './render/workers.ts'
import type { TemporaryFiles } from './temporary-files.ts'

export type Job<Operation> = {
  operation: Operation
  state: 'waiting' | 'running' | 'done' | 'failed' | 'canceled'
  /** How much is done, from 0 to 1. */
  share: number
  /** The first file of a finished job; its other files are in the same directory. */
  path: string | undefined
  /** Why the job failed. */
  reason: string
  /** How often its status was requested. */
  polls: number
  /** Resolves when the job has ended, successfully or not. */
  settled: Promise<void>
}

/** What to render for an operation, in how many steps, and the name of its first file. */
type Work = { plan: Plan; steps: number; name: string }

export type JobsParts<Operation> = {
  clock: Clock
  files: TemporaryFiles
  renderWorkers: RenderWorkers
  max_waiting?: number | undefined
  workOf(operation: Operation): Work
}

/** A small machine needs an hour for so many; a later order would miss its deadline. */
const MAX_WAITING = 1000
/** Long enough to poll and download; then the files are deleted. A later poll renders the same files again. */
const RETENTION_MILLISECONDS = 10 * 60_000

type JobEntry<Operation> = { job: Job<Operation>; stop: AbortController; cancelForget: () => void }

export function createJobs<Operation extends StoredOrder>(parts: JobsParts<Operation>) {
  const { clock, files, renderWorkers, max_waiting = MAX_WAITING, workOf } = parts
  const jobs = new Map<string, JobEntry<Operation>>()
  let isClosed = false

  async function render(job: Job<Operation>, signal: AbortSignal): Promise<void> {
    const { plan, steps, name } = workOf(job.operation)
    const path = await files.reserve(name)
    try {
      const onStart = () => {
        job.state = 'running'
      }
      const onFrame = (frames: number) => {
        job.share = frames / steps
      }
      await renderWorkers.render({ plan, path, owner: job.operation.owner, onStart, onFrame }, signal)
      job.path = path
      job.state = 'done'
    } catch (error) {
      await files.remove(path)
      throw error
    }
  }

  function start(operation: Operation): JobEntry<Operation> {
    const stop = new AbortController()
    const settled = Promise.withResolvers<void>()
    const job: Job<Operation> = {
      operation,
      state: operation.course.hang ? 'running' : 'waiting',
      share: 0,
      path: undefined,
      reason: '',
      polls: 0,
      settled: settled.promise,
    }
    if (!operation.course.hang) {
      render(job, stop.signal)
        .catch((error: unknown) => {
          if (job.state === 'canceled') return
          job.state = 'failed'
          job.reason = error instanceof Error ? error.message : String(error)
        })
        .finally(() => settled.resolve())
    }
    const entry: JobEntry<Operation> = { job, stop, cancelForget: () => {} }
    jobs.set(operation.id, entry)
    return entry
  }

  function extendRetention(entry: JobEntry<Operation>): void {
    entry.cancelForget()
    entry.cancelForget = clock.after(RETENTION_MILLISECONDS, () => {
      const { job } = entry
      const isBusy = job.state === 'waiting' || (job.state === 'running' && !job.operation.course.hang)
      if (isBusy) return extendRetention(entry)
      jobs.delete(job.operation.id)
      if (job.path) void files.remove(job.path)
    })
  }

  /** One owner may use half of the queue. */
  const isFull = ({ owner }: Operation) =>
    renderWorkers.waiting() >= max_waiting || (owner !== undefined && renderWorkers.waiting(owner) >= max_waiting / 2)

  return {
    has: (id: string) => jobs.has(id),
    /** The job of the operation; starts it if there is none. Undefined: too many jobs are waiting. */
    getOrStart(operation: Operation): Job<Operation> | undefined {
      const known = jobs.get(operation.id)
      if (!known && (isClosed || isFull(operation))) return undefined
      const entry = known ?? start(operation)
      extendRetention(entry)
      return entry.job
    },
    cancel(job: Job<Operation>) {
      job.state = 'canceled'
      jobs.get(job.operation.id)?.stop.abort(new Error('canceled'))
      if (job.path) void files.remove(job.path)
    },
    async close() {
      isClosed = true
      for (const { cancelForget } of jobs.values()) cancelForget()
      renderWorkers.close()
      await Promise.all([...jobs.values()].map(({ job }) => (job.operation.course.hang ? undefined : job.settled)))
      jobs.clear()
      await files.close()
    },
  }
}
