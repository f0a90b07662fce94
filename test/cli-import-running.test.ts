/** `gatehouse import litellm URL` and `new-api URL`: from servers that answer as the admin APIs of both are documented. */
import { afterEach, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sha256 } from '../src/kit/secret.ts'
import { importDirectory, lineOf, outcomesOf } from './kit/imports.ts'

type Answer = { status?: number; body: unknown; headers?: Record<string, string> }

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

function serverOf(answer: (path: string, request: Request) => Answer | Promise<Answer>): string {
  const server = Bun.serve({
    port: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url)
      const { status = 200, body, headers } = await answer(pathname + search, request)
      return Response.json(body, { status, ...(headers && { headers }) })
    },
  })
  closing.push(() => server.stop(true))
  return `http://127.0.0.1:${server.port}`
}

const KEY = 'sk-master-of-litellm'
const FLAGS = { use_in_pass_through: false, use_litellm_proxy: false, merge_reasoning_content_in_choices: false }
/** As LiteLLM 1.108.7 answered, but for what it knows of each model. */
const MODELS = [
  {
    model_name: 'gpt-4o',
    litellm_params: { rpm: 60, ...FLAGS, model: 'openai/gpt-4o' },
    model_info: { id: 'a', mode: 'chat', max_tokens: 1 },
  },
  {
    model_name: 'gpt-4o',
    litellm_params: {
      api_base: 'https://example.openai.azure.com',
      api_version: '2024-10-21',
      ...FLAGS,
      model: 'azure/gpt-4o-eu',
    },
    model_info: { id: 'b', mode: null },
  },
]
const key = (text: string, row: object = {}) => ({
  token: sha256(text),
  spend: 0,
  models: [],
  user_role: null,
  via_virtual_key: false,
  ...row,
})

/** `/key/list` has two pages. */
function liteLlm(path: string, request: Request): Answer {
  if (request.headers.get('authorization') !== `Bearer ${KEY}`)
    return { status: 401, body: { error: { message: KEY } } }
  const answers: Record<string, unknown> = {
    '/model/info': { data: MODELS },
    '/key/list?return_full_object=true&size=100&page=1': {
      keys: [key('sk-key-one-of-litellm', { key_alias: 'one', team_id: 't-1', budget_id: 'b-1', tpd_limit: 900 })],
      total_count: 2,
      current_page: 1,
      total_pages: 2,
    },
    '/key/list?return_full_object=true&size=100&page=2': {
      keys: [key('sk-key-two-of-litellm', { key_alias: 'two', user_id: 'u-1', spend: 1.5, max_budget: 3 })],
      total_pages: 2,
    },
    '/user/list?page_size=100&page=1': {
      users: [{ user_id: 'u-1', user_email: 'ada@example.com', key_count: 1 }],
      total_pages: 1,
    },
    '/team/list': [{ team_id: 't-1', team_alias: 'Search', blocked: false, team_memberships: [], keys: [] }],
    '/budget/list': [{ budget_id: 'b-1', max_budget: 7, budget_duration: '7d' }],
  }
  return path in answers ? { body: answers[path] } : { status: 404, body: {} }
}

