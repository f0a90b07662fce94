/** The job kind of tasks: claims due tasks, a few of each provider at a time, and runs their steps. Only steps advance a task. */
import { createJobLoop, type JobContext, type JobLoop } from '../../jobs/job-loop.ts'
import { randomAlphanumerics } from '../../kit/secret.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Task } from '../../spec/task.ts'
import { isEnded } from './lifecycle.ts'
import { nextAttemptAt } from './poll-schedule.ts'
import { cancel } from './steps/cancel.ts'
import { type ClaimedTask, fail, type StepMemory, type StepParts } from './steps/claimed-task.ts'
import { copy } from './steps/copy.ts'
import { giveUp, watchLate } from './steps/deadline.ts'
import { poll } from './steps/poll.ts'
import { prepare } from './steps/prepare.ts'
import { isProceeding, proceedInDoubt } from './steps/proceed.ts'
import { resolveDoubt, send } from './steps/send.ts'

/** Long enough for the longest step and its writes; after its process dies, a task waits this long. */
const LEASE_MILLISECONDS = 90_000
/** A provider call is aborted well before the lease ends: a later response could not be stored. */
const CALL_MILLISECONDS = 60_000
/** How long one step copies files. What was copied is stored; the next step copies the rest. */
const COPY_MILLISECONDS = 50_000
const POLL_MILLISECONDS = 1_000
/** How many consecutive failures of the gateway itself end a task, if nothing can have been paid for it yet. */
const MAX_FAULTS = 8

type Worker = Omit<JobLoop<Task>, 'abort'> & {
  /** Whether the provider accepts that this task is polled now. */
  mayPollNow(task_id: string): boolean
}

export function createWorker(parts: Omit<StepParts, keyof StepMemory>): Worker {
  const { store, clock, log } = parts
  const shared: StepParts = { ...parts, missingProviders: new Set(), cancelRefusals: new Map(), notBefore: new Map() }
  const by = `worker_${randomAlphanumerics(16)}`

  const loop = createJobLoop<Task>(
    {
      name: 'task',
      fieldsOf: ({ task_id }) => ({ task_id }),
      lease_ms: LEASE_MILLISECONDS,
      poll_ms: POLL_MILLISECONDS,
      async queues() {
        const queues = await store.tasks.queues()
        return queues.map(({ provider, due_ms }) => ({ queue: provider, due_ms }))
      },
      concurrency: (provider) => parts.providerSettings(provider)?.concurrency ?? parts.settings().concurrency,
      claim: ({ queue, ...claim }) => store.tasks.claim({ by, provider: queue, ...claim }),
      timeout: {
        ms: CALL_MILLISECONDS,
        error: () => new GatewayError('upstream_timeout', 'The provider did not respond in time.'),
      },
      run: (task, context) => step(task, context),
      // Also an order without a stored response: its row says that it was sent, and the next process treats it as in doubt.
      release: (task) => store.tasks.save(task, { due_ms: clock.now() }),
      watch: (wake) =>
        store.tasks.watch(({ status }) => {
          if (status === 'NOT_START') wake()
        }),
    },
    { clock, log },
  )

  async function step(task: Task, { signal, extend, now, stopping }: JobContext): Promise<number | undefined> {
    const copy_until_ms = clock.steady() + COPY_MILLISECONDS
    const claimed: ClaimedTask = { ...shared, task, signal, extend, now, stopping, copy_until_ms, saved: {} }
    try {
      const { traces } = parts
      if (traces)
        await traces.step(
          task,
          () => runStep(claimed),
          () => claimed.saved.change,
        )
      else await runStep(claimed)
    } catch (error) {
      if (stopping()) throw error
      await retryLater(claimed, error)
    }
    return claimed.saved.due_ms ?? undefined
  }

  /** The step failed by a fault of the gateway itself. */
  async function retryLater(claimed: ClaimedTask, error: unknown): Promise<void> {
    const { task, saved } = claimed
    const is_paid = task.sent_at !== null || saved.is_sent === true
    const failures = task.failures + 1
    log.error('step failed', { task_id: task.task_id, provider: task.provider, failures }, error)
    if (failures >= MAX_FAULTS && !is_paid && task.status !== 'SUCCESS' && task.status !== 'FAILURE') {
      return fail(claimed, 'internal_error', 'An internal error of the gateway prevented this task from being sent.')
    }
    const due_ms = nextAttemptAt(task, failures, { now_ms: clock.now() })
    if (await store.tasks.save(task, { failures, due_ms })) saved.due_ms = due_ms
  }

  return { ...loop, mayPollNow: (task_id) => (shared.notBefore.get(task_id) ?? 0) <= clock.steady() }
}

/** One step: at most one call to the provider, then one durable write that decides what comes next. */
async function runStep(claimed: ClaimedTask): Promise<void> {
  const { task } = claimed
  if (isEnded(task)) return watchLate(claimed)
  if (task.cancel_asked_at !== null && (await cancel(claimed))) return
  if (claimed.now() >= task.deadline_at * 1000) return giveUp(claimed)
  if (task.status === 'NOT_START') return prepare(claimed)
  if (task.sent_at === null) return send(claimed)
  if (task.operation === null) return resolveDoubt(claimed)
  if (isProceeding(task.operation)) return proceedInDoubt(claimed)
  if (task.made) return copy(claimed, task.made)
  return poll(claimed)
}
