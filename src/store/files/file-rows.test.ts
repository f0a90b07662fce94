import { afterEach, describe, expect, test } from 'bun:test'
import { ENGINES } from '../../../test/kit/engines.ts'
import type { FileRow } from './file-row.ts'

const idOf = (number: number) => `file-gh${String(number).padStart(24, '0')}`
const fileOf = (number: number, more: Partial<FileRow> = {}): FileRow => ({
  file_id: idOf(number),
  token_id: 'tok_a',
  project_id: 'proj_a',
  purpose: 'user_data',
  filename: 'a.txt',
  content_type: 'text/plain',
  bytes: 10,
  created_at: 100,
  expires_at: null,
  output_key: `${idOf(number)}/first`,
  problems: null,
  ...more,
})
const NOW = 1_000

for (const { name, open, cleanup } of ENGINES) {
  describe(`files on ${name}`, () => {
    afterEach(cleanup)

    const opened = async () => (await open()).files
    const add = async (files: Awaited<ReturnType<typeof opened>>, file: FileRow) => {
      await files.begin({ ...file, expires_at: 5_000 })
      expect(await files.finish(file)).toBe(true)
    }

    test('are seen once they are finished, until they expire, by their token', async () => {
      const files = await opened()
      const file = fileOf(1, { expires_at: NOW + 1 })
      await files.begin({ ...file, expires_at: 5_000 })
      expect(await files.find(file.file_id, NOW)).toBeUndefined()
      expect(await files.finish(file)).toBe(true)
      expect(await files.find(file.file_id, NOW)).toEqual(file)
      expect(await files.find(file.file_id, NOW, 'tok_a')).toEqual(file)
      expect(await files.find(file.file_id, NOW, 'tok_b')).toBeUndefined()
      expect(await files.find(file.file_id, NOW + 1)).toBeUndefined()
      expect(await files.finish(file)).toBe(false)
      expect((await files.due(NOW + 1, 10)).map(({ file_id }) => file_id)).toEqual([file.file_id])
    })

    test('are finished by the last writer that began them, and what others have written is due for removal', async () => {
      const files = await opened()
      const first = fileOf(1, { expires_at: 2_000 })
      const second = fileOf(1, { expires_at: 2_000, output_key: `${idOf(1)}/second` })
      expect(await files.begin(first)).toBeUndefined()
      expect(await files.begin(second)).toBeUndefined()
      expect(await files.finish(first)).toBe(false)
      expect(await files.finish({ ...second, expires_at: null })).toBe(true)
      expect(await files.begin(fileOf(1, { output_key: `${idOf(1)}/third` }))).toEqual({ ...second, expires_at: null })
      const due = await files.due(2_000, 10)
      expect(due.map(({ output_key }) => output_key)).toEqual([first.output_key])
      await files.remove(due)
      expect(await files.due(2_000, 10)).toEqual([])
      expect(await files.find(idOf(1), NOW)).toMatchObject({ output_key: second.output_key })
    })

    test('are listed in pages of both directions', async () => {
      const files = await opened()
      for (const number of [1, 2, 3, 4, 5]) await add(files, fileOf(number, number === 5 ? { purpose: 'batch' } : {}))
      await add(files, fileOf(6, { token_id: 'tok_b' }))
      const list = async (
        filter: object,
        owner: { token_id: string } | { project_id: string } = { token_id: 'tok_a' },
      ) =>
        (await files.list(owner, NOW, { limit: 10, order: 'desc', ...filter })).map(({ file_id }) =>
          Number(file_id.slice(7)),
        )
      expect(await list({})).toEqual([5, 4, 3, 2, 1])
      expect(await list({ order: 'asc', limit: 2 })).toEqual([1, 2])
      expect(await list({ after: idOf(4), limit: 2 })).toEqual([3, 2])
      expect(await list({ before: idOf(2), limit: 2 })).toEqual([4, 3])
      expect(await list({ after: idOf(2), order: 'asc', limit: 2 })).toEqual([3, 4])
      expect(await list({ purpose: 'batch' })).toEqual([5])
      expect(await list({}, { project_id: 'proj_a' })).toEqual([6, 5, 4, 3, 2, 1])
      expect(await list({}, { token_id: 'tok_c' })).toEqual([])
    })

    test('are hidden when they are deleted, and count no more', async () => {
      const files = await opened()
      await add(files, fileOf(1))
      await add(files, fileOf(2, { token_id: 'tok_b', bytes: 5 }))
      await files.begin(fileOf(3, { expires_at: 5_000 }))
      expect(await files.amount({ token_id: 'tok_a' })).toEqual({ rows: 1, bytes: 10 })
      expect(await files.amount({ project_id: 'proj_a' })).toEqual({ rows: 2, bytes: 15 })
      expect(await files.hide(idOf(1), NOW, 'tok_b')).toBe(false)
      expect(await files.hide(idOf(1), NOW, 'tok_a')).toBe(true)
      expect(await files.hide(idOf(1), NOW, 'tok_a')).toBe(false)
      expect(await files.find(idOf(1), NOW)).toBeUndefined()
      expect(await files.amount({ token_id: 'tok_a' })).toEqual({ rows: 0, bytes: 0 })
      expect((await files.due(NOW, 10)).map(({ file_id }) => file_id)).toEqual([idOf(1)])
    })
  })
}
