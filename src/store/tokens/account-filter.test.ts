/** Pages of tokens and projects by a filter, on every engine. */
import { afterEach, describe, expect, test } from 'bun:test'
import { storedProject, storedToken } from '../../../test/kit/accounts.ts'
import { ENGINES } from '../../../test/kit/engines.ts'

const NOW = 1_000
const given = [
  storedToken({ token_id: 'tok_a', name: 'Laptop of Ann', prefix: 'gh_aaa' }),
  storedToken({ token_id: 'tok_b', name: '100%_sure', prefix: 'gh_bbb', expires_at: NOW }),
  storedToken({ token_id: 'tok_c', name: 'laptop\\c', prefix: 'gh_ccc', expires_at: NOW + 1 }),
  storedToken({ token_id: 'tok_d', name: 'd', prefix: 'gh_ddd', disabled: true }),
]

for (const engine of ENGINES) {
  describe(engine.name, () => {
    afterEach(() => engine.cleanup())

    test('finds tokens by part of a name and by the start of id and prefix, literally', async () => {
      const { tokens } = await engine.open()
      for (const token of given) await tokens.add({ ...token, hash: `hash of ${token.token_id}` })
      const found = async (text: string) =>
        (await tokens.page({ text, limit: 10, now: NOW })).rows.map(({ token_id }) => token_id)
      expect(await found('LAPTOP')).toEqual(['tok_a', 'tok_c'])
      expect(await found('%_')).toEqual(['tok_b'])
      expect(await found('top\\')).toEqual(['tok_c'])
      expect(await found('tok_d')).toEqual(['tok_d'])
      expect(await found('gh_cc')).toEqual(['tok_c'])
      expect(await found('tokxd')).toEqual([])
      expect(await found("' or 1=1 --")).toEqual([])
    })

    test('separates those that are active from those that are disabled or expired, and pages in both orders', async () => {
      const { tokens } = await engine.open()
      for (const token of given) await tokens.add({ ...token, hash: `hash of ${token.token_id}` })
      const ids = async (filter: object) =>
        (await tokens.page({ limit: 10, now: NOW, ...filter })).rows.map(({ token_id }) => token_id)
      expect(await ids({ is_active: true })).toEqual(['tok_a', 'tok_c'])
      expect(await ids({ is_active: false })).toEqual(['tok_b', 'tok_d'])
      const first = await tokens.page({ limit: 3, now: NOW, newestFirst: true })
      expect(first.rows.map(({ token_id }) => token_id)).toEqual(['tok_d', 'tok_c', 'tok_b'])
      expect(await ids({ newestFirst: true, after: first.next })).toEqual(['tok_a'])
    })

    test('finds projects, and no deleted one', async () => {
      const { projects } = await engine.open()
      for (const name of ['shop', 'Shop 2', 'blog'])
        await projects.add(storedProject({ project_id: `proj_${name}`, name }))
      await projects.update('proj_Shop 2', { deleted_at: NOW })
      const { rows } = await projects.page({ text: 'shop', limit: 10, now: NOW })
      expect(rows.map(({ name }) => name)).toEqual(['shop'])
    })
  })
}
