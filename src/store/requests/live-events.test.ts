import { afterEach, describe, expect, test } from 'bun:test'
import { ENGINES } from '../../../test/kit/engines.ts'

const event = (n: number) => ({ at_ms: n, type: 'request', project_id: null, text: `{"n":${n}}` })

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

    test('are asked for until a time, with a gap and another revision where nobody had asked', async () => {
      const store = await open()
      const { live, tokens } = store
      const before = await tokens.revision()
      expect(await live.askedUntil()).toBe(0)
      await Promise.all([live.ask(1_000, 100), live.ask(900, 100)])
      expect([await live.askedUntil(), (await live.after(0, 9)).map(({ type }) => type)]).toEqual([1_000, ['gap']])
      expect(await tokens.revision()).toBe(before + 1)
      await live.ask(1_500, 500)
      expect([await tokens.revision(), await live.askedUntil()]).toEqual([before + 1, 1_500])
      await live.ask(3_000, 2_000)
      expect([await tokens.revision(), await live.last()]).toEqual([before + 2, 2])
    })

    test('keep the newest 5,000', async () => {
      const { live } = await open()
      for (let turn = 0; turn < 11; turn++) await live.append(Array.from({ length: 500 }, (_, n) => event(n)))
      expect((await live.after(0, 1)).map(({ sequence }) => sequence)).toEqual([501])
    })
  })
}
