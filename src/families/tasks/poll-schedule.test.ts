import { describe, expect, test } from 'bun:test'
import type { Task } from '../../spec/task.ts'
import {
  mayPollEarlier,
  nextAttemptAt,
  nextPollAt,
  nextSlowPollAt,
  pollPause,
  retryAfterSeconds,
} from './poll-schedule.ts'

const SETTINGS = { poll_seconds: 4, slow_poll_seconds: 15 }
const SENT = 1_000_000
const DAY = 86_400

const task = (fields: Partial<Task> = {}): Task =>
  ({
    task_id: 'task_abcdefgh',
    status: 'IN_PROGRESS',
    submit_time: SENT,
    sent_at: SENT,
    sent_to: null,
    provider_key: null,
    call_options: null,
    trace: null,
    finish_time: 0,
    deadline_at: SENT + DAY,
    operation: {},
    failures: 0,
    due_ms: 0,
    leased_by: '',
    ...fields,
  }) as Task

const at = (age: number) => (SENT + age) * 1000

describe('the pause between two polls', () => {
  test('is poll_seconds while the task is young and slow_poll_seconds when it is old, within 15 %', () => {
    for (let one = 0; one < 50; one++) {
      const some = task({ task_id: `task_${one}` })
      expect(pollPause(some, SETTINGS, at(0))).toBeWithin(3_400, 4_601)
      expect(pollPause(some, SETTINGS, at(60))).toBeWithin(3_400, 4_601)
      expect(pollPause(some, SETTINGS, at(600))).toBeWithin(12_750, 17_251)
      expect(pollPause(some, SETTINGS, at(90_000))).toBeWithin(12_750, 17_251)
    }
  })

  test('grows linearly with age', () => {
    const pauses = [60, 200, 330, 460, 600].map((age) => pollPause(task(), SETTINGS, at(age)))
    expect(pauses).toEqual(pauses.toSorted((a, b) => a - b))
    expect(new Set(pauses).size).toBe(5)
  })

  test('is the same for the same task, and differs between tasks that were sent together', () => {
    expect(pollPause(task(), SETTINGS, at(5))).toBe(pollPause(task(), SETTINGS, at(5)))
    const pauses = Array.from({ length: 1_000 }, (_, one) =>
      pollPause(task({ task_id: `task_${one * 7919}` }), SETTINGS, at(5)),
    )
    expect(new Set(pauses).size).toBeGreaterThan(400)
  })

  test('does not shrink with age if the slow pause is shorter than the fast one', () => {
    expect(pollPause(task(), { poll_seconds: 10, slow_poll_seconds: 5 }, at(9_000))).toBe(
      pollPause(task(), { poll_seconds: 10, slow_poll_seconds: 10 }, at(0)),
    )
  })
})

describe('the next poll', () => {
  test('is not before the time that the provider requests', () => {
    expect(nextPollAt(task(), SETTINGS, { now_ms: at(5), retry_after: 60 })).toBe(at(65))
    expect(nextPollAt(task(), SETTINGS, { now_ms: at(5), retry_after: 1 })).toBe(
      nextPollAt(task(), SETTINGS, { now_ms: at(5) }),
    )
  })

  test('ignores an invalid retry time of the provider', () => {
    for (const retry_after of [Number.NaN, -5, Number.POSITIVE_INFINITY]) {
      expect(nextPollAt(task(), SETTINGS, { now_ms: at(5), retry_after })).toBe(
        nextPollAt(task(), SETTINGS, { now_ms: at(5) }),
      )
    }
  })

  test('is not after the deadline', () => {
    const some = task({ deadline_at: SENT + 7 })
    expect(nextPollAt(some, SETTINGS, { now_ms: at(5), retry_after: 900 })).toBe(at(7))
    expect(nextPollAt(some, SETTINGS, { now_ms: at(8), retry_after: 10 })).toBe(at(18))
  })
})

describe('the next attempt after failures', () => {
  test('comes after 2, 4, 8, 16, 32, 60, 60 seconds, within 15 %', () => {
    const seconds = [2, 4, 8, 16, 32, 60, 60]
    for (const [index, pause] of seconds.entries()) {
      const due = nextAttemptAt(task(), index + 1, { now_ms: at(0) }) - at(0)
      expect(due).toBeWithin(pause * 850, pause * 1150 + 1)
    }
    expect(nextAttemptAt(task(), 5_000, { now_ms: at(0) }) - at(0)).toBeWithin(51_000, 69_001)
  })

  test("honours the provider's retry time, up to the deadline", () => {
    expect(nextAttemptAt(task(), 1, { now_ms: at(0), retry_after: 300 })).toBe(at(300))
    expect(nextAttemptAt(task({ deadline_at: SENT + 100 }), 1, { now_ms: at(0), retry_after: 300 })).toBe(at(100))
  })
})

describe('after the end', () => {
  const given = task({ finish_time: SENT, deadline_at: SENT })
  test('polls are at least a minute and at most ten minutes apart', () => {
    expect((nextSlowPollAt(given, at(0)) ?? 0) - at(0)).toBeWithin(51_000, 69_001)
    expect((nextSlowPollAt(given, at(50_000)) ?? 0) - at(50_000)).toBeWithin(510_000, 690_001)
  })

  test('polling stops after a day', () => {
    expect(nextSlowPollAt(given, at(DAY - 1_000))).not.toBeNull()
    expect(nextSlowPollAt(given, at(DAY - 100))).toBeNull()
  })

  test('a later deadline set by the operator counts', () => {
    expect(nextSlowPollAt({ ...given, deadline_at: SENT + 5_000 }, at(DAY))).not.toBeNull()
  })
})

describe('a client that reads a task', () => {
  /** Its last poll was at the age of 1,000 seconds. */
  const waiting = (fields: Partial<Task> = {}) =>
    task({ due_ms: at(1_000) + pollPause(task(), SETTINGS, at(1_000)), ...fields })

  test('advances the next poll if the last one was 3 seconds ago', () => {
    expect(mayPollEarlier(waiting(), SETTINGS, at(1_003))).toBe(true)
    expect(mayPollEarlier(waiting(), SETTINGS, at(1_002.9))).toBe(false)
  })

  test('does not advance a task that is claimed, in backoff, due, never due or not sent', () => {
    expect(mayPollEarlier(waiting({ leased_by: 'worker' }), SETTINGS, at(1_005))).toBe(false)
    expect(mayPollEarlier(waiting({ failures: 1 }), SETTINGS, at(1_005))).toBe(false)
    expect(mayPollEarlier(waiting({ due_ms: at(1_005) }), SETTINGS, at(1_005))).toBe(false)
    expect(mayPollEarlier(waiting({ due_ms: null }), SETTINGS, at(1_005))).toBe(false)
    expect(mayPollEarlier(waiting({ operation: null }), SETTINGS, at(1_005))).toBe(false)
  })

  test('gets a retry time between one second and the slow pause', () => {
    expect(retryAfterSeconds(task({ due_ms: at(5.2) }), SETTINGS, at(0))).toBe(6)
    expect(retryAfterSeconds(task({ due_ms: at(0) }), SETTINGS, at(5))).toBe(1)
    expect(retryAfterSeconds(task({ due_ms: at(900) }), SETTINGS, at(0))).toBe(15)
    expect(retryAfterSeconds(task({ due_ms: at(90), leased_by: 'worker' }), SETTINGS, at(0))).toBe(2)
  })
})
