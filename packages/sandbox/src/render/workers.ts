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
const SILENCE_MILLISECONDS = 60_000

/** Half of the cores: the other half serves. */
export const workerCount = (cores: number): number => Math.max(1, Math.floor(cores / 2))

/** A job on its way, and who waits for it. */
type Post = { job: RenderWorkerJob; resolve: () => void; reject: (reason: unknown) => void }
type Member = { process: ChildProcess; post: Post | undefined; cancelTimer: () => void }

export function createRenderWorkers(parts: RenderWorkersParts): RenderWorkers {
  const { clock = systemClock, size = workerCount(availableParallelism()), use_ffmpeg = true } = parts
  const members = new Set<Member>()
  const queue: Post[] = []
  let isClosed = false

  function fill(): void {
    while (queue.length > 0) {
      const member = [...members].find(({ post }) => !post) ?? (members.size < size ? hire() : undefined)
      const post = member && queue.shift()
      if (!post) return
      begin(member, post)
    }
  }

  function hire(): Member {
    const [program = '', ...rest] = parts.command ?? rendererCommand()
    // Of the environment only what finds programs: the rest holds the operator's keys.
    // A group of its own, so that what it has started can be ended with it.
    const env = { PATH: process.env.PATH }
    const child = spawn(program, rest, { stdio: ['pipe', 'pipe', 'ignore'], env, detached: true })
    const member: Member = { process: child, post: undefined, cancelTimer: () => {} }
    members.add(member)
    child.unref()
    holdOpen(member, false)
    child.once('error', (cause) => dismiss(member, cause))
    child.once('exit', (code, signal) => dismiss(member, new Error(`the renderer ended (${code ?? signal})`)))
    // A pipe that breaks is told by the end of the process.
    child.stdin?.on('error', () => {})
    if (child.stdout) createInterface({ input: child.stdout }).on('line', (line) => hear(member, parseMessage(line)))
    return member
  }

  function begin(member: Member, post: Post): void {
    member.post = post
    holdOpen(member, true)
    expectWord(member)
    post.job.onStart()
    const { plan, path } = post.job
    member.process.stdin?.write(`${JSON.stringify({ plan, path, use_ffmpeg })}\n`)
  }

  function hear(member: Member, word: RendererMessage | undefined): void {
    const { post } = member
    if (!post || !word) return
    if ('frame' in word) {
      expectWord(member)
      post.job.onFrame(word.frame)
      return
    }
    member.post = undefined
    holdOpen(member, false)
    member.cancelTimer()
    member.cancelTimer = clock.after(IDLE_MILLISECONDS, () => dismiss(member, undefined))
    if ('done' in word) post.resolve()
    else post.reject(new Error(word.failed))
    fill()
  }

  function expectWord(member: Member): void {
    member.cancelTimer()
    member.cancelTimer = clock.after(SILENCE_MILLISECONDS, () => dismiss(member, new Error('the renderer fell silent')))
  }

  /** Its job, if it has one, fails with the reason; the next one gets a fresh process. */
  function dismiss(member: Member, reason: unknown): void {
    if (!members.delete(member)) return
    member.cancelTimer()
    endGroup(member.process)
    member.post?.reject(reason)
    if (!isClosed) fill()
  }

  function drop(post: Post, reason: unknown): void {
    const place = queue.indexOf(post)
    if (place !== -1) {
      queue.splice(place, 1)
      post.reject(reason)
      return
    }
    const member = [...members].find((other) => other.post === post)
    if (member) dismiss(member, reason)
  }

  return {
    render(job, signal) {
      return new Promise<void>((resolve, reject) => {
        if (isClosed) return reject(new Error('the renderer is closed'))
        if (signal.aborted) return reject(signal.reason)
        const leave = () => drop(post, signal.reason)
        const stay = () => signal.removeEventListener('abort', leave)
        const post: Post = {
          job,
          resolve() {
            stay()
            resolve()
          },
          reject(reason) {
            stay()
            reject(reason)
          },
        }
        signal.addEventListener('abort', leave, { once: true })
        // Tiny ones do not wait for large ones.
        const place = job.plan.quick ? queue.findIndex((other) => !other.job.plan.quick) : -1
        queue.splice(place === -1 ? queue.length : place, 0, post)
        fill()
      })
    },
    waiting: () => queue.length,
    close() {
      isClosed = true
      const closed = new Error('the renderer is closed')
      for (const post of queue.splice(0)) post.reject(closed)
      for (const member of [...members]) dismiss(member, closed)
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
function holdOpen({ process: child }: Member, isBusy: boolean): void {
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
