/** The input of a step: the claimed task, its time limit, its targets, and the parts of the gateway. */
import type { Gate } from '../../../calls/call.ts'
import type { OrderRouting } from '../../../calls/routing/router.ts'
import type { TasksConfig } from '../../../config/schema/task-schema.ts'
import type { JobContext } from '../../../jobs/job-loop.ts'
import { type Clock, unixSeconds } from '../../../kit/clock.ts'
import type { Log } from '../../../kit/log.ts'
import type { Catalogue, CatalogueModel } from '../../../models/catalogue.ts'
import type { Outputs } from '../../../outputs/outputs.ts'
import type { FoundProvider } from '../../../providers/keyed-targets.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { FailCode, JsonObject, Task } from '../../../spec/task.ts'
import type { Alert } from '../../../store/admin/alert-store.ts'
import type { LedgerEntry } from '../../../store/ledger/ledger-entry.ts'
import type { TaskChange, TaskStore } from '../../../store/store.ts'
import type { CrashHook, WriteKind } from '../crash-points.ts'
import { type Ending, endChange } from '../lifecycle.ts'
import { kindOf, type TaskProvider } from '../order-kinds.ts'
import { nextAttemptAt } from '../poll-schedule.ts'
import { chargeOfTask } from '../task-charge.ts'
import { taskEntry } from '../task-entry.ts'
import type { TaskTraces } from '../task-traces.ts'

/** `keep_days`: of finished files, unless their model sets another time. Without `callback_origins` there are none. */
export type TaskSettings = Required<Omit<TasksConfig, 'callback_origins'>> & {
  callback_origins?: readonly string[]
  keep_days: number
}

export type ProviderSettings = {
  concurrency?: number | undefined
  outputs?: 'copy' | 'passthrough' | undefined
  private_addresses?: boolean | undefined
  base_url?: string | undefined
  /** How long to wait for the first byte of a response. */
  first_byte_seconds?: number | undefined
  /** With `base_url`: where an order goes, under which account, and in which form. */
  kind?: string | undefined
  preset?: string | undefined
  key?: string | undefined
  headers?: object | undefined
  fields?: object | undefined
  options?: object | undefined
}

/** Checks that the media of a request can be fetched and read. */
export type InputChecker = {
  /**
   * Throws GatewayError: with a 5xx code or `retry_after` where a retry may succeed, any other code where it cannot.
   */
  checkInputs(inputs: JsonObject, signal: AbortSignal): Promise<void>
}

export type StepParts = {
  store: { tasks: TaskStore }
  catalogue: Catalogue
  outputs: Outputs
  /**
   * Includes providers that no model uses any more. `key`: the name of the key that the order is sent with; where it is
   * not configured any more, and for orders without one, any key that may call the model.
   */
  providerOf(id: string, upstream_model: string, key: string | null): FoundProvider | undefined
  /** With the name of a key, `key` is that key. */
  providerSettings(id: string, key?: string | null): ProviderSettings | undefined
  router: OrderRouting
  /** Rate limits of providers. Absent: there are none. */
  attemptLimits?: Pick<Gate, 'mayAttempt' | 'admitAttempt'> | undefined
  /** What the operator is alerted of where a task ends so; stored with its end. Absent: nothing. */
  alertsOf?(task: Task, ending: Ending): readonly Alert[]
  /** Told of each task that has ended, once that is stored. */
  onEnded?: ((task: Task, ending: Ending, entry: LedgerEntry) => void) | undefined
  inputs: InputChecker
  /** Read for each step, so that a new configuration applies from the next step. */
  settings(): TaskSettings
  /** Absent: no traces are recorded. */
  traces?: TaskTraces | undefined
  clock: Clock
  log: Log
  crashHook: CrashHook
  /** Providers, and keys of providers, that tasks need and that are not configured. Each is logged once. */
  missingProviders: Set<string>
  cancelRefusals: Map<string, number>
  /** The time before which the provider does not accept another poll of a task, by the steady clock. */
  notBefore: Map<string, number>
}

/** What a worker holds in memory for its steps. None of it is needed after a restart. */
export type StepMemory = Pick<StepParts, 'missingProviders' | 'cancelRefusals' | 'notBefore'>

export type ClaimedTask = StepParts &
  Pick<JobContext, 'signal' | 'extend' | 'now' | 'stopping'> & {
    task: Task
    /** When this step stops copying files, by the steady clock. */
    copy_until_ms: number
    /** What this step has stored since the claim: the last change, when the task is due next, and that an order may have been sent. */
    saved: { change?: TaskChange; due_ms?: number | null; is_sent?: true }
  }

/** One durable write. Where the lease was lost, another process has the task: nothing is written, and `saved` stays as it is. */
export async function saveChange(claimed: ClaimedTask, kind: WriteKind, change: TaskChange): Promise<void> {
  claimed.crashHook(`${kind}: before the write`)
  const is_saved = await claimed.store.tasks.save(claimed.task, change)
  claimed.crashHook(`${kind}: after the write`)
  if (is_saved) claimed.saved.change = change
  if (is_saved && change.due_ms !== undefined) claimed.saved.due_ms = change.due_ms
  if (!is_saved) claimed.log.warn('step result dropped: lease lost', { task_id: claimed.task.task_id, step: kind })
}

