/** `gatehouse task` and `gatehouse token webhook-secret`, run as child processes on a store with tasks in it. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { blankTask } from '../src/families/tasks/lifecycle.ts'
import { webhookMasterSecret, webhookSecret } from '../src/families/tasks/webhook-delivery.ts'
import type { Task } from '../src/spec/task.ts'
import { openStore } from '../src/store/open-store.ts'
import type { NewTask, Store } from '../src/store/store.ts'
import { storedToken } from './kit/accounts.ts'
import { ENGINES } from './kit/engines.ts'

const TRIED = { at_ms: 1, error: null, took_ms: 5 }

const COMMAND = join(import.meta.dir, '../bin/gatehouse')
const NOW = Math.floor(Date.now() / 1000)

let directory: string
let store: Store

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-cli-task-'))
  mkdirSync(join(directory, 'data'))
  store = await openStore({ url: `sqlite:${join(directory, 'data/gatehouse.db')}` })
  await store.tokens.add(token('tok_laptop0001', 'laptop'))
  await store.tokens.add(token('tok_server0001', 'server'))
})
afterEach(async () => {
  await store.close()
  rmSync(directory, { recursive: true })
})

const token = (token_id: string, name: string) => storedToken({ token_id, name, hash: token_id })

async function gatehouse(args: string[], env: Record<string, string> = {}) {
  const child = Bun.spawn([COMMAND, ...args], {
    cwd: directory,
    env: { PATH: process.env.PATH ?? '', GATEHOUSE_DISCOVER: 'off', ...env },
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

async function answer(args: string[]) {
  const { out, err, code } = await gatehouse([...args, '--json'])
  expect({ err, code }).toEqual({ err: '', code: 0 })
  return JSON.parse(out)
}

const idOf = (number: number) => `task_${String(number).padStart(32, '0')}`

const taskOf = (number: number, more: Partial<Task> = {}): Task =>
  blankTask({
    task_id: idOf(number),
    token_id: 'tok_laptop0001',
    family: 'video-generation',
    model: 'sandbox/text-to-video',
    status: 'IN_PROGRESS',
    progress: 45,
    submit_time: NOW - 100 + number,
    request: { prompt: 'a boat', duration: 4 },
    base_url: 'http://gateway.test',
    provider: 'sandbox',
    upstream_model: 'text-to-video',
    sent_at: NOW - 90,
    operation: { id: 'upstream-7' },
    deadline_at: NOW + 600,
    due_ms: (NOW + 300) * 1000,
    ...more,
  })

const add = async (number: number, more: Partial<Task> = {}, rest: Omit<NewTask, 'task'> = {}) =>
  store.tasks.add({ task: taskOf(number, more), ...rest })

const failed = (fail_code: Task['fail_code']): Partial<Task> => ({
  status: 'FAILURE',
  fail_code,
  fail_reason: 'Why.',
  progress: 100,
  finish_time: NOW - 5,
  deadline_at: NOW - 6,
  due_ms: null,
})

describe('list', () => {
  test('shows the newest first, with the names of their tokens', async () => {
    await add(1, failed('no_output'))
    await add(2, { token_id: 'tok_server0001', provider: '', status: 'NOT_START', progress: 0 })
    const { out, err, code } = await gatehouse(['task', 'list'])
    expect({ err, code }).toEqual({ err: '', code: 0 })
    const [head = '', first = '', second = '', ...rest] = out.trimEnd().split('\n')
    expect(head).toMatch(/^TASK +STATUS +PROGRESS +MODEL +PROVIDER +TOKEN +ACCEPTED +ENDED +FAIL CODE$/)
    expect(first).toMatch(new RegExp(`^${idOf(2)} +NOT_START +0% +sandbox/text-to-video +- +server +\\S+ \\S+ +-$`))
    expect(second).toMatch(
      new RegExp(`^${idOf(1)} +FAILURE +100% +.* +sandbox +laptop +\\S+ \\S+ +\\S+ \\S+ +no_output$`),
    )
    expect(rest).toEqual([])
  })

  test('filters by states and token, and pages', async () => {
    await add(1, failed('timeout'))
    await add(2, { token_id: 'tok_server0001' })
    await add(3, { status: 'QUEUED' })
    await add(4, { status: 'SUCCESS', due_ms: null })
    const ids = async (...args: string[]) =>
      (await answer(['task', 'list', ...args])).tasks.map(({ task_id }: Task) => Number(task_id.slice(-2)))
    expect(await ids('--status', 'unfinished')).toEqual([3, 2])
    expect(await ids('--status', 'failure, SUCCESS')).toEqual([4, 1])
    expect(await ids('--token', 'server')).toEqual([2])
    expect(await ids('--token', 'tok_laptop0001', '--status', 'QUEUED')).toEqual([3])
    const first = await answer(['task', 'list', '--limit', '2'])
    expect({ ...first, tasks: first.tasks.length }).toEqual({ tasks: 2, has_more: true, next_cursor: idOf(3) })
    const second = await answer(['task', 'list', '--limit', '2', '--after', first.next_cursor])
    expect({ ...second, tasks: second.tasks.length }).toEqual({ tasks: 2, has_more: false, next_cursor: '' })
    expect(first.tasks[0]).not.toHaveProperty('request')
    expect((await gatehouse(['task', 'list', '--limit', '3'])).err).toBe(
      `There are more tasks; the next page: --after ${idOf(2)}\n`,
    )
  })

  test('reports when there are none, and creates no store', async () => {
    expect((await gatehouse(['task', 'list'])).out).toBe('There are no tasks.\n')
    expect((await gatehouse(['task', 'list', '--status', 'SUCCESS'])).out).toBe('No task matches.\n')
    const elsewhere = await gatehouse(['task', 'list', '--data-dir', 'other'])
    expect(elsewhere).toMatchObject({ out: 'There are no tasks.\n', code: 0 })
    expect(elsewhere.err).toStartWith(`There is no store in ${join(directory, 'other')}.`)
    expect(existsSync(join(directory, 'other'))).toBe(false)
  })
})

describe('show', () => {
  test('prints all data except media and the query of an address', async () => {
    await add(
      1,
      {
        ...failed('timeout'),
        tried: ['fal/a'],
        failures: 3,
        late_outcome: { status: 'SUCCESS', at: NOW, detail: 'Made.' },
      },
      {
        inputs: { image: 'data:secret-image' },
        callback: { callback_id: 'evt_1', url: 'https://app.test/hook?key=hush' },
      },
    )
    await store.webhooks.save('evt_1', { due_ms: null, delivered_at: null, status: 503, ...TRIED })
    const { out, err, code } = await gatehouse(['task', 'show', idOf(1)])
    expect({ err, code }).toEqual({ err: '', code: 0 })
    for (const [name, text] of [
      ['status', 'FAILURE, 100%'],
      ['fail code', 'timeout: Why.'],
      ['model', 'sandbox/text-to-video (video-generation)'],
      ['token', 'tok_laptop0001 (laptop)'],
      ['provider', 'sandbox, as text-to-video'],
      ['refused by', 'fal/a'],
      ['sent', `${new Date((NOW - 90) * 1000).toISOString().slice(0, 19).replace('T', ' ')} UTC`],
      ['order', '{"id":"upstream-7"}'],
      ['failures', '3 failed steps in a row'],
      ['next step', 'none'],
      ['callback', 'https://app.test/hook?... not delivered yet, after 1 attempt (last: status 503)'],
      ['request', '{"prompt":"a boat","duration":4}'],
    ]) {
      expect(out).toContain(`\n${name?.padEnd(10)}  ${text}\n`)
    }
    expect(out).toMatch(/^late end +SUCCESS, .* UTC: Made\.$/m)
    expect(out).not.toContain('secret-image')
    expect(out).not.toContain('hush')
    const told = await answer(['task', 'show', idOf(1)])
    expect(told.task).toMatchObject({
      task_id: idOf(1),
      request: { prompt: 'a boat' },
      late_outcome: { detail: 'Made.' },
    })
    expect(told.callback).toMatchObject({ callback_id: 'evt_1', attempts: 1, last_status: 503 })
    expect(JSON.stringify(told)).not.toContain('secret-image')
  })

  test('prints the state of a running task', async () => {
    await add(1, { due_ms: Date.now() + 600_000, provider: '', sent_at: null, operation: null })
    const { out } = await gatehouse(['task', 'show', idOf(1)])
    expect(out).toMatch(/^next step +in (59\d|600) s$/m)
    expect(out).toMatch(/^provider +not chosen yet$/m)
    expect(out).toMatch(/^sent +not yet$/m)
    expect(out).not.toMatch(/^(fail code|late end|callback|failures|order|cancel) /m)
  })
})

describe('cancel', () => {
  test('records the request and makes the task due', async () => {
    await add(1)
    const { out, err, code } = await gatehouse(['task', 'cancel', idOf(1)])
    expect({ err, code }).toEqual({ err: '', code: 0 })
    expect(out).toStartWith(`Task ${idOf(1)} will be canceled`)
    const task = await store.tasks.find(idOf(1))
    expect(task?.cancel_asked_at).toBeGreaterThanOrEqual(NOW)
    expect(task?.due_ms).toBeLessThanOrEqual(Date.now())
  })

  test('of an ended task prints how it ended', async () => {
    await add(1, { status: 'SUCCESS', due_ms: null })
    expect(await gatehouse(['task', 'cancel', idOf(1)])).toEqual({
      out: '',
      err: `gatehouse: Task ${idOf(1)} has ended with SUCCESS: there is nothing to cancel.\n`,
      code: 1,
    })
  })
})

describe('resume', () => {
  test('makes an unfinished task due now, with a later deadline if requested', async () => {
    await add(1)
    expect((await gatehouse(['task', 'resume', idOf(1)])).out).toStartWith(
      `The next step of task ${idOf(1)} is due now`,
    )
    const first = await store.tasks.find(idOf(1))
    expect(first?.deadline_at).toBe(NOW + 600)
    expect(first?.due_ms).toBeLessThanOrEqual(Date.now())
    const { task } = await answer(['task', 'resume', idOf(1), '--deadline', '2h'])
    expect(task.deadline_at).toBeGreaterThanOrEqual(NOW + 7200)
    expect(task.deadline_at).toBeLessThanOrEqual(Date.now() / 1000 + 7200)
  })

  test('requires a new deadline when the old one has passed, and keeps a later one', async () => {
    await add(1, { deadline_at: NOW - 5 })
    const over = await gatehouse(['task', 'resume', idOf(1)])
    expect(over).toMatchObject({ out: '', code: 1 })
    expect(over.err).toContain('has passed. Set a new one, as in --deadline 2h.')
    await add(2, { deadline_at: NOW + 7200 })
    const later = await gatehouse(['task', 'resume', idOf(2), '--deadline', '30m'])
    expect(later).toMatchObject({ out: '', code: 1 })
    expect(later.err).toContain('is already later')
    expect((await store.tasks.find(idOf(2)))?.deadline_at).toBe(NOW + 7200)
  })

  test.each(['timeout', 'canceled'] as const)('polls a task that ended with %s for another day', async (code) => {
    await add(1, failed(code))
    const { out } = await gatehouse(['task', 'resume', idOf(1)])
    expect(out).toBe(
      `Task ${idOf(1)} stays FAILURE (${code}); its state at sandbox is polled again.${code === 'timeout' ? ' Resume the task once more when the provider has finished it.' : ''}\n`,
    )
    const task = await store.tasks.find(idOf(1))
    expect(task).toMatchObject({ status: 'FAILURE', fail_code: code })
    expect(task?.due_ms).toBeLessThanOrEqual(Date.now())
    expect(task?.deadline_at).toBeGreaterThanOrEqual(NOW)
  })

  const copying: Partial<Task> = {
    ...failed('output_expired'),
    made: [{ url: 'https://files.test/1' }],
    outputs_expire_at: NOW + 600_000,
  }

  test.each([
    ['with its links', copying, [{ url: 'https://files.test/1' }]],
    ['of an older version, without its links', failed('output_expired'), null],
    ["that the gateway's storage could not take", { ...copying, fail_code: 'internal_error' }, copying.made],
    [
      'that timed out and was made all the same',
      { ...failed('timeout'), late_outcome: { status: 'SUCCESS', at: NOW, detail: '' } },
      null,
    ],
  ] satisfies [string, Partial<Task>, unknown][])('a finished task %s goes back to copying', async (_, more, made) => {
    await add(1, more, { callback: { callback_id: 'evt_1', url: 'https://app.test/hook' } })
    const { out, err, code } = await gatehouse(['task', 'resume', idOf(1), '--deadline', '2h'])
    expect({ err, code }).toEqual({ err: '', code: 0 })
    expect(out).toStartWith(`Task ${idOf(1)} is IN_PROGRESS again: its files are copied from sandbox until 20`)
    const task = await store.tasks.find(idOf(1))
    expect(task).toMatchObject({ status: 'IN_PROGRESS', progress: 99, fail_code: '', fail_reason: '', finish_time: 0 })
    expect(task).toMatchObject({ operation: { id: 'upstream-7' }, made, late_outcome: null })
    expect(task?.deadline_at).toBeWithin(NOW + 7_200, Date.now() / 1000 + 7_201)
    expect(task?.due_ms).toBeLessThanOrEqual(Date.now())
    expect((await store.webhooks.ofTask(idOf(1)))?.callback_id).not.toBe('evt_1')
  })

  test('retries a finished task for a day without --deadline', async () => {
    await add(1, copying)
    const { task } = await answer(['task', 'resume', idOf(1)])
    expect(task.deadline_at).toBeWithin(NOW + 86_400, Date.now() / 1000 + 86_401)
  })

  test.each([
    ['success', { ...failed(''), status: 'SUCCESS' }, 'has ended with SUCCESS: there is nothing to resume.'],
    ['another failure', failed('no_output'), 'has ended with FAILURE (no_output): there is nothing to resume.'],
    [
      'files that were lost with their process',
      { ...failed('output_expired'), operation: {}, made: [{ key: 'k', content_type: 'image/png' }] },
      'its files came with the response of the provider and were lost',
    ],
    ['nothing to poll', { ...failed('output_expired'), operation: {} }, 'there is nothing to poll'],
    [
      'a second order that may not have been accepted',
      { ...failed('output_expired'), operation: { $proceeding: {} } },
      'there is nothing to resume.',
    ],
    [
      'expired files',
      { ...copying, outputs: [{ key: 'k', content_type: 'video/mp4' }], outputs_expire_at: NOW - 5 },
      'its files have expired and are being removed',
    ],
    ['a refused order', { ...failed('invalid_input'), operation: null }, 'no provider had accepted its order'],
    ['an unknown outcome', failed('submit_outcome_unknown'), 'A resume does not send the order again'],
    ['no order', { ...failed('timeout'), operation: null }, 'and no provider had accepted its order'],
    [
      'a known late outcome',
      { ...failed('timeout'), late_outcome: { status: 'FAILURE', at: NOW, detail: '' } },
      'and the provider then reported FAILURE: there is nothing to resume.',
    ],
    ['an unknown outcome', failed('submit_outcome_unknown'), 'Check at sandbox whether it accepted one at 20'],
  ] satisfies [string, Partial<Task>, string][])(
    'with %s it says why there is nothing to resume',
    async (_, more, why) => {
      await add(1, more)
      const { out, err, code } = await gatehouse(['task', 'resume', idOf(1)])
      expect({ out, code }).toEqual({ out: '', code: 1 })
      expect(err).toContain(why)
      expect((await store.tasks.find(idOf(1)))?.due_ms).toBe(null)
    },
  )
})

describe('invalid arguments', () => {
  test.each([
    [['task'], 'task: needs a command: list, show, cancel, resume, retry-delivery\nSee: gatehouse task --help\n'],
    [
      ['task', 'shwo'],
      'task: unknown command "shwo"; did you mean "show"? (commands: list, show, cancel, resume, retry-delivery)\nSee: gatehouse task --help\n',
    ],
    [
      ['task', 'show'],
      'task show: needs a task: its task_id, as gatehouse task list shows it\nSee: gatehouse task show --help\n',
    ],
    [
      ['task', 'list', '--status', 'QUEUD'],
      'task list: --status: found "QUEUD", must be one of NOT_START, SUBMITTED, QUEUED, IN_PROGRESS, SUCCESS, FAILURE, unfinished; did you mean "QUEUED"?\nSee: gatehouse task list --help\n',
    ],
    [
      ['task', 'list', '--limit', '0'],
      'task list: --limit: found "0", must be a number from 1 to 1000\nSee: gatehouse task list --help\n',
    ],
    [
      ['task', 'resume', 'x', '--deadline', '25h'],
      'task resume: --deadline: found "25h", must be like 30m or 2h, at most 1d\nSee: gatehouse task resume --help\n',
    ],
  ])('%p exits with 2 and says what is valid', async (args, err) => {
    expect(await gatehouse(args)).toEqual({ out: '', err: `gatehouse ${err}`, code: 2 })
  })

  test.each([[['show']], [['cancel']], [['resume']], [['list', '--after']]])(
    '%p of a task that is not there ends with 1',
    async (args) => {
      expect(await gatehouse(['task', ...args, 'task_nobody'])).toEqual({
        out: '',
        err: 'gatehouse: There is no task "task_nobody" in this store. See: gatehouse task list\n',
        code: 1,
      })
    },
  )

  test('reports an invalid database address without repeating it', async () => {
    const { err, code } = await gatehouse(['task', 'list'], { GATEHOUSE_DATABASE_URL: 'mysql://user:hush@host/db' })
    expect(code).toBe(1)
    expect(err).toContain('GATEHOUSE_DATABASE_URL')
    expect(err).not.toContain('hush')
  })
})

test('GATEHOUSE_DATABASE_URL selects the store of tasks and tokens', async () => {
  const engine = ENGINES.find(({ name }) => name === 'postgres')
  if (!engine?.url) throw new Error('There is no such engine.')
  const other = await engine.open()
  try {
    await other.tokens.add(token('tok_elsewhere1', 'elsewhere'))
    await other.tasks.add({ task: taskOf(7, { token_id: 'tok_elsewhere1' }) })
    const env = { GATEHOUSE_DATABASE_URL: engine.url() }
    const listed = await gatehouse(['task', 'list'], env)
    expect(listed).toMatchObject({ err: '', code: 0 })
    expect(listed.out).toContain('elsewhere')
    expect((await gatehouse(['token', 'list'], env)).out).toContain('tok_elsewhere1')
    expect((await gatehouse(['token', 'list'])).out).not.toContain('tok_elsewhere1')
  } finally {
    await engine.cleanup()
  }
}, 120_000)

describe('token webhook-secret', () => {
  test('prints only the signing secret on standard output', async () => {
    const secret = webhookSecret(await webhookMasterSecret(store.secrets), 'tok_server0001')
    const { out, err, code } = await gatehouse(['token', 'webhook-secret', 'server'])
    expect({ out, code }).toEqual({ out: `${secret}\n`, code: 0 })
    expect(err).toContain('tok_server0001 (server)')
    expect(await gatehouse(['token', 'webhook-secret', 'server', '--quiet'])).toEqual({ out, err: '', code: 0 })
    expect(await answer(['token', 'webhook-secret', 'tok_server0001'])).toEqual({ token_id: 'tok_server0001', secret })
    expect(await answer(['token', 'webhook-secret', 'laptop'])).not.toMatchObject({ secret })
  })
})
