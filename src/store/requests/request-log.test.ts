/** The request log in the store, on every engine. */
import { afterEach, describe, expect, test } from 'bun:test'
import { ENGINES } from '../../../test/kit/engines.ts'
import { requestRow } from '../../../test/kit/request-rows.ts'
import type { Store } from '../store.ts'
import type { RequestFilter, RequestRow } from './request-row.ts'

const idsOf = (rows: readonly RequestRow[]) => rows.map(({ row_id }) => row_id)

async function search({ requestLog }: Store, filter: RequestFilter, limit = 50): Promise<number[]> {
  const { rows, next } = await requestLog.search({ filter, limit })
  expect(next).toBeUndefined()
  return idsOf(rows)
}

for (const engine of ENGINES) {
  describe(engine.name, () => {
    afterEach(() => engine.cleanup())

    test('returns rows as they were added, the newest first, and adds a row once', async () => {
      const store = await engine.open()
      const rows = [
        requestRow({ row_id: 1, at_ms: 10 }),
        requestRow({
          row_id: 2,
          at_ms: 30,
          project_id: 'proj_a',
          end_user: 'ü"',
          session: 's',
          trace_id: 't',
          error: 'rate_limit_exceeded',
          status: 429,
          cost: 12,
          tags: ['a', 'b:c'],
          detail: { attempts: [{ target: 'p/m', ms: 1.5 }], metadata: { key: 'value' } },
        }),
        requestRow({ row_id: 3, at_ms: 20, total_ms: 0.25 }),
      ]
      await store.requestLog.append(rows)
      await store.requestLog.append(rows.map((row) => ({ ...row, model: 'other' })))
      const { rows: found } = await store.requestLog.search({ filter: {}, limit: 9 })
      expect(found).toEqual([rows[1], rows[2], rows[0]] as RequestRow[])
      expect(await store.requestLog.find([3, 9])).toEqual([rows[2]] as RequestRow[])
    })

    test('reserves ids that nobody else gets', async () => {
      const store = await engine.open()
      const firsts = await Promise.all([1, 2, 3].map(() => store.requestLog.reserve(10)))
      expect(firsts.toSorted((a, b) => a - b)).toEqual([1, 11, 21])
    })

    const cases: [string, RequestFilter, number[]][] = [
      ['request id', { request_id: 'r2' }, [2]],
      ['token', { token_id: 'tok_2' }, [2]],
      ['project', { project_id: 'proj' }, [2]],
      ['model', { model: 'm2' }, [2]],
      ['target', { target: 'p2/x' }, [2]],
      ['provider', { provider: 'p2' }, [2]],
      ['end user', { end_user: 'ann' }, [2]],
      ['session', { session: 's2' }, [2]],
      ['trace id', { trace_id: 't2' }, [2]],
      ['tag', { tag: 'team' }, [2]],
      ['error', { error: 'upstream_error' }, [2]],
      ['any error', { error: 'any' }, [2]],
      ['status', { status: 502 }, [2]],
      ['status of success', { status: 200 }, [3, 1]],
      ['class of a status', { status: 5 }, [2]],
      ['class of success', { status: 2 }, [3, 1]],
      ['lowest cost', { min_cost: 70 }, [2]],
      ['least duration', { min_ms: 900 }, [2]],
      ['from', { from_ms: 20 }, [3, 2]],
      ['to', { to_ms: 20 }, [1]],
      ['several conditions', { token_id: 'tok_2', tag: 'team', status: 502, min_cost: 1, min_ms: 1, model: 'm2' }, [2]],
      ['conditions that no row meets together', { token_id: 'tok_1', tag: 'team' }, []],
      ['an unknown value', { model: 'none' }, []],
    ]
    test('finds rows by each condition', async () => {
      const store = await engine.open()
      const second = requestRow({
        row_id: 2,
        at_ms: 20,
        request_id: 'r2',
        token_id: 'tok_2',
        project_id: 'proj',
        model: 'm2',
        target: 'p2/x',
        provider: 'p2',
        end_user: 'ann',
        session: 's2',
        trace_id: 't2',
        tags: ['other', 'team'],
        error: 'upstream_error',
        status: 502,
        cost: 70,
        total_ms: 900,
      })
      const first = requestRow({ row_id: 1, at_ms: 10, cost: 69, total_ms: 899, tags: ['other'] })
      await store.requestLog.append([first, second, requestRow({ row_id: 3, at_ms: 30, cost: null })])
      for (const [name, filter, expected] of cases)
        expect([name, await search(store, filter)]).toEqual([name, expected])
    })

    test('pages through rows of the same time, each exactly once', async () => {
      const store = await engine.open()
      const rows = Array.from({ length: 25 }, (_, at) =>
        requestRow({ row_id: at + 1, at_ms: 100 + Math.floor(at / 7), tags: ['t'], error: 'x', status: 500 }),
      )
      await store.requestLog.append(rows)
      const expected = idsOf(rows).reverse()
      for (const filter of [{}, { tag: 't' }, { token_id: 'tok_1' }, { error: 'any', tag: 't' }, { min_ms: 1 }]) {
        const seen: number[] = []
        let after: Parameters<Store['requestLog']['search']>[0]['after']
        do {
          const page = await store.requestLog.search({ filter, after, limit: 4 })
          seen.push(...idsOf(page.rows))
          after = page.next
        } while (after)
        expect([filter, seen]).toEqual([filter, expected])
      }
    })

    test('deletes what is older with its tags and feedback, in batches', async () => {
      const store = await engine.open()
      await store.requestLog.append(
        Array.from({ length: 600 }, (_, at) => requestRow({ row_id: at + 1, at_ms: at, tags: at % 2 ? ['odd'] : [] })),
      )
      await store.requestLog.addFeedback({ row_id: 2, score: 1, text: 'good', created_ms: 5 })
      await store.requestLog.addFeedback({ row_id: 600, score: 0, text: null, created_ms: 5 })
      expect(await store.requestLog.prune(599)).toBe(true)
      expect(await store.requestLog.prune(599)).toBe(false)
      expect(await search(store, {})).toEqual([600])
      expect(await search(store, { tag: 'odd' })).toEqual([600])
      expect(await store.requestLog.feedback([2, 600])).toEqual([{ row_id: 600, score: 0, text: null, created_ms: 5 }])
    })

    test('replaces feedback on a row', async () => {
      const { requestLog } = await engine.open()
      await requestLog.append([requestRow({ row_id: 7 })])
      await requestLog.addFeedback({ row_id: 7, score: 1, text: 'good', created_ms: 5 })
      await requestLog.addFeedback({ row_id: 7, score: null, text: 'no', created_ms: 6 })
      expect(await requestLog.feedback([7])).toEqual([{ row_id: 7, score: null, text: 'no', created_ms: 6 }])
      expect(await requestLog.feedback([])).toEqual([])
    })
  })
}
