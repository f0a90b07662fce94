/** No key may do more after an import than before, and no text of a source is a reference to a secret of this machine. */
import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sha256 } from '../src/kit/secret.ts'
import { openStore } from '../src/store/open-store.ts'
import { importDirectory, lineOf, outcomesOf } from './kit/imports.ts'

const key = (name: string, row: object = {}) => ({ token: sha256(name), key_alias: name, spend: 0, ...row })

async function tokensOf(path: string) {
  const store = await openStore({ url: `sqlite:${join(path, 'gatehouse.db')}` })
  try {
    const names = new Map<string, { models: unknown; disabled: boolean }>()
    for (const { name, models, disabled } of await store.tokens.list()) names.set(name, { models, disabled })
    return names
  } finally {
    await store.close()
  }
}

const MONTH_MS = Date.parse(`${new Date().toISOString().slice(0, 7)}-01`)
/** What counts for each account: of this month, and of all time. */
async function spentOf(path: string): Promise<Record<string, [number, number]>> {
  const store = await openStore({ url: `sqlite:${join(path, 'gatehouse.db')}` })
  try {
    const entries = await store.ledger.ofCall('import')
    const sums = (isOf: (entry: (typeof entries)[number]) => boolean): [number, number] => {
      const mine = entries.filter(isOf)
      const sum = (list: typeof entries) => list.reduce((total, { amount }) => total + (amount ?? 0), 0) / 1e9
      return [sum(mine.filter(({ at_ms }) => at_ms >= MONTH_MS)), sum(mine)]
    }
    const found: Record<string, [number, number]> = { all: sums(() => true) }
    for (const { name, project_id } of await store.projects.list())
      found[name] = sums((one) => one.project_id === project_id)
    for (const { name, token_id } of await store.tokens.list()) found[name] = sums((one) => one.token_id === token_id)
    return found
  } finally {
    await store.close()
  }
}

