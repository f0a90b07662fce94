/** `gatehouse budget`: how budgets stand, and prepaid credit; run in this process on a store of its own. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run as runBudget } from '../src/cli/commands/budget.ts'
import { run as runProject } from '../src/cli/commands/project.ts'
import { run as runToken } from '../src/cli/commands/token.ts'
import { run as runUsage } from '../src/cli/commands/usage.ts'
import { configOf, startGateway } from './kit/gateway.ts'
import { collectingTerminal } from './kit/terminal.ts'
import { completion, startVendor, whole } from './kit/vendor.ts'

const COMMANDS: Record<string, typeof runToken> = {
  budget: runBudget,
  project: runProject,
  token: runToken,
  usage: runUsage,
}

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-cli-budget-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

async function gatehouse(line: string) {
  const [command = '', ...args] = line.split(' ')
  const environment = { GATEHOUSE_DISCOVER: 'off', GATEHOUSE_DATA_DIR: directory }
  const { terminal, printed } = collectingTerminal({ cwd: directory, environment })
  const error = await COMMANDS[command]?.(args, terminal).then(
    (code) => (code === 0 ? undefined : `code ${code}`),
    (thrown: Error) => thrown.message,
  )
  return { ...printed, error }
}

test('credit pays for the calls of a prepaid token, and the list shows what is left', async () => {
  await gatehouse('project create shop')
  const { secret } = JSON.parse(
    (await gatehouse('token create --name customer --project shop --budget 0/total --json')).out,
  )
  const vendor = startVendor()
  vendor.otherwise(whole(completion('hi', { usage: { prompt_tokens: 1, completion_tokens: 4, total_tokens: 5 } })))
  const gateway = await startGateway(
    configOf({
      providers: { v: { base_url: vendor.url } },
      models: { 'v/m': { prices: { input: 0, output: 1_000_000 } } },
    }),
    { store_url: `sqlite:${join(directory, 'gatehouse.db')}` },
  )
  const call = async () => {
    const json = { model: 'v/m', max_tokens: 4, messages: [{ role: 'user', content: 'hi' }] }
    const response = await gateway.chat(json, { headers: { authorization: `Bearer ${secret}` } })
    await response.text()
    return response.status
  }
  try {
    expect(await call()).toBe(429)
    const added = await gatehouse('budget credit 5.5 --token customer --json')
    expect(JSON.parse(added.out)).toEqual({
      entry_id: expect.stringMatching(/^credit_\w{24}$/),
      amount: 5.5,
      currency: 'USD',
    })
    gateway.clock.advance(500)
    expect(await call()).toBe(200)
    expect(await call()).toBe(429)
  } finally {
    await gateway[Symbol.asyncDispose]()
    await vendor.stop()
  }
  const { budgets } = JSON.parse((await gatehouse('budget list --json')).out)
  expect(budgets).toEqual([
    {
      budget: expect.stringMatching(/^token:tok_\w{16}\/total\/UTC\/0$/),
      owner: 'token customer',
      project_id: expect.stringMatching(/^proj_/),
      window: 'total',
      amount: 0,
      soft: false,
      used: 4,
      credit: 5.5,
      held: 0,
      window_start: 0,
      window_end: null,
    },
  ])
  expect((await gatehouse('budget list')).out).toMatch(
    /^OWNER +WINDOW +USED +CREDIT +HELD +STARTED +ENDS\ntoken customer +total +4 +5.5 +0 +1970-01-01 00:00 +-\n$/,
  )
  const { usage } = JSON.parse((await gatehouse('usage --by token --from 2026-01-01 --json')).out)
  expect(usage).toMatchObject([{ token: expect.any(String), requests: 1, amount: 4 }])
})

test('credit that has no effect is warned of, and what is wrong is named', async () => {
  await gatehouse('token create --name plain')
  const { err, out } = await gatehouse('budget credit 1 --token plain')
  expect(err).toBe(
    'warning: plain has no budget that never starts again, so its credit has no effect; set one with --budget 0/total\n',
  )
  expect(out).toMatch(/^plain has 1 USD more credit \(credit_\w{24}\)\.\n$/)
  expect((await gatehouse('budget credit 0 --token plain')).error).toContain(
    'needs an amount of at most 9000000 that is not 0; found 0',
  )
  expect((await gatehouse('budget credit 1')).error).toContain('needs either --token or --project')
  expect((await gatehouse('budget credit 1 --token other')).error).toContain('No token has "other"')
  expect((await gatehouse('budget list')).out).toBe('No call has counted towards a budget yet.\n')
})
