/** Parts of results that two claims of one batch write. */
import { expect, test } from 'bun:test'
import type { FileStore } from '../../outputs/outputs.ts'
import type { BatchPart } from '../../store/batches/batch-store.ts'
import type { ClaimedBatch } from './parts.ts'
import { partsStream, storeParts } from './parts.ts'

test('what a claim that was lost writes late replaces no part of the next claim', async () => {
  const written = new Map<string, string>()
  const noted: BatchPart[] = []
  const lines = ['a', 'b']
  let left = lines.slice(0, 1)
  const late = Promise.withResolvers<void>()
  const fileStore: Pick<FileStore, 'open' | 'write' | 'remove'> = {
    async write(key, { body }) {
      const text = await new Response(body).text()
      if (text === 'a\n') await late.promise
      written.set(key, text)
      return { bytes: text.length }
    },
    async open(key) {
      const text = written.get(key)
      if (text === undefined) return undefined
      const body = () => new Blob([text]).stream()
      return { content_type: '', bytes: text.length, version: '', body }
    },
    async remove(key) {
      written.delete(key)
    },
  }
  const claim = (fence: number) => {
    const store: Partial<ClaimedBatch['store']> = {
      results: async (_, kind) => (kind === 'output' ? left.map((text, line) => ({ line, text })) : []),
      parts: async () => noted,
      async moved(_, part) {
        if (fence < 2) return false
        noted.push(part)
        left = []
        return true
      },
    }
    const batch = { batch_id: 'batch_1', fence }
    const { signal } = new AbortController()
    return { batch, store, fileStore, signal, crashHook() {} } as unknown as ClaimedBatch
  }

  const lost = storeParts(claim(1), { all: true })
  await Promise.resolve()
  left = lines
  await storeParts(claim(2), { all: true })
  late.resolve()
  await lost
  expect(await new Response(await partsStream(claim(2), 'batch_1')).text()).toBe('a\nb\n')
  expect(written.size).toBe(1)
})
