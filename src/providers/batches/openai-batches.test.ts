import { describe, expect, test } from 'bun:test'
import type { BatchClientParts } from './batch-client.ts'
import { createOpenAiBatches } from './openai-batches.ts'

/** The batches of the vendor at this address, which answers each request with this text. */
function batchesAt(base_url: string, answer = '{}') {
  const transport = {
    send: async () => ({ status: 200, headers: new Headers(), text: async () => answer }),
  } as unknown as BatchClientParts['transport']
  const address = { base_url, headers: {}, timeouts: {} } as unknown as BatchClientParts['address']
  return createOpenAiBatches({ id: 'vendor', transport, address })
}

describe('batches in the form of OpenAI', () => {
  test.each([
    ['https://api.openai.com/v1', ['/chat/completions', '/responses', '/embeddings', '/completions', '/moderations']],
    ['https://api.groq.com/openai/v1', ['/chat/completions']],
    ['https://api.mistral.ai/v1', ['/chat/completions', '/embeddings', '/moderations']],
    ['https://api.together.xyz/v1', ['/chat/completions', '/completions']],
  ])('execute at %s the lines of the paths that it documents', (base_url, paths) => {
    const all = [
      '/chat/completions',
      '/responses',
      '/embeddings',
      '/completions',
      '/moderations',
      '/images/generations',
    ]
    expect(all.filter((path) => batchesAt(base_url).accepts.test(path))).toEqual(paths)
  })

  test.each([
    ['https://api.together.xyz/v1', 100, 'hidden'],
    ['https://api.together.xyz/v1', '1970-01-01T00:01:40.000Z', 'hidden'],
    ['https://api.together.xyz/v1', '1970-01-01T00:01:39.000Z', 'absent'],
    ['https://batches.example.com/v1', 100, 'hidden'],
    ['https://batches.example.com/v1', 200, 'hidden'],
    ['https://batches.example.com/v1', 201, 'absent'],
    ['https://batches.example.com/v1', 99, 'absent'],
    ['https://api.openai.com/v1', 100, 'absent'],
  ])('at %s may be one without metadata, created at %p, where only the mark is known: %s', async (base_url, at, is) => {
    const { signal } = new AbortController()
    const vendor = batchesAt(base_url, JSON.stringify({ data: [{ id: 'batch_1', created_at: at }] }))
    expect(await vendor.find({ mark: 'm', until: 200 }, 100, signal)).toBe(is as 'hidden' | 'absent')
  })

  test('are absent where the list is null, as that of Together is without any', async () => {
    const { signal } = new AbortController()
    const find = (base_url: string) =>
      batchesAt(base_url, 'null').find({ mark: 'm', uploaded: 'file-1', lines: 1 }, 0, signal)
    expect(await find('https://api.together.xyz/v1')).toBe('absent')
    await expect(find('https://api.openai.com/v1')).rejects.toThrow('something else')
  })
})
