/** Bodies that cost far more than their size: every family rejects them in the same way, before they are parsed. */
import { describe, expect, test } from 'bun:test'
import { MAX_CONTAINERS, MAX_MEMBERS, MAX_NAMES, MAX_VALUES } from '../src/kit/json.ts'
import { startGateway } from './kit/gateway.ts'

const CHATS: Record<string, string> = {
  '/v1/chat/completions': '"model":"sandbox/general","messages":[{"role":"user","content":"x"}]',
  '/v1/messages': '"model":"sandbox/general","max_tokens":9,"messages":[{"role":"user","content":"x"}]',
  '/v1/responses': '"model":"sandbox/general","input":"x","store":false',
  '/v1beta/models/sandbox/general:generateContent': '"contents":[{"role":"user","parts":[{"text":"x"}]}]',
}
const TEXTS: Record<string, string> = {
  '/v1/messages/count_tokens': '"model":"sandbox/general","messages":[{"role":"user","content":"x"}]',
  '/v1/responses/input_tokens': '"model":"sandbox/general","input":"x"',
  '/v1beta/models/sandbox/general:countTokens': '"contents":[{"role":"user","parts":[{"text":"x"}]}]',
  '/v1/embeddings': '"model":"sandbox/embedding","input":"x"',
  '/v1beta/models/sandbox/embedding:embedContent': '"content":{"parts":[{"text":"x"}]}',
  '/v1/moderations': '"model":"sandbox/moderation","input":"x"',
  '/v1/rerank': '"model":"sandbox/rerank","query":"x","documents":["x"]',
  '/v2/rerank': '"model":"sandbox/rerank","query":"x","documents":["x"]',
}
const ORDERS: Record<string, string> = {
  '/v1/images/generations': '"model":"sandbox/image","prompt":"x"',
  '/v1/images': '"model":"sandbox/image","prompt":"x"',
  '/v1/video/generations': '"model":"sandbox/text-to-video","prompt":"x"',
  '/v1/videos': '"model":"sandbox/text-to-video","prompt":"x"',
  '/v1/3d/generations': '"model":"sandbox/text-to-3d","prompt":"x"',
}
const ALL = { ...CHATS, ...TEXTS, ...ORDERS }

const list = (piece: string, count: number) => `[${`${piece},`.repeat(count - 1)}${piece}]`
const object = (count: number) => `{${Array.from({ length: count }, (_, at) => `"k${at}":0`).join(',')}}`
const EXCESSES: Record<string, { value: string; named: string }> = {
  'too many objects': { value: list('{}', MAX_CONTAINERS), named: `${MAX_CONTAINERS} objects and arrays` },
  'too many arrays': { value: list('[]', MAX_CONTAINERS), named: `${MAX_CONTAINERS} objects and arrays` },
  'too many names': { value: list(object(1_000), MAX_NAMES / 1_000), named: `${MAX_NAMES} member names` },
  'too many values': { value: list('1', MAX_VALUES), named: `${MAX_VALUES} values` },
  'too many members': { value: object(MAX_MEMBERS + 1), named: `${MAX_MEMBERS} members in one object` },
}

for (const [path, fields] of Object.entries(ALL)) {
  describe(`POST ${path}`, () => {
    test('returns 413 and names the limit that was exceeded', async () => {
      await using gateway = await startGateway()
      for (const { value, named } of Object.values(EXCESSES)) {
        const response = await gateway.call(path, { json: `{${fields},"x":${value}}` })
        expect([response.status, await response.text()]).toEqual([413, expect.stringContaining(named)])
      }
    })

    test('returns 400 for JSON that is nested too deeply', async () => {
      await using gateway = await startGateway()
      for (const depth of [256, 1_000_000]) {
        const response = await gateway.call(path, { json: `{${fields},"x":${'['.repeat(depth)}${']'.repeat(depth)}}` })
        expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('deeper than 256')])
      }
    })
  })
}

const sized = (fields: string, bytes: number): string => {
  const empty = `{${fields},"x":""}`
  return empty.replace('"x":""', `"x":"${'a'.repeat(bytes - empty.length)}"`)
}

describe('server.max_text_body_bytes', () => {
  const settings = { server: { max_body_bytes: 4096, max_text_body_bytes: 2048 } }
  for (const [path, fields] of Object.entries(TEXTS)) {
    test(`bounds ${path}`, async () => {
      await using gateway = await startGateway(settings)
      expect((await gateway.call(path, { json: sized(fields, 2048) })).status).toBe(200)
      expect((await gateway.call(path, { json: sized(fields, 2049) })).status).toBe(413)
    })
  }
  for (const [path, fields] of Object.entries({ ...CHATS, ...ORDERS })) {
    test(`does not bound ${path}, whose bodies may contain media`, async () => {
      await using gateway = await startGateway(settings)
      const accepted = await gateway.call(path, { json: sized(fields, 4096) })
      expect(accepted.status).toBe(200)
      await accepted.arrayBuffer() // a large response is open until it is read
      expect((await gateway.call(path, { json: sized(fields, 4097) })).status).toBe(413)
    })
  }

  test('allows no more than server.max_body_bytes', async () => {
    await using gateway = await startGateway({ server: { max_body_bytes: 1024, max_text_body_bytes: 2048 } })
    const fields = TEXTS['/v1/embeddings'] ?? ''
    expect((await gateway.call('/v1/embeddings', { json: sized(fields, 1024) })).status).toBe(200)
    expect((await gateway.call('/v1/embeddings', { json: sized(fields, 1025) })).status).toBe(413)
  })

  test('is 8 MiB by default', async () => {
    await using gateway = await startGateway()
    const fields = TEXTS['/v1/embeddings'] ?? ''
    const [full, over] = [sized(fields, 8 * 1024 * 1024), sized(fields, 8 * 1024 * 1024 + 1)]
    expect((await gateway.call('/v1/embeddings', { json: full })).status).toBe(200)
    expect((await gateway.call('/v1/embeddings', { json: over })).status).toBe(413)
  })
})