describe('gatehouse import litellm URL', () => {
  test('reads models, keys, users, teams and budgets of a running one', async () => {
    using directory = importDirectory()
    const url = serverOf(liteLlm)
    writeFileSync(join(directory.path, 'master-key'), `${KEY}\n`)
    const report = await directory.report(['litellm', url, '--key', 'master-key'])
    expect(directory.file()).toContain('{ provider: openai, model: gpt-4o }, { provider: azure, model: gpt-4o-eu }')
    expect(outcomesOf(report)).toEqual([
      'added project Search',
      'added project ada@example.com',
      'added token one',
      'added token two',
    ])
    expect(lineOf(report, 'LiteLLM_VerificationToken[one].tpd_limit')?.to).toBe('token one.rate_limits.tokens_per_day')
    expect(lineOf(report, 'LiteLLM_BudgetTable[b-1].max_budget')?.to).toBe('token one.budgets: 7 a week')
    expect(lineOf(report, '/model/info')?.why).toContain('import config.yaml too')
    expect(report.lines.filter(({ why }) => why?.includes('does not know'))).toEqual([])
    expect(JSON.stringify(report)).not.toContain(KEY)
    const again = await directory.report(['litellm', url], { LITELLM_MASTER_KEY: KEY })
    expect(again).toMatchObject({ written: false, accounts: [] })
  })

  test('names a variable for a key with asterisks, and says what keys have besides', async () => {
    using directory = importDirectory()
    const url = serverOf((path, request) =>
      path === '/model/info'
        ? {
            body: {
              data: ['a', 'b'].map((name) => ({
                model_name: name,
                litellm_params: { model: 'openai/m', api_base: `https://${name}.example/v1`, api_key: 'sk-****abcd' },
              })),
            },
          }
        : path.startsWith('/key/list')
          ? { body: { keys: [key('sk-1', { key_alias: 'one', guardrails: ['pii'] })], total_pages: 1 } }
          : liteLlm(path, request),
    )
    const report = await directory.report(['litellm', url], { LITELLM_MASTER_KEY: KEY })
    expect(report.variables.map(({ name }) => name)).toEqual(['KEY_OF_A_EXAMPLE', 'KEY_OF_B_EXAMPLE'])
    expect(lineOf(report, 'LiteLLM_VerificationToken[one].guardrails')?.outcome).toBe('dropped')
  })

  test('takes keys that are on two pages once, and says when it cannot have seen all', async () => {
    using directory = importDirectory()
    const one = key('sk-key-one-of-litellm', { key_alias: 'one', spend: 2 })
    const url = serverOf((path, request) =>
      path.startsWith('/key/list')
        ? { body: { keys: [one], total_count: 3, total_pages: 2 } }
        : path.startsWith('/user/list')
          ? { body: { users: [], total: 0, total_pages: 0 } }
          : liteLlm(path, request),
    )
    const report = await directory.report(['litellm', url], { LITELLM_MASTER_KEY: KEY })
    expect(outcomesOf(report)).toEqual(['added project Search', 'added token one'])
    expect(lineOf(report, '/key/list')?.why).toContain('it has 3 rows and shows 1')
  })

  test('reads the models of one without a database', async () => {
    using directory = importDirectory()
    // As LiteLLM 1.108.7 answered.
    const error = {
      message: 'Authentication Error, Database not connected',
      type: 'internal_server_error',
      code: '500',
    }
    const url = serverOf((path, request) =>
      path === '/model/info' ? liteLlm(path, request) : { status: 500, body: { error } },
    )
    const report = await directory.report(['litellm', url], { LITELLM_MASTER_KEY: KEY })
    expect(lineOf(report, '/key/list')?.why).toContain('without a database')
    expect(report.written).toBe(true)
  })

  test('says what is wrong with the key, the address and the answer, and never shows the key', async () => {
    using directory = importDirectory()
    const refuse = async (url: string, variables: Record<string, string> = { LITELLM_MASTER_KEY: KEY }) => {
      const { out, err, code } = await directory.import(['litellm', url], variables)
      expect(`${out}${err}${code}`).not.toContain(KEY)
      return String(code)
    }
    const url = serverOf(liteLlm)
    expect(await refuse(url, {})).toContain('--key <file>, or the variable LITELLM_MASTER_KEY')
    expect(await refuse(url, { LITELLM_MASTER_KEY: 'sk-another' })).toContain('/model/info refuses the key (401)')
    expect(await refuse('http://litellm.example.com')).toContain('without encryption')
    expect((await directory.import(['litellm', url, '--key', 'none'], {})).code).toContain(
      '--key: none cannot be read: there is no such file',
    )
    let redirected = 0
    const elsewhere = serverOf(() => ({ body: redirected++ }))
    const redirecting = serverOf(() => ({ status: 302, body: {}, headers: { location: elsewhere } }))
    expect(await refuse(redirecting)).toContain('answers with status 302')
    expect(redirected).toBe(0)
    expect((await directory.import(['bifrost', url], {})).code).toContain('bifrost has no admin API')
  })
})

