/** Commands that read, on a running gateway and on its store: they print the same. And those that change something. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run as audit } from '../src/cli/commands/audit.ts'
import { run as budget } from '../src/cli/commands/budget.ts'
import { run as cache } from '../src/cli/commands/cache.ts'
import { run as config } from '../src/cli/commands/config.ts'
import { run as data } from '../src/cli/commands/data.ts'
import { run as diagnostics } from '../src/cli/commands/diagnostics.ts'
import { run as requests } from '../src/cli/commands/requests.ts'
import { run as route } from '../src/cli/commands/route.ts'
import { run as task } from '../src/cli/commands/task.ts'
import { run as usage } from '../src/cli/commands/usage.ts'
import type { Terminal } from '../src/cli/terminal.ts'
import { blankTask } from '../src/families/tasks/lifecycle.ts'
import type { FailCode } from '../src/spec/task.ts'
import { openStore } from '../src/store/open-store.ts'
import type { Store } from '../src/store/store.ts'
import { type AdminGateway, OWNER, startAdminGateway } from './kit/admin.ts'
import { manualClock } from './kit/clock.ts'

const COMMANDS = { audit, budget, cache, config, data, diagnostics, requests, route, task, usage }
const clock = manualClock(Date.now())
let directory: string
let gateway: AdminGateway
let store: Store
let server: ReturnType<typeof Bun.serve>

const CONTENTS_KEY = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64')
const idOf = (number: number) => `task_${String(number).padStart(32, '0')}`

async function addTask(number: number, fail_code?: FailCode): Promise<void> {
  const now = Math.floor(clock.now() / 1000)
  const row = blankTask({
    task_id: idOf(number),
    token_id: 'tok_a',
    family: 'video-generation',
    model: 'far/film',
    status: 'QUEUED',
    progress: 20,
    submit_time: now,
    request: { model: 'far/film', prompt: 'a secret boat' },
    base_url: 'http://gateway.test',
    provider: 'far',
    upstream_model: 'film',
    sent_at: now,
    operation: { id: '1' },
    deadline_at: now + 3600,
    due_ms: null,
  })
  const url = 'https://app.test/hook?key=hush'
  await store.tasks.add({ task: row, callback: { callback_id: `evt_${number}`, url } })
  if (fail_code !== undefined) {
    const end = { status: 'FAILURE', fail_code, fail_reason: 'So it was.', finish_time: now, due_ms: null } as const
    await store.tasks.save({ task_id: idOf(number), fence: 0 }, end)
  }
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gatehouse-cli-reads-'))
  const store_url = `sqlite:${directory}/gatehouse.db`
  await writeFile(join(directory, 'gatehouse.yaml'), 'sandbox: true\n')
  gateway = await startAdminGateway(
    { file: join(directory, 'gatehouse.yaml'), data_dir: directory, store_url, contents_key: CONTENTS_KEY },
    { store_url, clock },
  )
  store = await openStore({ url: store_url })
  server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: (request) => gateway.instance.fetch(request) })
  const shop = await gateway.instance.projects.create({ name: 'shop', budgets: [{ amount: 5, window: 'month' }] })
  const { secret } = await gateway.instance.tokens.issue({ name: 'till', project_id: shop.project_id })
  const chat = { model: 'sandbox/general', messages: [{ role: 'user', content: 'Hello' }] }
  for (const end_user of ['ann', 'bob', 'ann']) {
    const headers = {
      authorization: `Bearer ${secret}`,
      'x-gatehouse-user': end_user,
      'x-gatehouse-tags': 'night',
      'x-request-id': `call-of-${end_user}`,
    }
    await (await gateway.chat(chat, { headers })).text()
    clock.advance(1_000)
  }
  await gateway.chat({ ...chat, model: 'nobody/none' })
  for (let number = 1; number <= 3; number++) await addTask(number)
  await addTask(4, 'output_copy_failed' as FailCode)
  await gateway.read('/tokens', { json: { name: 'made' } })
  clock.advance(10_000)
  await until(async () => (await store.ledger.usage({ by: ['model'], from: 0, to: 9e9 })).rows[0]?.requests === 3)
  await until(async () => (await store.requestLog.search({ filter: {}, limit: 10 })).rows.length === 4)
})
afterAll(async () => {
  await server.stop(true)
  await gateway[Symbol.asyncDispose]()
  await store.close()
  await rm(directory, { recursive: true, force: true })
})

async function until(isDone: () => Promise<boolean>): Promise<void> {
  while (!(await isDone())) {
    clock.advance(100)
    await Bun.sleep(0)
  }
}

const onStore = { GATEHOUSE_DATA_DIR: '', GATEHOUSE_CONTENTS_KEY: CONTENTS_KEY }
const onGateway = () => ({ GATEHOUSE_URL: `http://127.0.0.1:${server.port}`, GATEHOUSE_ADMIN_TOKEN: OWNER })

async function call(where: 'store' | 'gateway', [command = '', ...args]: string[]) {
  const printed = { out: '', err: '' }
  const terminal: Terminal = {
    out(text) {
      printed.out += text
    },
    err(text) {
      printed.err += text
    },
    environment: where === 'store' ? { ...onStore, GATEHOUSE_DATA_DIR: directory } : onGateway(),
    cwd: directory,
    color: false,
    interactive: false,
  }
  const code = await COMMANDS[command as keyof typeof COMMANDS](args, terminal).catch((error: Error) => error.message)
  return { code, ...printed }
}

const READS = [
  'usage',
  'usage --by project,model --csv',
  'usage --by end_user --from 2d',
  'usage --by day --from 2020-01-01 --to 2020-01-02',
  'usage --by nonsense',
  'budget list',
  'audit list',
  'audit list --action token.create --limit 1',
  'audit list --actor nobody',
  'audit verify',
  'requests',
  'requests --limit 2',
  'requests --token till --user ann --tag night',
  'requests --project shop --error any',
  'requests --token missing',
  'requests --status 4xx',
  'requests show 1',
  'requests show 1 --contents',
  'requests show 999',
  'requests show call-of-bob',
  'requests show call-of-ann',
  'requests show call-of-nobody',
  'task list',
  'task list --status unfinished --limit 2',
  'task list --status failure',
  'task list --status finished',
  'task list --token nobody',
]

/** Cursors of pages differ. */
const same = (result: Awaited<ReturnType<typeof call>>) =>
  JSON.parse(JSON.stringify(result).replace(/(next_cursor\\":\\"|--after )[\w-]+/g, '$1CURSOR'))

