/** When a task's next step is due: frequent while it is young, rare when it is old, spread over time. Pure. */
import type { Task } from '../../spec/task.ts'

export type PollSettings = { poll_seconds: number; slow_poll_seconds: number }

/** Until this age a task is young; most videos finish within some minutes. */
const YOUNG_SECONDS = 60
/** From this age on it is old; in between the pause grows linearly. */
const OLD_SECONDS = 600
/** Each task's pauses differ by up to this share, so that tasks that were accepted together are not polled together. */
const JITTER = 0.15
const FIRST_BACKOFF_SECONDS = 2
const MAX_BACKOFF_SECONDS = 60
/** For copying a finished file, which is retried for hours: about 300 attempts a day. */
const MAX_COPY_BACKOFF_SECONDS = 300
/** A task that has just been polled is not polled again, however many clients read it. */
const FRESH_MILLISECONDS = 3_000
/** For ended tasks: no client waits for their late outcome. */
const LATE_MIN_SECONDS = 60
const LATE_MAX_SECONDS = 600
const LATE_WATCH_SECONDS = 86_400
/** The `retry-after` of a task whose step is running. */
const CLAIM_SECONDS = 2

/** Milliseconds between two polls of this task. */
export function pollPause(task: Task, settings: PollSettings, now_ms: number): number {
  const { poll_seconds, slow_poll_seconds } = settings
  const age = now_ms / 1000 - (task.sent_at ?? task.submit_time)
  const grown = Math.min(1, Math.max(0, (age - YOUNG_SECONDS) / (OLD_SECONDS - YOUNG_SECONDS)))
  const seconds = poll_seconds + grown * Math.max(0, slow_poll_seconds - poll_seconds)
  return jittered(task, seconds * 1000)
}

type Retry = { now_ms: number; retry_after?: number | undefined }

/** The next poll: not before the time that the provider requests, and not after the deadline. Unix milliseconds. */
export function nextPollAt(task: Task, settings: PollSettings, { now_ms, retry_after = 0 }: Retry): number {
  return beforeDeadline(task, now_ms + Math.max(pollPause(task, settings, now_ms), milliseconds(retry_after)), now_ms)
}

/** The next attempt after this many consecutive failures. Unix milliseconds. */
export function nextAttemptAt(
  task: Task,
  failures: number,
  { now_ms, retry_after = 0 }: Retry,
  max_seconds = MAX_BACKOFF_SECONDS,
): number {
  const seconds = Math.min(max_seconds, FIRST_BACKOFF_SECONDS * 2 ** Math.max(0, failures - 1))
  const pause = Math.max(jittered(task, seconds * 1000), milliseconds(retry_after))
  return beforeDeadline(task, now_ms + pause, now_ms)
}

export const nextCopyAttemptAt = (task: Task, failures: number, retry: Retry): number =>
  nextAttemptAt(task, failures, retry, MAX_COPY_BACKOFF_SECONDS)

/** When to poll a task that has ended here but not at the provider; null: no more. Unix milliseconds. */
export function nextSlowPollAt(task: Task, now_ms: number): number | null {
  const finish_time = task.finish_time || now_ms / 1000 // 0 for a task that ends now
  const end = Math.max(finish_time, task.deadline_at) + LATE_WATCH_SECONDS
  const since = now_ms / 1000 - finish_time
  const seconds = Math.min(LATE_MAX_SECONDS, Math.max(LATE_MIN_SECONDS, since / 10))
  const due_ms = now_ms + jittered(task, seconds * 1000)
  return due_ms / 1000 < end ? due_ms : null
}

/**
 * Whether a client that reads a task may advance its next poll: the task waits regularly (not in backoff), and its last
 * poll was some seconds ago. The time of the last poll follows from when the next one is due.
 */
export function mayPollEarlier(task: Task, settings: PollSettings, now_ms: number): boolean {
  if (task.leased_by !== '' || task.due_ms === null || task.failures > 0 || task.operation === null) return false
  if (task.due_ms <= now_ms) return false
  return now_ms - (task.due_ms - pollPause(task, settings, now_ms)) >= FRESH_MILLISECONDS
}

/** After how many seconds a client should read an unfinished task again. */
export function retryAfterSeconds(task: Task, settings: PollSettings, now_ms: number): number {
  if (task.leased_by !== '' || task.due_ms === null) return CLAIM_SECONDS
  const seconds = Math.ceil((task.due_ms - now_ms) / 1000)
  return Math.min(Math.max(seconds, 1), Math.max(1, Math.ceil(settings.slow_poll_seconds)))
}

/** The deadline is a step of its own, so no pause extends beyond it. */
function beforeDeadline(task: Task, due_ms: number, now_ms: number): number {
  const deadline_ms = task.deadline_at * 1000
  return deadline_ms > now_ms ? Math.min(due_ms, deadline_ms) : due_ms
}

/** The same task always gets the same share, between 1 - JITTER and 1 + JITTER. */
function jittered({ task_id }: Task, ms: number): number {
  let mixed = 0
  for (let at = 0; at < task_id.length; at++) mixed = (Math.imul(mixed, 31) + task_id.charCodeAt(at)) >>> 0
  const share = (mixed % 1024) / 1023
  return Math.round(ms * (1 - JITTER + 2 * JITTER * share))
}

/** A provider's `retry-after` is honoured; a value that is not a number of seconds is ignored. */
const milliseconds = (seconds: number): number => (Number.isFinite(seconds) ? Math.max(0, seconds) * 1000 : 0)
