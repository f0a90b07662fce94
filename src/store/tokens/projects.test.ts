/** Projects in the store, on every engine. */
import { afterEach, describe, expect, test } from 'bun:test'
import { storedProject, storedToken } from '../../../test/kit/accounts.ts'
import { ENGINES } from '../../../test/kit/engines.ts'

const full = storedProject({
  project_id: 'proj_full',
  name: 'full — ünïcode',
  labels: { team: 'a' },
  models: ['sandbox/*'],
  families: ['chatcompat', 'rerank'],
  rate_limits: { requests_per_minute: 600 },
  budgets: [{ amount: 50, window: 'month' }],
  end_users: { rate_limits: { requests_per_day: 5 } },
  allowed_addresses: ['203.0.113.0/24'],
  expires_at: 4_000_000_000,
  disabled: true,
})
const plain = storedProject({ project_id: 'proj_plain', name: 'plain' })

for (const engine of ENGINES) {
  describe(engine.name, () => {
    afterEach(() => engine.cleanup())

    test('returns stored projects with every field, by id, by name and in a list, oldest first', async () => {
      const { projects } = await engine.open()
      expect(await projects.add(full)).toBe(true)
      expect(await projects.add(plain)).toBe(true)
      expect(await projects.find('proj_full')).toEqual(full)
      expect(await projects.findNamed(full.name)).toEqual(full)
      expect(await projects.list()).toEqual([full, plain])
      expect(await projects.find('proj_none')).toBeUndefined()
      expect(await projects.findNamed('none')).toBeUndefined()
    })

    test('has one project of a name, even when it is added twice at the same time', async () => {
      const { projects } = await engine.open()
      const adds = ['proj_1', 'proj_2', 'proj_3'].map((project_id) => projects.add({ ...plain, project_id }))
      expect((await Promise.all(adds)).filter(Boolean)).toEqual([true])
      expect(await projects.list()).toHaveLength(1)
    })

    test('updates the given fields and no other', async () => {
      const { projects } = await engine.open()
      await projects.add(full)
      await projects.add(plain)
      const change = { name: 'renamed', families: null, disabled: false, allowed_addresses: null, expires_at: null }
      expect(await projects.update('proj_full', change)).toEqual({ ...full, ...change })
      expect(await projects.find('proj_full')).toEqual({ ...full, ...change })
      expect(await projects.find('proj_plain')).toEqual(plain)
      expect(await projects.update('proj_full', { name: 'plain' })).toBe('name_taken')
      expect(await projects.update('proj_full', { name: 'renamed' })).toMatchObject({ name: 'renamed' })
      expect(await projects.update('proj_none', { name: 'x' })).toBe('missing')
    })

    test('makes changes of the present fields one after another, so that none is lost', async () => {
      const { projects, tokens } = await engine.open()
      await projects.add(plain)
      await tokens.add(storedToken())
      const adds = Array.from({ length: 8 }, (_, index) => ({ [`l${index}`]: '1' }))
      await Promise.all([
        ...adds.map((add) => projects.update('proj_plain', ({ labels }) => ({ labels: { ...labels, ...add } }))),
        ...adds.map((add) => tokens.update('tok_a', ({ labels }) => ({ labels: { ...labels, ...add } }))),
      ])
      const all = Object.assign({}, ...adds)
      expect((await projects.find('proj_plain'))?.labels).toEqual(all)
      expect((await tokens.find('tok_a'))?.labels).toEqual(all)
      const refused = tokens.update('tok_a', () => {
        throw new Error('no')
      })
      await expect(refused).rejects.toThrow('no')
      expect(await projects.update('proj_plain', () => ({}))).toEqual({ ...plain, labels: all })
    })

    test('keeps a deleted project for what it used, and its name can be used again', async () => {
      const { projects } = await engine.open()
      await projects.add(plain)
      expect(await projects.update('proj_plain', { deleted_at: 9 })).toEqual({ ...plain, deleted_at: 9 })
      expect(await projects.list()).toEqual([])
      expect(await projects.findNamed('plain')).toBeUndefined()
      expect(await projects.find('proj_plain')).toEqual({ ...plain, deleted_at: 9 })
      expect(await projects.update('proj_plain', { deleted_at: null })).toBe('missing')
      expect(await projects.add({ ...plain, project_id: 'proj_2' })).toBe(true)
    })

    test('counts every change in the revision of the tokens', async () => {
      const { projects, tokens } = await engine.open()
      const revisions = [await tokens.revision()]
      await projects.add(plain)
      revisions.push(await tokens.revision())
      await projects.update('proj_plain', { disabled: true })
      revisions.push(await tokens.revision())
      await tokens.add(storedToken({ project_id: 'proj_plain' }))
      revisions.push(await tokens.revision())
      expect(revisions).toEqual([0, 1, 2, 3].map((by) => (revisions[0] ?? 0) + by))
    })
  })
}
