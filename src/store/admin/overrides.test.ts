/** Runtime overrides in the store, on every engine. */
import { afterEach, describe, expect, test } from 'bun:test'
import { ENGINES } from '../../../test/kit/engines.ts'

const TARGET = { kind: 'target', name: 'acme/large' } as const
const BY = { set_by: 'owner', set_at: 7 }

for (const engine of ENGINES) {
  describe(engine.name, () => {
    afterEach(() => engine.cleanup())

    test('changes the given fields, and returns what the override was and is', async () => {
      const { overrides } = await engine.open()
      expect(await overrides.list()).toEqual([])
      const drained = { ...TARGET, weight: null, state: 'drained' as const, ...BY }
      expect(await overrides.set(TARGET, { state: 'drained' }, BY)).toEqual({ before: undefined, after: drained })
      const weighed = { ...drained, weight: 0.5, set_by: 'other', set_at: 8 }
      const other = { set_by: 'other', set_at: 8 }
      expect(await overrides.set(TARGET, { weight: 0.5 }, other)).toEqual({ before: drained, after: weighed })
      expect(await overrides.list()).toEqual([weighed])
    })

    test('removes an override with the last of its fields', async () => {
      const { overrides } = await engine.open()
      const { after } = await overrides.set(TARGET, { state: 'disabled', weight: 0 }, BY)
      await overrides.set({ kind: 'model', name: 'acme/large' }, { state: 'disabled' }, BY)
      await overrides.set(TARGET, { state: null }, BY)
      expect(await overrides.list()).toHaveLength(2)
      await overrides.set(TARGET, { weight: null }, BY)
      expect(await overrides.list()).toMatchObject([{ kind: 'model', state: 'disabled' }])
      expect(await overrides.set(TARGET, { weight: null, state: null }, BY)).toEqual({
        before: undefined,
        after: undefined,
      })
      expect(after).toMatchObject({ weight: 0, state: 'disabled' })
    })

    test('counts every change, and loses none that is made at the same time', async () => {
      const { overrides } = await engine.open()
      const revision = await overrides.revision()
      await Promise.all([
        overrides.set(TARGET, { state: 'drained' }, BY),
        overrides.set(TARGET, { weight: 3 }, BY),
        overrides.set({ kind: 'key', name: 'acme#1' }, { weight: 2 }, BY),
      ])
      expect(await overrides.revision()).toBe(revision + 3)
      expect(await overrides.list()).toMatchObject([
        { kind: 'key', weight: 2, state: null },
        { kind: 'target', weight: 3, state: 'drained' },
      ])
    })

    test('changes nothing where the check or the row of the audit log fails', async () => {
      const { overrides, audit } = await engine.open()
      const fail = () => {
        throw new Error('stopped')
      }
      for (const guard of [{ check: fail }, { audit: fail }]) {
        expect(await overrides.set(TARGET, { state: 'drained' }, BY, guard).catch(String)).toContain('stopped')
      }
      expect([await overrides.list(), (await audit.page({ limit: 9 })).rows]).toEqual([[], []])
      const draft = { actor: 'a', at_ms: 1, action: 'override.set', object_type: 'target', object_id: TARGET.name }
      await overrides.set(TARGET, { state: 'drained' }, BY, { audit: (states) => ({ ...draft, ...states }) })
      expect((await audit.page({ limit: 9 })).rows).toMatchObject([
        { action: 'override.set', after: { state: 'drained' } },
      ])
    })

    test('keeps overrides for the next process', async () => {
      if (!engine.openAgain) return
      const { overrides } = await engine.open()
      await overrides.set(TARGET, { state: 'drained' }, BY)
      const again = await engine.openAgain()
      expect(await again.overrides.list()).toEqual(await overrides.list())
      expect(await again.overrides.revision()).toBe(await overrides.revision())
    })
  })
}
