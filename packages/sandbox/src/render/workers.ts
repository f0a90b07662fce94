/** The processes that render: started when there is something to do, never more than allowed, ended when idle. */
import { type ChildProcess, spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import { availableParallelism } from 'node:os'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { type Clock, systemClock } from '../../../../src/kit/clock.ts'
import type { ModelPlan } from './model-plan.ts'
import type { RenderPlan } from './plan.ts'

/** What can be rendered: a video, or a 3D model. */
export type Plan = RenderPlan | ModelPlan

/** A line of JSON to the process; the next one is sent only after the reply to this one. */
export type RendererJob = { plan: Plan; path: string; use_ffmpeg: boolean }

/** A line of JSON from the process: how many frames are done, and how the job ended. */
export type RendererMessage = { frame: number } | { done: 'ffmpeg' | 'built-in' } | { failed: string }

type RenderWorkerJob = {
  plan: Plan
  /** Where the file goes. */
  path: string
  onStart: () => void
  onFrame: (frames: number) => void
}

export type RenderWorkers = {
  /** Resolves when the file is whole. Rejects with what went wrong, or with the signal's reason once it is aborted. */
  render(job: RenderWorkerJob, signal: AbortSignal): Promise<void>
  /** How many jobs have not begun. */
  waiting(): number
  /** Ends every process; what was under way rejects. */
  close(): void
}

export type RenderWorkersParts = {
  /** Of the real world, in which the processes live. */
  clock?: Clock
  /** How many render at a time. */
  size?: number
  /** The program, and its arguments. */
  command?: string[]
  /** Whether the machine's own ffmpeg is used, where there is one. */
  use_ffmpeg?: boolean
}

/** A process keeps 50 to 150 MB, and its start costs a quarter of a second: worth keeping for a burst, not longer. */
const IDLE_MILLISECONDS = 15_000
/** A frame takes a tenth of a second; one that takes so long never comes. */
const STALL_TIMEOUT_MILLISECONDS = 60_000

/** Half of the cores: the other half serves. */
export const workerCount = (cores: number): number => Math.max(1, Math.floor(cores / 2))

/** A job on its way, and who waits for it. */
type PendingJob = { job: RenderWorkerJob; resolve: () => void; reject: (reason: unknown) => void }
type Worker = { process: ChildProcess; pending: PendingJob | undefined; cancelTimer: () => void }

export function createRenderWorkers(parts: RenderWorkersParts): RenderWorkers {
  const { clock = systemClock, size = workerCount(availableParallelism()), use_ffmpeg = true } = parts
  const workers = new Set<Worker>()
  const queue: PendingJob[] = []
  let isClosed = false

  function dispatch(): void {
    while (queue.length > 0) {
      const worker = [...workers].find(({ pending }) => !pending) ?? (workers.size < size ? startWorker() : undefined)
      const pending = worker && queue.shift()
      if (!pending) return
      assign(worker, pending)
    }
  }

  function startWorker(): Worker {
    const [program = '', ...rest] = parts.command ?? rendererCommand()
    // Of the environment only what finds programs: the rest holds the operator's keys.
    // A group of its own, so that what it has started can be ended with it.
    const env = { PATH: process.env.PATH }
    const child = spawn(program, rest, { stdio: ['pipe', 'pipe', 'ignore'], env, detached: true })
    const worker: Worker = { process: child, pending: undefined, cancelTimer: () => {} }
    workers.add(worker)
    child.unref()
    keepAlive(worker, false)
    child.once('error', (cause) => stopWorker(worker, cause))
    child.once('exit', (code, signal) => stopWorker(worker, new Error(`the renderer ended (${code ?? signal})`)))
    // A pipe that breaks is told by the end of the process.
    child.stdin?.on('error', () => {})
    if (child.stdout)
      createInterface({ input: child.stdout }).on('line', (line) => onMessage(worker, parseMessage(line)))
    return worker
  }

  function assign(worker: Worker, pending: PendingJob): void {
    worker.pending = pending
    keepAlive(worker, true)
    restartTimeout(worker)
    pending.job.onStart()
    const { plan, path } = pending.job
    worker.process.stdin?.write(`${JSON.stringify({ plan, path, use_ffmpeg })}\n`)
  }

  function onMessage(worker: Worker, message: RendererMessage | undefined): void {
    const { pending } = worker
    if (!pending || !message) return
    if ('frame' in message) {
      restartTimeout(worker)
      pending.job.onFrame(message.frame)
      return
    }
    worker.pending = undefined
    keepAlive(worker, false)
    worker.cancelTimer()
    worker.cancelTimer = clock.after(IDLE_MILLISECONDS, () => stopWorker(worker, undefined))
    if ('done' in message) pending.resolve()
    else pending.reject(new Error(message.failed))
    dispatch()
  }

  function restartTimeout(worker: Worker): void {
    worker.cancelTimer()
    worker.cancelTimer = clock.after(STALL_TIMEOUT_MILLISECONDS, () =>
      stopWorker(worker, new Error('the renderer fell silent')),
    )
  }

  /** Its job, if it has one, fails with the reason; the next one gets a fresh process. */
  function stopWorker(worker: Worker, reason: unknown): void {
    if (!workers.delete(worker)) return
    worker.cancelTimer()
    endGroup(worker.process)
    worker.pending?.reject(reason)
    if (!isClosed) dispatch()
  }

  function cancel(pending: PendingJob, reason: unknown): void {
    const place = queue.indexOf(pending)
    if (place !== -1) {
      queue.splice(place, 1)
      pending.reject(reason)
      return
    }
    const worker = [...workers].find((other) => other.pending === pending)
    if (worker) stopWorker(worker, reason)
  }

  return {
    render(job, signal) {
      return new Promise<void>((resolve, reject) => {
        if (isClosed) return reject(new Error('the renderer is closed'))
        if (signal.aborted) return reject(signal.reason)
        const onAbort = () => cancel(pending, signal.reason)
        const removeListener = () => signal.removeEventListener('abort', onAbort)
        const pending: PendingJob = {
          job,
          resolve() {
            removeListener()
            resolve()
          },
          reject(reason) {
            removeListener()
            reject(reason)
          },
        }
        signal.addEventListener('abort', onAbort, { once: true })
        // Tiny ones do not wait for large ones.
        const place = job.plan.quick ? queue.findIndex((other) => !other.job.plan.quick) : -1
        queue.splice(place === -1 ? queue.length : place, 0, pending)
        dispatch()
      })
    },
    waiting: () => queue.length,
    close() {
      isClosed = true
      const closed = new Error('the renderer is closed')
      for (const pending of queue.splice(0)) pending.reject(closed)
      for (const worker of [...workers]) stopWorker(worker, closed)
    },
  }
}

/** Undefined for a line that is no message: a library may write a line of its own. */
function parseMessage(line: string): RendererMessage | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    const message = JSON.parse(line)
    return 'frame' in message || 'done' in message || 'failed' in message ? message : undefined
  } catch {
    return undefined
  }
}

function endGroup(child: ChildProcess): void {
  if (child.pid === undefined) return // it never started
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch {
    // There is no such group any more, or the system knows none.
    child.kill('SIGKILL')
  }
}

/** Whether this process must not end by itself: only while somebody waits for a video. */
function keepAlive({ process: child }: Worker, isBusy: boolean): void {
  const output = child.stdout as Partial<Socket> | null // which it is, by its nature
  if (isBusy) output?.ref?.()
  else output?.unref?.()
}

const rendererCommand = (): string[] => [
  process.execPath,
  '--no-env-file',
  '--no-install',
  fileURLToPath(new URL('./renderer.ts', import.meta.url)),
]
