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
