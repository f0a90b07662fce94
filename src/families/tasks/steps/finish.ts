/** From a provider's files to the end of the task: where each file is stored, for how long, and how the task ends. */
import { unixSeconds } from '../../../kit/clock.ts'
import { endingOf } from '../../../kit/file-type.ts'
import type { RemoteOutput } from '../../../providers/provider.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { ComingOutput, FailCode, RemoteFile, Task, TaskOutput } from '../../../spec/task.ts'
import { kindOf } from '../order-kinds.ts'
import { asGatewayError, type ClaimedTask, end, modelOf, taskProvider, withSignal } from './claimed-task.ts'
import { reasonFrom } from './fail-code.ts'

const DAY_SECONDS = 86_400

export function succeed(claimed: ClaimedTask, outputs: TaskOutput[]): Promise<void> {
  const is_stored = outputs.some(({ key }) => key !== undefined)
  const keep_days = modelOf(claimed)?.keep_days ?? claimed.settings().keep_days
  const outputs_expire_at = is_stored ? unixSeconds(claimed.clock) + Math.ceil(keep_days * DAY_SECONDS) : null
  return end(claimed, { status: 'SUCCESS', outputs, outputs_expire_at })
}

/** Copying is retried at least this long, even if the provider says that its files expire sooner or have expired. */
const MIN_COPY_SECONDS = 600

/**
 * When copying is given up, counted from now. Independent of the task's deadline, which limits the generation: a
 * generated file is paid for. Unix seconds.
 */
export function copyDeadline(claimed: ClaimedTask, expires_at = Number.POSITIVE_INFINITY): number {
  const now = unixSeconds(claimed.clock)
  const retention = taskProvider(claimed)?.retention_seconds ?? Number.POSITIVE_INFINITY
  const available = Number.isNaN(expires_at) ? retention : Math.min(retention, expires_at - now)
  const configured = claimed.settings().copy_deadline_minutes * 60
  return now + Math.ceil(Math.min(configured, Math.max(MIN_COPY_SECONDS, available)))
}

export type OutputBytes = Exclude<RemoteOutput, RemoteFile>

/** Files whose bytes came with the response are stored at once: there is no link to fetch them from later. */
export async function storeBytes(
  claimed: ClaimedTask,
  remote: RemoteOutput[],
): Promise<{ stored: TaskOutput[]; error?: GatewayError }> {
  const stored: TaskOutput[] = []
  try {
    for (const one of remote) {
      if (!('url' in one)) stored.push(await storeOutput(claimed, one, keyOf(claimed.task, stored.length, one)))
    }
    return { stored }
  } catch (error) {
    if (claimed.stopping()) throw error
    const { task_id, provider } = claimed.task
    claimed.log.warn('file not stored', { task_id, provider }) // without the cause, which may contain a URL
    return { stored, error: asGatewayError(error) }
  }
}

/** Any error but a GatewayError is one of the gateway's own storage: a full disk, a bucket that is unavailable. */
export function storageError(claimed: ClaimedTask, error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  const { task_id, provider } = claimed.task
  claimed.log.error('file could not be stored', { task_id, provider }, error)
  return new GatewayError('internal_error', "The gateway's own storage failed.", { cause: error })
}

export async function storeOutput(
  claimed: ClaimedTask,
  { content_type, open }: OutputBytes,
  key: string,
): Promise<TaskOutput> {
  const { outputs, signal, crashHook } = claimed
  crashHook('copy: before the first byte')
  const body = await withSignal(signal, open(signal))
  crashHook('copy: in the middle')
  const output = await withSignal(signal, outputs.keep(key, { content_type, body }, signal)).catch((error: unknown) => {
    throw claimed.stopping() ? error : storageError(claimed, error)
  })
  crashHook('copy: after the last byte')
  return output
}

/** The same for every attempt, also with a fresh link, so that an interrupted copy resumes. */
export function keyOf({ task_id, family }: Task, index: number, { content_type = '' }: { content_type?: string }) {
  return `${task_id}/${index}.${endingOf(content_type) ?? endingOf(kindOf(family).content_type) ?? 'bin'}`
}

/** A file that stays at its provider because the operator configured it so. */
export const passthroughOutput = ({ task }: ClaimedTask, { url, content_type }: RemoteFile): TaskOutput => ({
  url,
  content_type: content_type ?? kindOf(task.family).content_type,
})

export const NO_OUTPUT = 'The provider reported a success without any output. Often a content filter has removed it.'

/** How long the links and the copied files are retained for an operator who resumes the task. */
const RESUMABLE_SECONDS = 7 * 86_400

type CopyFailure = { made: ComingOutput[]; error: GatewayError; outputs?: TaskOutput[] }

/**
 * Ends a task whose finished files could not be copied, and retains what a later resume needs. A fault of the gateway's
 * own storage is `internal_error`: the client can do nothing about it, the operator can.
 */
export function endCopying(
  claimed: ClaimedTask,
  { made, error, outputs = claimed.task.outputs }: CopyFailure,
): Promise<void> {
  const reason = reasonFrom(error.message)
  const outputs_expire_at = unixSeconds(claimed.clock) + RESUMABLE_SECONDS
  return end(claimed, {
    status: 'FAILURE',
    fail_code: copyFailCode(error),
    fail_reason: error.code === 'output_refused' ? reason : `${COPY_FAILED} ${reason}`,
    resumable: { made, outputs, outputs_expire_at },
  })
}

export function copyFailCode({ code, detail }: GatewayError): FailCode {
  if (code === 'internal_error') return 'internal_error'
  return detail.fail_code === 'output_invalid' ? 'output_invalid' : 'output_expired'
}

const COPY_FAILED = 'The provider generated it, but its file could not be copied before the deadline:'
