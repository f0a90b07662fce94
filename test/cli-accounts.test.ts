/** `gatehouse project`, and what `gatehouse token` sets: run in this process on a store of its own. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run as runProject } from '../src/cli/commands/project.ts'
import { run as runToken } from '../src/cli/commands/token.ts'
import { RATE_LIMIT_KEYS } from '../src/spec/rate-limit.ts'
import { openStore } from '../src/store/open-store.ts'
import { collectingTerminal } from './kit/terminal.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-cli-accounts-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

/** What a command prints; `error`: why it failed. */
async function gatehouse(line: string | string[]) {
  const [command, ...args] = Array.isArray(line) ? line : line.split(' ')
  const environment = { GATEHOUSE_DISCOVER: 'off', GATEHOUSE_DATA_DIR: join(directory, 'data') }
  const { terminal, printed } = collectingTerminal({ cwd: directory, environment })
  const run = command === 'project' ? runProject : runToken
  const error = await run(args, terminal).then(
    (code) => (code === 0 ? undefined : `code ${code}`),
    (thrown: Error) => thrown.message,
  )
  return { ...printed, error }
}

async function answer(line: string) {
  const { out, err, error } = await gatehouse(`${line} --json`)
  expect({ err, error }).toEqual({ err: '', error: undefined })
  return JSON.parse(out)
}

const NOT_SET = {
  labels: {},
  models: ['*'],
  families: null,
  rate_limits: {},
  budgets: [],
  end_users: {},
  allowed_addresses: null,
  guards: [],
  expires_at: null,
  disabled: false,
}

describe('project', () => {
  test('create makes a project with limits and budgets, and says its id', async () => {
    const { project } = await answer('project create mobile --limit requests_per_minute=600 --budget 50/month')
    expect(project).toEqual({
      project_id: expect.stringMatching(/^proj_\w{16}$/),
      name: 'mobile',
      ...NOT_SET,
      rate_limits: { requests_per_minute: 600 },
      budgets: [{ amount: 50, window: 'month' }],
      log_contents: null,
      created_at: expect.any(Number),
    })
    const plain = await gatehouse('project create web')
    expect(plain.out).toMatch(/^Project proj_\w{16} \(web\) is created\.\n$/)
    expect((await gatehouse('project create third --quiet')).out).toMatch(/^proj_\w{16}\n$/)
    expect((await gatehouse('project create web')).error).toBe('name: another project has this name.')
    expect((await gatehouse('project create')).error).toBe('needs a name, as in mobile')
  })

  test('--log-contents says whether prompts are recorded, and is refused with another word', async () => {
    const own = async (args: string) => (await answer(`project ${args}`)).project.log_contents
    expect(await own('create shop --log-contents header')).toBe('header')
    expect(await own('update shop --log-contents on')).toBe('on')
    expect(await own('update shop --label a=b')).toBe('on')
    expect((await gatehouse('project show shop')).out).toContain('contents')
    expect(await own('update shop --log-contents default')).toBe(null)
    const { error } = await gatehouse('project update shop --log-contents maybe')
    expect(error).toBe('--log-contents: found "maybe", must be on, off, header or default')
  })

  test('update changes what is named, and keeps the rest', async () => {
    await answer('project create mobile --limit requests_per_minute=600 --limit tokens_per_day=5 --budget 50/month')
    const { project } = await answer(
      'project update mobile --limit requests_per_minute=none --limit images_per_day=0 --budget 0.25/day --budget 60/month --label team=a --label cost=7 --families chatcompat,rerank --end-user-limit requests_per_day=9 --end-user-budget 1/total --allow-address 10.0.0.1/8 --name app',
    )
    expect(project).toMatchObject({
      ...NOT_SET,
      name: 'app',
      labels: { team: 'a', cost: '7' },
      families: ['chatcompat', 'rerank'],
      rate_limits: { tokens_per_day: 5, images_per_day: 0 },
      budgets: [
        { amount: 60, window: 'month' },
        { amount: 0.25, window: 'day' },
      ],
      end_users: { rate_limits: { requests_per_day: 9 }, budgets: [{ amount: 1, window: 'total' }] },
      allowed_addresses: ['10.0.0.0/8'],
    })
    const back = await answer(
      'project update app --limit tokens_per_day=none --limit images_per_day=none --budget none --label team= --label cost= --families all --end-user-limit requests_per_day=none --end-user-budget none/total --allow-address any',
    )
    expect(back.project).toMatchObject({ ...NOT_SET, name: 'app' })
    expect((await answer('project show app')).project).toMatchObject(back.project)
  })

  test('show, list, disable, enable and delete', async () => {
    const { project } = await answer('project create mobile --budget 50/month --limit tokens_per_day=5 --label team=a')
    await answer('project create web')
    const { token } = await answer('token create --name app --project mobile')
    expect(token.project_id).toBe(project.project_id)
    const text = (await gatehouse('project show mobile')).out
    for (const part of ['mobile (proj_', 'active', 'tokens_per_day=5', '50/month', 'team=a', token.token_id]) {
      expect(text).toContain(part)
    }
    expect(await answer('project show mobile')).toEqual({ project: { ...project, status: 'active' }, tokens: [token] })
    expect((await gatehouse('project disable mobile')).out).toEndWith('(mobile) is disabled; its tokens are refused.\n')
    const { projects } = await answer('project list')
    expect(projects).toMatchObject([
      { name: 'mobile', status: 'disabled', tokens: 1 },
      { name: 'web', status: 'active', tokens: 0 },
    ])
    expect((await gatehouse('project list')).out).toMatch(
      /^ID +NAME +STATUS +TOKENS .*\nproj_\w+ +mobile +disabled +1 /,
    )
    expect((await answer('project enable mobile')).project.disabled).toBe(false)
    expect((await gatehouse('project delete mobile')).out).toEndWith('(mobile) is deleted; its token is refused.\n')
    expect((await gatehouse('project delete web')).out).toEndWith('it had no tokens that would be refused.\n')
    expect((await gatehouse('project show web')).error).toBe('No project has "web" as its id or name; there are none.')
    expect((await gatehouse('project list')).out).toStartWith('There are no projects.')
    expect((await answer('token list')).tokens).toMatchObject([{ name: 'app', project_id: project.project_id }])
  })

  test('warns of a pattern that matches no model', async () => {
    const created = await gatehouse('project create a --models sandbox/*,sandbox/generl')
    expect(created.err).toBe(
      'warning: --models: "sandbox/generl" matches no model of this gateway; did you mean "sandbox/general"?\n',
    )
    expect((await gatehouse('project update a --models none/x')).err).toContain('"none/x" matches no model')
    const { warnings } = await answer('project update a --models none/x')
    expect(warnings).toEqual(['--models: "none/x" matches no model of this gateway'])
    expect(await answer('project update a --models sandbox/*')).not.toHaveProperty('warnings')
  })
})

