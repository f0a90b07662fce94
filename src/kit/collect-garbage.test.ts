import { edenGC, fullGC } from 'bun:jsc'
import { expect, test } from 'bun:test'
import { createCollector } from './collect-garbage.ts'

const MEGABYTE = 1024 * 1024

test('garbage that a collection has promoted is collected once much was read', async () => {
  let held: object[] = Array.from({ length: 1_000 }, () => ({}))
  const refs = held.map((one) => new WeakRef(one))
  const left = () => refs.filter((ref) => ref.deref()).length
  edenGC()
  held = []
  // A weak reference holds its object until the end of the turn.
  await Bun.sleep(0)
  edenGC()
  expect([held.length, left()]).toEqual([0, 1_000])
  await Bun.sleep(0)
  // However much is in use here, where all tests share a process.
  const collectAfter = createCollector(
    () => {
      fullGC()
      return 0
    },
    () => 0,
  )
  // Some may be taken for used by what lies on the stack.
  while (left() > 100) {
    await Bun.sleep(0)
    collectAfter(MEGABYTE)
  }
})

test.each([
  [20, 100, 0.05],
  [500, 100, 0.05],
  [500, 101, 0.001],
])(
  'collections of %p ms that leave %p MB take at most %p of the time, however much is read',
  (each_ms, left, share) => {
    const clock = { ms: 1_000_000, collected: 0 }
    const collect = () => {
      clock.ms += each_ms
      clock.collected++
      return left * MEGABYTE
    }
    const read = createCollector(collect, () => clock.ms)
    read(3 * MEGABYTE)
    expect(clock.collected).toBe(0)
    const start = clock.ms
    for (let piece = 0; piece < 700_000; piece++) {
      clock.ms++
      read(MEGABYTE)
    }
    expect(clock.collected).toBeGreaterThan(1)
    // The first one may lie right at the beginning.
    expect((clock.collected - 1) * each_ms).toBeLessThanOrEqual((clock.ms - start) * share)
  },
)