type LaterChange = Pick<TaskChange, 'operation'> & { retry_after?: number | undefined }

/** The attempt has failed: stores that, and when the next one is due. */
export async function retryLater(
  claimed: ClaimedTask,
  kind: WriteKind,
  { retry_after, ...change }: LaterChange = {},
): Promise<void> {
  const failures = claimed.task.failures + 1
  const due_ms = nextAttemptAt(claimed.task, failures, { now_ms: claimed.clock.now(), retry_after })
  await saveChange(claimed, kind, { ...change, failures, due_ms })
}

/**
 * Ends the task. `watch_ms`: when to poll for a late outcome at the provider. The files that a failed task has already
 * copied are removed as expired, unless the task can be resumed.
 */
export async function end(claimed: ClaimedTask, ending: Ending, watch_ms: number | null = null): Promise<void> {
  const { task, log, clock, catalogue } = claimed
  const outputs = ending.status === 'SUCCESS' ? ending.outputs.length : Math.max(1, task.made?.length ?? 1)
  const charge = chargeOfTask(task, { catalogue, outputs })
  const entry = taskEntry(task, ending, { at_ms: task.submit_time * 1000, charge })
  const change: TaskChange = {
    ...endChange(task, ending, unixSeconds(clock)),
    entry,
    alerts: claimed.alertsOf?.(task, ending) ?? [],
    due_ms: watch_ms,
    webhook_due_ms: clock.now(), // `finish_time` is later where the clock was set back
  }
  if (ending.status === 'FAILURE' && !ending.resumable && task.outputs.length > 0) {
    change.outputs_expire_at = unixSeconds(clock)
  }
  await saveChange(claimed, 'end', change)
  if (claimed.saved.change !== change) return
  claimed.cancelRefusals.delete(task.task_id)
  claimed.notBefore.delete(task.task_id)
  claimed.onEnded?.({ ...task, finish_time: unixSeconds(clock) }, ending, entry)
  const fail_code = ending.status === 'FAILURE' ? ending.fail_code : undefined
  const seconds = unixSeconds(clock) - task.submit_time
  log.info('task ended', { task_id: task.task_id, status: ending.status, fail_code, provider: task.provider, seconds })
}

export const fail = (
  claimed: ClaimedTask,
  fail_code: FailCode,
  fail_reason: string,
  watch_ms: number | null = null,
): Promise<void> => end(claimed, { status: 'FAILURE', fail_code, fail_reason }, watch_ms)

/** The part of the task's provider that generates its outputs; undefined when it is no longer configured. */
export function taskProvider({ providerOf, task, missingProviders, log }: ClaimedTask): TaskProvider | undefined {
  const configured = providerOf(task.provider, task.upstream_model, task.provider_key)
  if (configured?.is_key_missing) warnOfKey({ task, missingProviders, log })
  const provider = configured && kindOf(task.family).providerFor(configured.provider)
  if (provider) missingProviders.delete(task.provider)
  else if (!missingProviders.has(task.provider)) {
    missingProviders.add(task.provider)
    log.error('tasks wait for a provider that is not configured', { provider: task.provider, task_id: task.task_id })
  }
  return provider
}

function warnOfKey({ task, missingProviders, log }: Pick<ClaimedTask, 'task' | 'missingProviders' | 'log'>): void {
  const { provider, provider_key: key, task_id } = task
  const name = `${provider}#${key}`
  if (missingProviders.has(name)) return
  missingProviders.add(name)
  log.warn('tasks use another key: theirs is not configured', { provider, key, task_id })
}

/** Waits for a provider call until the signal is aborted, even if the call itself ignores the signal. */
export function withSignal<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  work.catch(() => {}) // a rejection after the abort needs no handling
  let leave: (() => void) | undefined
  const left = new Promise<never>((_, reject) => {
    // One turn later, so that an adapter that observes the signal can report whether anything was sent.
    leave = () => void setImmediate(() => reject(signal.reason))
    if (signal.aborted) leave()
    else signal.addEventListener('abort', leave, { once: true })
  })
  left.catch(() => {})
  return Promise.race([work, left]).finally(() => {
    if (leave) signal.removeEventListener('abort', leave)
  })
}

/** The error of a provider call as a GatewayError. Any other error is a fault of the adapter. */
export function asGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  return new GatewayError('bad_upstream_response', "The provider's response was not understood.", { cause: error })
}

/** The task's model, while it is in the catalogue and served. Whether its token may use it was checked when it was accepted. */
export const modelOf = ({ catalogue, task }: ClaimedTask): CatalogueModel | undefined =>
  catalogue.serving(task.model, task.family)
