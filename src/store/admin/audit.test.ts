/** The audit log on every engine: its chain, several writers, and what a check finds. */
import { afterEach, describe, expect, test } from 'bun:test'
import { storedProject, storedToken } from '../../../test/kit/accounts.ts'
import { ENGINES } from '../../../test/kit/engines.ts'
import type { AuditDraft } from '../../spec/audit.ts'

const draft = (change: Partial<AuditDraft> = {}): AuditDraft => ({
  actor: 'admin:adm_a',
  address: '192.0.2.1',
  request_id: 'req_a',
  at_ms: 1_700_000_000_000,
  action: 'project.update',
  object_type: 'project',
  object_id: 'proj_a',
  project_id: 'proj_a',
  before: { name: 'a' },
  after: { name: 'b' },
  ...change,
})

for (const { name, open, openAgain, run, cleanup } of ENGINES) {
  describe(`the audit log on ${name}`, () => {
    afterEach(cleanup)

    test('lists rows, newest first, by what they are about', async () => {
      const { audit } = await open()
      await audit.append(draft())
      await audit.append(draft({ actor: 'gateway', project_id: null, object_id: 'x', at_ms: 1_700_000_001_000 }))
      const page = await audit.page({ limit: 9 })
      expect(page.rows.map(({ sequence }) => sequence)).toEqual([2, 1])
      expect(page.rows[1]).toMatchObject({ ...draft(), sequence: 1, previous_hash: '0'.repeat(64) })
      expect(page.rows[0]?.previous_hash).toBe(page.rows[1]?.hash ?? '')
      const found = async (filter: object) =>
        (await audit.page({ limit: 9, ...filter })).rows.map(({ sequence }) => sequence)
      expect(await found({ actor: 'gateway' })).toEqual([2])
      expect(await found({ project_id: 'proj_a' })).toEqual([1])
      expect(await found({ object_id: 'x', action: 'project.update' })).toEqual([2])
      expect(await found({ from_ms: 1_700_000_001_000 })).toEqual([2])
      expect(await found({ to_ms: 1_700_000_001_000 })).toEqual([1])
      const first = await audit.page({ limit: 1 })
      expect(first.next).toEqual(['2'])
      expect((await audit.page({ limit: 1, after: first.next ?? [] })).rows.map(({ sequence }) => sequence)).toEqual([
        1,
      ])
      expect(await audit.verify()).toMatchObject({ rows: 2, last_hash: page.rows[0]?.hash ?? '' })
    })

    test('stores texts that a database may not take, and a check still passes', async () => {
      const { audit } = await open()
      await audit.append(draft({ actor: 'a\0b\ud800', object_id: 'é'.repeat(1000), after: { name: 'x\0\ud800' } }))
      expect((await audit.verify()).broken).toBeUndefined()
    })

    test('is written in the transaction of the change, and not without it', async () => {
      const { audit, tokens, projects } = await open()
      await projects.add(storedProject(), draft({ action: 'project.create' }))
      expect(await projects.add(storedProject({ project_id: 'proj_b' }), draft())).toBe(false) // the name is taken
      await tokens.add(storedToken(), draft({ action: 'token.create' }))
      await tokens.add(storedToken(), draft({ action: 'refused' })).catch(() => {})
      await tokens.update('tok_a', { name: 'b' }, (before, after) => draft({ action: 'token.update', before, after }))
      await tokens.update('tok_none', { name: 'b' }, () => draft({ action: 'refused' }))
      const { rows } = await audit.page({ limit: 9 })
      expect(rows.map(({ action }) => action)).toEqual(['token.update', 'token.create', 'project.create'])
      expect(rows[0]).toMatchObject({ before: { name: 'a' }, after: { name: 'b' } })
      expect((await audit.verify()).broken).toBeUndefined()
    })

    if (!openAgain || !run) return

    test('has one chain where several processes write at once', async () => {
      const stores = [await open(), await openAgain(), await openAgain()]
      await Promise.all(
        stores.flatMap(({ audit, tokens }, writer) =>
          Array.from({ length: 20 }, (_, n) => {
            const id = `${writer}-${n}`
            if (n % 2 === 0) return audit.append(draft({ object_id: id }))
            return tokens.add(storedToken({ token_id: `tok_${id}`, hash: id }), draft({ object_id: id }))
          }),
        ),
      )
      expect(await stores[0]?.audit.verify()).toMatchObject({ rows: 60 })
      expect((await stores[1]?.audit.verify())?.broken).toBeUndefined()
      const { rows } = (await stores[2]?.audit.page({ limit: 100 })) ?? { rows: [] }
      expect(new Set(rows.map(({ object_id }) => object_id)).size).toBe(60)
    })

    test.each([
      ["update audit set actor = 'somebody' where sequence = 3", 3, 'it was changed'],
      [`update audit set after = '{"name":"c"}' where sequence = 2`, 2, 'it was changed'],
      ['update audit set project_id = null where sequence = 4', 4, 'it was changed'],
      ['delete from audit where sequence = 1', 1, 'missing'],
      ['delete from audit where sequence = 3', 3, 'missing'],
      ['delete from audit where sequence = 5', 5, 'missing'],
      ['update audit set sequence = 6 where sequence = 5', 5, 'missing'],
      [`update audit set previous_hash = '${'1'.repeat(64)}' where sequence = 4`, 4, 'replaced'],
    ])('a check names the first row that is wrong after: %s', async (statement, sequence, trouble) => {
      const { audit } = await open()
      for (let n = 0; n < 5; n++) await audit.append(draft())
      expect((await audit.verify()).broken).toBeUndefined()
      await run(statement)
      const { broken } = await audit.verify()
      expect([broken?.sequence, broken?.trouble]).toEqual([sequence, expect.stringContaining(trouble)])
    })
  })
}
