/** Facets of the request log, on every engine. */
import { afterEach, describe, expect, test } from 'bun:test'
import { sql } from 'kysely'
import { ENGINES } from '../../../test/kit/engines.ts'
import { requestRow } from '../../../test/kit/request-rows.ts'
import { openSqlite } from '../engines/sqlite.ts'
import { countFacets } from './request-facets.ts'
import type { RequestFilter } from './request-row.ts'

const ROWS = [
  { token_id: 'a', project_id: 'p1', status: 200, tags: ['x', 'y'], model: 'm1' },
  { token_id: 'a', project_id: 'p1', status: 429, error: 'rate_limit_exceeded', model: 'm1', tags: ['x'] },
  { token_id: 'b', project_id: 'p2', status: 200, end_user: 'ann', model: 'm2', total_ms: 20_000 },
  { token_id: 'c', status: 502, error: 'upstream_error', model: 'm2', provider: '', target: '' },
].map((row, at) => requestRow({ row_id: at + 1, at_ms: (at + 1) * 1_000, ...row }))

for (const engine of ENGINES) {
  describe(engine.name, () => {
    afterEach(() => engine.cleanup())

    async function facetsOf(filter: RequestFilter) {
      const { requestLog } = await engine.open()
      await requestLog.append(ROWS)
      const { counts, ...rest } = await requestLog.facets(filter)
      return {
        ...rest,
        counts: Object.fromEntries([...counts].map(([name, values]) => [name, Object.fromEntries(values)])),
      }
    }

    test('counts the values of all rows', async () => {
      expect(await facetsOf({})).toEqual({
        rows: 4,
        oldest_ms: 1_000,
        is_partial: false,
        counts: {
          model: { m1: 2, m2: 2 },
          provider: { sandbox: 3 },
          target: { 'sandbox/echo': 3 },
          token: { a: 2, b: 1, c: 1 },
          project: { p1: 2, p2: 1 },
          status: { 200: 2, 429: 1, 502: 1 },
          error: { rate_limit_exceeded: 1, upstream_error: 1 },
          user: { ann: 1 },
          tag: { x: 2, y: 1 },
        },
      })
    })

    const cases: [string, RequestFilter, number][] = [
      ['one condition', { token_id: 'a' }, 2],
      ['several conditions', { token_id: 'a', error: 'any' }, 1],
      ['a tag', { tag: 'x' }, 2],
      ['a tag and a model', { tag: 'y', model: 'm1' }, 1],
      ['a time', { from_ms: 2_000, to_ms: 4_000 }, 2],
      ['a duration', { min_ms: 15_000 }, 1],
      ['a duration and a status', { min_ms: 15_000, status: 2 }, 1],
      ['a target', { target: 'sandbox/echo', token_id: 'b' }, 1],
      ['nothing', { model: 'none' }, 0],
    ]
    for (const [name, filter, rows] of cases)
      test(`counts the rows that meet ${name}`, async () => {
        const found = await facetsOf(filter)
        expect([found.rows, found.is_partial]).toEqual([rows, false])
      })
  })
}

describe('facets of many rows', () => {
  test('count the newest ones in the time that they may take, and are partial', async () => {
    const { db, close } = await openSqlite(':memory:')
    await sql`
      insert into request_log (row_id, at_ms, request_id, token_id, family, model, provider, target, status, total_ms, detail)
      with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
      select i, i, 'r', 't', '', 'm', '', '', 200, 1, '{}' from n`.execute(db)
    let ms = 0
    const slow = () => {
      ms += 30
      return ms
    }
    const { rows, oldest_ms, is_partial, counts } = await countFacets(db, {}, slow)
    expect([rows, oldest_ms, is_partial, counts.get('model')?.get('m')]).toEqual([1_500, 18_501, true, 1_500])
    expect(await countFacets(db, { token_id: 't' }, () => 0)).toMatchObject({ rows: 20_000, is_partial: false })
    await close()
  })
})
