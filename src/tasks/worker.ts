/** Takes due tasks in hand, a few of each provider at a time, and steps them: the only thing that moves a task. */
import { randomAlphanumerics } from '../kit/secret.ts'
import { GatewayError } from '../spec/error.ts'
import type { Task } from '../spec/task.ts'
import { nextAttempt } from './cadence.ts'
import { takeStep } from './step.ts'
import { type ClaimedTask, fail, type StepMemory, type StepParts } from './steps/claimed-task.ts'

/** Long enough for the longest step and its writes; so long a task rests after the process that had it has died. */
const LEASE_MILLISECONDS = 90_000
/** A vendor's call is given up well before the lease is over: what it says later would come too late. */
const CALL_MILLISECONDS = 60_000
/** Files are copied until then, and what has come is kept; the rest is copied in the next step. */
const COPY_MILLISECONDS = 50_000
/** Leases of processes that died, and news that got lost, are found by looking: this often. */
const LOOK_MILLISECONDS = 1_000
/** Tasks that fall due within it are taken together: ten thousand of them must not mean ten thousand looks. */
const GATHER_MILLISECONDS = 20
/** A fault of our own this often in a row ends a task, if nothing can have been paid for it yet. */
const FAULTS = 8
/** How long steps that were told to stop have for their last write. */
const LAST_WRITE_MILLISECONDS = 2_000

export type Worker = {
  start(): void
  /** Looks for due tasks now: some were added or made due. */
  wake(): void
  /** Whether its vendor minds being asked about this task now. */
  mayHurry(task_id: string): boolean
  stop(options: { deadline_ms: number }): Promise<void>
  idle(): Promise<void>
}

