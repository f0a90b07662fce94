import { edenGC } from 'bun:jsc'
import { expect, test } from 'bun:test'
import { collectAfter } from './collect-garbage.ts'

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
  // Some may be taken for used by what lies on the stack. Another collection may have been a moment ago.
  while (left() > 100) {
    await Bun.sleep(0)
    collectAfter(MEGABYTE)
  }
})
