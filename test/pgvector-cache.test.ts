/** The semantic cache on PostgreSQL with pgvector, and what happens where the extension is missing. */
import { afterAll, afterEach, describe, expect, it } from 'bun:test'
import { openStore } from '../src/store/open-store.ts'
import { angle, degreesIn } from './kit/angles.ts'
import type { TestGateway } from './kit/gateway.ts'
import { startGateway } from './kit/gateway.ts'
import { hasPgvector, type PgvectorServer, startPgvector } from './kit/pgvector.ts'
import { startPostgres } from './kit/postgres.ts'
import { startVendor, whole } from './kit/vendor.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

/** It takes seconds to start, so the tests share it. */
let started: Promise<PgvectorServer> | undefined
afterAll(async () => (await started)?.stop())

async function serverWithout(tables: string): Promise<PgvectorServer> {
  started ??= startPgvector()
  const server = await started
  await server.query(`drop table if exists ${tables}`)
  return server
}

const answerOf = (created_ms: number) => ({ created_ms, expires_ms: 1_000, bytes: 1, answer: '"a"' })
const WIDE = { max_entries: 100, max_bytes: 1_000 }

describe.skipIf(!hasPgvector)('vectors in PostgreSQL', () => {
  async function open() {
    const server = await serverWithout('cached_vectors')
    const store = await openStore({ url: server.url })
    closing.push(store.close)
    await store.cachedAnswers.deleteExpired(Number.MAX_SAFE_INTEGER, 1_000)
    const vectors = await store.openCachedVectors?.()
    if (!vectors) throw new Error('PostgreSQL has no vectors')
    const put = async (key: string, numbers: number[], partition = 'p') => {
      await store.cachedAnswers.put(key, answerOf(1), WIDE)
      await vectors.add({ partition, key, vector: Float32Array.from(numbers) })
    }
    const nearest = (numbers: number[], { partition = 'p', threshold = 0.9, now_ms = 1 } = {}) =>
      vectors.nearest(partition, { vector: Float32Array.from(numbers), threshold, now_ms })
    return { server, store, vectors, put, nearest }
  }

  it('finds the most similar one of the partition, from the threshold on', async () => {
    const { put, nearest } = await open()
    await put('a', [1, 0])
    await put('b', [0.8, 0.6])
    await put('c', [0.8, 0.6], 'q')
    await put('d', [1, 0, 0])
    expect(await nearest([1, 0])).toEqual({ key: 'a', similarity: 1 })
    expect((await nearest([0.6, 0.8]))?.key).toBe('b')
    expect((await nearest([0.6, 0.8]))?.similarity).toBeCloseTo(0.96, 6)
    expect(await nearest([0.6, 0.8], { threshold: 0.97 })).toBeUndefined()
    expect((await nearest([0.8, 0.6], { partition: 'q' }))?.key).toBe('c')
    expect((await nearest([1, 0, 0]))?.key).toBe('d')
    expect(await nearest([1, 0, 0, 0])).toBeUndefined()
    expect(await nearest([1, 0], { partition: 'none' })).toBeUndefined()
  })

  it('replaces the vector of a key, and takes none for an answer that is gone', async () => {
    const { put, nearest, vectors } = await open()
    await put('a', [1, 0])
    await put('a', [0, 1])
    expect(await nearest([1, 0])).toBeUndefined()
    expect((await nearest([0, 1]))?.key).toBe('a')
    await vectors.add({ partition: 'p', key: 'gone', vector: Float32Array.of(1, 0) })
    expect(await nearest([1, 0])).toBeUndefined()
  })

  it('finds no answer that has expired, and removes the vectors with the answers', async () => {
    const { put, nearest, store, server } = await open()
    await put('a', [1, 0])
    expect(await nearest([1, 0], { now_ms: 999 })).toBeDefined()
    expect(await nearest([1, 0], { now_ms: 1_000 })).toBeUndefined()
    const count = async () => (await server.query('select count(*)::integer as n from cached_vectors'))[0]?.n
    expect(await count()).toBe(1)
    await store.cachedAnswers.deleteExpired(1_000, 10)
    expect(await count()).toBe(0)
    await put('b', [1, 0])
    await store.cachedAnswers.put('c', answerOf(2), { ...WIDE, max_entries: 1 })
    expect(await count()).toBe(0)
  })

  it('opens again on the same table', async () => {
    const { put, store } = await open()
    await put('a', [1, 0])
    const again = await store.openCachedVectors?.()
    const search = { vector: Float32Array.of(1, 0), threshold: 0.9, now_ms: 1 }
    expect((await again?.nearest('p', search))?.key).toBe('a')
  })
})