describe('a command that reads', () => {
  for (const json of ['', ' --json']) {
    test.each(READS.map((step) => `${step}${json}`))(
      '`%s` prints the same on a gateway as on its store',
      async (step) => {
        const [remote, local] = [await call('gateway', step.split(' ')), await call('store', step.split(' '))]
        if (step.startsWith('task list') && json !== '' && remote.code === 0) {
          const ids = ({ out }: typeof remote) => JSON.parse(out).tasks.map((row: { task_id: string }) => row.task_id)
          expect(ids(remote)).toEqual(ids(local))
          expect(remote.out).not.toContain('secret boat')
        } else expect(same(remote)).toEqual(same(local))
      },
    )
  }

  test('shows a request by its own id, and names the rows where the id was repeated', async () => {
    const { out } = await call('store', ['requests', 'show', 'call-of-bob', '--json'])
    expect(JSON.parse(out)).toMatchObject({ request_id: 'call-of-bob', end_user: 'bob' })
    expect((await call('store', ['requests', 'show', 'call-of-ann'])).code).toMatch(
      /^several requests have the id "call-of-ann": name one of the rows \d+, \d+$/,
    )
    expect((await call('store', ['requests', 'show', 'call-of-nobody'])).code).toBe(
      'There is no request "call-of-nobody".',
    )
  })

  test('continues a page of tasks and of requests where it ended', async () => {
    for (const [command, list, id] of [
      ['task list', 'tasks', 'task_id'],
      ['requests', 'data', 'id'],
    ] as const) {
      const page = async (more: string[]) => {
        const { out } = await call('gateway', [...command.split(' '), '--limit', '2', '--json', ...more])
        return JSON.parse(out)
      }
      const first = await page([])
      const second = await page(['--after', first.next_cursor])
      const ids = [...first[list], ...second[list]].map((row: Record<string, string>) => row[id])
      expect(new Set(ids).size).toBe(4)
    }
  })

  test('shows a task without its request', async () => {
    const [remote, local] = [
      await call('gateway', ['task', 'show', idOf(4)]),
      await call('store', ['task', 'show', idOf(4)]),
    ]
    const lines = (text: string) =>
      text.split('\n').filter((line) => line !== '' && !/^(order|address|request) /.test(line))
    expect(lines(remote.out)).toEqual(lines(local.out))
    expect(remote.out).not.toContain('secret boat')
    expect(remote.out).not.toContain('hush')
    expect((await call('gateway', ['task', 'show', 'task_none'])).code).toContain('There is no task "task_none"')
  })

  test('shows the configuration of the gateway, not of this machine', async () => {
    const { code, out } = await call('gateway', ['config', 'show', '--json'])
    expect(code).toBe(0)
    const paths = JSON.parse(out).settings.map(({ path }: { path: string }) => path)
    expect(paths).toContain('admin_token')
    expect(out).not.toContain(OWNER)
  })

  test('explains the routing of the running gateway', async () => {
    const { out } = await call('gateway', ['route', 'explain', '--model', 'general', '--json'])
    expect(JSON.parse(out)).toMatchObject({ requested: 'general', model: 'sandbox/general' })
    expect(JSON.parse(out)).not.toHaveProperty('memory')
  })
})