describe('an import', () => {
  test('allows no model where the list of a key cannot be read', async () => {
    using directory = importDirectory()
    const models = ['[[[', { gpt: true }, 7]
    const tables = { LiteLLM_VerificationToken: models.map((one, at) => key(`key-${at}`, { models: one })) }
    writeFileSync(join(directory.path, 'litellm.json'), JSON.stringify(tables))
    await directory.report(['litellm', 'litellm.json'])
    for (const { models } of (await tokensOf(directory.path)).values()) expect(models).toEqual(['none'])
  })

  test('leaves out keys without the budget of their user or team', async () => {
    using directory = importDirectory()
    const tables = { LiteLLM_VerificationToken: [key('of-user', { user_id: 'u' }), key('alone')] }
    writeFileSync(join(directory.path, 'litellm.json'), JSON.stringify(tables))
    const report = await directory.report(['litellm', 'litellm.json'])
    expect(outcomesOf(report)).toEqual(['added token alone'])
    expect(lineOf(report, 'LiteLLM_VerificationToken[of-user]')?.why).toContain('dump LiteLLM_UserTable too')
    const virtual_keys = [{ id: 'v', name: 'app', value: 'sk-bf-1', team_id: 'gone', is_active: true }]
    writeFileSync(join(directory.path, 'bifrost.json'), JSON.stringify({ governance: { virtual_keys } }))
    const bifrost = await directory.report(['bifrost', 'bifrost.json'])
    expect(bifrost.accounts).toEqual([])
    expect(lineOf(bifrost, 'governance.virtual_keys[app]')?.why).toContain('its team or customer is not in the source')
  })

  test('revokes tokens of New API that are not enabled, or whose list of models is empty', async () => {
    using directory = importDirectory()
    const token = { user_id: 1, expired_time: -1, remain_quota: 1, used_quota: 0, unlimited_quota: 1, key: 'k' }
    const tokens = [
      { ...token, id: 1, status: 1, name: 'on' },
      { ...token, id: 2, status: 3, name: 'expired', key: 'l' },
      { ...token, id: 3, status: 4, name: 'exhausted', key: 'm' },
      { ...token, id: 4, status: 1, name: 'empty', key: 'n', model_limits_enabled: 1, model_limits: '' },
    ].map((one) => ({ model_limits_enabled: 0, model_limits: '', ...one }))
    const users = [{ id: 1, username: 'ada', status: 1, quota: 1, used_quota: 0, group: 'default' }]
    await directory.report(['new-api', directory.database('new.db', { tokens, users })])
    const enabled = [...(await tokensOf(directory.path))].filter(([, one]) => !one.disabled).map(([name]) => name)
    expect(enabled).toEqual(['on'])
  })

  test('writes references of a source as the characters that they are', async () => {
    using directory = importDirectory()
    const model_list = [
      { model_name: 'a', litellm_params: { model: 'openai/x', api_base: 'https://a.example/${HOME_SECRET}' } },
      { model_name: 'b', litellm_params: { model: 'openai/${file:/etc/hostname}', api_key: 'os.environ/OWN_KEY' } },
    ]
    writeFileSync(join(directory.path, 'config.yaml'), JSON.stringify({ model_list }))
    const report = await directory.report(['litellm', 'config.yaml'])
    expect(directory.file()).toContain('https://a.example/$${HOME_SECRET}')
    expect(directory.file()).toContain('$${file:/etc/hostname}')
    expect(report.variables.map(({ name }) => name)).toContain('OWN_KEY')
    expect(await directory.report(['litellm', 'config.yaml'])).toMatchObject({ written: false })
  })

  test('counts the same sums again where the source has begun another window', async () => {
    using directory = importDirectory()
    const spend = async (sum: number) => {
      const tables = {
        LiteLLM_VerificationToken: [key('app', { spend: sum, max_budget: 100, budget_duration: '30d' })],
      }
      writeFileSync(join(directory.path, 'litellm.json'), JSON.stringify(tables))
      await directory.report(['litellm', 'litellm.json'])
      await directory.report(['litellm', 'litellm.json'])
    }
    for (const sum of [10, 5, 10, 5]) await spend(sum)
    const store = await openStore({ url: `sqlite:${join(directory.path, 'gatehouse.db')}` })
    const entries = await store.ledger.ofCall('import')
    await store.close()
    // 10, then 5 of a new window and 5 more in it, then 5 of another one: in the budget of the month, not in one of a day.
    expect(entries.map(({ amount }) => (amount ?? 0) / 1e9)).toEqual([10, 5, 5, 5])
    expect([...new Set(entries.map(({ at_ms }) => at_ms))]).toEqual([MONTH_MS])
  })

  test('counts in each project and token what the source counts there, whatever their keys have spent before', async () => {
    using directory = importDirectory()
    const team = { team_id: 't', team_alias: 'Research', spend: 10, max_budget: 100, budget_duration: '30d' }
    const keys = [
      key('ci', { team_id: 't', spend: 5_000 }),
      key('alone', { spend: 7_000 }),
      key('yearly', { spend: 500, max_budget: 1_200, budget_duration: '1y' }),
      key('unknown', { spend: null }),
    ]
    const tables = { LiteLLM_TeamTable: [team], LiteLLM_UserTable: [], LiteLLM_VerificationToken: keys }
    writeFileSync(join(directory.path, 'litellm.json'), JSON.stringify(tables))
    const report = await directory.report(['litellm', 'litellm.json'])
    expect(lineOf(report, 'LiteLLM_VerificationToken[ci].spend')?.to).toBe('token ci: 5000 spent in total')
    expect(lineOf(report, 'LiteLLM_VerificationToken[yearly].spend')?.outcome).toBe('changed')
    expect(lineOf(report, 'LiteLLM_TeamTable[t].spend')?.to).toBe('project Research: 10 spent in its month')
    const expected: Awaited<ReturnType<typeof spentOf>> = {
      all: [51.095890411, 7_051.095890411],
      Research: [10, 10],
      ci: [0, 5_000],
      alone: [0, 7_000],
      yearly: [41.095890411, 41.095890411],
      unknown: [0, 0],
    }
    expect(await spentOf(directory.path)).toEqual(expected)
    await directory.report(['litellm', 'litellm.json'])
    expect(await spentOf(directory.path)).toEqual(expected)
  })

  test('counts a team once, whatever becomes of its keys between two imports', async () => {
    using directory = importDirectory()
    const day = 86_400_000
    const at = (days: number) => new Date(Date.now() + days * day).toISOString()
    const spend = async (team: object, keys: object[]) => {
      const LiteLLM_TeamTable = [{ team_id: 't', team_alias: 'Sales', ...team }]
      const tables = { LiteLLM_TeamTable, LiteLLM_VerificationToken: keys }
      writeFileSync(join(directory.path, 'litellm.json'), JSON.stringify(tables))
      for (let time = 0; time < 2; time++) await directory.report(['litellm', 'litellm.json'])
      return (await spentOf(directory.path)).Sales?.[1]
    }
    const of = { team_id: 't' }
    const monthly = { max_budget: 200, budget_duration: '30d' }
    expect(
      await spend({ spend: 100, ...monthly }, [key('A', { ...of, spend: 60 }), key('B', { ...of, spend: 40 })]),
    ).toBe(100)
    expect(
      await spend({ spend: 100, ...monthly }, [
        key('A', { ...of, spend: 60, expires: at(-1) }),
        key('new B', { ...of, spend: 40 }),
      ]),
    ).toBe(100)
    // A window that began with nothing, and then 60; an end that was moved before it came begins none.
    expect(await spend({ spend: 0, ...monthly }, [])).toBe(100)
    expect(await spend({ spend: 60, ...monthly, budget_reset_at: at(9) }, [])).toBe(160)
    expect(await spend({ spend: 70, ...monthly, budget_reset_at: at(10) }, [])).toBe(170)
    expect(await spend({ spend: 70, ...monthly, budget_reset_at: at(-1) }, [])).toBe(170)
    expect(await spend({ spend: 80, ...monthly, budget_reset_at: at(20) }, [])).toBe(250)
    // Without a window it is a correction.
    expect(await spend({ spend: 70, max_budget: 200 }, [])).toBe(240)
  })

  test('revokes what a database has no more or refuses, and nothing where it has none of the keys', async () => {
    using directory = importDirectory()
    const enabled = async (keys: object[], args: string[] = []) => {
      writeFileSync(join(directory.path, 'litellm.json'), JSON.stringify({ LiteLLM_VerificationToken: keys }))
      const report = await directory.report(['litellm', 'litellm.json', ...args])
      const tokens = [...(await tokensOf(directory.path))].filter(([, { disabled }]) => !disabled)
      return { names: tokens.map(([name]) => name), outcomes: outcomesOf(report) }
    }
    const expires = '2020-01-01 00:00:00+00'
    const names = ['a', 'b', 'c']
    expect((await enabled(names.map((name) => key(name)))).names).toEqual(names)
    // A key whose row cannot be read stays as it was.
    const odd = key('c', { team_id: 'not-dumped' })
    const outcomes = ['changed token b', 'added token d']
    expect(await enabled([key('a'), key('b', { expires }), odd, key('d')])).toEqual({
      names: ['a', 'c', 'd'],
      outcomes,
    })
    expect(await enabled([key('a'), key('b', { expires }), odd, key('d')])).toMatchObject({ outcomes: [] })
    expect((await enabled([key('other')])).outcomes).toEqual(['kept token 4 of litellm', 'added token other'])
    expect((await enabled([key('third')], ['--instance', 'eu'])).outcomes).toEqual(['added token third'])
    expect((await enabled([key('a')])).names).toEqual(['a', 'third'])
  })

  test('revokes an expired key and the former one of a key that was made anew, where the source has no other', async () => {
    using directory = importDirectory()
    const write = (keys: object[]) => {
      writeFileSync(join(directory.path, 'litellm.json'), JSON.stringify({ LiteLLM_VerificationToken: keys }))
      return directory.report(['litellm', 'litellm.json'])
    }
    await write([key('A'), key('B')])
    const report = await write([key('A', { expires: '2020-01-01 00:00:00+00' }), key('new B')])
    expect(outcomesOf(report)).toEqual(['changed token A', 'changed token B', 'added token new B'])
    expect((await write([key('A', { expires: '2020-01-01 00:00:00+00' })])).accounts).toMatchObject([
      { name: 'new B', outcome: 'changed' },
    ])
  })

  test.each([
    ['was deleted', { deleted_at: '2026-11-01' }, {}],
    ['has expired', { expired_time: 1_600_000_000 }, {}],
    ['may call no model', { model_limits_enabled: 1, model_limits: '' }, {}],
    ['has a user who was deleted', {}, { deleted_at: '2026-11-01' }],
  ])('revokes a token of New API that %s, though the source has no other', async (_, change, ofUser) => {
    using directory = importDirectory()
    const token = { id: 1, user_id: 1, name: 'app', key: 'k', status: 1, expired_time: -1, unlimited_quota: 1 }
    const user = { id: 1, username: 'ada', status: 1, quota: 1, used_quota: 0 }
    const write = (row: object, owner: object) => {
      const tables = { channels: [], users: [{ ...user, ...owner }], tokens: [{ ...token, ...row }] }
      writeFileSync(join(directory.path, 'new.json'), JSON.stringify(tables))
      return directory.report(['new-api', 'new.json'])
    }
    await write({}, {})
    expect(outcomesOf(await write(change, ofUser))).toContain('changed token app')
    expect((await tokensOf(directory.path)).get('app')?.disabled).toBe(true)
  })

  test('tells instances apart whose ids are the same, and carries a key that the source has rotated', async () => {
    using directory = importDirectory()
    const users = [{ id: 1, username: 'root', status: 1, quota: 1, used_quota: 0 }]
    const source = (name: string, rows: object[]) => {
      const tokens = rows.map((row, at) => ({ id: at + 1, user_id: 1, name, key: name, status: 1, ...row }))
      writeFileSync(join(directory.path, `${name}.json`), JSON.stringify({ channels: [], users, tokens }))
      return ['new-api', `${name}.json`]
    }
    await directory.report(source('shop', [{ deleted_at: '\\N' }, { name: 'x', key: 'x' }]))
    expect((await directory.import(source('blog', [{}]))).code).toContain('needs a name: --instance')
    expect(outcomesOf(await directory.report([...source('blog', [{}]), '--instance', 'blog']))).toEqual([
      'added project root',
      'added token blog',
    ])
    const report = await directory.report(source('shop', [{ deleted_at: '2026-11-01' }, { name: 'x', key: 'x' }]))
    expect(lineOf(report, 'tokens[shop]')?.why).toBe('it was deleted')
    expect(outcomesOf(report)).toEqual(['changed token shop'])

    const bifrost = async (value: string) => {
      const virtual_keys = [{ id: 'v', name: 'app', value, is_active: true }]
      writeFileSync(join(directory.path, 'bifrost.json'), JSON.stringify({ governance: { virtual_keys } }))
      const outcomes = outcomesOf(await directory.report(['bifrost', 'bifrost.json']))
      const store = await openStore({ url: `sqlite:${join(directory.path, 'gatehouse.db')}` })
      const found = await store.tokens.findByHash(sha256('sk-bf-1'))
      const isFound = (await store.tokens.findByHash(sha256(value)))?.name
      await store.close()
      return { outcomes, old: found?.name, now: isFound }
    }
    expect(await bifrost('sk-bf-1')).toMatchObject({ outcomes: ['added token app'], now: 'app' })
    expect(await bifrost('sk-bf-2')).toEqual({ outcomes: ['changed token app'], old: undefined, now: 'app' })
    expect(await bifrost('sk-bf-2')).toMatchObject({ outcomes: [] })
  })

  test('writes the models of an access group out, and drops keys whose budget is not in the source', async () => {
    using directory = importDirectory()
    const model = (model_name: string, access_groups: string[]) => ({
      model_name,
      litellm_params: { model: 'openai/gpt-4o', api_key: 'os.environ/A' },
      model_info: { access_groups },
    })
    const tables = {
      LiteLLM_ProxyModelTable: [model('one', ['beta']), model('two', ['beta', 'one']), model('three', [])],
      LiteLLM_VerificationToken: [
        key('grouped', { models: ['beta', 'three'] }),
        key('both', { models: ['one'] }),
        key('tiered', { budget_id: 'missing' }),
      ],
    }
    writeFileSync(join(directory.path, 'litellm.json'), JSON.stringify(tables))
    const report = await directory.report(['litellm', 'litellm.json'])
    const tokens = await tokensOf(directory.path)
    expect(tokens.get('grouped')?.models).toEqual(['one', 'two', 'three'])
    expect(tokens.get('both')?.models).toEqual(['one', 'two'])
    expect(tokens.has('tiered')).toBe(false)
    expect(lineOf(report, 'LiteLLM_VerificationToken[tiered]')?.why).toContain('dump LiteLLM_BudgetTable too')
    // Groups of the file, keys of the database: both at once.
    writeFileSync(join(directory.path, 'config.yaml'), JSON.stringify({ model_list: [model('four', ['gamma'])] }))
    const keys = [key('grouped', { models: ['gamma'] })]
    writeFileSync(join(directory.path, 'keys.json'), JSON.stringify({ LiteLLM_VerificationToken: keys }))
    const both = await directory.report(['litellm', 'keys.json', 'config.yaml'])
    expect((await tokensOf(directory.path)).get('grouped')?.models).toEqual(['four'])
    expect(outcomesOf(both)).toEqual(['changed token both', 'changed token grouped']) // one is revoked: no longer listed
  })

  test('says which models of a key are none where its access groups are in a file that was imported before', async () => {
    using directory = importDirectory()
    const model = {
      model_name: 'one',
      litellm_params: { model: 'openai/gpt-4o', api_key: 'os.environ/A' },
      model_info: { access_groups: ['beta'] },
    }
    writeFileSync(join(directory.path, 'config.yaml'), JSON.stringify({ model_list: [model] }))
    const keys = [key('grouped', { models: ['beta', 'one', 'openai/gpt-4o'] }), key('plain', { models: ['one'] })]
    writeFileSync(join(directory.path, 'keys.json'), JSON.stringify({ LiteLLM_VerificationToken: keys }))
    const file = await directory.report(['litellm', 'config.yaml'])
    expect(file.lines.find(({ to }) => to?.includes('the group beta'))?.why).toContain('where one command imports both')
    const alone = await directory.report(['litellm', 'keys.json'])
    const unknown = alone.lines.filter(({ why }) => why?.includes('name its config.yaml in the same command'))
    expect(unknown.map(({ to }) => to)).toEqual(['token grouped.models: beta'])
    const both = await directory.report(['litellm', 'config.yaml', 'keys.json'])
    expect(both.lines.filter(({ why }) => why?.includes('in the same command'))).toEqual([])
    expect((await tokensOf(directory.path)).get('grouped')?.models).toEqual(['one', 'openai/gpt-4o'])
  })

  test('lets a token of the group auto call the models of the groups that its user may use', async () => {
    using directory = importDirectory()
    const channel = { type: 1, status: 1, key: 'sk-x', priority: 0, weight: 0 }
    const channels = [
      { ...channel, id: 1, name: 'a', group: 'default', models: 'gpt-4o' },
      { ...channel, id: 2, name: 'b', group: 'vip', models: 'gpt-4o-mini' },
    ]
    const token = { user_id: 1, expired_time: -1, unlimited_quota: 1, status: 1 }
    const tokens = [
      { ...token, id: 1, name: 'auto', key: 'k', group: 'auto' },
      { ...token, id: 2, name: 'nobody', key: 'l', group: 'empty' },
    ]
    const users = [{ id: 1, username: 'ada', status: 1, quota: 1, used_quota: 0, group: 'vip' }]
    writeFileSync(join(directory.path, 'new.json'), JSON.stringify({ channels, users, tokens }))
    const report = await directory.report(['new-api', 'new.json'])
    expect((await tokensOf(directory.path)).get('auto')).toEqual({ models: ['gpt-4o-mini'], disabled: false })
    expect(report.lines.filter(({ from }) => from === 'tokens[nobody]')).toMatchObject([{ outcome: 'dropped' }])
    const autoOf = async (options: object[]) => {
      writeFileSync(join(directory.path, 'new.json'), JSON.stringify({ channels, users, tokens, options }))
      await directory.report(['new-api', 'new.json'])
      return (await tokensOf(directory.path)).get('auto')
    }
    // What New API has where nothing was set.
    expect(await autoOf([])).toEqual({ models: ['gpt-4o'], disabled: false })
    const auto = { key: 'AutoGroups', value: '["vip","default","staff"]' }
    expect((await autoOf([auto]))?.models).toEqual(['*'])
    const usable = { key: 'UserUsableGroups', value: '{"staff":""}' }
    expect((await autoOf([auto, usable]))?.models).toEqual(['gpt-4o-mini']) // his own group is usable
    expect((await autoOf([{ ...auto, value: '[]' }]))?.disabled).toBe(true)
  })
})
