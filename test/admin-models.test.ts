/** What the admin API says of the prices of models. */
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
