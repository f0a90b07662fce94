/** When a task's next step is due: often while it is young, seldom when it is old, never all at once. Pure. */
import type { Task } from '../spec/task.ts'

export type PollSettings = { poll_seconds: number; slow_poll_seconds: number }

/** Until this age a task is young; most videos are done within some minutes. */
const YOUNG_SECONDS = 60
/** From this age on it is old; in between the pause grows evenly. */
const OLD_SECONDS = 600
/** Each task's pauses differ by up to this share, so that tasks that were accepted at once do not stay in step. */
const JITTER = 0.15
const FIRST_BACK_OFF_SECONDS = 2
const LONGEST_BACK_OFF_SECONDS = 60
/** Of a finished file, which is retried for hours: about 300 attempts a day. */
const LONGEST_COPY_BACK_OFF_SECONDS = 300
/** A task that has just been asked about is not asked about again, however many clients want to know. */
const FRESH_MILLISECONDS = 3_000
/** Of ended tasks: nobody waits for what became of them. */
const LATE_LEAST_SECONDS = 60
const LATE_MOST_SECONDS = 600
const LATE_WATCH_SECONDS = 86_400
/** What a client is told while a step is under way: it takes a moment. */
const CLAIM_SECONDS = 2

/** Milliseconds between two questions about this task. */
export function pollPause(task: Task, settings: PollSettings, now_ms: number): number {
  const { poll_seconds, slow_poll_seconds } = settings
  const age = now_ms / 1000 - (task.sent_at ?? task.submit_time)
  const grown = Math.min(1, Math.max(0, (age - YOUNG_SECONDS) / (OLD_SECONDS - YOUNG_SECONDS)))
  const seconds = poll_seconds + grown * Math.max(0, slow_poll_seconds - poll_seconds)
  return jittered(task, seconds * 1000)
}

/** The next question; not before the vendor wants it, and not after the deadline. Unix milliseconds. */
export function nextPollAt(
  task: Task,
  settings: PollSettings,
  { now_ms, retry_after = 0 }: { now_ms: number; retry_after?: number | undefined },
): number {
  return beforeDeadline(task, now_ms + Math.max(pollPause(task, settings, now_ms), milliseconds(retry_after)), now_ms)
}

type Retry = { now_ms: number; retry_after?: number | undefined }

/** The next attempt after this many in a row that went wrong. Unix milliseconds. */
export const nextAttemptAt = (task: Task, failures: number, retry: Retry): number =>
  backOff(task, failures, { ...retry, longest_seconds: LONGEST_BACK_OFF_SECONDS })

/** The same of a download. */
export const nextCopyAttemptAt = (task: Task, failures: number, retry: Retry): number =>
  backOff(task, failures, { ...retry, longest_seconds: LONGEST_COPY_BACK_OFF_SECONDS })

function backOff(
  task: Task,
  failures: number,
  { now_ms, retry_after = 0, longest_seconds }: Retry & { longest_seconds: number },
): number {
  const seconds = Math.min(longest_seconds, FIRST_BACK_OFF_SECONDS * 2 ** Math.max(0, failures - 1))
  const pause = Math.max(jittered(task, seconds * 1000), milliseconds(retry_after))
  return beforeDeadline(task, now_ms + pause, now_ms)
}

/** When to ask what became of a task that has ended here but not there; null: not any more. Unix milliseconds. */
export function nextSlowPollAt(task: Task, now_ms: number): number | null {
  const finish_time = task.finish_time || now_ms / 1000 // of one that ends just now
  const end = Math.max(finish_time, task.deadline_at) + LATE_WATCH_SECONDS
  const since = now_ms / 1000 - finish_time
  const seconds = Math.min(LATE_MOST_SECONDS, Math.max(LATE_LEAST_SECONDS, since / 10))
  const due_ms = now_ms + jittered(task, seconds * 1000)
  return due_ms / 1000 < end ? due_ms : null
}

/**
 * Whether a client who asks may bring a task's next step forward: it waits in good order (not for its vendor's sake),
 * and its last step is some seconds ago. When that was is told by when the next is due.
 */
export function mayPollEarlier(task: Task, settings: PollSettings, now_ms: number): boolean {
  if (task.leased_by !== '' || task.due_ms === null || task.failures > 0 || task.operation === null) return false
  if (task.due_ms <= now_ms) return false
  return now_ms - (task.due_ms - pollPause(task, settings, now_ms)) >= FRESH_MILLISECONDS
}

/** Seconds after which asking for a task that is under way makes sense. */
export function retryAfterSeconds(task: Task, settings: PollSettings, now_ms: number): number {
  if (task.leased_by !== '' || task.due_ms === null) return CLAIM_SECONDS
  const seconds = Math.ceil((task.due_ms - now_ms) / 1000)
  return Math.min(Math.max(seconds, 1), Math.max(1, Math.ceil(settings.slow_poll_seconds)))
}

/** The deadline is a step of its own: it is not slept through. */
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

/** What a vendor wants is honoured; what is no number of seconds is not. */
const milliseconds = (seconds: number): number => (Number.isFinite(seconds) ? Math.max(0, seconds) * 1000 : 0)
