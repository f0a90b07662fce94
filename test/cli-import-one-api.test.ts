/** `gatehouse import new-api` and `one-api`: from databases as their servers write them, run in this process. */
import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run as runCheck } from '../src/cli/commands/check.ts'
import { run as runImport } from '../src/cli/commands/import.ts'
import { parseEnvironmentFile } from '../src/config/load/environment-file.ts'
import { loadConfig } from '../src/config/load/load.ts'
import { openStore } from '../src/store/open-store.ts'
import { configOf, startGateway } from './kit/gateway.ts'
import { collectingTerminal } from './kit/terminal.ts'
import { completion, startVendor, whole } from './kit/vendor.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-import-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

type Row = Record<string, string | number | null>
type Report = {
  lines: { outcome: string; from: string; to?: string; why?: string }[]
  accounts: { kind: string; name: string; outcome: string }[]
  variables: { name: string }[]
  written: boolean
}

async function gatehouse(command: typeof runImport, args: string[], variables: Record<string, string> = {}) {
  const environment = { GATEHOUSE_DISCOVER: 'off', GATEHOUSE_DATA_DIR: directory, ...variables }
  const { terminal, printed } = collectingTerminal({ cwd: directory, environment })
  const code = await command(args, terminal).catch((thrown: Error) => thrown.message)
  return { ...printed, code }
}

async function importOf(...args: string[]): Promise<Report> {
  const { out, code } = await gatehouse(runImport, [...args, '--json'])
  expect(code).toBe(0)
  return JSON.parse(out)
}

/** A file of SQLite with these tables, their columns in the order of the first row. */
function database(name: string, tables: Record<string, Row[]>): string {
  const path = join(directory, name)
  const file = new Database(path, { create: true })
  for (const [table, rows] of Object.entries(tables)) {
    const columns = [...new Set(rows.flatMap(Object.keys))]
    file.run(`create table ${table} (${columns.map((one) => `"${one}"`).join(', ')})`)
    for (const row of rows) {
      const values = columns.map((one) => row[one] ?? null)
      file.run(`insert into ${table} values (${columns.map(() => '?').join(', ')})`, values)
    }
  }
  file.close()
  return name
}

const key = (sign: string) => sign.repeat(48)
const NEVER = -1
const QUOTA = 500_000

const channel = (row: Row): Row => ({
  id: 1,
  type: 1,
  key: 'sk-vendor-key-1',
  status: 1,
  name: 'main',
  weight: 0,
  base_url: '',
  models: 'gpt-4o,gpt-4o-mini',
  group: 'default',
  used_quota: 5,
  model_mapping: '',
  priority: 0,
  auto_ban: 1,
  ...row,
})
const token = (row: Row): Row => ({
  id: 1,
  user_id: 1,
  key: key('a'),
  status: 1,
  name: 'app',
  created_time: 1,
  expired_time: NEVER,
  remain_quota: QUOTA,
  unlimited_quota: 0,
  model_limits_enabled: 0,
  model_limits: '',
  allow_ips: '',
  used_quota: QUOTA,
  group: '',
  deleted_at: null,
  ...row,
})
const user = (row: Row): Row => ({
  id: 1,
  username: 'ada',
  password: 'hash-of-a-password',
  role: 1,
  status: 1,
  quota: 10 * QUOTA,
  used_quota: 2 * QUOTA,
  group: 'default',
  access_token: 'secret-of-ada',
  deleted_at: null,
  ...row,
})

