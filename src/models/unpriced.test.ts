import { expect, it } from 'bun:test'
import { compiledPrices } from './prices.ts'
import { createUnpricedReport } from './unpriced.ts'

const LEDGER = { currency: 'USD', exchange_rates: {} }
const model = (id: string, prices?: Parameters<typeof compiledPrices>[0]['prices']) => ({
  id,
  prices: compiledPrices({ prices }, LEDGER).prices,
})
const AT = Date.UTC(2026, 10, 1) / 1_000

function reports() {
  const lines: unknown[] = []
  return { lines, report: createUnpricedReport({ info: (event, fields) => void lines.push([event, fields]) }) }
}

it('models without a price are reported in one line, once', () => {
  const { lines, report } = reports()
  const models = ['a/1', 'a/2', 'a/3', 'a/4'].map((id) => model(id))
  report([...models, model('b/1', { input: 0, output: 0 })], AT)
  report(models, AT)
  expect(lines).toEqual([['models without a price', { models: 4, such_as: 'a/1, a/2, a/3' }]])
  report(models.slice(1), AT)
  expect(lines).toHaveLength(2)
})

it('prices of the future, and of a currency without a rate, are none', () => {
  const { lines, report } = reports()
  report([model('a/1', { from: '2026-11-02', input: 1 }), model('a/2', { currency: 'EUR', input: 1 })], AT)
  expect(lines).toEqual([['models without a price', { models: 2, such_as: 'a/1, a/2' }]])
  report([model('a/1', { from: '2026-11-01', input: 1 })], AT)
  expect(lines).toHaveLength(1)
})