describe('gatehouse import new-api URL', () => {
  const CHANNEL = {
    id: 4,
    type: 1,
    status: 1,
    name: 'main',
    models: 'gpt-4o',
    group: 'default',
    priority: 0,
    weight: 0,
    model_mapping: '',
  }
  const TOKEN = {
    id: 9,
    user_id: 1,
    status: 1,
    name: 'app',
    expired_time: -1,
    remain_quota: 500_000,
    used_quota: 0,
    unlimited_quota: false,
  }
  const USER = { id: 1, username: 'root', status: 1, quota: 500_000, used_quota: 0, group: 'default' }

  test('reads channels, users and the tokens of one user, with keys that only their owner sees', async () => {
    using directory = importDirectory()
    const plain = 'a'.repeat(48)
    const page = (items: object[]) => ({
      success: true,
      message: '',
      data: { page: 1, page_size: 100, total: items.length, items },
    })
    const url = serverOf(async (path, request) => {
      if (request.headers.get('authorization') !== 'access-token' || request.headers.get('new-api-user') !== '1')
        return { status: 401, body: {} }
      if (path === '/api/token/batch/keys') {
        expect(await request.json()).toEqual({ ids: [9] })
        return { body: { success: true, data: { keys: { 9: plain } } } }
      }
      const answers: Record<string, unknown> = {
        '/api/channel/?page_size=100&p=1': page([CHANNEL]),
        '/api/user/?page_size=100&p=1': page([USER, { ...USER, id: 2, username: 'ada' }]),
        '/api/token/?page_size=100&p=1': page([{ ...TOKEN, key: 'aaaa**********aaaa' }]),
        '/api/user/self': { success: true, data: USER },
        '/api/status': { success: true, data: { quota_per_unit: 500_000 } },
      }
      return path in answers ? { body: answers[path] } : { status: 404, body: {} }
    })
    const report = await directory.report(['new-api', url], { NEW_API_ACCESS_TOKEN: 'access-token' })
    expect(outcomesOf(report)).toEqual(['added project root', 'added token app'])
    expect(directory.file()).toContain('key: "${CHANNEL_4_KEY}"')
    expect(lineOf(report, '/api/token/')?.why).toContain('those of others are in the database')
    expect(JSON.stringify(report)).not.toContain(plain)
    // The same key from the database is the same token.
    const source = directory.database('one-api.db', {
      channels: [{ ...CHANNEL, key: 'k' }],
      users: [USER],
      tokens: [{ ...TOKEN, unlimited_quota: 0, key: plain }],
    })
    expect(outcomesOf(await directory.report(['new-api', source]))).toEqual([])
  })

  test('reads on where the server has shorter pages than were requested', async () => {
    using directory = importDirectory()
    const users = [1, 2, 3].map((id) => ({ ...USER, id, username: `user-${id}` }))
    const tokens = users.map(({ id }) => ({ ...TOKEN, id, user_id: id, name: `app-${id}`, key: `${id}`.repeat(48) }))
    const url = serverOf((path) => {
      const page = Number(new URL(path, 'http://host').searchParams.get('p'))
      const items = path.startsWith('/api/user/?') ? users : path.startsWith('/api/token/') ? tokens : []
      const data = { page, page_size: 1, total: items.length, items: items.slice(page - 1, page) }
      return {
        body: {
          success: true,
          data: path === '/api/user/self' ? USER : path === '/api/status' ? { quota_per_unit: 500_000 } : data,
        },
      }
    })
    const report = await directory.report(['new-api', url], { NEW_API_ACCESS_TOKEN: 'access-token' })
    expect(outcomesOf(report)).toHaveLength(6)
  })

  test('reads lists alone, whose pages older versions count from 0 and make as long as they like', async () => {
    using directory = importDirectory()
    const users = Array.from({ length: 5 }, (_, at) => ({ ...USER, id: at + 1, username: `user-${at}` }))
    const tokens = users.map(({ id }) => ({ ...TOKEN, id, user_id: id, name: `app-${id}`, key: `${id}`.repeat(48) }))
    const url = serverOf((path) => {
      const page = Number(new URL(path, 'http://host').searchParams.get('p'))
      const items = path.startsWith('/api/user/?') ? users : path.startsWith('/api/token/') ? tokens : []
      const rows = items.slice(page * 2, page * 2 + 2)
      if (path === '/api/status') return { body: { success: true, data: { quota_per_unit: 250_000 } } }
      return { body: { success: true, data: path === '/api/user/self' ? USER : rows.length > 0 ? rows : null } }
    })
    const report = await directory.report(['new-api', url], { NEW_API_ACCESS_TOKEN: 'access-token' })
    expect(outcomesOf(report)).toHaveLength(10)
    expect(lineOf(report, 'tokens[app-1].remain_quota')?.to).toBe('token app-1.budgets: 2 in total')
  })

  test('refuses an answer without a list, which is no empty one', async () => {
    using directory = importDirectory()
    const url = serverOf(() => ({ body: { success: true, message: '' } }))
    const { code } = await directory.import(['new-api', url], { NEW_API_ACCESS_TOKEN: 'access-token' })
    expect(code).toBe('/api/channel/ answers without a list of rows')
    const other = await directory.import(['litellm', url], { LITELLM_MASTER_KEY: KEY })
    expect(other.code).toBe('/model/info answers without a list of rows')
  })

  test('says what the server refuses', async () => {
    using directory = importDirectory()
    const url = serverOf(() => ({ body: { success: false, message: 'no permission' } }))
    const { code } = await directory.import(['new-api', url], { NEW_API_ACCESS_TOKEN: 'access-token' })
    expect(code).toBe('/api/channel/: no permission')
  })
})
