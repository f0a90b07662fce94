/** `gatehouse usage` and `gatehouse ledger reconcile`, run as child processes on a store with entries in it. */
import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chargeOf, compiledPrices } from '../src/models/prices.ts'
import { openStore } from '../src/store/open-store.ts'
import { storedToken } from './kit/accounts.ts'
import { entry } from './kit/ledger.ts'

const COMMAND = join(import.meta.dir, '../bin/gatehouse')
const DAY = Date.UTC(2026, 0, 31)

let directory: string

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-cli-usage-'))
  const store = await openStore({ url: `sqlite:${join(directory, 'data/gatehouse.db')}` })
  await store.tokens.add(storedToken({ token_id: 'tok_a', name: 'laptop', hash: 'a' }))
  await store.ledger.append([
    entry({ at_ms: DAY, amount: 1_500_000_000, cost: 1_250_000_000 }),
    entry({ at_ms: DAY, amount: null, cost: null, estimated: 1 }),
    entry({ at_ms: DAY + 86_400_000, token_id: 'tok_b', amount: null, cost: null, errors: 1, end_user: '=1+1' }),
  ])
  await store.close()
})
afterEach(() => rmSync(directory, { recursive: true }))

async function gatehouse(...args: string[]) {
  const child = Bun.spawn([COMMAND, ...args], {
    cwd: directory,
    env: { PATH: process.env.PATH ?? '' },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { out, err, code }
}

describe('gatehouse usage', () => {
  const range = ['--from', '2026-01-31', '--to', '2026-02-01']

  it('adds up amounts of many millions to the last decimal', async () => {
    const store = await openStore({ url: `sqlite:${join(directory, 'data/gatehouse.db')}` })
    const amounts = [8_000_000_000_000_001, 8_000_000_000_000_001]
    await store.ledger.append(
      amounts.map((amount, at) => entry({ at_ms: DAY, model: `v/m${at}`, amount, cost: amount })),
    )
    await store.close()
    const { out } = await gatehouse('usage', '--by', 'model', ...range)
    expect(out).toMatch(/^total .* 16000001\.250000002 +16000001\.500000002 /m)
  })

  it('prints rows with requests, tokens and cost, and null where no price is known', async () => {
    const { out, code } = await gatehouse('usage', '--by', 'token', ...range, '--json')
    expect(code).toBe(0)
    const tokens = { input_tokens: 10, output_tokens: 20 }
    expect(JSON.parse(out)).toEqual({
      usage: [
        {
          token: 'tok_a',
          token_name: 'laptop',
          requests: 2,
          errors: 0,
          input_tokens: 20,
          output_tokens: 40,
          cost: 1.25,
          amount: 1.5,
          unknown_requests: 1,
          estimated: 1,
        },
        {
          token: 'tok_b',
          token_name: '',
          requests: 1,
          errors: 1,
          ...tokens,
          cost: null,
          amount: null,
          unknown_requests: 1,
          estimated: 0,
        },
      ],
      total: {
        requests: 3,
        errors: 1,
        input_tokens: 30,
        output_tokens: 60,
        cost: 1.25,
        amount: 1.5,
        unknown_requests: 2,
        estimated: 1,
      },
      from: '2026-01-31T00:00:00Z',
      to: '2026-02-02T00:00:00Z',
    })
  })

  it('prints a table, and CSV that a spreadsheet can open safely', async () => {
    expect((await gatehouse('usage', '--by', 'day,model', ...range)).out).toMatch(
      /^DAY +MODEL +REQUESTS.*\n2026-01-31 +sandbox\/general +2/,
    )
    const lines = (await gatehouse('usage', '--by', 'token', ...range)).out.trim().split('\n')
    expect(lines.at(-1)).toMatch(/^total +3 +1 +30 +60 +1\.25 +1\.5 +2 +1$/)
    const one = (await gatehouse('usage', '--by', 'model', ...range)).out.trim().split('\n')
    expect(one).toHaveLength(2)
    const { out } = await gatehouse('usage', '--by', 'end_user', ...range, '--csv')
    expect(out).not.toContain('total')
    expect(out.split('\n')[0]).toBe(
      'end_user,requests,errors,input_tokens,output_tokens,cost,amount,unknown_requests,estimated',
    )
    expect(out).toContain("'=1+1,1,1,10,20,unknown,unknown,1,0")
    expect((await gatehouse('usage', '--from', '2026-03-01', '--to', '2026-03-02')).out).toBe(
      'Nothing was used in this time.\n',
    )
  })

  it.each([
    [['--by', 'week'], 'must be one of project, token'],
    [['--by', 'day,hour'], 'only one of day, hour and minute'],
    [['--by', 'end_user,hour'], 'by day'],
    [['--from', '31.1.'], '--from: found "31.1."'],
    [['--from', '2026-02-01', '--to', '2026-01-01'], '--from must be before --to'],
  ])('rejects %p', async (args, message) => {
    const { err, code } = await gatehouse('usage', ...args)
    expect(code).toBe(2)
    expect(err).toContain(message)
  })
})

describe('gatehouse ledger reconcile', () => {
  it('finds no difference in a ledger that adds up', async () => {
    const { out, code } = await gatehouse('ledger', 'reconcile', '--json')
    expect({ ...JSON.parse(out), code }).toMatchObject({
      difference: 0,
      differences: [],
      requests: 3,
      cost: 1.25,
      code: 0,
    })
    expect((await gatehouse('ledger', 'reconcile')).out).toBe('The ledger adds up: 3 requests, no difference.\n')
  })

  it('prints each difference, and exits with 1', async () => {
    const file = new Database(join(directory, 'data/gatehouse.db'))
    file.run("update ledger_sums set requests = 7 where period = 86400 and token_id = 'tok_a'")
    file.close()
    const { out, code } = await gatehouse('ledger', 'reconcile', '--json')
    expect(code).toBe(1)
    expect(JSON.parse(out)).toMatchObject({
      difference: 1,
      differences: [{ what: 'day', count: 'requests', difference: '-5' }],
    })
    expect((await gatehouse('ledger', 'reconcile')).out).toMatch(/day +2026-01-31T00:00 +tok_a .* requests +-5/)
  })

  it('compares with the export of a provider, by day and model', async () => {
    const file = join(directory, 'export.csv')
    writeFileSync(file, 'date,model,requests,cost\n2026-01-31,general,2,1.25\n2026-02-01,general,1,0\n')
    expect((await gatehouse('ledger', 'reconcile', '--vendor', file)).code).toBe(0)
    writeFileSync(file, 'date,model,requests,cost\n2026-01-31,general,3,1.5\n2026-01-31,other,1,0\n')
    const { out, code } = await gatehouse('ledger', 'reconcile', '--vendor', file, '--json')
    expect(code).toBe(1)
    expect(JSON.parse(out).vendor_differences).toEqual([
      { day: '2026-01-31', model: 'general', count: 'requests', ledger: 2, vendor: 3 },
      { day: '2026-01-31', model: 'general', count: 'cost', ledger: 1.25, vendor: 1.5 },
      { day: '2026-01-31', model: 'other', count: 'requests', ledger: 0, vendor: 1 },
    ])
  })

  it('names the option and the file of an export that does not exist', async () => {
    const missing = await gatehouse('ledger', 'reconcile', '--vendor', 'missing.csv')
    expect(missing.err).toBe('gatehouse: --vendor: missing.csv cannot be read: there is no such file\n')
  })

  it('corrects calls whose process ended before them, once, and prints before what it would do', async () => {
    const config = { models: { 'v/m': { prices: { input: 1, output: 2 } } } }
    writeFileSync(
      join(directory, 'gatehouse.yaml'),
      JSON.stringify({ ...config, providers: { v: { base_url: 'http://127.0.0.1:1' } } }),
    )
    const { prices } = compiledPrices({ prices: config.models['v/m'].prices }, { currency: 'USD', exchange_rates: {} })
    const units = { input_tokens: 1_000, output_tokens: 5_000, estimated: true }
    const at = DAY / 1000
    const most = chargeOf({ model: { prices }, target: undefined, units, at })
    const call = { call_id: 'req_x', model: 'v/m', provider: 'v', upstream_model: 'm', at_ms: DAY }
    const store = await openStore({ url: `sqlite:${join(directory, 'data/gatehouse.db')}` })
    await store.ledger.append([
      entry({ ...call, entry_id: 'x:interrupted', kind: 'interrupted', units, estimated: 1, ...most }),
    ])
    const sum = async () => (await store.ledger.ofCall('req_x')).reduce((sum, { amount }) => sum + (amount ?? 0), 0)
    const file = join(directory, 'export.csv')
    writeFileSync(file, 'date,model,requests,input_tokens,output_tokens\n2026-01-31,m,1,900,40\n')
    const args = ['ledger', 'reconcile', '--vendor', file, '--provider', 'v', '--json']
    const dry = await gatehouse(...args, '--correct', '--dry-run')
    const adjustment = { entry_id: 'x:interrupted:adjustment', requests: 0, input_tokens: -100, output_tokens: -4_960 }
    expect(JSON.parse(dry.out).corrected).toMatchObject({ adjustments: [adjustment], left: [] })
    expect([dry.code, await sum()]).toEqual([1, most.amount ?? 0])
    const made = await gatehouse(...args, '--correct')
    expect(JSON.parse(made.out)).toMatchObject({ difference: 0, corrected: { adjustments: [adjustment] } })
    expect(await sum()).toBe(900 * 1_000 + 40 * 2_000)
    const again = await gatehouse(...args, '--correct')
    expect(JSON.parse(again.out)).toMatchObject({ difference: 0, corrected: { adjustments: [], left: [] } })
    expect(await sum()).toBe(900 * 1_000 + 40 * 2_000)
    await store.close()
    for (const wrong of [['--correct'], ['--correct', '--vendor', file], ['--dry-run']])
      expect((await gatehouse('ledger', 'reconcile', ...wrong)).code).toBe(2)
  })
})