describe('gatehouse import new-api', () => {
  const CHANNELS = [
    channel({ key: 'sk-vendor-key-1\nsk-vendor-key-2', priority: 5, model_mapping: '{"gpt-4o":"gpt-4o-2024-11-20"}' }),
    channel({ id: 2, name: 'claude', type: 14, models: 'claude-sonnet-4-5', group: 'default,vip' }),
    channel({ id: 3, name: 'vip', type: 48, models: 'grok-4', group: 'vip', key: 'xai-key' }),
    channel({ id: 4, name: 'off', status: 2, models: 'gpt-4o' }),
    channel({ id: 5, name: 'midjourney', type: 2, models: 'mj' }),
  ]
  const NEW_API = {
    channels: CHANNELS,
    users: [user({}), user({ id: 2, username: 'bob', status: 2, group: 'vip' }), user({ id: 3, username: 'nobody' })],
    tokens: [
      token({}),
      token({ id: 2, name: 'limited', key: key('b'), model_limits_enabled: 1, model_limits: 'gpt-4o,grok-4' }),
      token({ id: 3, name: 'vip', key: key('c'), user_id: 2, unlimited_quota: 1 }),
      token({ id: 4, name: 'old', key: key('d'), expired_time: 1_000 }),
      token({ id: 5, name: 'gone', key: key('e'), deleted_at: '2026-01-01 00:00:00' }),
      token({ id: 6, name: 'office', key: key('f'), allow_ips: '10.0.0.0/8\n192.0.2.7' }),
      token({ id: 7, name: 'odd', key: key('g'), allow_ips: 'the office' }),
      token({ id: 8, name: 'nothing', key: key('h'), model_limits_enabled: 1, model_limits: 'grok-4' }),
    ],
  }

  test('carries channels as models with a target for each key, and prints no secret', async () => {
    const source = database('one-api.db', NEW_API)
    const { out } = await gatehouse(runImport, ['new-api', source, '--dry-run'])
    expect(out).toContain('dropped  channels[off]: it is disabled')
    expect(out).toContain('dropped  channels[midjourney].type: the import does not know how to call channels of type 2')
    expect(out).toContain('Nothing was written')
    const report = await importOf('new-api', source)
    const file = readFileSync(join(directory, 'gatehouse.yaml'), 'utf8')
    expect(file).toContain('model: gpt-4o-2024-11-20')
    for (const secret of ['sk-vendor-key', 'xai-key', 'hash-of-a-password', 'secret-of-ada', key('a')]) {
      expect(file + out + JSON.stringify(report)).not.toContain(secret)
    }
    expect(report.variables.map(({ name }) => name.replace(/_[0-9A-F]{6}$/, ''))).toEqual([
      'OPENAI_API_KEY',
      'OPENAI_API_KEY',
      'ANTHROPIC_API_KEY',
      'XAI_API_KEY',
    ])
    const values = Object.fromEntries(report.variables.map(({ name }) => [name, 'a-key']))
    expect((await gatehouse(runCheck, [], values)).code).toBe(0)
  })

  test('carries tokens with their keys, and none of them may do more than before', async () => {
    const source = database('one-api.db', NEW_API)
    const report = await importOf('new-api', source)
    expect(report.accounts.map(({ kind, name, outcome }) => `${outcome} ${kind} ${name}`)).toEqual([
      'added project ada',
      'added project bob',
      'added token app',
      'added token limited',
      'added token vip',
      'added token office',
      'added token odd',
    ])
    const line = (from: string) => report.lines.find((one) => one.from === from)
    expect(line('tokens[old]')?.why).toBe('it has expired')
    expect(line('tokens[app].remain_quota')?.to).toBe('token app.budgets: 2 in total')
    expect(line('users[ada].quota')?.to).toBe('project ada.budgets: 12 in total')
    expect(line('tokens[limited].model_limits')?.outcome).toBe('changed')
    expect(line('tokens[office].allow_ips')?.to).toBe('token office.allowed_addresses')
    expect(line('tokens[odd].allow_ips')?.to).toBe('token odd, revoked')
    // A token without a model would be of no use.
    expect(line('tokens[nothing]')).toMatchObject({ outcome: 'dropped', why: 'it may call no model' })
    expect(await importOf('new-api', source)).toMatchObject({ accounts: [], written: false })

    const vendor = startVendor()
    vendor.otherwise(whole(completion('hi')))
    const gateway = await startGateway(
      configOf({
        providers: { v: { base_url: vendor.url } },
        models: Object.fromEntries(
          ['gpt-4o', 'gpt-4o-mini', 'grok-4'].map((id) => [
            id,
            { targets: [{ provider: 'v', model: id }], prices: { input: 0, output: 0 } },
          ]),
        ),
      }),
      { store_url: `sqlite:${join(directory, 'gatehouse.db')}` },
    )
    const call = async (sign: string, model: string) => {
      const json = { model, max_tokens: 4, messages: [{ role: 'user', content: 'hi' }] }
      const response = await gateway.chat(json, { headers: { authorization: `Bearer sk-${key(sign)}` } })
      const body = await response.text()
      return response.status === 200 ? 200 : JSON.parse(body).error.code
    }
    try {
      expect([await call('a', 'gpt-4o'), await call('a', 'grok-4')]).toEqual([200, 'model_not_allowed'])
      expect([await call('b', 'gpt-4o'), await call('b', 'gpt-4o-mini')]).toEqual([200, 'model_not_allowed'])
      expect(await call('c', 'grok-4')).toBe('project_disabled')
      for (const sign of ['d', 'e', 'g', 'h']) expect(await call(sign, 'gpt-4o')).toBe('invalid_api_key')
    } finally {
      await gateway[Symbol.asyncDispose]()
      vendor.stop()
    }
  })
})

