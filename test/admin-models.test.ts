/** Models in the admin API: prices, and those that end. */
import { expect, test } from 'bun:test'
import { startAdminGateway } from './kit/admin.ts'

test('a price that was always in force has no start, as its schema says', async () => {
  await using gateway = await startAdminGateway({
    models: { 'team/large': { targets: [{ provider: 'sandbox', model: 'general' }], prices: { input: 2, output: 8 } } },
  })
  const model = await gateway.read<{ price: object; prices: object[] }>('/models/team/large')
  expect(model.price).toMatchObject({ from: null, input: 2, output: 8 })
  expect(model.prices).toMatchObject([{ from: null }])
})

test('lists only the models that are deprecated or have a date of their end', async () => {
  const targets = [{ provider: 'sandbox', model: 'general' }]
  await using gateway = await startAdminGateway({
    models: {
      'team/active': { targets },
      'team/deprecated': { targets, status: 'deprecated' },
      'team/retired': { targets, status: 'retired' },
      'team/ahead': { targets, retired_at: 4_102_444_800 },
    },
  })
  const { data } = await gateway.read<{ data: { id: string }[] }>('/models?ending=true')
  expect(data.map(({ id }) => id)).toEqual(['sandbox/legacy', 'team/ahead', 'team/deprecated'])
  const refused = await gateway.admin('/models?ending=soon')
  expect([refused.status, (await refused.json()).error.param]).toEqual([400, 'ending'])
})

const idsOf = ({ data }: { data: { id: string }[] }) => data.map(({ id }) => id)

test('finds models by their text, family and status, and says how many fit', async () => {
  const targets = [{ provider: 'sandbox', model: 'general' }]
  await using gateway = await startAdminGateway({
    models: {
      'team/Coder-1': { targets },
      'team/coder-2': { targets, status: 'retired' },
      'team/words': { targets: [{ provider: 'sandbox', model: 'embedding' }] },
    },
  })
  const read = (query: string) => gateway.read<{ data: { id: string }[]; total: number }>(`/models?${query}`)
  expect(idsOf(await read('q=CODER'))).toEqual(['team/Coder-1', 'team/coder-2'])
  expect(idsOf(await read('q=team&status=active,deprecated'))).toEqual(['team/Coder-1', 'team/words'])
  expect(idsOf(await read('q=team&family=rerank,embeddings'))).toEqual(['team/words'])
  expect(await read('q=team/&limit=1')).toMatchObject({ data: [{ id: 'team/Coder-1' }], total: 3 })
  // Each count is of the other filters: that of its own is left out.
  expect(await read('q=team/&status=retired&counts=true&limit=1')).toMatchObject({
    total: 1,
    counts: { family: { chatcompat: 1 }, status: { active: 2, retired: 1 } },
  })
  expect(await read('q=team/&family=embeddings&counts=true')).toMatchObject({
    counts: { family: { chatcompat: 2, embeddings: 1 }, status: { active: 1 } },
  })
  expect(await read('q=team/&provider=none&counts=true')).toMatchObject({ counts: { family: {}, status: {} } })
  expect(await read('q=team/')).toMatchObject({ counts: null })
  for (const [param, value] of Object.entries({
    counts: 'yes',
    family: 'chat',
    status: 'new',
    order: 'size',
    q: 'a'.repeat(201),
  })) {
    const refused = await gateway.admin(`/models?${param}=${value}`)
    expect([refused.status, (await refused.json()).error.param]).toEqual([400, param])
  }
  expect(idsOf(await read(`q=${'a'.repeat(200)}`))).toEqual([])
})

test('sorts models by what they hold, through all pages', async () => {
  const targets = [{ provider: 'sandbox', model: 'general' }]
  const sizes = { a: 8, b: 32, c: 8, d: 16 }
  const models = Object.entries(sizes).map(([name, context_tokens]) => [`team/${name}`, { targets, context_tokens }])
  await using gateway = await startAdminGateway({ models: Object.fromEntries(models) })
  type Page = { data: { id: string }[]; next_cursor: string | null }
  const all = async (order: string) => {
    const ids: string[] = []
    for (let cursor = ''; ; ) {
      const page = await gateway.read<Page>(`/models?q=team/&limit=1&order=${order}&cursor=${cursor}`)
      ids.push(...idsOf(page))
      if (page.next_cursor === null) return ids.map((id) => id.replace('team/', '')).join('')
      cursor = page.next_cursor
    }
  }
  expect(await all('context')).toBe('acdb')
  expect(await all('-context')).toBe('bdca')
  expect(await all('-id')).toBe('dcba')
})
