/** The slots of a process: shared among owners, and among the jobs of each. */
import { expect, it } from 'bun:test'
import { createFairSlots } from './fair-slots.ts'

const { signal } = new AbortController()

it('gives a free slot to who has fewest: by owner first, then by job', async () => {
  const slots = createFairSlots(() => 2)
  const given: string[] = []
  const releases: (() => void)[] = []
  const ask = (owner: string, job: string) =>
    slots.take([owner, job], signal).then((release) => {
      given.push(job)
      releases.push(release)
    })
  const all = [ask('a', 'a1'), ask('a', 'a1'), ask('a', 'a1'), ask('a', 'a2'), ask('b', 'b1')]
  await Promise.all(all.slice(0, 2))
  expect([given, slots.taken()]).toEqual([['a1', 'a1'], 2])
  // The owner that has none goes first, and then the job that has none.
  releases[0]?.()
  await all[4]
  releases[2]?.()
  await all[3]
  expect(given).toEqual(['a1', 'a1', 'b1', 'a2'])
  releases[1]?.()
  await all[2]
  expect([given.at(-1), slots.taken()]).toEqual(['a1', 2])
})

it('leaves out who has gone, and reads the limit at each use', async () => {
  let most = 1
  const slots = createFairSlots(() => most)
  const release = await slots.take(['a'], signal)
  const gone = new AbortController()
  const left = slots.take(['b'], gone.signal)
  const waiting = slots.take(['c'], signal)
  gone.abort(new Error('left'))
  await expect(left).rejects.toThrow('left')
  await expect(slots.take(['d'], gone.signal)).rejects.toThrow('left')
  most = 3
  release()
  ;(await waiting)()
  expect(slots.taken()).toBe(0)
})
