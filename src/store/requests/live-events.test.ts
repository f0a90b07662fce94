import { afterEach, describe, expect, test } from 'bun:test'
import { ENGINES } from '../../../test/kit/engines.ts'

const event = (n: number) => ({
  at_ms: n,
  type: 'request',
  project_id: null,
  text: `{"n":${n}}`,
  process_id: 'gw_a',
  number: n,
  late: 0,
})

for (const { name, open, openAgain, cleanup } of ENGINES) {
  describe(`live events on ${name}`, () => {
    afterEach(cleanup)

    test('have one order for all processes', async () => {
      const here = (await open()).live
      const there = (await openAgain?.())?.live ?? here
      await Promise.all(Array.from({ length: 20 }, (_, n) => (n % 2 ? here : there).append([event(n), event(n)])))
      const rows = await here.after(0, 100)
      expect(rows.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 40 }, (_, n) => n + 1))
      expect(await there.last()).toBe(40)
      expect((await there.after(38, 100)).map(({ sequence }) => sequence)).toEqual([39, 40])
    })

    test('are asked for until a time, of the other processes, with another revision where a process had not asked', async () => {
      const store = await open()
      const { live, tokens } = store
      const before = await tokens.revision()
      expect(await live.askedUntil('gw_b')).toBe(0)
      expect(await live.ask('gw_a', 1_000, 100)).toBe(false)
      expect([await live.askedUntil('gw_b'), await live.askedUntil('gw_a')]).toEqual([1_000, 0])
      expect(await tokens.revision()).toBe(before + 1)
      expect(await live.ask('gw_a', 1_500, 500)).toBe(true)
      expect([await tokens.revision(), await live.askedUntil('gw_b')]).toEqual([before + 1, 1_500])
      await Promise.all([live.ask('gw_b', 1_400, 500), live.ask('gw_c', 1_300, 500)])
      expect([await tokens.revision(), await live.askedUntil('gw_a')]).toEqual([before + 3, 1_400])
      expect(await live.ask('gw_a', 3_000, 2_000)).toBe(false)
      expect([await tokens.revision(), await live.askedUntil('gw_a')]).toEqual([before + 4, 0])
    })

    test('keep the newest 5,000', async () => {
      const { live } = await open()
      for (let turn = 0; turn < 11; turn++) await live.append(Array.from({ length: 500 }, (_, n) => event(n)))
      expect((await live.after(0, 1)).map(({ sequence }) => sequence)).toEqual([501])
    })
  })
}
