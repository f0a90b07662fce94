import { describe, expect, it } from 'bun:test'
import { estimateTask } from './task-charge.ts'

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
