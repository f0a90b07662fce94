/** The loop behind all background work: claims due jobs, runs each one under a lease, and stops in an orderly way. */
import { type Clock, endsWithin } from '../kit/clock.ts'
import type { Log, LogFields } from '../kit/log.ts'
import { GatewayError } from '../spec/error.ts'

export type JobClaim = { queue: string; now_ms: number; until_ms: number; limit: number }

export type JobContext = {
  /** Aborted when the run takes too long, loses its lease, or the gateway stops. */
  signal: AbortSignal
  abort(reason: GatewayError): void
  /** Replaces the time that is left: `signal` is aborted this many milliseconds from now. */
  extend(ms: number): void
  /**
   * The time by which the stored times of the job are to be read: that of its claim, and what has passed since. Another one
   * than the clock's where that was set meanwhile. Unix milliseconds.
   */
  now(): number
  /** Whether the loop has aborted its jobs because the gateway stops. */
  stopping(): boolean
}

/** What the loop needs to know of one kind of job. All times are unix milliseconds. */
export type JobKind<Job> = {
  /** Names the kind in log events. */
  name: string
  /** Identifies a job in the log. */
  fieldsOf(job: Job): LogFields
  /** A job of a process that died is claimed again after this time. */
  lease_ms: number
  /** Work that no notification announced is found by polling this often. */
  poll_ms: number
  /** Each queue that has jobs, with the time when its first one is due; the end of a lease counts. */
  queues(): Promise<{ queue: string; due_ms: number }[]>
  /** How many jobs of this queue run at a time in this process. */
  concurrency(queue: string): number
  /** Leases due jobs until `until_ms`, in a fair order between tokens. No two claims get the same job. */
  claim(claim: JobClaim): Promise<Job[]>
  /** Decides which claimed jobs run now, where the order of the claim is not fair enough. */
  fairness?: {
    /** Reserves a slot for a job that runs now (`run` frees it); otherwise the time when to try again. */
    reserve(job: Job): number | undefined
    postpone(jobs: { job: Job; due_ms: number }[]): Promise<void>
  }
  /** How long one run may take. Its signal is aborted with this error. */
  timeout?: { ms: number; error(): GatewayError }
  /** Extends the lease of a job that runs; false when another process has the job, or it is gone. */
  heartbeat?: { every_ms: number; renew(job: Job, until_ms: number): Promise<boolean> }
  /** Runs one job and stores its outcome. The result is the time when the job is due again, if it is. */
  run(job: Job, context: JobContext): Promise<number | undefined>
  /** Makes a job due at once that the stop interrupted. Without it the lease has to run out. */
  release?(job: Job): Promise<unknown>
  /** Calls `wake` when jobs may have been added; the result ends that. Only for speed: polling finds them as well. */
  watch?(wake: () => void): () => void
}

export type JobLoop<Job> = {
  start(): void
  /** Polls now: jobs were added or made due. */
  wake(): void
  /** Aborts the runs of these jobs. */
  abort(matches: (job: Job) => boolean, reason: GatewayError): void
  /** Claims no more jobs; lets those that run finish until the deadline, then aborts and releases them. */
  stop(options: { deadline_ms: number }): Promise<void>
  /** Resolves when no job runs and none is due now: for tests that own the clock. */
  idle(): Promise<void>
}

/** What the owner of a loop passes on. */
export type LoopControl = Pick<JobLoop<unknown>, 'start' | 'stop' | 'idle'>

/** The reason of an abort after which the run must not store anything. */
export const LEASE_LOST = new GatewayError('client_closed_request', 'The job was canceled, deleted or claimed again.')
/** The reason of an abort by a stop. */
export const STOPPED = new GatewayError('shutting_down', 'The gateway is being stopped.')

/** Jobs that become due within this time are claimed by one poll: ten thousand of them must not cause ten thousand. */
const GATHER_MILLISECONDS = 20
/** How long aborted jobs have for their last write. */
const LAST_WRITE_MILLISECONDS = 2_000