export function createWorker(parts: Omit<StepParts, keyof StepMemory>): Worker {
  const { store, clock, log } = parts
  const shared: StepParts = { ...parts, missed: new Set(), refusals: new Map(), notBefore: new Map() }
  const by = `worker_${randomAlphanumerics(16)}`
  const stopped = new AbortController()
  const steps = new Set<Promise<void>>()
  /** Steps in hand by lane. */
  const busy = new Map<string, number>()
  /** Lanes in which more was due than there were hands: a hand that is free again is of use there. */
  const crowded = new Set<string>()
  let state: 'new' | 'running' | 'stopping' = 'new'
  let turn: Promise<number> = Promise.resolve(0)
  let is_round_wanted = false
  let timer: { at_ms: number; cancel(): void } | undefined
  let unwatch = () => {}

  const concurrencyOf = (provider: string) =>
    parts.providerSettings(provider)?.concurrency ?? parts.settings().concurrency

  /** One look at every lane; how many tasks were taken in hand. Rounds never overlap. */
  function round(): Promise<number> {
    turn = turn.then(async () => {
      is_round_wanted = false
      if (state !== 'running') return 0
      try {
        return await look()
      } catch (error) {
        log.error('tasks could not be looked for', {}, error)
        wakeAt(clock.now() + LOOK_MILLISECONDS)
        return 0
      }
    })
    return turn
  }

  async function look(): Promise<number> {
    const lanes = await store.tasks.lanes()
    const now_ms = clock.now()
    let taken = 0
    for (const { provider, due_ms } of lanes) {
      if (due_ms > now_ms) wakeAt(due_ms)
      else taken += await take(provider)
    }
    wakeAt(clock.now() + LOOK_MILLISECONDS)
    return taken
  }

  async function take(provider: string): Promise<number> {
    const limit = concurrencyOf(provider) - (busy.get(provider) ?? 0)
    crowded.add(provider)
    if (limit < 1) return 0
    const now_ms = clock.now()
    const tasks = await store.tasks.claim({ by, provider, now_ms, until_ms: now_ms + LEASE_MILLISECONDS, limit })
    if (tasks.length < limit) crowded.delete(provider)
    for (const task of tasks) run(task, provider)
    return tasks.length
  }

  /** The seam at which a fault of a step ends: it never stops the others. */
  function run(task: Task, lane: string): void {
    busy.set(lane, (busy.get(lane) ?? 0) + 1)
    const { claimed, free } = inHand(task)
    const step = takeStep(claimed)
      .catch((error: unknown) => fault(claimed, error))
      .catch((error: unknown) => log.error('step given up', { task_id: task.task_id }, error))
      .then(() => {
        free()
        steps.delete(step)
        busy.set(lane, (busy.get(lane) ?? 1) - 1)
        if (crowded.has(lane)) wake()
        else if (typeof claimed.written.due_ms === 'number') wakeAt(claimed.written.due_ms)
      })
    steps.add(step)
  }

  function inHand(task: Task): { claimed: ClaimedTask; free(): void } {
    const control = new AbortController()
    const stop = () => control.abort(stopped.signal.reason)
    stopped.signal.addEventListener('abort', stop, { once: true })
    if (stopped.signal.aborted) stop()
    const giveUpIn = (ms: number) =>
      clock.after(ms, () =>
        control.abort(new GatewayError('upstream_timeout', 'The upstream kept silent for too long.')),
      )
    let cancel = giveUpIn(CALL_MILLISECONDS)
    const claimed: ClaimedTask = {
      ...shared,
      task,
      signal: control.signal,
      extend(ms) {
        cancel()
        cancel = giveUpIn(ms)
      },
      copy_until_ms: clock.now() + COPY_MILLISECONDS,
      stopping: () => stopped.signal.aborted,
      written: {},
    }
    return {
      claimed,
      free() {
        cancel()
        stopped.signal.removeEventListener('abort', stop)
      },
    }
  }

  /** A step broke off by a fault of ours, or because the gateway stops. */
  async function fault(claimed: ClaimedTask, error: unknown): Promise<void> {
    const { task, written } = claimed
    const is_paid = task.sent_at !== null || written.is_sent === true
    if (claimed.stopping()) {
      // Also an order whose answer is not known: its row says that it was sent, and the next process finds it in doubt.
      await store.tasks.save(task, { due_ms: clock.now() })
      return
    }
    const failures = task.failures + 1
    log.error('step failed', { task_id: task.task_id, provider: task.provider, failures }, error)
    if (failures >= FAULTS && !is_paid && task.status !== 'SUCCESS' && task.status !== 'FAILURE') {
      return fail(claimed, 'internal_error', 'A fault of the gateway kept it from being sent.')
    }
    const due_ms = nextAttempt(task, failures, { now_ms: clock.now() })
    if (await store.tasks.save(task, { failures, due_ms })) written.due_ms = due_ms
  }

  function wake(): void {
    if (state !== 'running' || is_round_wanted) return
    is_round_wanted = true
    void round()
  }

  /** The earliest wish counts. */
  function wakeAt(due_ms: number): void {
    if (state !== 'running') return
    const at_ms = Math.max(due_ms, clock.now() + GATHER_MILLISECONDS)
    if (timer && timer.at_ms <= at_ms) return
    timer?.cancel()
    const cancel = clock.after(at_ms - clock.now(), () => {
      timer = undefined
      wake()
    })
    timer = { at_ms, cancel }
  }

  return {
    start() {
      if (state !== 'new') return
      state = 'running'
      unwatch = store.tasks.watch(({ status }) => {
        if (status === 'NOT_START') wake()
      })
      wake()
    },
    wake,
    mayHurry: (task_id) => (shared.notBefore.get(task_id) ?? 0) <= clock.now(),
    async stop({ deadline_ms }) {
      state = 'stopping'
      timer?.cancel()
      unwatch()
      await turn
      await inTime(Promise.all(steps), deadline_ms)
      stopped.abort(new GatewayError('shutting_down', 'The gateway is being stopped.'))
      await inTime(Promise.all(steps), LAST_WRITE_MILLISECONDS)
    },
    async idle() {
      for (;;) {
        await Promise.all(steps)
        if ((await round()) === 0 && steps.size === 0) return
      }
    },
  }

  async function inTime(work: Promise<unknown>, ms: number): Promise<void> {
    if (steps.size === 0 || ms <= 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const cancel = clock.after(ms, resolve)
    await Promise.race([work, promise])
    cancel()
  }
}
