import { describe, expect, test } from 'bun:test'
import type { BatchClientParts } from './batch-client.ts'
import { createOpenAiBatches } from './openai-batches.ts'

/** The batches of the vendor at this address, which answers each request with this text. */
function batchesAt(base_url: string, answer: string | ((url: string) => string) = '{}') {
  const transport = {
    send: async ({ url }: { url: string }) => ({
      status: 200,
      headers: new Headers(),
      text: async () => (typeof answer === 'string' ? answer : answer(url)),
    }),
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
    ['https://acme.openai.azure.com/openai/v1', ['/chat/completions', '/responses']],
  ])('execute at %s the lines of the paths that it documents', (base_url, paths) => {
    const all = [
      '/chat/completions',
      '/responses',
      '/embeddings',
      '/completions',
      '/moderations',
      '/images/generations',
    ]
    expect(all.filter((path) => batchesAt(base_url).pathOf(base_url + path))).toEqual(paths)
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
    ['https://acme.openai.azure.com/openai/v1', 100, 'absent'],
  ])('at %s may be one without metadata, created at %p, where only the mark is known: %s', async (base_url, at, is) => {
    const { signal } = new AbortController()
    const vendor = batchesAt(base_url, JSON.stringify({ data: [{ id: 'batch_1', created_at: at }] }))
    expect(await vendor.find({ mark: 'm', until: 200 }, 100, signal)).toBe(is as 'hidden' | 'absent')
  })

  test('are found at Azure on a later page, whatever the order and the length of its pages are', async () => {
    const { signal } = new AbortController()
    const pages = [100, 900, 500].map((created_at, at) => ({
      data: [{ id: `batch_${at}`, created_at, input_file_id: `file-${at}`, metadata: null }],
      has_more: at < 2,
    }))
    const vendor = batchesAt('https://acme.openai.azure.com/openai/v1', (url) =>
      JSON.stringify(pages[Number(/after=batch_(\d)/.exec(url)?.[1] ?? -1) + 1]),
    )
    const find = (uploaded: string) => vendor.find({ mark: 'm', uploaded, lines: 1 }, 50, signal)
    expect([await find('file-2'), await find('file-3')]).toEqual([{ id: 'batch_2' }, 'absent'])
  })

  test('say at Azure why none was executed, also where a failed batch has files', async () => {
    const failed = { status: 'Failed', error_file_id: 'file-1', output_file_id: 'file-2' }
    const errors = { data: [{ code: 'model_not_found', message: `No such deployment.${'.'.repeat(400)}` }] }
    const answer = JSON.stringify({ ...failed, errors })
    const stateAt = (base_url: string) => batchesAt(base_url, answer).state('batch_1', new AbortController().signal)
    expect(await stateAt('https://acme.openai.azure.com/openai/v1')).toEqual({
      is: 'ended',
      problem: 'No such deployment.'.padEnd(300, '.'),
    })
    expect(await stateAt('https://api.openai.com/v1')).toEqual({ is: 'ended' })
  })

  test('that failed for want of room are full, and nobody looks for them', async () => {
    const { signal } = new AbortController()
    const errors = { object: 'list', data: [{ code: 'token_limit_exceeded', message: 'Too many tokens.' }] }
    const failed = { id: 'batch_2', created_at: 100, input_file_id: 'file-1', errors }
    const listed = [
      { ...failed, status: 'Failed' },
      { id: 'batch_1', created_at: 90, input_file_id: 'file-1', status: 'in_progress' },
    ]
    const vendor = batchesAt('https://acme.openai.azure.com/openai/v1', (url) =>
      JSON.stringify(url.endsWith('batch_2') ? listed[0] : { data: listed, has_more: false }),
    )
    expect(await vendor.state('batch_2', signal)).toEqual({ is: 'ended', problem: 'Too many tokens.', is_full: true })
    expect(await vendor.find({ mark: 'm', uploaded: 'file-1', lines: 1 }, 50, signal)).toEqual({ id: 'batch_1' })
  })

  test('that failed for want of room once some was executed are found, and not created again', async () => {
    const { signal } = new AbortController()
    const errors = { data: [{ code: 'token_limit_exceeded', message: 'Too many tokens.' }] }
    const failed = { id: 'batch_2', created_at: 100, input_file_id: 'file-1', output_file_id: 'file-2', errors }
    const batch = { ...failed, status: 'failed' }
    const vendor = batchesAt('https://api.openai.com/v1', (url) =>
      JSON.stringify(url.endsWith('batch_2') ? batch : { data: [batch], has_more: false }),
    )
    expect(await vendor.state('batch_2', signal)).toEqual({ is: 'ended' })
    expect(await vendor.find({ mark: 'm', uploaded: 'file-1', lines: 1 }, 50, signal)).toEqual({ id: 'batch_2' })
  })

  test('are absent where the list is null, as that of Together is without any', async () => {
    const { signal } = new AbortController()
    const find = (base_url: string) =>
      batchesAt(base_url, 'null').find({ mark: 'm', uploaded: 'file-1', lines: 1 }, 0, signal)
    expect(await find('https://api.together.xyz/v1')).toBe('absent')
    await expect(find('https://api.openai.com/v1')).rejects.toThrow('something else')
  })
})
