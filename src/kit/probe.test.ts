import { expect, test } from 'bun:test'
import { manualClock } from '../../test/kit/clock.ts'
import { createProbe } from './probe.ts'

test('a check that hangs delays its callers until the limit, and is not started again', async () => {
  const clock = manualClock()
  const answer = Promise.withResolvers<void>()
  let started = 0
  const probe = createProbe({
    check() {
      started++
      return answer.promise
    },
    limit_ms: 1_500,
    clock,
  })
  const calls = Promise.allSettled([probe(), probe()])
  clock.advance(1_499)
  const last = probe()
  clock.advance(1)
  const reason = new Error('No answer within 1500 ms.')
  expect(await calls).toEqual([
    { status: 'rejected', reason },
    { status: 'rejected', reason },
  ])
  answer.resolve()
  await last
  expect(started).toBe(1)
  await probe()
  expect([started, clock.waiting()]).toEqual([2, 0])
})

test('a check that fails rejects, and the next call checks again', async () => {
  const clock = manualClock()
  let failures = 1
  const check = async () => {
    if (failures-- > 0) throw new Error('full')
  }
  const probe = createProbe({ check, limit_ms: 1_500, clock })
  await expect(probe()).rejects.toThrow('full')
  await probe()
})