test('gatehouse import new-api leaves out tokens whose user or expiry is not known', async () => {
  const source = database('one-api.db', {
    channels: [channel({})],
    users: [user({}), user({ id: 2, username: 'gone', deleted_at: '2026-01-01 00:00:00' })],
    tokens: [
      token({ user_id: 2, name: 'of nobody' }),
      token({ id: 2, key: key('b'), user_id: 3, name: 'unknown' }),
      token({ id: 3, key: key('c'), name: 'odd', expired_time: 'soon' }),
    ],
  })
  const report = await importOf('new-api', source)
  const whyOf = (name: string) => report.lines.find(({ from }) => from === `tokens[${name}]`)?.why
  expect(whyOf('of nobody')).toBe('its user was deleted')
  expect(whyOf('unknown')).toBe('its user is not in the source: dump the table users too')
  expect(whyOf('odd')).toBe('its expiry is no time')
  expect(report.accounts.map(({ kind }) => kind)).toEqual(['project'])
})

describe('options and currencies', () => {
  const TABLES = {
    channels: [channel({})],
    users: [user({ quota: 300_000, used_quota: 0 })],
    tokens: [token({ remain_quota: 200_000, used_quota: 100_000 })],
    options: [
      { key: 'QuotaPerUnit', value: '100000' },
      { key: 'GroupRatio', value: '{"vip":0.5}' },
      { key: 'SMTPToken', value: 'secret-of-mail' },
    ],
    redemptions: [{ id: 1, key: 'secret-of-a-code' }],
    midjourneys: [] as Row[],
  }
  const source = () => {
    const name = database('options.db', { ...TABLES, midjourneys: [{ id: 1 }] })
    const file = new Database(join(directory, name))
    file.run('delete from midjourneys')
    file.close()
    return name
  }

  test('counts quota as the source does, and names each option and table that is not carried', async () => {
    const report = await importOf('new-api', source())
    const line = (from: string) => report.lines.find((one) => one.from === from)
    expect(line('tokens[app].remain_quota')).toMatchObject({ to: 'token app.budgets: 3 in total' })
    expect(line('users[ada].quota')?.why).toBe('100000 of quota are a dollar')
    expect(line('options[GroupRatio]')?.outcome).toBe('dropped')
    expect(line('options: SMTPToken')?.outcome).toBe('dropped')
    expect(line('redemptions')?.outcome).toBe('dropped')
    expect(line('midjourneys')).toBeUndefined()
    expect(JSON.stringify(report)).not.toContain('secret-of')
    const dump = [
      'CREATE TABLE channels (id int);',
      'COPY public.logs (id) FROM stdin;\n1\n\\.\n',
      'COPY public.tasks (id) FROM stdin;\n\\.\n',
      'INSERT INTO redemptions (id) VALUES (1);',
    ]
    writeFileSync(join(directory, 'dump.sql'), dump.join('\n'))
    const { lines } = await importOf('one-api', 'dump.sql')
    const unread = lines.filter(({ why }) => why === 'this import does not read it')
    expect(unread.map(({ from }) => from)).toEqual(['logs', 'redemptions'])
  })

  test('converts dollars into the currency of the ledger, or says that it has no rate', async () => {
    writeFileSync(join(directory, 'gatehouse.yaml'), 'ledger: { currency: EUR }\n')
    const { code } = await gatehouse(runImport, ['new-api', source()])
    expect(code).toContain('set ledger.exchange_rates.USD')
    writeFileSync(join(directory, 'gatehouse.yaml'), 'ledger: { currency: EUR, exchange_rates: { USD: 0.5 } }\n')
    const report = await importOf('new-api', 'options.db')
    expect(report.lines.at(-1)).toMatchObject({ outcome: 'changed', to: '0.5 EUR for each' })
    const store = await openStore({ url: `sqlite:${join(directory, 'gatehouse.db')}` })
    const [{ budgets } = { budgets: [] }] = await store.tokens.list()
    await store.close()
    expect(budgets).toMatchObject([{ amount: 1.5, window: 'total' }])
  })

  test('takes no amount where the quota of a dollar cannot be read', async () => {
    const name = database('odd.db', {
      ...TABLES,
      midjourneys: [{ id: 1 }],
      options: [{ key: 'QuotaPerUnit', value: '0' }],
    })
    expect((await gatehouse(runImport, ['one-api', name])).code).toContain('options[QuotaPerUnit]: it must be a number')
  })
})