const ask = (content: string) => ({
  model: 'house/fast',
  messages: [{ role: 'user', content }],
  temperature: 0,
})

/** The vector of a text is the angle that it names, in degrees. */
function vendors(): Vendors {
  const [chat, vec] = [startVendor(), startVendor()]
  closing.push(chat.stop, vec.stop)
  vec.otherwise((wire) => {
    const radians = (degreesIn(String(wire.request.json().input)) * Math.PI) / 180
    const data = [{ index: 0, embedding: [Math.cos(radians), Math.sin(radians)] }]
    return whole({ data, usage: { prompt_tokens: 7 } })(wire)
  })
  return { chat, vec }
}

type Vendors = Record<'chat' | 'vec', ReturnType<typeof startVendor>>

async function gatewayOn(store_url: string, { chat, vec }: Vendors): Promise<TestGateway> {
  const gateway = await startGateway(
    {
      providers: { chat: { base_url: chat.url, key: 'k' }, vec: { base_url: vec.url, key: 'k' } },
      models: {
        'house/fast': {
          targets: [{ provider: 'chat', model: 'fast' }],
          cache: { scope: 'all', semantic: { embedding_model: 'vec/embed' } },
        },
        'vec/embed': { families: ['embeddings'] },
      },
      cache: { storage: 'database', max_entries: 100, max_bytes: 1_000_000, max_vector_bytes: 1_000_000 },
    },
    { store_url },
  )
  closing.push(() => gateway[Symbol.asyncDispose]())
  return gateway
}

async function outcome(gateway: TestGateway, content: string, token = gateway.token) {
  const response = await gateway.chat(ask(content), { headers: { authorization: `Bearer ${token}` } })
  expect(response.status).toBe(200)
  await response.text()
  const { headers } = response
  return [headers.get('x-gatehouse-cache'), headers.get('x-gatehouse-cache-similarity')]
}

describe.skipIf(!hasPgvector)('a gateway on PostgreSQL with pgvector', () => {
  it('finds similar requests of another gateway', async () => {
    const server = await serverWithout('cached_vectors')
    const called = vendors() // of both: an answer of another provider would not be reused
    const [one, other] = [await gatewayOn(server.url, called), await gatewayOn(server.url, called)]
    expect(await outcome(one, angle(0))).toEqual(['miss', null])
    await one.instance.close({ deadline_ms: 0 })
    expect(await outcome(other, angle(10), one.token)).toEqual(['hit', '0.98'])
    expect(await outcome(other, angle(40), one.token)).toEqual(['miss', null])
    expect(other.logged()).not.toContain('pgvector')
  })
})

describe('a gateway on PostgreSQL without pgvector', () => {
  it('says so at the start, and keeps the vectors in memory', async () => {
    const postgres = await startPostgres()
    const url = await postgres.createDatabase()
    closing.push(() => postgres.dropDatabase(url))
    const gateway = await gatewayOn(url, vendors())
    const [line = '{}'] = gateway.logged().match(/.*semantic cache without pgvector.*/) ?? []
    expect(JSON.parse(line).reason).toMatch(
      /^The database cannot store vectors: .*vector.*Install pgvector on the server/,
    )
    expect(await outcome(gateway, angle(0))).toEqual(['miss', null])
    // The answer is found while it is being written, and after.
    expect(await outcome(gateway, angle(10))).toEqual(['hit', '0.98'])
  })
})
