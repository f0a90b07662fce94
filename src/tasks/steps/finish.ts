/** From a vendor's files to the end of the task: where each is kept, for how long, and the success that names them. */
import { unixSeconds } from '../../kit/clock.ts'
import { endingOf } from '../../kit/file-ending.ts'
import type { RemoteOutput } from '../../providers/provider.ts'
import { GatewayError } from '../../spec/error.ts'
import type { ComingOutput, RemoteFile, Task, TaskOutput } from '../../spec/task.ts'
import { kindOf } from '../order-kinds.ts'
import { asGatewayError, type ClaimedTask, end, modelOf, vendorOf, within } from './claimed-task.ts'
import { reasonFrom } from './fail-code.ts'

const DAY_SECONDS = 86_400

export function succeed(claimed: ClaimedTask, outputs: TaskOutput[]): Promise<void> {
  const is_kept = outputs.some(({ key }) => key !== undefined)
  const keep_days = modelOf(claimed)?.keep_days ?? claimed.settings().keep_days
  const outputs_expire_at = is_kept ? unixSeconds(claimed.clock) + Math.ceil(keep_days * DAY_SECONDS) : null
  return end(claimed, { status: 'SUCCESS', outputs, outputs_expire_at })
}

/** A vendor that says its files are soon gone, or gone already, is tried for so long all the same. */
const LEAST_COPY_SECONDS = 600

/**
 * Until when copying is tried, from now on. It has nothing to do with the deadline of the task, which is for making it:
 * what is made is paid for. Unix seconds.
 */
export function copyDeadline(claimed: ClaimedTask, expires_at = Number.POSITIVE_INFINITY): number {
  const now = unixSeconds(claimed.clock)
  const retention = vendorOf(claimed)?.retention_seconds ?? Number.POSITIVE_INFINITY
  const kept = Number.isNaN(expires_at) ? retention : Math.min(retention, expires_at - now)
  const wanted = claimed.settings().copy_deadline_minutes * 60
  return now + Math.ceil(Math.min(wanted, Math.max(LEAST_COPY_SECONDS, kept)))
}

export type MadeBytes = Exclude<RemoteOutput, RemoteFile>

/** Files whose bytes came with the answer are kept at once: there is no link to come back to. */
export async function keepBytes(
  claimed: ClaimedTask,
  remote: RemoteOutput[],
): Promise<{ kept: TaskOutput[]; error?: GatewayError }> {
  const kept: TaskOutput[] = []
  try {
    for (const one of remote) {
      if (!('url' in one)) kept.push(await keepOne(claimed, one, keyOf(claimed.task, kept.length, one)))
    }
    return { kept }
  } catch (error) {
    if (claimed.stopping()) throw error
    const { task_id, provider } = claimed.task
    claimed.log.warn('file not kept', { task_id, provider }) // the cause may name an address
    return { kept, error: asGatewayError(error) }
  }
}

/** What is no error of the upstream is one of the gateway's own storage: a full disk, a bucket that is away. */
export function storageError(claimed: ClaimedTask, error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  const { task_id, provider } = claimed.task
  claimed.log.error('file could not be stored', { task_id, provider }, error)
  return new GatewayError('internal_error', "The gateway's own storage failed.", { cause: error })
}

export async function keepOne(
  claimed: ClaimedTask,
  { content_type, open }: MadeBytes,
  key: string,
): Promise<TaskOutput> {
  const { outputs, signal, at } = claimed
  at('copy: before the first byte')
  const body = await within(signal, open(signal))
  at('copy: in the middle')
  const output = await within(signal, outputs.keep(key, { content_type, body }, signal)).catch((error: unknown) => {
    throw claimed.stopping() ? error : storageError(claimed, error)
  })
  at('copy: after the last byte')
  return output
}

/** The same for every attempt, so that a copy that was cut goes on: nothing in it changes with a fresh link. */
export function keyOf({ task_id, family }: Task, index: number, { content_type = '' }: { content_type?: string }) {
  return `${task_id}/${index}.${endingOf(content_type) ?? endingOf(kindOf(family).content_type) ?? 'bin'}`
}

/** A file that stays at its vendor, by the operator's wish. */
export const passedThrough = ({ task }: ClaimedTask, { url, content_type }: RemoteFile): TaskOutput => ({
  url,
  content_type: content_type ?? kindOf(task.family).content_type,
})

export const NOTHING = 'The upstream said that it was done, but gave nothing; often a filter took it away.'

/** How long the links, and the files that were copied, are kept for an operator who resumes the task. */
const RESUMABLE_SECONDS = 7 * 86_400

type CopyFailure = { made: ComingOutput[]; error: GatewayError; outputs?: TaskOutput[] }

/** A fault of the gateway's own storage is `internal_error`: the client can do nothing about it, the operator can. */
export function endCopying(
  claimed: ClaimedTask,
  { made, error, outputs = claimed.task.outputs }: CopyFailure,
): Promise<void> {
  const reason = reasonFrom(error.message)
  const outputs_expire_at = unixSeconds(claimed.clock) + RESUMABLE_SECONDS
  return end(claimed, {
    status: 'FAILURE',
    fail_code: error.code === 'internal_error' ? 'internal_error' : 'output_expired',
    fail_reason: error.code === 'output_refused' ? reason : `${COPY_FAILED} ${reason}`,
    resumable: { made, outputs, outputs_expire_at },
  })
}

const COPY_FAILED = 'The upstream made it, but its file could not be copied before the deadline:'
