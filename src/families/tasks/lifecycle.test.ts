import { describe, expect, test } from 'bun:test'
import { TASK_STATUSES, type Task, type TaskStatus } from '../../spec/task.ts'
import { advance, blankTask, type Ending, endChange, isEnded, mayMove } from './lifecycle.ts'

const SUBMITTED_AT = 1_000
const task = (fields: Partial<Task> = {}): Task =>
  blankTask({
    task_id: 'task_1',
    token_id: 'tok_1',
    family: 'video-generation',
    model: 'acme/film',
    submit_time: SUBMITTED_AT,
    request: {},
    base_url: '',
    deadline_at: 5_000,
    due_ms: 0,
    ...fields,
  })

describe('the transitions', () => {
  const ALLOWED = [
    'NOT_START SUBMITTED',
    'NOT_START QUEUED',
    'NOT_START IN_PROGRESS',
    'NOT_START SUCCESS',
    'NOT_START FAILURE',
    'SUBMITTED QUEUED',
    'SUBMITTED IN_PROGRESS',
    'SUBMITTED SUCCESS',
    'SUBMITTED FAILURE',
    'QUEUED IN_PROGRESS',
    'QUEUED SUCCESS',
    'QUEUED FAILURE',
    'IN_PROGRESS SUCCESS',
    'IN_PROGRESS FAILURE',
  ]

  test('go forward, may skip states, and never leave a final state', () => {
    const found = TASK_STATUSES.flatMap((from) =>
      TASK_STATUSES.filter((to) => mayMove(from, to)).map((to) => `${from} ${to}`),
    )
    expect(found.toSorted()).toEqual(ALLOWED.toSorted())
  })

  test('end with SUCCESS or FAILURE', () => {
    expect(TASK_STATUSES.filter((status) => isEnded({ status }))).toEqual(['SUCCESS', 'FAILURE'])
  })
})

describe('in progress', () => {
  const progress = (fields: Partial<Task>, status: 'SUBMITTED' | 'QUEUED' | 'IN_PROGRESS', percent?: number) =>
    advance(task(fields), { status, percent, now: 2_000 }).progress

  test('each state starts at its percentage', () => {
    expect(progress({}, 'SUBMITTED')).toBe(10)
    expect(progress({}, 'QUEUED')).toBe(20)
    expect(progress({}, 'IN_PROGRESS')).toBe(30)
  })

  test("the provider's percentage fills 30 to 99, only in IN_PROGRESS", () => {
    expect(progress({}, 'IN_PROGRESS', 0)).toBe(30)
    expect(progress({}, 'IN_PROGRESS', 50)).toBe(64)
    expect(progress({}, 'IN_PROGRESS', 100)).toBe(99)
    expect(progress({}, 'QUEUED', 50)).toBe(20)
  })

  test('an invalid percentage is ignored', () => {
    for (const percent of [Number.NaN, Number.POSITIVE_INFINITY, '80' as unknown as number]) {
      expect(progress({}, 'IN_PROGRESS', percent)).toBe(30)
    }
    expect(progress({}, 'IN_PROGRESS', -5)).toBe(30)
    expect(progress({}, 'IN_PROGRESS', 500)).toBe(99)
  })

  test('progress never decreases', () => {
    expect(progress({ status: 'IN_PROGRESS', progress: 80, start_time: 1_500 }, 'IN_PROGRESS', 10)).toBe(80)
  })

  test('the status never goes back', () => {
    const change = advance(task({ status: 'IN_PROGRESS', progress: 40, start_time: 1_500 }), {
      status: 'QUEUED',
      now: 2_000,
    })
    expect(change).toEqual({ status: 'IN_PROGRESS', progress: 40 })
  })

  test('start_time is set once, when generation is first seen', () => {
    expect(advance(task({ status: 'QUEUED' }), { status: 'IN_PROGRESS', now: 2_000 }).start_time).toBe(2_000)
    const retryLater = advance(task({ status: 'IN_PROGRESS', start_time: 1_500 }), {
      status: 'IN_PROGRESS',
      now: 2_000,
    })
    expect(retryLater).not.toHaveProperty('start_time')
    expect(advance(task(), { status: 'QUEUED', now: 2_000 })).not.toHaveProperty('start_time')
  })

  test('a clock that is behind does not set the start before the submission', () => {
    expect(advance(task(), { status: 'IN_PROGRESS', now: 900 }).start_time).toBe(SUBMITTED_AT)
  })
})

describe('the end', () => {
  const done: Ending = { status: 'SUCCESS', outputs: [], outputs_expire_at: null }
  const broken: Ending = { status: 'FAILURE', fail_code: 'generation_failed', fail_reason: 'because' }

  test('of a success that was never seen in progress: it started when it was sent', () => {
    expect(endChange(task({ sent_at: 1_200 }), done, 2_000)).toMatchObject({ start_time: 1_200, finish_time: 2_000 })
  })

  test('of a failure before the start: it never started', () => {
    expect(endChange(task({ sent_at: 1_200 }), broken, 2_000)).toMatchObject({ start_time: 0, finish_time: 2_000 })
  })

  test('keeps a known start', () => {
    expect(endChange(task({ start_time: 1_500 }), broken, 2_000)).toMatchObject({ start_time: 1_500 })
  })

  test('sets 100 %, and times in order whatever the clock shows', () => {
    const statuses: TaskStatus[] = ['NOT_START', 'IN_PROGRESS']
    for (const status of statuses) {
      for (const ending of [done, broken]) {
        for (const now of [900, 1_500, 9_000]) {
          const change = endChange(task({ status, start_time: status === 'IN_PROGRESS' ? 1_400 : 0 }), ending, now)
          expect(change.progress).toBe(100)
          expect(change.finish_time).toBeGreaterThanOrEqual(SUBMITTED_AT)
          expect(change.finish_time).toBeGreaterThanOrEqual(change.start_time ?? 0)
        }
      }
    }
  })

  test('has a fail_code only for a failure', () => {
    expect(endChange(task(), done, 2_000)).not.toHaveProperty('fail_code')
    expect(endChange(task(), broken, 2_000)).toMatchObject({ fail_code: 'generation_failed', fail_reason: 'because' })
  })
})
