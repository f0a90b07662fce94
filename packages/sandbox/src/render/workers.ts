/** Manages the render processes: starts them on demand, up to a limit, and stops idle ones. */
import { type ChildProcess, spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import { availableParallelism } from 'node:os'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { type Clock, systemClock } from '../../../../src/kit/clock.ts'
import { IS_EXECUTABLE } from '../../../../src/kit/resources.ts'
import type { EncodedImagePlan } from './draw-image.ts'
import type { ModelPlan } from './model-plan.ts'
import type { RenderPlan } from './plan.ts'

/** A video, a 3D model, or an image. */
export type Plan = RenderPlan | ModelPlan | EncodedImagePlan

/** A line of JSON to the process; the next one is sent only after the reply to this one. */
export type RendererJob = { plan: Plan; path: string; use_ffmpeg: boolean }

/** A line of JSON from the process: how many frames are done, and how the job ended. */
export type RendererMessage = { frame: number } | { done: 'ffmpeg' | 'built-in' } | { failed: string }

type RenderWorkerJob = {
  plan: Plan
  /** The path of the file to write. */
  path: string
  /** Whose job it is: owners take turns. */
  owner?: string | undefined
  onStart: () => void
  onFrame: (frames: number) => void
}

export type RenderWorkers = ReturnType<typeof createRenderWorkers>

export type RenderWorkersParts = {
  /** For timeouts of real processes. */
  clock?: Clock
  /** The maximum number of processes. */
  size?: number
  command?: string[]
  /** Whether to use the ffmpeg of the machine, if there is one. */
  use_ffmpeg?: boolean
}

/** A process takes 50 to 150 MB, and its start a quarter of a second: worth keeping for a burst, not longer. */
const IDLE_MILLISECONDS = 15_000
/** A frame takes a tenth of a second; after this time, none will come. */
const STALL_TIMEOUT_MILLISECONDS = 60_000

/** Half of the cores render; the other half serves requests. */
export const workerCount = (cores: number): number => Math.max(1, Math.floor(cores / 2))

/** A job, and the promise of its caller. */
type PendingJob = { job: RenderWorkerJob; resolve: () => void; reject: (reason: unknown) => void }
type Worker = { process: ChildProcess; pending: PendingJob | undefined; cancelTimer: () => void }

export function createRenderWorkers(parts: RenderWorkersParts) {
  const { clock = systemClock, size = workerCount(availableParallelism()), use_ffmpeg = true } = parts
  const workers = new Set<Worker>()
  const queue: PendingJob[] = []
  /** Of owners with waiting jobs: the number of the start of their last job. */
  const lastStart = new Map<string | undefined, number>()
  let starts = 0
  const startOf = ({ job }: PendingJob): number => lastStart.get(job.owner) ?? 0
  let isClosed = false

  function dispatch(): void {
    while (queue.length > 0) {
      const worker = [...workers].find(({ pending }) => !pending) ?? (workers.size < size ? startWorker() : undefined)
      if (!worker) return
      assign(worker, takeNext())
    }
  }

  /** The next job of the owner whose last job started the longest time ago; quick jobs of an owner come first. */
  function takeNext(): PendingJob {
    let next = queue[0] as PendingJob
    for (const pending of queue) {
      if (startOf(pending) < startOf(next)) next = pending
    }
    queue.splice(queue.indexOf(next), 1)
    const { owner } = next.job
    lastStart.delete(owner)
    if (queue.some(({ job }) => job.owner === owner)) lastStart.set(owner, ++starts)
    return next
  }

  function startWorker(): Worker {
    const [program = '', ...rest] = parts.command ?? rendererCommand()
    // Only these of the environment: the rest holds the operator's keys. A container's user may have no home.
    // A process group of its own, so that its child processes can be stopped with it.
    const { PATH, TMPDIR, HOME = '/' } = process.env
    const env = { PATH, TMPDIR, HOME }
    const child = spawn(program, rest, { stdio: ['pipe', 'pipe', 'ignore'], env, detached: true })
    const worker: Worker = { process: child, pending: undefined, cancelTimer: () => {} }
    workers.add(worker)
    child.unref()
    keepAlive(worker, false)
    child.once('error', (cause) => stopWorker(worker, cause))
    child.once('exit', (code, signal) => stopWorker(worker, new Error(`the renderer ended (${code ?? signal})`)))
    // The exit of the process reports a broken pipe.
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
      stopWorker(worker, new Error('the renderer stopped responding')),
    )
  }

  /** The job of the worker, if any, fails with the reason; the next job gets a new process. */
  function stopWorker(worker: Worker, reason: unknown): void {
    if (!workers.delete(worker)) return
    worker.cancelTimer()
    endGroup(worker.process)
    worker.pending?.reject(reason)
    if (!isClosed) dispatch()
  }

  function cancel(pending: PendingJob, reason: unknown): void {
    const position = queue.indexOf(pending)
    if (position !== -1) {
      queue.splice(position, 1)
      pending.reject(reason)
      return
    }
    const worker = [...workers].find((other) => other.pending === pending)
    if (worker) stopWorker(worker, reason)
  }

  return {
    /** Resolves when the file is complete. Rejects with the error, or with the signal's reason once it is aborted. */
    render(job: RenderWorkerJob, signal: AbortSignal) {
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
        // Quick jobs do not wait for large ones.
        const position = job.plan.quick ? queue.findIndex((other) => !other.job.plan.quick) : -1
        queue.splice(position === -1 ? queue.length : position, 0, pending)
        dispatch()
      })
    },
    /** How many jobs have not started: of all owners, or of one. */
    waiting: (owner?: string) =>
      owner === undefined ? queue.length : queue.filter(({ job }) => job.owner === owner).length,
    /** Stops every process; all unfinished jobs reject. */
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
    // The group no longer exists, or the system has no process groups.
    child.kill('SIGKILL')
  }
}

/** Keeps the gateway's process alive only while a caller waits for a job. */
function keepAlive({ process: child }: Worker, isBusy: boolean): void {
  const output = child.stdout as Partial<Socket> | null // a pipe is a socket
  if (isBusy) output?.ref?.()
  else output?.unref?.()
}

/** The command that makes an executable a renderer; scripts/packaging/executable.ts reads it. */
const RENDERER_COMMAND = 'sandbox-renderer'

const rendererCommand = (): string[] =>
  IS_EXECUTABLE
    ? [process.execPath, RENDERER_COMMAND]
    : [process.execPath, '--no-env-file', '--no-install', fileURLToPath(new URL('./renderer.ts', import.meta.url))]
