/** Contents of requests in the store, on every engine. */
import { afterEach, describe, expect, test } from 'bun:test'
import { ENGINES } from '../../../test/kit/engines.ts'
import type { ContentsRow } from './contents-row.ts'

const contents = (given: Partial<ContentsRow> = {}): ContentsRow => ({
  row_id: 1,
  at_ms: 10,
  project_id: null,
  end_user: null,
  key_id: 'k',
  sealed: 'AAAA',
  ...given,
})

for (const engine of ENGINES) {
  describe(engine.name, () => {
    afterEach(() => engine.cleanup())

    test('returns contents as they were added, and adds them once', async () => {
      const { requestContents } = await engine.open()
      const row = contents({ row_id: 7, project_id: 'proj_a', end_user: 'ü"', sealed: 'A'.repeat(2_000_000) })
      await requestContents.append([contents(), row])
      await requestContents.append([{ ...row, sealed: 'BBBB' }])
      expect(await requestContents.find(7)).toEqual(row)
      expect(await requestContents.find(2)).toBeUndefined()
    })

    test('deletes what is older, in batches', async () => {
      const { requestContents } = await engine.open()
      await requestContents.append(Array.from({ length: 250 }, (_, at) => contents({ row_id: at + 1, at_ms: at })))
      expect(await requestContents.prune(249)).toBe(true)
      expect(await requestContents.prune(249)).toBe(false)
      expect(await requestContents.find(249)).toBeUndefined()
      expect(await requestContents.find(250)).toBeDefined()
    })
  })
}
