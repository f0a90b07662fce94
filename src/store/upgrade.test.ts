/** Databases of other versions, on every persistent engine. */
import { afterEach, describe, expect, test } from 'bun:test'
import { storedToken } from '../../test/kit/accounts.ts'
import { ENGINES } from '../../test/kit/engines.ts'
import { UNDO } from '../../test/kit/undo-migrations.ts'
import { MIGRATIONS } from './migrate.ts'
import { StoreError } from './store.ts'

const TOKEN = storedToken({ token_id: 'tok_old' })
const USAGE = {
  token_id: 'tok_old',
  model: 'm',
  hour: 3600,
  requests: 3,
  errors: 0,
  input_tokens: 4,
  output_tokens: 5,
  estimated: 0,
}

for (const { name, open, openAgain, run, cleanup } of ENGINES) {
  if (!openAgain || !run) continue
  describe(name, () => {
    afterEach(cleanup)

    test('migrates a database of the first version with its rows', async () => {
      const first = await open()
      await first.tokens.add(TOKEN)
      await first.models.firstSeen(['m'], 7)
      const revision = await first.tokens.revision()
      await first.close()
      for (const migration of Object.keys(MIGRATIONS).slice(1).toReversed())
        await run(`${UNDO[migration]} delete from kysely_migration where name = '${migration}'`)
      await run("insert into usage values ('tok_old', 'm', 3600, 3, 0, 4, 5, 0)")

      const here = await openAgain()
      const there = await openAgain()
      expect(await here.tokens.list()).toEqual([TOKEN])
      expect(await here.usage.list({ limit: 9 })).toEqual([USAGE])
      expect(await here.models.firstSeen(['m'], 9)).toEqual(new Map([['m', 7]]))
      expect(await here.tokens.revision()).toBe(revision)
      expect(await there.projects.list()).toEqual([])
      expect(await there.tasks.list({ limit: 9 })).toEqual([])
      expect(await there.secrets.get('a', () => 'b')).toBe('b')
    })

    test('rejects a database of a newer version by name, and does not change it', async () => {
      const store = await open()
      await store.tokens.add(TOKEN)
      await store.close()
      await run("insert into kysely_migration values ('9999-from-later', '2030-01-01T00:00:00.000Z')")
      const error = await openAgain().then(
        () => undefined,
        (reason: unknown) => reason,
      )
      if (!(error instanceof StoreError)) throw new Error(`expected a StoreError, got ${error}`)
      expect(error.message).toContain('was written by a newer version of Gatehouse')
      expect(error.message).toContain('"9999-from-later"')
      await run("delete from kysely_migration where name = '9999-from-later'")
      expect(await (await openAgain()).tokens.list()).toEqual([TOKEN])
    })
  })
}
