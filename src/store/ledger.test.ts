/** The store's contract for the ledger, tested on every engine. */
import { afterEach, describe, expect, it } from 'bun:test'
import { ENGINES } from '../../test/kit/engines.ts'
import { entry } from '../../test/kit/ledger.ts'
import { blankTask } from '../tasks/lifecycle.ts'
import type { Store } from './store.ts'

const requestsOf = async (store: Store): Promise<number> =>
  (await store.usage.list({ limit: 100 })).reduce((sum, { requests }) => sum + requests, 0)

for (const engine of ENGINES) {
  describe(`the ledger on ${engine.name}`, () => {
    afterEach(() => engine.cleanup())

    it('returns an entry with every field', async () => {
      const store = await engine.open()
      const whole = entry({
        kind: 'lost_hedge',
        project_id: 'proj_a',
        end_user: 'ünïcode "quoted"',
        units: { input_tokens: 1, output_tokens: 2, video_seconds: 4.5, video_size: '720p', has_sound: true },
        amount: null,
        cost: 9_000_000_000_000_000,
        price: '2026-01-01#abc',
      })
      expect(await store.ledger.append([whole])).toBe(1)
      expect(await store.ledger.ofCall('req_a')).toEqual([whole])
    })

    it('counts an entry once, however often and in whatever company it is written', async () => {
      const store = await engine.open()
      const [one, two] = [entry(), entry()]
      expect(await store.ledger.append([one, one])).toBe(1)
      expect(await store.ledger.append([two, one])).toBe(1)
      expect(await store.ledger.append([{ ...one, requests: 7 }])).toBe(0)
      expect(await requestsOf(store)).toBe(2)
    })

    it('adds entries and further writes in one transaction, or nothing', async () => {
      const store = await engine.open()
      const failing = store.ledger.append([entry()], { alsoInTransaction: () => Promise.reject(new Error('broken')) })
      await expect(failing).rejects.toThrow('broken')
      expect(await requestsOf(store)).toBe(0)
      expect(await store.ledger.ofCall('req_a')).toEqual([])
    })

    it('passes only new entries to further writes', async () => {
      const store = await engine.open()
      const [old, fresh] = [entry(), entry()]
      await store.ledger.append([old])
      const seen: string[] = []
      const note = async (_: unknown, entries: readonly { entry_id: string }[]) => {
        seen.push(...entries.map(({ entry_id }) => entry_id))
      }
      await store.ledger.append([old, fresh], { alsoInTransaction: note })
      await store.ledger.append([old, fresh], { alsoInTransaction: note })
      expect(seen).toEqual([fresh.entry_id])
    })

    it('takes back exactly what was recorded of a task, once for each of its ends', async () => {
      const store = await engine.open()
      const task = blankTask({
        task_id: 'task_a',
        token_id: 'tok_a',
        family: 'video-generation',
        model: 'm',
        submit_time: 1,
        request: {},
        base_url: '',
        deadline_at: 9,
        due_ms: 1,
      })
      await store.tasks.add({ task })
      const of_end = { kind: 'task', call_id: 'task_a', amount: 70, cost: null, errors: 1 } as const
      for (let round = 0; round < 2; round++) {
        const [claimed] = await store.tasks.claim({ by: 'w', provider: '', now_ms: 10, until_ms: 20, limit: 1 })
        if (!claimed) throw new Error('the task was not due')
        const ended = entry({ ...of_end, entry_id: `task_a:${claimed.fence}` })
        expect(await store.tasks.save(claimed, { status: 'FAILURE', entry: ended })).toBe(true)
        expect(await requestsOf(store)).toBe(1)
        const reopening = { due_ms: 5, deadline_at: 9, copying: null, callback_id: 'c', reversal: entry() }
        expect(await store.tasks.reopen(claimed, reopening)).toBe(true)
        expect(await store.tasks.reopen(claimed, reopening)).toBe(false)
        expect(await requestsOf(store)).toBe(0)
      }
      const entries = await store.ledger.ofCall('task_a')
      expect(entries.reduce((sum, { amount }) => sum + (amount ?? 0), 0)).toBe(0)
      expect(entries.map(({ kind }) => kind).sort()).toEqual(['reversal', 'reversal', 'task', 'task'])
    })
  })
}
