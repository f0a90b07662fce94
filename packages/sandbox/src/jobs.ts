/** The orders that the sandbox has in hand: waiting, being rendered, finished for a while, then forgotten. */
import type { Clock } from '../../../src/kit/clock.ts'
import type { Ordered } from './order-directives.ts'
import type { Plan, RenderWorkers } from './render/workers.ts'
import type { GeneratedFiles } from './temporary-files.ts'

export type Job<Operation> = {
  operation: Operation
  state: 'waiting' | 'running' | 'done' | 'failed' | 'canceled'
  /** From 0 to 1: the share that is done. */
  share: number
  /** Of what is done: the first file; what else was made lies beside it. */
  path: string | undefined
  /** Of what has failed. */
  reason: string
  /** How often was asked about it. */
  questions: number
  /** Resolves when it is over, however it went. */
  settled: Promise<void>
}

export type Jobs<Operation> = {
  /** The job of the operation, which begins unless it is known. Undefined: too many are waiting. */
  take(operation: Operation): Job<Operation> | undefined
  /** Whether the job was known before. */
  has(id: string): boolean
  cancel(job: Job<Operation>): void
  close(): Promise<void>
}

/** What is rendered for an operation: in so many pieces, under this name. */
type Work = { plan: Plan; pieces: number; name: string }

type JobsParts<Operation> = {
  clock: Clock
  files: GeneratedFiles
  renderWorkers: RenderWorkers
  most_waiting?: number | undefined
  workOf(operation: Operation): Work
}

/** An hour of a small machine's work: what comes after it would not be done by its deadline. */
const MOST_WAITING = 1000
/** Long enough to be asked about and fetched; then the file goes. Asked again, the same is rendered anew. */
const KEEP_MILLISECONDS = 10 * 60_000

type Kept<Operation> = { job: Job<Operation>; stop: AbortController; cancelForget: () => void }

export function createJobs<Operation extends Ordered>(parts: JobsParts<Operation>): Jobs<Operation> {
  const { clock, files, renderWorkers, most_waiting = MOST_WAITING, workOf } = parts
  const jobs = new Map<string, Kept<Operation>>()
  let isClosed = false

  async function work(job: Job<Operation>, signal: AbortSignal): Promise<void> {
    const { plan, pieces, name } = workOf(job.operation)
    const path = await files.reserve(name)
    try {
      const onStart = () => {
        job.state = 'running'
      }
      const onFrame = (frames: number) => {
        job.share = frames / pieces
      }
      await renderWorkers.render({ plan, path, onStart, onFrame }, signal)
      job.path = path
      job.state = 'done'
    } catch (error) {
      await files.remove(path)
      throw error
    }
  }

  function begin(operation: Operation): Kept<Operation> {
    const stop = new AbortController()
    const settled = Promise.withResolvers<void>()
    const job: Job<Operation> = {
      operation,
      state: operation.course.hang ? 'running' : 'waiting',
      share: 0,
      path: undefined,
      reason: '',
      questions: 0,
      settled: settled.promise,
    }
    if (!operation.course.hang) {
      work(job, stop.signal)
        .catch((error: unknown) => {
          if (job.state === 'canceled') return
          job.state = 'failed'
          job.reason = error instanceof Error ? error.message : String(error)
        })
        .finally(() => settled.resolve())
    }
    const kept: Kept<Operation> = { job, stop, cancelForget: () => {} }
    jobs.set(operation.id, kept)
    return kept
  }

  function remember(kept: Kept<Operation>): void {
    kept.cancelForget()
    kept.cancelForget = clock.after(KEEP_MILLISECONDS, () => {
      const { job } = kept
      const isBusy = job.state === 'waiting' || (job.state === 'running' && !job.operation.course.hang)
      if (isBusy) return remember(kept)
      jobs.delete(job.operation.id)
      if (job.path) void files.remove(job.path)
    })
  }

  return {
    has: (id) => jobs.has(id),
    take(operation) {
      const known = jobs.get(operation.id)
      if (!known && (isClosed || renderWorkers.waiting() >= most_waiting)) return undefined
      const kept = known ?? begin(operation)
      remember(kept)
      return kept.job
    },
    cancel(job) {
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
