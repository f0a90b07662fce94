/** The store's contract for background responses, tested on every engine. */
import { afterEach, describe, expect, test } from 'bun:test'
import { ENGINES } from '../../../test/kit/engines.ts'
import type { StoredResponse } from './response-row.ts'

const response = (name: string): StoredResponse => ({
  response_id: `resp_${name}`,
  token_id: 'tok_a',
  previous_id: null,
  created_at: 1_700_000_000,
  expires_at: 1_700_001_000,
  input: [],
  response: { id: `resp_${name}`, status: 'queued' },
})
const CREATED = { last_number: 1, events: 'created queued' }
const run = (name: string, due_ms = 1_000, events: typeof CREATED | undefined = undefined) => ({
  response: response(name),
  request: { model: 'a/b', text: 'ü\u2028' },
  events,
  due_ms,
})
const ALL = { now_ms: 5_000, until_ms: 9_000, limit: 10 }
const NOW = 1_700_000_500

for (const engine of ENGINES) {
  describe(engine.name, () => {
    afterEach(() => engine.cleanup())

    test('claims a due run once, the oldest first, and again when its lease has expired', async () => {
      const { responseRuns: runs } = await engine.open()
      await runs.add(run('later', 2_000, CREATED), [])
      await runs.add(run('first'), [])
      await runs.add(run('not yet', 5_001), [])
      expect(await runs.earliest()).toBe(1_000)
      expect([await runs.waiting('tok_a'), await runs.waiting('tok_b')]).toEqual([3, 0])
      expect(await runs.claim({ ...ALL, limit: 0 })).toEqual([])
      const [one] = await runs.claim({ ...ALL, limit: 1 })
      expect(one).toEqual({
        response: response('first'),
        request: run('').request,
        attempts: 1,
        fence: 1,
        last_number: -1,
      })
      expect(
        (await runs.claim(ALL)).map(({ response, last_number: events }) => [response.response_id, events]),
      ).toEqual([['resp_later', 1]])
      expect(await runs.claim({ ...ALL, now_ms: 5_000 })).toEqual([])
      const again = await runs.claim({ ...ALL, now_ms: 9_000, until_ms: 12_000 })
      expect(again.map(({ attempts, fence }) => [attempts, fence]).sort()).toEqual([
        [1, 1],
        [2, 2],
        [2, 2],
      ])
    })

    test('gives each run to one of many concurrent claims', async () => {
      const { responseRuns: runs } = await engine.open()
      for (let n = 0; n < 20; n++) await runs.add(run(`r${n}`), [])
      const taken = await Promise.all(Array.from({ length: 8 }, () => runs.claim({ ...ALL, limit: 5 })))
      const ids = taken.flat().map(({ response }) => response.response_id)
      expect(new Set(ids).size).toBe(ids.length)
    })

    test('makes a token with many runs wait no less than one with few', async () => {
      const { responseRuns: runs } = await engine.open()
      for (const n of [1, 2, 3]) await runs.add(run(`many_${n}`, n), [])
      const few = run('few', 4)
      await runs.add({ ...few, response: { ...few.response, token_id: 'tok_b' } }, [])
      const taken = await runs.claim({ ...ALL, limit: 2 })
      expect(taken.map(({ response }) => response.response_id)).toEqual(['resp_many_1', 'resp_few'])
    })

    test('lets only the owner of the lease renew, save and end a run', async () => {
      const { responseRuns: runs, responses } = await engine.open()
      await runs.add(run('a', 1_000, CREATED), [])
      await runs.claim(ALL)
      await runs.claim({ ...ALL, now_ms: 9_000, until_ms: 12_000 })
      const [lost, claimed] = [1, 2].map((fence) => ({ response_id: 'resp_a', fence }))
      if (!lost || !claimed) throw new Error('unreachable')
      const events = { last_number: 3, events: 'said' }
      expect(await runs.renew(lost, 20_000)).toBe(false)
      expect(await runs.save(lost, { response: { status: 'lost' }, events: events })).toBe(false)
      expect(await runs.end(lost, { response: { status: 'lost' }, events: events })).toBe(false)
      expect(await runs.renew(claimed, 20_000)).toBe(true)
      expect(await runs.claim({ ...ALL, now_ms: 19_999 })).toEqual([])
      expect(await runs.save(claimed, { response: { status: 'in_progress' }, events: events })).toBe(true)
      expect(await runs.isRunning('resp_a')).toBe(true)
      expect(
        await runs.end(claimed, { response: { status: 'completed' }, events: { last_number: 7, events: 'end' } }),
      ).toBe(true)
      expect(await runs.isRunning('resp_a')).toBe(false)
      expect(await runs.end(claimed, { response: { status: 'twice' } })).toBe(false)
      expect(await runs.earliest()).toBe(null)
      expect((await responses.find(['resp_a'], 'tok_a', NOW))[0]?.response).toEqual({ status: 'completed' })
      expect((await runs.events('resp_a', 1)).map(({ last_number }) => last_number)).toEqual([3, 7])
      expect(await runs.events('resp_a', 7)).toEqual([])
    })

    test('counts a released run as not started', async () => {
      const { responseRuns: runs } = await engine.open()
      await runs.add(run('a'), [])
      await runs.claim(ALL)
      await runs.release({ response_id: 'resp_a', fence: 1 }, 6_000)
      expect(await runs.renew({ response_id: 'resp_a', fence: 1 }, 20_000)).toBe(false)
      expect(await runs.claim(ALL)).toEqual([])
      expect((await runs.claim({ ...ALL, now_ms: 6_000 })).map(({ attempts }) => attempts)).toEqual([1])
    })

    test('cancels a run whoever owns it, only for its token and once', async () => {
      const { responseRuns: runs, responses } = await engine.open()
      await runs.add(run('a'), [])
      await runs.claim(ALL)
      expect(await runs.cancel('resp_a', 'tok_b', { status: 'cancelled' })).toBe(false)
      expect(await runs.cancel('resp_a', 'tok_a', { status: 'cancelled' })).toBe(true)
      expect(await runs.cancel('resp_a', 'tok_a', { status: 'again' })).toBe(false)
      expect(await runs.end({ response_id: 'resp_a', fence: 1 }, { response: { status: 'completed' } })).toBe(false)
      expect((await responses.find(['resp_a'], 'tok_a', NOW))[0]?.response).toEqual({ status: 'cancelled' })
    })

    test('deletes the run and the events together with a removed or expired response', async () => {
      const { responseRuns: runs, responses } = await engine.open()
      for (const name of ['removed', 'over']) await runs.add(run(name, 1_000, CREATED), [])
      await responses.remove('resp_removed', 'tok_b')
      expect(await runs.isRunning('resp_removed')).toBe(true)
      await responses.remove('resp_removed', 'tok_a')
      expect(await responses.deleteExpired(1_700_001_000, 10)).toBe(1)
      for (const id of ['resp_removed', 'resp_over']) {
        expect([await runs.isRunning(id), await runs.events(id, -1)]).toEqual([false, []])
      }
    })
  })
}