describe('a command that changes something', () => {
  test('cancels, resumes and delivers on a running gateway as on the store, and each is audited', async () => {
    for (const [where, actor] of [
      ['gateway', 'environment'],
      ['store', 'cli:'],
    ] as const) {
      const number = where === 'gateway' ? 1 : 2
      expect(await call(where, ['task', 'resume', idOf(number), '--deadline', '2h'])).toMatchObject({
        code: 0,
        out: expect.stringMatching(/^The next step of task \w+ is due now; its deadline is .* UTC\.\n$/),
      })
      expect(await call(where, ['task', 'cancel', idOf(number)])).toMatchObject({
        code: 0,
        out: `Task ${idOf(number)} will be canceled at the next step of a running gateway.\n`,
      })
      expect((await call(where, ['task', 'cancel', idOf(4)])).code).toContain('there is nothing to cancel.')
      expect(await call(where, ['task', 'retry-delivery', idOf(4)])).toMatchObject({
        code: 0,
        out: `A running gateway delivers the webhook of task ${idOf(4)} again, as evt_4.\n`,
      })
      expect((await call(where, ['task', 'retry-delivery', idOf(3)])).code).toContain('has no webhook to deliver')
      const { rows } = await store.audit.page({ limit: 3 })
      expect(rows.map((row) => [row.action, row.actor.startsWith(actor)])).toEqual([
        ['task.retry_delivery', true],
        ['task.cancel', true],
        ['task.resume', true],
      ])
    }
  })

  test('gives credit', async () => {
    for (const where of ['gateway', 'store'] as const) {
      const { code, out, err } = await call(where, ['budget', 'credit', '7', '--project', 'shop', '--note', 'invoice'])
      expect([code, out.replace(/credit_\w+/, 'ID'), err]).toEqual([
        0,
        'shop has 7 USD more credit (ID).\n',
        'warning: shop has no budget that never starts again, so its credit has no effect; set one with --budget 0/total\n',
      ])
    }
    expect((await call('gateway', ['budget', 'credit', '0', '--project', 'shop'])).code).toContain('that is not 0')
  })

  test('applies a configuration to the gateway, and shows what is wrong with one under its own name', async () => {
    const [good, bad] = [join(directory, 'good.yaml'), join(directory, 'bad.yaml')]
    await writeFile(good, 'sandbox: true\nwhen_retired: serve\n')
    await writeFile(bad, 'sandbox: maybe\n')
    expect((await call('gateway', ['config', 'validate', bad])).err).toContain('bad.yaml:1:10  sandbox: found "maybe"')
    expect((await call('gateway', ['config', 'apply', bad])).code).toBe(1)
    expect((await call('gateway', ['config', 'diff', good])).out).toContain('when_retired')
    const applied = await call('gateway', ['config', 'apply', good])
    expect([applied.code, applied.out]).toEqual([0, expect.stringContaining('gatehouse.yaml is written.')])
    expect(await readFile(join(directory, 'gatehouse.yaml'), 'utf8')).toBe('sandbox: true\nwhen_retired: serve\n')
    expect((await call('gateway', ['config', 'apply', good])).out).toContain('is as it was')
  })

  test('says of one that works on the store only that it does', async () => {
    const { code } = await call('gateway', ['data', 'export', '--user', 'ann', '--url', 'http://127.0.0.1:1'])
    expect(code).toContain('has no option --url')
  })
})

