import { describe, expect, it } from 'bun:test'
import { compiledPrices } from '../../models/prices.ts'
import { toNano } from '../../spec/price.ts'
import { blankTask } from './lifecycle.ts'
import { chargeOfTask, estimateTask } from './task-charge.ts'

const video = (request: object, duration?: object) =>
  estimateTask(
    { family: 'video-generation', request: { model: 'v/m', ...request } },
    { video: duration ? { duration } : {} },
  )

describe('the estimate of a task', () => {
  it('has the number of videos, and the seconds of all of them', () => {
    const { expected, most } = video({ n: 2, duration: 5, size: '720p', audio_enable: true })
    expect(expected).toMatchObject({ videos: 2, video_seconds: 10, video_size: '720p', has_sound: true })
    expect(most).toEqual(expected)
  })

  it('has the longest duration of the model where the request has none', () => {
    expect(video({}, { values: [4, 8] }).most.video_seconds).toBe(8)
    expect(video({}, { maximum: 12 }).most.video_seconds).toBe(12)
    expect(video({}).most.video_seconds).toBe(60)
    expect(video({}).expected.video_seconds).toBeUndefined()
  })

  it('has one 3D model, however many files it has', () => {
    const estimate = estimateTask({ family: '3d-generation', request: { model: 'v/m' } }, { video: {} })
    expect(estimate.most).toMatchObject({ three_d: 1, requests: 1 })
  })
})

describe('the charge of a task', () => {
  const AT = Date.UTC(2026, 11, 1) / 1_000
  const prices = [{ video_second: 0.1 }, { from: '2026-12-01', video_second: 0.2 }]
  const model = { ...compiledPrices({ prices }, { currency: 'USD', exchange_rates: {} }), targets: [] }
  const charge = (submit_time: number, request: object = { duration: 5 }) => {
    const task = blankTask({
      task_id: 'task_a',
      family: 'video-generation',
      model: 'v/m',
      token_id: 'tok_a',
      base_url: '',
      request: { ...request },
      submit_time,
      deadline_at: submit_time + 60,
      due_ms: 0,
    })
    return chargeOfTask(task, { catalogue: { serving: () => model as never }, outputs: 1 }).amount
  }

  it('is by the prices of the time at which it was submitted', () => {
    expect([charge(AT - 1), charge(AT)]).toEqual([toNano(0.5), toNano(1)])
  })

  it('is unknown, not 0, where its seconds are', () => {
    expect(charge(AT, {})).toBeNull()
  })
})
