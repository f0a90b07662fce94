/** The matrix of embeddings: its clients and its calls. */
import { expect } from 'bun:test'
import { aiEmbeddings } from './clients/ai-embeddings.ts'
import { genaiEmbeddings } from './clients/genai-embeddings.ts'
import { langchainEmbeddings } from './clients/langchain-embeddings.ts'
import { openaiEmbeddings } from './clients/openai-embeddings.ts'
import { EMBEDDING_KINDS, TOKENS, textOfTokens, vectorOf } from './embedding-kinds.ts'
import type { Family, FamilyCell, FamilyColumn } from './family.ts'
import { expectFault, refusalColumns, vendorColumns } from './refusals.ts'
import type { Embedded, EmbeddingsClient } from './types.ts'

type Cell = FamilyCell<EmbeddingsClient>

/** The first two have nearly the same meaning. */
const TEXTS = ['Snow melts in spring', 'In spring the snow is melting', 'Ships need deep harbours']
const SHORT = 256
const NUMBERS = [
  [1, 2, 3],
  [4, 5],
]

const product = (one: number[], other: number[]) => one.reduce((sum, value, at) => sum + value * (other[at] ?? 0), 0)

/** A provider's own vectors exactly; the sandbox's vectors by their similarity. */
function expectVectors({ vectors }: Embedded, { target }: Cell, length?: number): void {
  if (target.isVendor) {
    expect(vectors).toEqual(TEXTS.map((text) => vectorOf(text, length)))
    return
  }
  const [one = [], near = [], far = []] = vectors
  expect(vectors.map((vector) => vector.length)).toEqual(TEXTS.map(() => length ?? 1024))
  for (const vector of vectors) expect(product(vector, vector)).toBeCloseTo(1, 4)
  expect(product(one, near)).toBeGreaterThan(product(one, far) + 0.1)
}

const texts = ({ target }: Cell) => ({ model: target.model, texts: TEXTS })

const COLUMNS: Omit<FamilyColumn<EmbeddingsClient>, 'group'>[] = [
  {
    name: 'several texts in order',
    async check(cell) {
      const reply = await cell.client.many(texts(cell))
      expectVectors(reply, cell)
      if (reply.model !== undefined) expect(reply.model).toBe(cell.target.model)
    },
  },
  {
    name: 'one text',
    async check({ client, target }) {
      const { vectors } = await client.one({ model: target.model, text: TEXTS[0] ?? '' })
      const all = await client.many({ model: target.model, texts: TEXTS })
      expect(vectors).toEqual(all.vectors.slice(0, 1))
    },
  },
  {
    name: 'base64',
    has: ({ packed }) => packed !== undefined,
    check: async (cell) => expectVectors((await cell.client.packed?.(texts(cell))) ?? { vectors: [] }, cell),
  },
  {
    name: 'float',
    has: ({ plain }) => plain !== undefined,
    check: async (cell) => expectVectors((await cell.client.plain?.(texts(cell))) ?? { vectors: [] }, cell),
  },
  {
    name: 'fewer dimensions',
    async check(cell) {
      const send = { ...texts(cell), dimensions: SHORT }
      expectVectors(await cell.client.many(send), cell, SHORT)
      if (cell.client.packed) expectVectors(await cell.client.packed(send), cell, SHORT)
    },
  },
  {
    name: 'token numbers',
    has: ({ tokens }) => tokens !== undefined,
    async check({ client, target }) {
      const call =
        client.tokens?.({ model: target.model, tokens: NUMBERS }) ?? Promise.reject(new Error('It has none.'))
      if (target.unsupported.includes('tokens')) {
        return expectFault(client, call, { status: 400, pattern: /token/, param: 'input' })
      }
      const { vectors } = await call
      if (target.isVendor) expect(vectors).toEqual(NUMBERS.map((one) => vectorOf(textOfTokens(one))))
      else expect(vectors.map(({ length }) => length)).toEqual([1024, 1024])
    },
  },
  {
    name: 'usage',
    has: ({ counts }) => counts,
    async check(cell) {
      const { tokens } = await cell.client.many(texts(cell))
      if (cell.target.isVendor) expect(tokens).toBe(TEXTS.length * TOKENS)
      else expect(tokens).toBeGreaterThan(TEXTS.length)
    },
  },
]

const GROUP = 'Embeddings'
const send = (client: EmbeddingsClient, model: string, directive = '') =>
  client.many({ model, texts: [`A river\n${directive}`] })

export const EMBEDDINGS: Family<EmbeddingsClient> = {
  family: 'embeddings',
  sandbox: 'sandbox/embedding',
  kinds: EMBEDDING_KINDS,
  rows: [...openaiEmbeddings, ...genaiEmbeddings, ...aiEmbeddings, langchainEmbeddings],
  columns: [
    ...COLUMNS.map((column) => ({ ...column, group: GROUP })),
    ...refusalColumns<EmbeddingsClient>({
      group: GROUP,
      send,
      wrong: {
        // More than any of them has.
        send: ({ client, target }) => client.many({ model: target.model, texts: TEXTS, dimensions: 65_536 }),
        pattern: /dimension/i,
        param: 'dimensions',
      },
    }),
    ...vendorColumns({ group: GROUP, send }),
  ],
}