describe('gatehouse cache purge', () => {
  test.each(['store', 'gateway'] as const)(
    'takes the name of a project, and refuses an unknown one, on the %s',
    async (where) => {
      const { project_id } = (await gateway.instance.projects.list())[0] ?? {}
      const { out } = await call(where, ['cache', 'purge', '--project', 'shop', '--json'])
      expect(JSON.parse(out)).toMatchObject({ project_id })
      const refused = await call(where, ['cache', 'purge', '--project', 'shpo'])
      expect(refused).toMatchObject({
        out: '',
        code: expect.stringContaining('No project has "shpo" as its id or name'),
      })
    },
  )
})

describe('gatehouse diagnostics', () => {
  test('says why its file cannot be written', async () => {
    const output = join(directory, 'nowhere', 'diagnostics.json')
    expect((await call('store', ['diagnostics', '--output', output])).code as unknown).toBe(
      `${output} cannot be written: there is no such directory`,
    )
  })

  test('writes the state of a running gateway into a file that only its owner reads', async () => {
    const { code, out } = await call('gateway', ['diagnostics', '--json'])
    expect([code, JSON.parse(out)]).toEqual([0, { file: join(directory, 'gatehouse-diagnostics.json') }])
    const file = Bun.file(join(directory, 'gatehouse-diagnostics.json'))
    expect((await file.stat()).mode & 0o777).toBe(0o600)
    const read = await file.json()
    expect(Object.keys(read)).toEqual([
      'made_at',
      'version',
      'process',
      'environment',
      'store',
      'readiness',
      'providers',
      'models',
      'overrides',
      'configuration',
      'failed_requests',
      'metrics',
    ])
    expect(read.failed_requests).toEqual([expect.objectContaining({ status: 404, error: 'model_not_found' })])
    expect(read.models.map(({ id }: { id: string }) => id)).toContain('sandbox/general')
    expect(read.metrics).toContain('# TYPE')
  })

  test('shows without a gateway what it is configured with, or what is wrong with that', async () => {
    const { out } = await call('store', ['diagnostics', '--output', '-'])
    expect(JSON.parse(out)).toMatchObject({ store: { is_there: true, engine: 'sqlite' }, version: expect.any(String) })
    expect(JSON.parse(out).configuration.length).toBeGreaterThan(20)
    await writeFile(join(directory, 'bad.yaml'), 'sandbox: maybe\n')
    const wrong = await call('store', ['diagnostics', '--output', '-', '--config', join(directory, 'bad.yaml')])
    expect(JSON.parse(wrong.out).configuration.problems).toHaveLength(1)
  })
})