describe('token', () => {
  test('create sets limits and budgets, and belongs to a project by its id or name', async () => {
    const { project } = await answer('project create mobile')
    const { token, secret } = await answer(
      'token create --name app --project mobile --limit requests_per_minute=60 --limit concurrent_requests=2 --budget 5/day --budget 100/total',
    )
    expect(token).toEqual({
      token_id: expect.stringMatching(/^tok_/),
      name: 'app',
      project_id: project.project_id,
      prefix: secret.slice(0, 9),
      previous_expires_at: null,
      ...NOT_SET,
      rate_limits: { requests_per_minute: 60, concurrent_requests: 2 },
      budgets: [
        { amount: 5, window: 'day' },
        { amount: 100, window: 'total' },
      ],
      created_at: expect.any(Number),
      last_used_at: null,
    })
    const told = await gatehouse(
      `token create --name b --project ${project.project_id} --limit requests_per_day=1 --allow-address 10.0.0.0/8`,
    )
    expect(told.err).toContain(
      'It may use all models, within requests_per_day=1, only from 10.0.0.0/8; it never expires.',
    )
    const budgeted = await gatehouse('token create --name d --budget 1/day --limit requests_per_day=1 --models a/*')
    expect(budgeted.err).toContain(
      'It may use a/*, within requests_per_day=1 and a budget of 1 a day; it never expires.',
    )
    await gatehouse('token revoke d')
    expect((await answer('token list --project mobile')).tokens).toHaveLength(2)
    expect((await gatehouse('token list')).out).toMatch(
      /^ID +NAME +SECRET +STATUS +PROJECT .*\ntok_\w+ +app +sk-\S+ +active +mobile /,
    )
    expect((await gatehouse('token create --name c --project moble')).error).toBe(
      `No project has "moble" as its id or name; there are mobile (${project.project_id}).`,
    )
  })

  test('update keeps the secret and what is not named', async () => {
    const { project } = await answer('project create mobile')
    const { token } = await answer('token create --name app --limit requests_per_minute=60 --expires 2126-12-31')
    const updated = await answer(
      'token update app --name web --project mobile --limit tokens_per_minute=1000 --budget 5/week --models sandbox/* --families chatcompat --expires never --allow-address 2001:db8::/32 --allow-address 203.0.113.7 --label team=x',
    )
    expect(updated.token).toEqual({
      ...token,
      name: 'web',
      project_id: project.project_id,
      rate_limits: { requests_per_minute: 60, tokens_per_minute: 1000 },
      budgets: [{ amount: 5, window: 'week' }],
      models: ['sandbox/*'],
      families: ['chatcompat'],
      expires_at: null,
      allowed_addresses: ['2001:db8::/32', '203.0.113.7/32'],
      labels: { team: 'x' },
    })
    expect((await answer('token update web --project none')).token.project_id).toBeNull()
    const { out } = await gatehouse('token update web --limit requests_per_minute=none')
    expect(out).toStartWith(`Token ${token.token_id} (web) is updated.\n`)
    expect(out).toContain('tokens_per_minute=1000')
    expect(out).not.toContain('requests_per_minute')
    expect((await gatehouse('token show web')).out).toContain('203.0.113.7/32')
    expect((await answer('token show web')).token).toMatchObject({ name: 'web', status: 'active' })
    await answer('token revoke web')
    expect((await gatehouse('token update web --name x')).error).toContain('is revoked; create a new one instead')
  })

  test('a budget has a time zone, thresholds, and may be soft', async () => {
    const { token } = await answer('token create --name app --budget 5/month,zone=Europe/Berlin,soft,thresholds=50+80')
    const set = { amount: 5, window: 'month', time_zone: 'Europe/Berlin', soft: true, thresholds: [50, 80] }
    expect(token.budgets).toEqual([set])
    const updated = await answer('token update app --budget 6/month,hard,thresholds=none --end-user-budget 1/day,soft')
    expect(updated.token.budgets).toEqual([{ ...set, amount: 6, soft: false, thresholds: [] }])
    expect(updated.token.end_users.budgets).toEqual([{ amount: 1, window: 'day', soft: true }])
    const { project } = await answer('project create mobile --budget 9/week,zone=Asia/Tokyo')
    expect(project.budgets).toEqual([{ amount: 9, window: 'week', time_zone: 'Asia/Tokyo' }])
  })

  test('update keeps the time zone and thresholds of a budget whose amount changes', async () => {
    const { token } = await answer('token create --name app --budget 5/month')
    const store = await openStore({ url: `sqlite:${join(directory, 'data/gatehouse.db')}` })
    const more = { time_zone: 'Europe/Berlin', thresholds: [90] }
    await store.tokens.update(token.token_id, { budgets: [{ amount: 5, window: 'month', ...more }] })
    await store.close()
    const updated = await answer('token update app --budget 6/month')
    expect(updated.token.budgets).toEqual([{ amount: 6, window: 'month', ...more }])
  })

  test('update reads the configuration only for patterns, so that a limit is set while the file is invalid', async () => {
    await answer('token create --name app')
    writeFileSync(join(directory, 'gatehouse.yaml'), 'broken: [')
    await answer('token update app --limit requests_per_day=1')
    expect((await gatehouse('token update app --models a/b')).error).toContain('gatehouse.yaml')
  })

  test('create warns of a name that another valid token of the project has, and revoke then names the ids', async () => {
    const warning = /^warning: the token tok_\w+ has this name too: commands need the id of one\n/
    await answer('project create mobile')
    const { token } = await answer('token create --name app')
    expect((await gatehouse('token create --name app --project mobile')).err).not.toContain('warning')
    expect((await gatehouse('token create --name app')).err).toMatch(warning)
    expect((await gatehouse('token revoke app')).error).toMatch(
      /^Several tokens fit: (tok_\w+ \(app, created \d{4}-\d\d-\d\d\), ){2}tok_\w+ \(app, created .*\)\. Give the id of one\.$/,
    )
    await answer(`token revoke ${token.token_id}`)
    expect((await gatehouse('token create --name other')).err).not.toContain('warning')
  })

  test('rotate --overlap says until when the old secret is valid', async () => {
    await answer('token create --name app')
    const before = Math.floor(Date.now() / 1000)
    const { token } = await answer('token rotate app --overlap 24h')
    expect(Math.abs(token.previous_expires_at - before - 86_400)).toBeLessThan(60)
    expect((await gatehouse('token rotate app --overlap 30m')).err).toContain('the old secret is valid until 2')
    expect((await gatehouse('token rotate app')).err).toContain('the old secret is rejected')
    expect((await gatehouse('token rotate app --overlap soon')).error).toBe(
      '--overlap: found "soon", must be a time such as 24h, 30m or 7d',
    )
    expect((await gatehouse('token rotate app --overlap 1y')).error).toContain('overlap_seconds: must be')
  })
})

