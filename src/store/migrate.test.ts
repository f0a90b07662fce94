/** Migrations that fail, are killed, run beside each other, or come from another build, on every persistent engine. */
import { afterEach, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { storedToken } from '../../test/kit/accounts.ts'
import { ENGINES, type Engine } from '../../test/kit/engines.ts'
import { LATER_MIGRATION, type MigrationPlan } from '../../test/kit/migrating-process.ts'
import { LAST, UNDO_LAST } from '../../test/kit/undo-migrations.ts'
import { MIGRATIONS } from './migrate.ts'
import { openStore } from './open-store.ts'
import { schemaProblem } from './schema-state.ts'
import { planOf, schemaOf } from './store-schema.ts'

const BUILD = Object.keys(MIGRATIONS).length
const TOKEN = storedToken({ token_id: 'tok_a' })
const INDEX = { name: 'later_index', on: 'tokens (name)' }

async function migrateLater(plan: MigrationPlan): Promise<{ out: string; err: string; code: number }> {
  const child = Bun.spawn(
    [process.execPath, join(import.meta.dir, '../../test/kit/migrating-process.ts'), JSON.stringify(plan)],
    { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
  )
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { out, err, code }
}

for (const engine of ENGINES) {
  const { name, open, openAgain, run, url, cleanup } = engine
  if (!openAgain || !run || !url) continue
  describe(name, () => {
    afterEach(cleanup)

    test.each(['with an error', 'with a kill'] as const)(
      'a migration that ends %s changes nothing, and the build before goes on',
      async (end) => {
        const store = await open()
        await store.tokens.add(TOKEN)
        const { code, err } = await migrateLater({ url: url(), end })
        expect(code).not.toBe(0)
        if (end === 'with an error') expect(err).toContain('could not be migrated; it was not changed')
        expect(await schemaOf(url())).toMatchObject({ status: 'current', database: BUILD, build: BUILD, newer: [] })
        await store.ping()
        expect(await (await openAgain()).tokens.list()).toEqual([TOKEN])
        expect((await migrateLater({ url: url(), end: 'well' })).code).toBe(0)
        await run('alter table tasks drop column later') // an altered database is not used again
      },
    )

    test('several processes wait for the one that migrates', async () => {
      await (await open()).close()
      const all = await Promise.all(Array.from({ length: 4 }, () => migrateLater({ url: url(), end: 'well' })))
      expect(all.map(({ code, err }) => ({ code, err }))).toEqual(all.map(() => ({ code: 0, err: '' })))
      for (const { out } of all) expect(JSON.parse(out)).toMatchObject({ status: 'current', database: BUILD + 1 })
      await run('select 1')
    })

    test('several processes wait for the one that builds an index of a large table', async () => {
      await (await open()).close()
      await run('select 1') // an altered database is not used again
      await migrateLater({ url: url(), end: 'well' })
      const plan: MigrationPlan = { url: url(), end: 'well', index: INDEX }
      const all = await Promise.all(Array.from({ length: 4 }, () => migrateLater(plan)))
      expect(all.map(({ code, err }) => ({ code, err }))).toEqual(all.map(() => ({ code: 0, err: '' })))
      for (const { out } of all) expect(JSON.parse(out)).toMatchObject({ missing_indexes: [] })
    })

    test('the build before runs on the schema of the next one, after a start as well', async () => {
      const store = await open()
      await run('select 1') // an altered database is not used again
      expect((await migrateLater({ url: url(), end: 'well', index: INDEX })).code).toBe(0)
      await store.tokens.add(TOKEN)
      const state = await store.schema()
      expect(state).toMatchObject({ status: 'newer', database: BUILD + 1, build: BUILD, newer: [LATER_MIGRATION] })
      expect(schemaProblem(state)).toBeUndefined()
      const again = await openAgain()
      expect(await again.tokens.list()).toEqual([TOKEN])
      expect(await again.schema()).toEqual(state)
    })

    test('a build below the oldest that can use the database is refused with both numbers, and a running one is not ready', async () => {
      const store = await open()
      await migrateLater({ url: url(), end: 'well' })
      await run(`update schema_compatibility set oldest = ${BUILD + 1} where schema = ${BUILD + 1}`)
      const numbers = `(schema ${BUILD + 1}), and this version knows migrations only up to "${Object.keys(MIGRATIONS).at(-1)}" (schema ${BUILD}); builds from schema ${BUILD + 1} on can use it`
      await expect(openAgain()).rejects.toThrow(numbers)
      const state = await store.schema()
      expect(state.status).toBe('too new')
      expect(schemaProblem(state)).toBe(
        `schema newer than this build: the database has ${BUILD + 1}, this build ${BUILD}, and it needs a build with ${BUILD + 1} or later`,
      )
    })

    test('a manual store is not migrated by a start, and says what to run', async () => {
      await (await open()).close()
      await run(UNDO_LAST)
      await expect(openStore({ url: url(), mode: 'manual' })).rejects.toThrow(
        `schema older than this build: the database has ${BUILD - 1}, this build needs ${BUILD}; run gatehouse migrate apply`,
      )
      const state = await schemaOf(url())
      expect(state).toMatchObject({ status: 'older', database: BUILD - 1, pending: [LAST] })
      const [planned] = await planOf(url(), state)
      expect(planned?.statements.join()).toMatch(/^(create|alter) /)
      await openAgain()
      expect(await schemaOf(url())).toMatchObject({ status: 'current', pending: [], oldest: expect.any(Number) })
    })

    test('an index of a large table is built again where its build was interrupted', async () => {
      await (await open()).close()
      const later = await migrateLater({ url: url(), end: 'well', index: INDEX })
      expect(JSON.parse(later.out)).toMatchObject({ status: 'current', missing_indexes: [] })
      await run(isPostgres(engine) ? INVALIDATE : 'drop index later_index')
      const again = await migrateLater({ url: url(), end: 'well', index: INDEX })
      expect(JSON.parse(again.out)).toMatchObject({ missing_indexes: [] })
    })
  })
}

const isPostgres = ({ name }: Engine): boolean => name === 'postgres'
const INVALIDATE = `update pg_index set indisvalid = false where indexrelid = 'later_index'::regclass`

describe('an index of a large table on postgres', () => {
  const engine = ENGINES.find(isPostgres)
  afterEach(() => engine?.cleanup())

  test('is built while calls write, beyond the statement timeout of the role', async () => {
    if (!engine?.url || !engine.run || !engine.openAgain) throw new Error('there is no PostgreSQL')
    const store = await engine.open()
    const database = new URL(engine.url()).pathname.slice(1)
    // The expression takes longer for all rows than a statement may.
    await engine.run(`
      create function slowly(name text) returns text language plpgsql immutable as
        $$ begin perform pg_sleep(0.06); return name; end $$;
      alter database ${database} set statement_timeout = '1s'`)
    for (let at = 0; at < 20; at++)
      await store.tokens.add(storedToken({ token_id: `tok_${at}`, name: `laptop ${at}`, hash: `hash ${at}` }))
    let isBuilt = false
    let starts = 0
    const building = migrateLater({
      url: engine.url(),
      end: 'well',
      index: { name: 'slow_index', on: 'tokens (slowly(name))' },
    })
    const built = building.finally(() => {
      isBuilt = true
    })
    let writes = 0
    while (!isBuilt) {
      if (writes === 10) starts += await engine.openAgain().then(() => (isBuilt ? 0 : 1)) // the build before
      await store.ping()
      await store.models.firstSeen([`m${writes++}`], 1)
    }
    const { out, err } = await built
    expect(err).toBe('')
    expect(JSON.parse(out)).toMatchObject({ status: 'current', missing_indexes: [] })
    expect(writes).toBeGreaterThan(0)
    expect(starts).toBe(1)
  })
})
