import { afterEach, describe, expect, test } from 'bun:test'
import { ENGINES } from '../../../test/kit/engines.ts'

const DAY = 86_400_000
const event = (id: string, now_ms: number, more: object = {}) => ({
  alert_id: id,
  key: 'breaker.open a',
  type: 'breaker.open',
  message: 'a has failed.',
  data: { target: 'a' },
  now_ms,
  open_until_ms: now_ms + 1_000,
  ...more,
})
const draft = { actor: 'a', at_ms: 1, action: 'alert.close', object_type: 'alert', object_id: 'x' }

for (const { name, open, openAgain, cleanup } of ENGINES) {
  describe(`the history of alerts on ${name}`, () => {
    afterEach(cleanup)

    test('joins what is raised again before it has ended, by every process, and begins anew after that', async () => {
      const here = (await open()).alertHistory
      const there = (await openAgain?.())?.alertHistory ?? here
      await Promise.all([1, 2, 3, 4].map((n) => (n % 2 ? here : there).record(event(`a${n}`, 100))))
      await there.record(event('late', 900, { message: 'a fails still.' }))
      await here.record(event('next', 1_900))
      const { rows } = await here.page({ now_ms: 1_950, limit: 9 })
      expect(
        rows.map(({ times, first_ms, last_ms, open_until_ms }) => [times, first_ms, last_ms, open_until_ms]),
      ).toEqual([
        [1, 1_900, 1_900, 2_900],
        [5, 100, 900, 1_900],
      ])
      expect(rows[1]).toMatchObject({ message: 'a fails still.', data: { target: 'a' } })
    })

    test('lists open and past ones by pages, newest first', async () => {
      const { alertHistory } = await open()
      for (const n of [1, 2, 3, 4, 5]) {
        const open_until_ms = n % 2 ? 10_000 : n
        await alertHistory.record(
          event(`a${n}`, n, { key: `k${n}`, type: n === 5 ? 'disk.low' : 'breaker.open', open_until_ms }),
        )
      }
      const ids = async (options: object) =>
        (await alertHistory.page({ now_ms: 100, limit: 9, ...options })).rows.map(({ alert_id }) => alert_id)
      expect(await ids({ is_open: true })).toEqual(['a5', 'a3', 'a1'])
      expect(await ids({ is_open: false })).toEqual(['a4', 'a2'])
      expect(await ids({ type: 'disk.low' })).toEqual(['a5'])
      const first = await alertHistory.page({ now_ms: 100, limit: 2 })
      expect(first.rows.map(({ alert_id }) => alert_id)).toEqual(['a5', 'a4'])
      expect(await ids({ after: first.next })).toEqual(['a3', 'a2', 'a1'])
    })

    test('one that is closed stays closed while it holds, and is closed once', async () => {
      const { alertHistory } = await open()
      await alertHistory.record(event('a', 100))
      const closed = await alertHistory.close('a', { now_ms: 200, by: 'admin:x' }, draft)
      expect(closed).toMatchObject({ closed_ms: 200, closed_by: 'admin:x' })
      expect(await alertHistory.close('a', { now_ms: 300, by: 'admin:y' }, draft)).toBeUndefined()
      await alertHistory.record(event('b', 400))
      expect((await alertHistory.page({ is_open: true, now_ms: 400, limit: 9 })).rows).toEqual([])
      await alertHistory.record(event('c', 1_400))
      expect((await alertHistory.page({ is_open: true, now_ms: 1_400, limit: 9 })).rows).toHaveLength(1)
    })

    test('forgets what is older than 90 days', async () => {
      const { alertHistory } = await open()
      await alertHistory.record(event('old', 100))
      await alertHistory.record(event('new', 91 * DAY))
      expect((await alertHistory.page({ now_ms: 91 * DAY, limit: 9 })).rows.map(({ alert_id }) => alert_id)).toEqual([
        'new',
      ])
    })
  })
}
