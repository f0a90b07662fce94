/** The matrix of rerank: its clients and its calls. */
import { expect } from 'bun:test'
import { aiRerank } from './clients/ai-rerank.ts'
import { cohereRerank } from './clients/cohere-rerank.ts'
import type { Family, FamilyCell, FamilyColumn } from './family.ts'
import { refusalColumns, vendorColumns } from './refusals.ts'
import { RERANK_KINDS, UNITS } from './rerank-kinds.ts'
import type { Ranked, RerankClient } from './types.ts'

const QUERY = 'When does the snow melt?'
const DOCUMENTS = ['Boats leave at noon.', 'The snow melts in April.', 'Snow fell all night.']
const ORDER = [1, 2, 0]

const params = ({ target }: FamilyCell<RerankClient>) => ({ model: target.model, query: QUERY, documents: DOCUMENTS })

/** The best comes first, and the scores decrease. */
function expectOrder(reply: Ranked | undefined, order: number[]): void {
  expect(reply?.order).toEqual(order)
  expect(reply?.scores).toEqual(reply?.scores.toSorted((one, other) => other - one))
  expect(reply?.scores[0]).toBeGreaterThan(reply?.scores[1] ?? 0)
}

const COLUMNS: Omit<FamilyColumn<RerankClient>, 'group'>[] = [
  { name: 'texts by score', check: async (cell) => expectOrder(await cell.client.rank(params(cell)), ORDER) },
  {
    name: '`top_n`',
    check: async (cell) => expectOrder(await cell.client.rank({ ...params(cell), top: 2 }), ORDER.slice(0, 2)),
  },
  {
    name: 'objects',
    has: ({ rankObjects }) => rankObjects !== undefined,
    async check({ client, target }) {
      const documents = DOCUMENTS.map((text, page) => ({ text, page }))
      expectOrder(await client.rankObjects?.({ model: target.model, query: QUERY, documents }), ORDER)
    },
  },
  {
    name: 'returned documents',
    has: ({ withTexts }) => withTexts !== undefined,
    async check(cell) {
      const reply = await cell.client.withTexts?.(params(cell))
      expect(reply?.texts).toEqual(ORDER.map((place) => DOCUMENTS[place] ?? ''))
    },
  },
  {
    name: 'usage',
    has: ({ counts }) => counts,
    async check(cell) {
      const { units } = await cell.client.rank(params(cell))
      expect(units).toBe(cell.target.name === 'cohere' ? UNITS : 1)
    },
  },
]

const GROUP = 'Rerank'
const send = (client: RerankClient, model: string, directive = '') =>
  client.rank({ model, query: `${QUERY}\n${directive}`, documents: DOCUMENTS })

export const RERANK: Family<RerankClient> = {
  family: 'rerank',
  sandbox: 'sandbox/rerank',
  kinds: RERANK_KINDS,
  rows: [...cohereRerank, ...aiRerank],
  columns: [
    ...COLUMNS.map((column) => ({ ...column, group: GROUP })),
    ...refusalColumns<RerankClient>({
      group: GROUP,
      send,
      wrong: {
        send: ({ client, target }) => client.rank({ model: target.model, query: '', documents: DOCUMENTS }),
        pattern: /query/,
        param: 'query',
      },
    }),
    ...vendorColumns({ group: GROUP, send }),
  ],
}
