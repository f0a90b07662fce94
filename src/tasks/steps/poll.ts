/** The step that asks the vendor how far it is. What cannot be read changes nothing. */
import { unixSeconds } from '../../kit/clock.ts'
import type { RemoteOutput, TaskProgress } from '../../providers/provider.ts'
import type { GatewayError } from '../../spec/error.ts'
import { type ComingOutput, FAIL_CODES, type FailCode, type RemoteFile } from '../../spec/task.ts'
import { advance } from '../lifecycle.ts'
import type { TaskVendor } from '../order-kinds.ts'
import { nextAttempt, nextCopyAttempt, nextPoll } from '../poll-schedule.ts'
import { asGatewayError, type ClaimedTask, fail, vendorOf, within, write } from './claimed-task.ts'
import { reasonFrom } from './fail-code.ts'
import { copyDeadline, endCopying, keepBytes, keyOf, NOTHING, passedThrough, succeed } from './finish.ts'
import { operationOf, proceed } from './proceed.ts'

/** It only keeps clients from hastening; what others ended meanwhile is not worth keeping for ever. */
const MAX_NOT_BEFORE = 10_000

export async function poll(claimed: ClaimedTask): Promise<void> {
  const vendor = vendorOf(claimed)
  if (!vendor) return again(claimed)
  const seen = await look(claimed, vendor)
  if ('error' in seen) return again(claimed, seen.error.detail.retry_after)
  if (seen.progress.status === 'PROCEED') return proceed(claimed, vendor)
  await heard(claimed, seen.progress)
}

/** What the vendor says, taken for true. */
export async function heard(
  claimed: ClaimedTask,
  progress: Exclude<TaskProgress, { status: 'PROCEED' }>,
): Promise<void> {
  if (progress.status === 'SUCCESS') return made(claimed, progress)
  if (progress.status !== 'FAILURE') return underWay(claimed, progress)
  await fail(claimed, knownCode(progress.fail_code), reasonFrom(progress.fail_reason) || 'The upstream gave no reason.')
}

/** The list is closed for clients, also where an adapter passes a vendor's own word through. */
const knownCode = (code: FailCode): FailCode => (Object.hasOwn(FAIL_CODES, code) ? code : 'generation_failed')

/** Later: nothing is known, so nothing changes but the time of the next question. */
async function again(claimed: ClaimedTask, retry_after?: number): Promise<void> {
  const failures = claimed.task.failures + 1
  const due_ms = nextAttempt(claimed.task, failures, { now_ms: claimed.clock.now(), retry_after })
  await write(claimed, 'poll', { failures, due_ms })
}

type Made = Extract<TaskProgress, { status: 'SUCCESS' }>
type UnderWay = Exclude<TaskProgress, { status: 'SUCCESS' | 'FAILURE' | 'PROCEED' }>

/** A status that is absent or unknown keeps the task where it is; the vendor has it, so that is QUEUED at least. */
async function underWay(claimed: ClaimedTask, { status, progress, retry_after_seconds }: UnderWay): Promise<void> {
  const { task, clock, notBefore } = claimed
  const due_ms = nextPoll(task, claimed.settings(), { now_ms: clock.now(), retry_after: retry_after_seconds })
  if (retry_after_seconds === undefined) notBefore.delete(task.task_id)
  else {
    if (notBefore.size >= MAX_NOT_BEFORE) notBefore.clear()
    notBefore.set(task.task_id, due_ms)
  }
  await write(claimed, 'poll', {
    ...advance(task, {
      status: status === 'IN_PROGRESS' ? 'IN_PROGRESS' : 'QUEUED',
      percent: progress,
      now: unixSeconds(clock),
    }),
    failures: 0,
    due_ms,
  })
}

/** Done: the vendor's links are written down before anything is copied; bytes that came along are kept at once. */
async function made(claimed: ClaimedTask, { outputs: remote, expires_at }: Made): Promise<void> {
  const { task } = claimed
  if (remote.length === 0) return fail(claimed, 'no_output', NOTHING)
  const bytes = await keepBytes(claimed, remote)
  const links = linksOf(remote)
  const missing = bytes.error ? [...unkeptBytes(claimed, remote, bytes.kept.length), ...links] : links
  if (bytes.error?.code === 'output_refused') {
    return endCopying(claimed, { made: missing, error: bytes.error, outputs: bytes.kept })
  }
  if (!bytes.error && claimed.providerSettings(task.provider)?.outputs === 'passthrough') {
    return succeed(claimed, [...bytes.kept, ...links.map((link) => passedThrough(claimed, link))])
  }
  if (missing.length === 0) return succeed(claimed, bytes.kept)
  const now_ms = claimed.clock.now()
  const now = unixSeconds(claimed.clock)
  await write(claimed, 'made', {
    ...advance(task, { status: 'IN_PROGRESS', percent: 100, now }),
    // It was never seen at work, but it was: since it was sent, as far as anybody knows.
    ...(task.start_time === 0 && { start_time: Math.max(task.sent_at ?? now, task.submit_time) }),
    made: missing,
    outputs: bytes.kept,
    failures: bytes.error ? 1 : 0,
    deadline_at: copyDeadline(claimed, expires_at),
    due_ms: bytes.error ? nextCopyAttempt(task, 1, { now_ms, retry_after: bytes.error.detail.retry_after }) : now_ms,
  })
}

/** Those that could not be kept now: another poll brings them again. */
const unkeptBytes = ({ task }: ClaimedTask, remote: RemoteOutput[], kept: number): ComingOutput[] =>
  remote
    .filter((one) => !('url' in one))
    .map(({ content_type = '' }, index) => ({
      key: keyOf(task, index, { content_type }),
      content_type,
      polled: true as const,
    }))
    .slice(kept)

type Seen = { progress: TaskProgress } | { error: GatewayError }

/** An error, and what is no answer at all, says nothing of the task. */
export async function look(claimed: ClaimedTask, vendor: TaskVendor): Promise<Seen> {
  const { task, signal, log } = claimed
  try {
    return { progress: readable(await within(signal, vendor.status(operationOf(task), signal))) }
  } catch (error) {
    if (claimed.stopping()) throw error
    const known = asGatewayError(error)
    const { task_id, provider } = task
    log.warn('poll without an answer', { task_id, provider, code: known.code, failures: task.failures + 1 })
    return { error: known }
  }
}

/** An adapter's answer is typed, and yet comes from a vendor: a shape that nobody foresaw must not end a task. */
function readable(progress: TaskProgress): TaskProgress {
  if (typeof progress !== 'object' || progress === null) throw new TypeError('The status is no object.')
  if (progress.status === 'SUCCESS' && !Array.isArray(progress.outputs)) throw new TypeError('No list of outputs.')
  return progress
}

export const linksOf = (remote: RemoteOutput[]): RemoteFile[] => remote.filter((one) => 'url' in one)
