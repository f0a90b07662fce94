/** The step that polls the provider. A response that cannot be read changes nothing. */
import { unixSeconds } from '../../../kit/clock.ts'
import type { RemoteOutput, TaskProgress } from '../../../providers/provider.ts'
import type { GatewayError } from '../../../spec/error.ts'
import { type ComingOutput, FAIL_CODES, type FailCode, type RemoteFile } from '../../../spec/task.ts'
import { advance, advanceToGenerated } from '../lifecycle.ts'
import type { TaskProvider } from '../order-kinds.ts'
import { nextCopyAttemptAt, nextPollAt } from '../poll-schedule.ts'
import {
  asGatewayError,
  type ClaimedTask,
  fail,
  retryLater,
  saveChange,
  taskProvider,
  withSignal,
} from './claimed-task.ts'
import { reasonFrom } from './fail-code.ts'
import { copyDeadline, endCopying, keyOf, NO_OUTPUT, passthroughOutput, storeBytes, succeed } from './finish.ts'
import { operationOf, proceed } from './proceed.ts'

/** The map only stops clients from polling too early; entries of tasks that others ended must not pile up. */
const MAX_NOT_BEFORE = 10_000

export async function poll(claimed: ClaimedTask): Promise<void> {
  const provider = taskProvider(claimed)
  if (!provider) return retryLater(claimed, 'poll')
  const seen = await pollProvider(claimed, provider)
  // Nothing was learned, so only the time of the next poll changes.
  if ('error' in seen) return retryLater(claimed, 'poll', { retry_after: seen.error.detail.retry_after })
  if (seen.progress.status === 'PROCEED') return proceed(claimed, provider)
  await applyProgress(claimed, seen.progress)
}

/** Applies the progress that the provider reports. */
export async function applyProgress(
  claimed: ClaimedTask,
  progress: Exclude<TaskProgress, { status: 'PROCEED' }>,
): Promise<void> {
  if (progress.status === 'SUCCESS') return finish(claimed, progress)
  if (progress.status !== 'FAILURE') return stillRunning(claimed, progress)
  const reason = reasonFrom(progress.fail_reason) || 'The provider gave no reason.'
  const code = knownCode(progress.fail_code)
  if (claimed.task.cancel_asked_at !== null && CODES_OF_CANCELED.includes(code)) {
    return fail(claimed, 'canceled', reasonFrom(`Canceled. The provider reported: ${reason}`))
  }
  await fail(claimed, code, reason)
}

/**
 * How providers report a task that they have canceled, where they have no status for it. If a process dies after the
 * provider has agreed to cancel, the next one asks again, is refused, and only sees the failure.
 */
const CODES_OF_CANCELED: FailCode[] = ['invalid_input', 'generation_failed', 'upstream_error', 'no_output']

/** Clients see a closed list of codes, also where an adapter passes on a code of its provider. */
const knownCode = (code: FailCode): FailCode => (Object.hasOwn(FAIL_CODES, code) ? code : 'generation_failed')

export type ProgressEnd = Extract<TaskProgress, { status: 'SUCCESS' | 'FAILURE' }>

export const isEnd = (progress: TaskProgress): progress is ProgressEnd =>
  progress.status === 'SUCCESS' || progress.status === 'FAILURE'

type Finished = Extract<TaskProgress, { status: 'SUCCESS' }>
type Running = Exclude<TaskProgress, ProgressEnd | { status: 'PROCEED' }>

/** An absent or unknown status keeps the task's status, which is at least QUEUED since the provider has the order. */
async function stillRunning(claimed: ClaimedTask, { status, progress, retry_after_seconds }: Running): Promise<void> {
  const { task, clock, notBefore } = claimed
  const now_ms = clock.now()
  const due_ms = nextPollAt(task, claimed.settings(), { now_ms, retry_after: retry_after_seconds })
  if (retry_after_seconds === undefined) notBefore.delete(task.task_id)
  else {
    if (notBefore.size >= MAX_NOT_BEFORE) notBefore.clear()
    notBefore.set(task.task_id, clock.steady() + due_ms - now_ms)
  }
  await saveChange(claimed, 'poll', {
    ...advance(task, {
      status: status === 'IN_PROGRESS' ? 'IN_PROGRESS' : 'QUEUED',
      percent: progress,
      now: unixSeconds(clock),
    }),
    failures: 0,
    due_ms,
  })
}

/** The provider has finished: its links are stored before anything is copied; inline bytes are stored at once. */
async function finish(claimed: ClaimedTask, { outputs: remote, expires_at }: Finished): Promise<void> {
  const { task } = claimed
  if (remote.length === 0) return fail(claimed, 'no_output', NO_OUTPUT)
  const bytes = await storeBytes(claimed, remote)
  const links = remoteLinks(remote)
  const missing = bytes.error ? [...unstoredBytes(claimed, remote, bytes.stored.length), ...links] : links
  if (bytes.error?.code === 'output_refused') {
    return endCopying(claimed, { made: missing, error: bytes.error, outputs: bytes.stored })
  }
  if (!bytes.error && claimed.providerSettings(task.provider)?.outputs === 'passthrough') {
    return succeed(claimed, [...bytes.stored, ...links.map((link) => passthroughOutput(claimed, link))])
  }
  if (missing.length === 0) return succeed(claimed, bytes.stored)
  const now_ms = claimed.clock.now()
  await saveChange(claimed, 'made', {
    ...advanceToGenerated(task, unixSeconds(claimed.clock)),
    made: missing,
    outputs: bytes.stored,
    failures: bytes.error ? 1 : 0,
    deadline_at: copyDeadline(claimed, expires_at),
    due_ms: bytes.error ? nextCopyAttemptAt(task, 1, { now_ms, retry_after: bytes.error.detail.retry_after }) : now_ms,
  })
}

/** Outputs whose bytes could not be stored now: another poll returns them again. */
const unstoredBytes = ({ task }: ClaimedTask, remote: RemoteOutput[], stored: number): ComingOutput[] =>
  remote
    .filter((one) => !('url' in one))
    .map(({ content_type = '' }, index) => ({
      key: keyOf(task, index, { content_type }),
      content_type,
      polled: true as const,
    }))
    .slice(stored)

type PollResult = { progress: TaskProgress } | { error: GatewayError }

/** One poll. An error, or a response that is not a status, says nothing about the task. */
export async function pollProvider(claimed: ClaimedTask, provider: TaskProvider): Promise<PollResult> {
  const { task, signal, log } = claimed
  try {
    return { progress: assertProgress(await withSignal(signal, provider.status(operationOf(task), signal))) }
  } catch (error) {
    if (claimed.stopping()) throw error
    const known = asGatewayError(error)
    const { task_id, provider } = task
    log.warn('poll failed', { task_id, provider, code: known.code, failures: task.failures + 1 })
    return { error: known }
  }
}

/** An adapter's result is typed, but its data comes from a provider: an unexpected shape must not end a task. */
function assertProgress(progress: TaskProgress): TaskProgress {
  if (typeof progress !== 'object' || progress === null) throw new TypeError('The status is not an object.')
  if (progress.status === 'SUCCESS' && !Array.isArray(progress.outputs))
    throw new TypeError('The status has no list of outputs.')
  return progress
}

export const remoteLinks = (remote: RemoteOutput[]): RemoteFile[] => remote.filter((one) => 'url' in one)
