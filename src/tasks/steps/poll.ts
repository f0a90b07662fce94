/** The step that asks the vendor how far it is. What cannot be read changes nothing. */
import { unixSeconds } from '../../kit/clock.ts'
import type { RemoteOutput, TaskProgress } from '../../providers/provider.ts'
import { type ComingOutput, FAIL_CODES, type FailCode } from '../../spec/task.ts'
import { nextAttempt, nextCopyAttempt, nextPoll } from '../cadence.ts'
import { advance } from '../lifecycle.ts'
import { endCopying } from './end-copying.ts'
import { reasonFrom } from './fail-code.ts'
import { copyDeadline, keepBytes, keyOf, NOTHING, passedThrough, succeed } from './finish.ts'
import { fail, type Held, vendorOf, write } from './held.ts'
import { linksOf, look } from './look.ts'
import { proceed } from './proceed.ts'

/** It only keeps clients from hastening; what others ended meanwhile is not worth keeping for ever. */
const MOST_UNHURRIED = 10_000

export async function poll(held: Held): Promise<void> {
  const vendor = vendorOf(held)
  if (!vendor) return again(held)
  const seen = await look(held, vendor)
  if ('error' in seen) return again(held, seen.error.detail.retry_after)
  if (seen.progress.status === 'PROCEED') return proceed(held, vendor)
  await heard(held, seen.progress)
}

/** What the vendor says, taken for true. */
export async function heard(held: Held, progress: Exclude<TaskProgress, { status: 'PROCEED' }>): Promise<void> {
  if (progress.status === 'SUCCESS') return made(held, progress)
  if (progress.status !== 'FAILURE') return underWay(held, progress)
  await fail(held, knownCode(progress.fail_code), reasonFrom(progress.fail_reason) || 'The upstream gave no reason.')
}

/** The list is closed for clients, also where an adapter passes a vendor's own word through. */
const knownCode = (code: FailCode): FailCode => (Object.hasOwn(FAIL_CODES, code) ? code : 'generation_failed')

/** Later: nothing is known, so nothing changes but the time of the next question. */
async function again(held: Held, retry_after?: number): Promise<void> {
  const failures = held.task.failures + 1
  const due_ms = nextAttempt(held.task, failures, { now_ms: held.clock.now(), retry_after })
  await write(held, 'poll', { failures, due_ms })
}

type Made = Extract<TaskProgress, { status: 'SUCCESS' }>
type UnderWay = Exclude<TaskProgress, { status: 'SUCCESS' | 'FAILURE' | 'PROCEED' }>

/** A status that is absent or unknown keeps the task where it is; the vendor has it, so that is QUEUED at least. */
async function underWay(held: Held, { status, progress, retry_after_seconds }: UnderWay): Promise<void> {
  const { task, clock, unhurried } = held
  const due_ms = nextPoll(task, held.settings(), { now_ms: clock.now(), retry_after: retry_after_seconds })
  if (retry_after_seconds === undefined) unhurried.delete(task.task_id)
  else {
    if (unhurried.size >= MOST_UNHURRIED) unhurried.clear()
    unhurried.set(task.task_id, due_ms)
  }
  await write(held, 'poll', {
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
async function made(held: Held, { outputs: remote, expires_at }: Made): Promise<void> {
  const { task } = held
  if (remote.length === 0) return fail(held, 'no_output', NOTHING)
  const bytes = await keepBytes(held, remote)
  const links = linksOf(remote)
  const missing = bytes.error ? [...unkeptBytes(held, remote, bytes.kept.length), ...links] : links
  if (bytes.error?.code === 'output_refused') {
    return endCopying(held, { made: missing, error: bytes.error, outputs: bytes.kept })
  }
  if (!bytes.error && held.providerSettings(task.provider)?.outputs === 'passthrough') {
    return succeed(held, [...bytes.kept, ...links.map((link) => passedThrough(held, link))])
  }
  if (missing.length === 0) return succeed(held, bytes.kept)
  const now_ms = held.clock.now()
  const now = unixSeconds(held.clock)
  await write(held, 'made', {
    ...advance(task, { status: 'IN_PROGRESS', percent: 100, now }),
    // It was never seen at work, but it was: since it was sent, as far as anybody knows.
    ...(task.start_time === 0 && { start_time: Math.max(task.sent_at ?? now, task.submit_time) }),
    made: missing,
    outputs: bytes.kept,
    failures: bytes.error ? 1 : 0,
    deadline_at: copyDeadline(held, expires_at),
    due_ms: bytes.error ? nextCopyAttempt(task, 1, { now_ms, retry_after: bytes.error.detail.retry_after }) : now_ms,
  })
}

/** Those that could not be kept now: another poll brings them again. */
const unkeptBytes = ({ task }: Held, remote: RemoteOutput[], kept: number): ComingOutput[] =>
  remote
    .filter((one) => !('url' in one))
    .map(({ content_type = '' }, index) => ({
      key: keyOf(task, index, { content_type }),
      content_type,
      polled: true as const,
    }))
    .slice(kept)