test.each(['token update', 'project update'])('%s without an option says what is missing', async (command) => {
  await answer('token create --name a')
  await answer('project create a')
  const message = 'needs an option that says what to change, as in --budget 50/month'
  for (const options of ['', ' --quiet', ' --json'])
    expect(await gatehouse(`${command} a${options}`)).toMatchObject({ out: '', error: message })
})

describe.each(['token create --name a', 'token update a', 'project create a', 'project update a'])('%s', (command) => {
  const budget = 'must be an amount and a window, such as 50/month; windows are day, week, month, total; none removes'
  test.each([
    [
      '--limit requests_per_minut=5',
      `--limit: found "requests_per_minut", must be one of ${RATE_LIMIT_KEYS.join(', ')}; did you mean "requests_per_minute"?`,
    ],
    ['--limit 600', '--limit: found "600", must be like requests_per_minute=600'],
    [
      '--limit requests_per_day=1.5',
      '--limit: requests_per_day: found "1.5", must be a whole number from 0 to 1000000000000, or none',
    ],
    ['--limit requests_per_day=-1', '--limit: requests_per_day: found "-1", must be a whole number'],
    ['--limit requests_per_day=1000000000001', 'must be a whole number from 0 to 1000000000000'],
    ['--end-user-limit x=1', '--end-user-limit: found "x", must be one of requests_per_second, '],
    ['--budget 50', `--budget: found "50", ${budget}`],
    [
      '--budget 50/mnth',
      '--budget: "50/mnth": found "mnth", must be one of day, week, month, total; did you mean "month"?',
    ],
    [
      '--budget x/day',
      '--budget: found "x", must be an amount from 0 to 9000000 with at most 9 decimals, such as 0.25, or none',
    ],
    ['--budget 9000001/day', '--budget: found "9000001", must be an amount'],
    ['--budget 0.0000000001/day', '--budget: found "0.0000000001", must be an amount'],
    [
      '--budget 1/day,sofd',
      '--budget: "1/day,sofd": found "sofd", must be zone=<name>, soft, hard, or thresholds=50+80',
    ],
    [
      '--budget 1/day,thresholds=50+101',
      '--budget: "1/day,thresholds=50+101": thresholds: found "50+101", must be at most',
    ],
    ['--end-user-budget 1', '--end-user-budget: found "1", must be an amount and a window'],
    ['--families chatcompt', '--families: found "chatcompt", must be one of chatcompat, '],
    ['--expires soon', '--expires: found "soon", must be like 30d'],
    ['--allow-address 10.0.0.0/33', '--allow-address: found "10.0.0.0/33", must be like 203.0.113.0/24'],
    ['--label team', '--label: found "team", must be like team=search'],
    ['--label te$m=1', 'labels: "te$m" must be 1 to 63 letters'],
    ['--models a/*,', '--models: found an empty pattern'],
    ['--limits a=1', 'has no option --limits; did you mean --limit?'],
  ])('rejects %s', async (flag, message) => {
    if (command.includes('update'))
      await answer(`${command.split(' ')[0]} create ${command.startsWith('token') ? '--name ' : ''}a`)
    const { out, error } = await gatehouse(`${command} ${flag}`)
    expect(out).toBe('')
    expect(error).toContain(message)
    const { tokens = [], projects = [] } = await answer(`${command.split(' ')[0]} list`)
    expect([...tokens, ...projects].map(({ rate_limits, budgets, labels }) => [rate_limits, budgets, labels])).toEqual(
      command.includes('update') ? [[{}, [], {}]] : [],
    )
  })
})
