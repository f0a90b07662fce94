/** The script that fills a store, which tests in a browser and benchmarks build on. */
import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { filledSettings, filledStore, fillStore, SIZES } from '../scripts/fill-store.ts'
import { DEFAULT_REQUEST_LOG } from '../src/config/config.ts'
import { systemClock } from '../src/kit/clock.ts'
import { openStore } from '../src/store/open-store.ts'
import { startAdminGateway } from './kit/admin.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

function temporary(): string {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-fill-store-'))
  closing.push(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

test('a filled store shows its requests, their sums, its projects and its models', async () => {
  const file = join(temporary(), 'gatehouse.db')
  await fillStore(file, { size: 'small', now: Math.floor(Date.now() / 1_000) })
  const { models, keep_days } = filledSettings('small')
  const settings = { models, request_log: { ...DEFAULT_REQUEST_LOG, keep_days } }
  const gateway = await startAdminGateway(settings, { store_url: `sqlite:${file}`, clock: systemClock })
  closing.push(() => gateway[Symbol.asyncDispose]())
  const month = `start=${Math.floor(Date.now() / 1_000) - 31 * 86_400}`
  const { total, series } = await gateway.read<{ total: { calls: number }; series: { name: string }[] }>(
    `/summary?${month}&step=day&by=project`,
  )
  expect(total.calls).toBe(SIZES.small.rows)
  expect(series.map(({ name }) => name).toSorted()).toEqual(['checkout', 'mobile', 'search', 'support'])
  const { data } = await gateway.read<{ data: { id: string }[] }>('/models?limit=200')
  for (const model of Object.keys(models)) expect(data.map(({ id }) => id)).toContain(model)
})

test('a store that was filled once is copied for each test', async () => {
  const directory = temporary()
  const before = process.env.GATEHOUSE_FILLED_DIR
  process.env.GATEHOUSE_FILLED_DIR = directory
  closing.push(() => {
    if (before === undefined) delete process.env.GATEHOUSE_FILLED_DIR
    else process.env.GATEHOUSE_FILLED_DIR = before
  })
  for (const name of ['a.db', 'b.db']) {
    await filledStore('empty', join(directory, name))
    const store = await openStore({ url: `sqlite:${join(directory, name)}` })
    expect(await store.tokens.list()).toEqual([])
    await store.close()
  }
})
