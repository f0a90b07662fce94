/** `gatehouse data erase`: what is stored of an end user goes, and the command names what stays. */
import { Database } from 'bun:sqlite'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'bun:test'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run as runData } from '../src/cli/commands/data.ts'
import { run as runLedger } from '../src/cli/commands/ledger.ts'
import { startGateway } from './kit/gateway.ts'
import { collectingTerminal } from './kit/terminal.ts'

const KEY = Buffer.from('0123456789abcdef0123456789abcdef').toString('base64')
const SECRET_SINK = 'https://user:pass@logs.example.com/rows?key=very-secret'

/** The store after the calls. */
let calls: string
let directory: string
beforeAll(async () => {
  calls = mkdtempSync(join(tmpdir(), 'gatehouse-erase-calls-'))
  await makeCalls()
})
afterAll(() => rmSync(calls, { recursive: true }))
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-erase-'))
  cpSync(calls, directory, { recursive: true })
})
afterEach(() => rmSync(directory, { recursive: true }))

/** The same calls for two end users: of the header, of a field, and in the background. */
async function makeCalls(): Promise<void> {
  const gateway = await startGateway({}, { store_url: `sqlite:${join(calls, 'gatehouse.db')}` })
  for (const user of ['ann-from-berlin', 'bob']) {
    const send = async (path: string, json: object) => {
      const response = await gateway.call(path, { json, headers: { 'x-gatehouse-user': user } })
      const text = await response.text()
      expect([path, response.status, text]).toEqual([path, 200, text])
      return text.startsWith('{') ? JSON.parse(text) : text
    }
    const model = 'sandbox/general'
    await send('/v1/chat/completions', { model, messages: [{ role: 'user', content: 'Hello' }] })
    await send('/v1/responses', { model, input: 'Hello' })
    await send('/v1/responses', { model, input: 'Hello', background: true, stream: true })
    const items = [{ type: 'message', role: 'user', content: 'Hello' }]
    await send('/v1/conversations', { items })
    const { id } = await send('/v1/conversations', {})
    await send('/v1/responses', { model, input: 'Hello', conversation: id })
    const { id: given } = await send('/v1/conversations', {})
    await send(`/v1/conversations/${given}/items`, { items })
    await send('/v1/images/generations', { model: 'sandbox/image', prompt: 'A kite', response_format: 'url' })
    await send('/v1/videos', { model: 'sandbox/text-to-video', prompt: 'A kite' })
  }
  await gateway[Symbol.asyncDispose]()
}

const FOUND = { requests: 7, contents: 0, responses: 3, conversations: 3, tasks: 1 }

async function data(...args: string[]): Promise<string> {
  const environment = { GATEHOUSE_DATA_DIR: directory, GATEHOUSE_CONTENTS_KEY: KEY }
  const { terminal, printed } = collectingTerminal({ cwd: directory, environment })
  expect([await runData(args, terminal), printed.err]).toEqual([0, ''])
  return printed.out
}
const erase = async (...args: string[]) =>
  JSON.parse(await data('erase', '--user', 'ann-from-berlin', ...args, '--json'))

/** The tables with a row that names the end user, with the number of these rows. */
function tablesNaming(user: string): Record<string, number> {
  const database = new Database(join(directory, 'gatehouse.db'), { readonly: true })
  const tables = database.query<{ name: string }, []>("select name from sqlite_master where type = 'table'").all()
  const found: Record<string, number> = {}
  for (const { name } of tables) {
    const rows = database.query(`select * from "${name}"`).all()
    const naming = rows.filter((row) => JSON.stringify(row).includes(user)).length
    if (naming > 0) found[name] = naming
  }
  database.close()
  return found
}

describe('gatehouse data erase', () => {
  it('counts without --yes, and erases nothing', async () => {
    const before = tablesNaming('ann-from-berlin')
    expect(await erase()).toMatchObject({ erased: false, ...FOUND, unfinished_tasks: 1, sinks: [] })
    expect(tablesNaming('ann-from-berlin')).toEqual(before)
  })

  it('leaves the name in the ledger and at tasks that have not ended, and says so', async () => {
    const { ledger_entries } = await erase()
    expect(await erase('--yes')).toEqual({
      erased: true,
      ...FOUND,
      pseudonymised: 0,
      unfinished_tasks: 1,
      ledger_entries,
      sinks: [],
    })
    const left = { ledger_entries, ledger_end_users: expect.any(Number), tasks: 1 }
    expect(tablesNaming('ann-from-berlin')).toEqual(left)
    expect(await erase()).toMatchObject({ ...FOUND, requests: 0, responses: 0, conversations: 0, tasks: 0 })
    expect(JSON.parse(await data('erase', '--user', 'bob', '--json'))).toMatchObject({ ...FOUND, unfinished_tasks: 1 })
  })

  it('writes a random name into the ledger with --pseudonymise, which then still adds up', async () => {
    const { ledger_entries } = await erase()
    const { pseudonym, ...done } = await erase('--yes', '--pseudonymise')
    expect(done).toMatchObject({ erased: true, pseudonymised: ledger_entries, ledger_entries: 0 })
    expect(pseudonym).toMatch(/^erased_\w{16}$/)
    expect(tablesNaming('ann-from-berlin')).toEqual({ tasks: 1 })
    expect(tablesNaming(pseudonym)).toMatchObject({ ledger_entries })
    const { terminal, printed } = collectingTerminal({ cwd: directory, environment: { GATEHOUSE_DATA_DIR: directory } })
    expect([await runLedger(['reconcile'], terminal), printed.out]).toEqual([0, expect.any(String)])
  })

  it('names the sinks of the request log, without their secrets', async () => {
    const sinks = [{ file: { path: 'log/requests.ndjson' } }, { http: { url: SECRET_SINK } }]
    writeFileSync(join(directory, 'gatehouse.yaml'), JSON.stringify({ request_log: { sinks } }))
    const file = `${join(directory, 'log/requests.ndjson')} and the files beside it`
    expect((await erase()).sinks).toEqual([file, 'https://logs.example.com/rows'])
    const text = await data('erase', '--user', 'ann-from-berlin', '--yes')
    expect(text).toContain('Erased 7 requests, 0 recorded contents, 3 responses, 3 conversations and 1 task.\n')
    expect(text).toContain('  1 task that did not end: cancel with `gatehouse task cancel`, and repeat\n')
    expect(text).toContain(`  rows in a sink of the request log: ${file}\n`)
    expect(text).toContain('  rows in a sink of the request log: https://logs.example.com/rows\n')
    expect(text).not.toContain('secret')
  })

  it('erases although the configuration is invalid, and says that sinks are not known', async () => {
    writeFileSync(join(directory, 'gatehouse.yaml'), 'request_log: {sinks: 7}')
    const text = await data('erase', '--user', 'ann-from-berlin', '--yes')
    expect(text).toContain('Erased 7 requests')
    expect(text).toMatch(/ {2}rows in sinks of the request log, which are not known: .*request_log\.sinks: found 7/)
  })
})
