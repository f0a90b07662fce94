/** What a step works with: the task as it was claimed, its time limit, and the parts of the gateway. */
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import type { Catalogue, CatalogueModel } from '../../models/catalogue.ts'
import type { Outputs } from '../../outputs/outputs.ts'
import type { Provider, Target } from '../../providers/provider.ts'
import { GatewayError } from '../../spec/error.ts'
import type { FailCode, JsonObject, Task } from '../../spec/task.ts'
import type { TaskChange, TaskStore } from '../../store/store.ts'
import type { CrashHook, Write } from '../crash-points.ts'
import { type Ending, ended } from '../lifecycle.ts'
import { kindOf, type TaskVendor } from '../order-kinds.ts'

export type TaskSettings = {
  deadline_minutes: number
  /** How long a finished file is tried to be copied. */
  copy_deadline_minutes: number
  poll_seconds: number
  slow_poll_seconds: number
  /** Steps at a time of a provider that says nothing else. */
  concurrency: number
  /** How long finished files are kept, where their model says nothing else. */
  keep_days: number
}

export type ProviderSettings = {
  concurrency?: number | undefined
  outputs?: 'copy' | 'passthrough' | undefined
  private_addresses?: boolean | undefined
  base_url?: string | undefined
  /** How long the first byte of its answer is waited for. */
  first_byte_seconds?: number | undefined
  /** With `base_url`: who gets an order, as whom, and in which words. */
  kind?: string | undefined
  preset?: string | undefined
  key?: string | undefined
  headers?: object | undefined
  fields?: object | undefined
  options?: object | undefined
}

/** Whether the media of a request can be had and read. */
export type InputChecker = {
  /**
   * Throws GatewayError: one of 5xx or with `retry_after` for what may pass, anything else for what never will be good.
   */
  checkInputs(inputs: JsonObject, signal: AbortSignal): Promise<void>
}

export type StepParts = {
  store: { tasks: TaskStore }
  catalogue: Catalogue
  outputs: Outputs
  /** Also one that no model uses any more. */
  providerOf(id: string): Provider | undefined
  providerSettings(id: string): ProviderSettings | undefined
  inputs: InputChecker
  /** Asked anew each time, so that another configuration counts from the next step on. */
  settings(): TaskSettings
  clock: Clock
  log: Log
  at: CrashHook
  /** Providers that tasks wait for and that are not configured: each is logged once. */
  missed: Set<string>
  /** How often the provider of a task refused to cancel it. */
  refusals: Map<string, number>
  /** The time before which the provider does not accept another poll of a task. Unix milliseconds. */
  notBefore: Map<string, number>
}

/** What a worker keeps in memory for its steps; none of it is needed after a restart. */
export type StepMemory = Pick<StepParts, 'missed' | 'refusals' | 'notBefore'>

export type ClaimedTask = StepParts & {
  task: Task
  /** Aborted well before the lease runs out, and when the gateway is stopped. */
  signal: AbortSignal
  /** Gives the step more time than others have: `signal` is aborted so many milliseconds from now. */
  extend(ms: number): void
  /** Until when files are copied in this step. Unix milliseconds. */
  copy_until_ms: number
  /** Whether the step was aborted because the gateway stops. */
  stopping(): boolean
  /** What this step has written that the claimed task does not show: when it is due next, and that it may be paid. */
  written: { due_ms?: number | null; is_sent?: true }
}

/** One durable write; false: the lease was lost, another one has the task now, and nothing was written. */
export async function write(claimed: ClaimedTask, kind: Write, change: TaskChange): Promise<boolean> {
  claimed.at(`${kind}: before the write`)
  const is_written = await claimed.store.tasks.save(claimed.task, change)
  claimed.at(`${kind}: after the write`)
  if (is_written && change.due_ms !== undefined) claimed.written.due_ms = change.due_ms
  if (!is_written) claimed.log.warn('step ended after its lease', { task_id: claimed.task.task_id, step: kind })
  return is_written
}

/**
 * The end. `watch_ms`: when to look whether the vendor finished all the same. Files that a failed task has already
 * copied are removed as if their time were over, unless the task can be resumed.
 */
export async function end(claimed: ClaimedTask, ending: Ending, watch_ms: number | null = null): Promise<void> {
  const { task, log, clock } = claimed
  const change: TaskChange = { ...ended(task, ending, unixSeconds(clock)), due_ms: watch_ms }
  if (ending.status === 'FAILURE' && !ending.resumable && task.outputs.length > 0) {
    change.outputs_expire_at = unixSeconds(clock)
  }
  if (!(await write(claimed, 'end', change))) return
  claimed.refusals.delete(task.task_id)
  claimed.notBefore.delete(task.task_id)
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

/** The part of a provider that makes what the task is for; undefined when the configuration has it no more. */
export function vendorOf({ providerOf, task, missed, log }: ClaimedTask): TaskVendor | undefined {
  const provider = providerOf(task.provider)
  const vendor = provider && kindOf(task.family).vendorOf(provider)
  if (vendor) missed.delete(task.provider)
  else if (!missed.has(task.provider)) {
    missed.add(task.provider)
    log.error('tasks wait for a provider that is not configured', { provider: task.provider, task_id: task.task_id })
  }
  return vendor
}

/** Waits for a vendor, but not longer than the step may: one that ignores the signal is left behind. */
export function within<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  work.catch(() => {}) // what it says after it was left is of no interest
  let leave: (() => void) | undefined
  const left = new Promise<never>((_, reject) => {
    // One turn later, so that a vendor's adapter that heeds the signal can say whether anything was sent.
    leave = () => void setImmediate(() => reject(signal.reason))
    if (signal.aborted) leave()
    else signal.addEventListener('abort', leave, { once: true })
  })
  left.catch(() => {})
  return Promise.race([work, left]).finally(() => {
    if (leave) signal.removeEventListener('abort', leave)
  })
}

/** The error of a vendor's call in our words; what is none is a fault of its adapter. */
export function asGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  return new GatewayError('bad_upstream_response', "The upstream's answer was not understood.", { cause: error })
}

export const targetName = (provider: string, model: string): string => `${provider}/${model}`

/** The task's model, while it is in the catalogue and served. Whether its token may use it was checked when it was accepted. */
export const modelOf = ({ catalogue, task }: ClaimedTask): CatalogueModel | undefined =>
  catalogue.serving(task.model, task.family)

/** Those that make such things, in the operator's order. */
export const targetsOf = (claimed: ClaimedTask): Target[] =>
  (modelOf(claimed)?.targets ?? []).filter(
    ({ provider }) => kindOf(claimed.task.family).vendorOf(provider) !== undefined,
  )

export const nextTarget = (targets: Target[], tried: Task['tried']): Target | undefined =>
  targets.find(({ provider, model }) => !tried.includes(targetName(provider.id, model)))