/** `offset_ms`: between the steady clock and the time of the claim. */
type ClaimedAt = { queue: string; offset_ms: number }
type Running<Job> = { job: Job; offset_ms: number; control: AbortController; done: Promise<void> }

export function createJobLoop<Job>(kind: JobKind<Job>, { clock, log }: { clock: Clock; log: Log }): JobLoop<Job> {
  const running = new Set<Running<Job>>()
  const running_in = new Map<string, number>()
  /** Queues with more due jobs than free slots: when a job of theirs ends, the next one can be claimed at once. */
  const saturated = new Set<string>()
  let state: 'new' | 'running' | 'stopping' | 'aborting' = 'new'
  let polling: Promise<number> = Promise.resolve(0)
  let is_poll_requested = false
  let timer: { at_ms: number; cancel(): void } | undefined
  let unwatch = () => {}

  const isStopping = () => state === 'stopping' || state === 'aborting'

  /** Polls once; the result is the number of claimed jobs. Polls never overlap. */
  function poll(): Promise<number> {
    polling = polling.then(async () => {
      is_poll_requested = false
      if (isStopping()) return 0
      try {
        await clock.align?.()
        return await claimDue()
      } catch (error) {
        log.error(`${kind.name} claim failed`, {}, error)
        wakeAt(clock.now() + kind.poll_ms)
        return 0
      }
    })
    return polling
  }

  async function claimDue(): Promise<number> {
    const now_ms = clock.now()
    let claimed = 0
    for (const { queue, due_ms } of await kind.queues()) {
      if (due_ms > now_ms) wakeAt(due_ms)
      else claimed += await claimFrom(queue)
    }
    // What else waits in a queue is known only when nothing of it is due any more.
    wakeAt(clock.now() + (claimed > 0 ? GATHER_MILLISECONDS : kind.poll_ms))
    return claimed
  }

  /** Claims until every slot of the queue is taken or nothing is due. */
  async function claimFrom(queue: string): Promise<number> {
    let claimed = 0
    saturated.add(queue)
    while (!isStopping()) {
      const limit = kind.concurrency(queue) - (running_in.get(queue) ?? 0)
      if (limit < 1) break
      const now_ms = clock.now()
      const before = now_ms - clock.steady()
      const jobs = await kind.claim({ queue, now_ms, until_ms: now_ms + kind.lease_ms, limit })
      claimed += jobs.length
      await startFair(jobs, { queue, offset_ms: await offsetSince(before) })
      if (jobs.length < limit) {
        saturated.delete(queue)
        break
      }
    }
    return claimed
  }

  /**
   * Where the clock is set during a claim, it is not known whether the times of the jobs were read before they were moved or
   * after: by the earlier time no job is late that is not.
   */
  async function offsetSince(before: number): Promise<number> {
    try {
      await clock.align?.()
    } catch {
      // the next poll tries again, and reports it
    }
    return Math.min(before, clock.now() - clock.steady())
  }

  async function startFair(jobs: Job[], claim: ClaimedAt): Promise<void> {
    const postponed: { job: Job; due_ms: number }[] = []
    for (const job of jobs) {
      const due_ms = kind.fairness?.reserve(job)
      if (due_ms === undefined) start(job, claim)
      else {
        postponed.push({ job, due_ms })
        wakeAt(due_ms)
      }
    }
    if (postponed.length > 0) await kind.fairness?.postpone(postponed)
  }

  function start(job: Job, { queue, offset_ms }: ClaimedAt): void {
    running_in.set(queue, (running_in.get(queue) ?? 0) + 1)
    const entry: Running<Job> = { job, offset_ms, control: new AbortController(), done: Promise.resolve() }
    running.add(entry)
    entry.done = run(entry).then((due_ms) => {
      running.delete(entry)
      const left = (running_in.get(queue) ?? 1) - 1
      if (left > 0) running_in.set(queue, left)
      else running_in.delete(queue)
      if (saturated.has(queue)) wake()
      else if (due_ms !== undefined) wakeAt(due_ms)
    })
  }

  /** Never rejects: the failure of one job must not affect the others. */
  async function run({ job, offset_ms, control }: Running<Job>): Promise<number | undefined> {
    const limit = timeLimit(control)
    const endHeartbeat = keepLease(job, control)
    const context: JobContext = {
      signal: control.signal,
      abort: (reason) => control.abort(reason),
      extend: limit.extend,
      now: () => Math.round(clock.steady() + offset_ms),
      stopping: () => state === 'aborting',
    }
    try {
      return await kind.run(job, context)
    } catch (error) {
      return await interrupted(job, control.signal, error)
    } finally {
      limit.cancel()
      endHeartbeat()
    }
  }

  async function interrupted(job: Job, { reason }: AbortSignal, error: unknown): Promise<undefined> {
    const fields = kind.fieldsOf(job)
    if (reason === LEASE_LOST) log.info(`${kind.name} lease lost`, fields)
    else if (state !== 'aborting') log.error(`${kind.name} failed`, fields, error)
    else await release(job)
    return undefined
  }

  async function release(job: Job): Promise<void> {
    try {
      await kind.release?.(job)
    } catch (error) {
      log.error(`${kind.name} not released`, kind.fieldsOf(job), error) // its lease runs out
    }
  }

  function timeLimit(control: AbortController): { extend(ms: number): void; cancel(): void } {
    const { timeout } = kind
    if (!timeout) return { extend() {}, cancel() {} }
    const abortIn = (ms: number) => clock.after(ms, () => control.abort(timeout.error()))
    let cancel = abortIn(timeout.ms)
    return {
      extend(ms) {
        cancel()
        cancel = abortIn(ms)
      },
      cancel: () => cancel(),
    }
  }

  function keepLease(job: Job, control: AbortController): () => void {
    const { heartbeat } = kind
    if (!heartbeat) return () => {}
    let cancel = () => {}
    let is_over = false
    const schedule = () => {
      cancel = clock.after(heartbeat.every_ms, () => void beat())
    }
    const beat = async () => {
      try {
        const is_ours = await heartbeat.renew(job, clock.now() + kind.lease_ms)
        if (!is_ours && !is_over) control.abort(LEASE_LOST)
      } catch (error) {
        log.error(`${kind.name} lease not renewed`, kind.fieldsOf(job), error) // the next beat may succeed
      }
      if (!is_over && !control.signal.aborted) schedule()
    }
    schedule()
    return () => {
      is_over = true
      cancel()
    }
  }

  function wake(): void {
    if (state !== 'running' || is_poll_requested) return
    is_poll_requested = true
    void poll()
  }

  /** One timer for all: the earliest time counts. */
  function wakeAt(due_ms: number): void {
    if (state !== 'running') return
    const wait_ms = Math.max(due_ms - clock.now(), GATHER_MILLISECONDS)
    const at_ms = clock.steady() + wait_ms
    if (timer && timer.at_ms <= at_ms) return
    timer?.cancel()
    const cancel = clock.after(wait_ms, () => {
      timer = undefined
      wake()
    })
    timer = { at_ms, cancel }
  }

  const allDone = () => Promise.all([...running].map(({ done }) => done))

  async function waitAtMost(ms: number): Promise<void> {
    if (running.size > 0 && ms > 0) await endsWithin(clock, ms, allDone())
  }

  return {
    start() {
      if (state !== 'new') return
      state = 'running'
      unwatch = kind.watch?.(wake) ?? unwatch
      wake()
    },
    wake,
    abort(matches, reason) {
      for (const { job, control } of running) if (matches(job)) control.abort(reason)
    },
    async stop({ deadline_ms }) {
      if (state !== 'aborting') {
        state = 'stopping'
        timer?.cancel()
        unwatch()
        await polling
        await waitAtMost(deadline_ms)
      }
      state = 'aborting'
      for (const { control } of running) control.abort(STOPPED)
      await waitAtMost(LAST_WRITE_MILLISECONDS)
    },
    async idle() {
      for (;;) {
        await allDone()
        if ((await poll()) === 0 && running.size === 0) return
      }
    },
  }
}