test('gatehouse import new-api says where it takes no more than a number of keys, models and targets', async () => {
  const many = (count: number, of: (at: number) => string) => Array.from({ length: count }, (_, at) => of(at))
  const source = database('many.db', {
    channels: [
      channel({ name: 'keys', key: many(101, (at) => `sk-${at}`).join('\n') }),
      channel({ id: 2, name: 'models', models: many(1_001, (at) => `m-${at}`).join(',') }),
      channel({ id: 3, name: 'names', models: '__proto__,constructor' }),
    ],
    users: [user({})],
    tokens: [token({ model_limits_enabled: 1, model_limits: many(1_000, (at) => `m-${at}`).join(',') })],
  })
  const report = await importOf('new-api', source)
  const dropped = report.lines.filter(({ why }) => why?.includes('only the first')).map(({ from, why }) => [from, why])
  expect(dropped).toEqual([
    ['channels[keys].key', 'it has 101, and only the first 100 are carried'],
    ['channels[models].models', 'it has 1001, and only the first 1000 are carried'],
  ])
  expect(report.lines.find(({ why }) => why === 'it is no name of a model')?.from).toBe('channels[names].models')
  expect(readFileSync(join(directory, 'gatehouse.yaml'), 'utf8')).toContain('constructor:')
})

describe('gatehouse import one-api', () => {
  test('knows its own numbers of types, addresses and lists of models', async () => {
    const source = database('one-api.db', {
      channels: [
        channel({ name: 'deepseek', type: 36, key: 'ds', models: 'deepseek-chat' }),
        channel({ id: 2, name: 'own', type: 8, key: 'k', base_url: 'https://llm.example.com', models: 'qwen' }),
        channel({
          id: 3,
          name: 'gemini',
          type: 24,
          key: 'g',
          base_url: 'https://proxy.example.com',
          models: 'gemini-2.5-pro',
        }),
      ],
      users: [user({})],
      tokens: [{ ...token({}), models: 'qwen', subnet: '10.0.0.0/8,fd00::/8' }],
    })
    const report = await importOf('one-api', source)
    const environment = Object.fromEntries(report.variables.map(({ name }) => [name, 'a-key']))
    const { providers } = loadConfig({
      environment: { GATEHOUSE_DISCOVER: 'off', ...environment },
      cwd: directory,
      flags: {},
    })
    expect(Object.values(providers).map(({ preset, base_url }) => [preset, base_url])).toEqual([
      ['deepseek', undefined],
      [undefined, 'https://llm.example.com/v1'],
      ['gemini', undefined],
    ])
    const line = (from: string) => report.lines.find((one) => one.from === from)
    expect(line('channels[gemini].base_url')?.outcome).toBe('dropped')
    expect(line('tokens[app].models')?.to).toBe('token app.models')
    expect(line('tokens[app].subnet')?.to).toBe('token app.allowed_addresses')
  })

  test('reads a dump of MySQL, and refuses what is no database of it', async () => {
    const dump = [
      '-- MySQL dump 10.13',
      'CREATE TABLE `channels` (`id` int, `type` int, `key` text, `status` int, `name` text, `models` text, `group` text) ENGINE=InnoDB;',
      "INSERT INTO `channels` VALUES (1,1,'sk-of-the-vendor',1,'ma\\'in','gpt-4o','default');",
      '-- Dump completed on 2026-01-01',
    ]
    writeFileSync(join(directory, 'dump.sql'), dump.join('\n'))
    const report = await importOf('one-api', 'dump.sql', '--secrets', 'secrets.env')
    expect(report.lines).toMatchObject([
      { outcome: 'carried', from: "channels[ma'in].models: gpt-4o" },
      { outcome: 'dropped', from: 'tokens' },
      { outcome: 'dropped', from: 'users' },
      { outcome: 'dropped', from: 'options' },
    ])
    const secrets = parseEnvironmentFile(readFileSync(join(directory, 'secrets.env'), 'utf8'), 'secrets.env')
    expect(Object.values(secrets)).toEqual(['sk-of-the-vendor'])
    writeFileSync(join(directory, 'config.json'), '{"a":1}')
    expect((await gatehouse(runImport, ['one-api', 'config.json'])).code).toContain('none of the tables channels')
  })
})
