/** The videos that the sandbox has in hand: waiting, being rendered, finished for a while, then forgotten. */
import type { Clock } from '../../kit/clock.ts'
import { type Crew, createCrew } from './render/crew.ts'
import { planRender } from './render/plan.ts'
import type { VideoFiles } from './video-files.ts'
import type { VideoOperation } from './video-operation.ts'

export type VideoJob = {
  operation: VideoOperation
  state: 'waiting' | 'running' | 'done' | 'failed' | 'canceled'
  /** From 0 to 1: the share of the frames that are done. */
  share: number
  /** Of what is done. */
  path: string | undefined
  /** Of what has failed. */
  reason: string
  /** How often was asked about it. */
  questions: number
  /** Resolves when it is over, however it went. */
  settled: Promise<void>
}

export type VideoJobs = {
  /** The job of the operation, which begins unless it is known. Undefined: too many are waiting. */
  take(operation: VideoOperation): VideoJob | undefined
  /** Whether the job was known before. */
  has(id: string): boolean
  cancel(job: VideoJob): void
  close(): Promise<void>
}

export type VideoJobsParts = { clock: Clock; files: VideoFiles; crew?: Crew; most_waiting?: number }

/** An hour of a small machine's work: what comes after it would not be done by its deadline. */
const MOST_WAITING = 1000
/** Long enough to be asked about and fetched; then the file goes. Asked again, the same is rendered anew. */
const KEEP_MILLISECONDS = 10 * 60_000

type Kept = { job: VideoJob; stop: AbortController; cancelForget: () => void }

export function createVideoJobs({ clock, files, crew: given, most_waiting = MOST_WAITING }: VideoJobsParts): VideoJobs {
  const jobs = new Map<string, Kept>()
  const crew = given ?? createCrew({})
  let isClosed = false

  async function work(job: VideoJob, signal: AbortSignal): Promise<void> {
    const path = await files.reserve()
    try {
      const onStart = () => {
        job.state = 'running'
      }
      const plan = planOf(job.operation)
      const onFrame = (frames: number) => {
        job.share = frames / plan.frames
      }
      await crew.render({ plan, path, onStart, onFrame }, signal)
      job.path = path
      job.state = 'done'
    } catch (error) {
      await files.remove(path)
      throw error
    }
  }

  function begin(operation: VideoOperation): Kept {
    const stop = new AbortController()
    const settled = Promise.withResolvers<void>()
    const job: VideoJob = {
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
    const kept: Kept = { job, stop, cancelForget: () => {} }
    jobs.set(operation.id, kept)
    return kept
  }

  function remember(kept: Kept): void {
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
      if (!known && (isClosed || crew.waiting() >= most_waiting)) return undefined
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
      crew.close()
      await Promise.all([...jobs.values()].map(({ job }) => (job.operation.course.hang ? undefined : job.settled)))
      jobs.clear()
      await files.close()
    },
  }
}

/** What is to fail is not worth a large picture. */
function planOf({ course, ...rest }: VideoOperation) {
  const quick = Boolean(course.quick || course.fail || course.no_output)
  return planRender({ ...rest, quick })
}
