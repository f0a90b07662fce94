/** SQLite answers the queries about tasks from an index, so that a million ended tasks cost nothing. */
import { Database } from 'bun:sqlite'
import { afterEach, describe, expect, spyOn, test } from 'bun:test'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { blankTask } from '../families/tasks/lifecycle.ts'
import type { Task } from '../spec/task.ts'
import { openStore } from './open-store.ts'
import type { Store } from './store.ts'

const directories: string[] = []

afterEach(async () => {
  for (const directory of directories.splice(0)) await rm(directory, { recursive: true, force: true })
})

const TABLES = /\b(tasks|task_inputs|task_keys|callbacks|responses|response_\w+|conversation\w+)\b/

/** The plan of each statement that `work` runs on the store. */
async function plansOf(work: (store: Store) => Promise<unknown>): Promise<string[]> {
  const directory = await mkdtemp(join(tmpdir(), 'gatehouse-plans-'))
  directories.push(directory)
  const path = join(directory, 'gatehouse.db')
  const store = await openStore({ url: `sqlite:${path}` })
  const prepare = spyOn(Database.prototype, 'prepare')
  let statements: string[] = []
  try {
    await work(store)
    statements = prepare.mock.calls.map(([statement]) => statement)
  } finally {
    prepare.mockRestore()
    await store.close()
  }
  const file = new Database(path)
  const explain = (statement: string) =>
    file
      .query<{ detail: string }, []>(`explain query plan ${statement}`)
      .all()
      .map(({ detail }) => detail)
      .join('\n')
  const plans = statements.filter((statement) => TABLES.test(statement)).map(explain)
  file.close()
  if (plans.length === 0) throw new Error('no statement was seen')
  return plans
}

const SCAN_OF_A_TABLE =
  /SCAN (tasks|task_inputs|task_keys|callbacks|responses|response_\w+|conversation\w+)\b(?! USING)/
const claim = { by: 'w', provider: 'p', now_ms: 5, until_ms: 9, limit: 3 }
const cases: Record<string, (store: Store) => Promise<unknown>> = {
  find: ({ tasks }) => tasks.find('task_a', 'tok_a'),
  'find for the operator': ({ tasks }) => tasks.find('task_a'),
  inputs: ({ tasks }) => tasks.inputs('task_a'),
  add: ({ tasks }) => tasks.add({ task: TASK, idempotency: { key: 'k', body_hash: 'h', expires_at: 9 } }),
  'add again': async ({ tasks }) => {
    const idempotency = { key: 'k', body_hash: 'h', expires_at: 9_000 }
    for (const task of [TASK, { ...TASK, task_id: 'task_b' }]) await tasks.add({ task, idempotency })
  },
  claim: async ({ tasks }) => {
    for (const name of ['a', 'b', 'c'])
      await tasks.add({ task: { ...TASK, task_id: `task_${name}`, token_id: `tok_${name}` } })
    await tasks.claim({ ...claim, limit: 9 })
  },
  save: async ({ tasks }) => {
    await tasks.add({ task: TASK })
    await tasks.save({ task_id: 'task_a', fence: 0 }, { status: 'FAILURE', finish_time: 5 })
  },
  advancePolling: ({ tasks }) => tasks.advancePolling(['task_a', 'task_b'], 5),
  cancel: ({ tasks }) => tasks.requestCancel('task_a', { now: 1, now_ms: 1 }),
  resume: ({ tasks }) => tasks.resume('task_a', { due_ms: 1, deadline_at: 1 }),
  remove: ({ tasks }) => tasks.remove('task_a', 'tok_a', 1),
  lanes: ({ tasks }) => tasks.queues(),
  'sent orders': ({ tasks }) => tasks.sentSince({ provider: 'p', since: 5 }),
  'outputs to remove': ({ tasks }) => tasks.outputsToRemove(5, 10),
  'keys to forget': ({ tasks }) => tasks.deleteExpiredKeys(5, 10),
  webhooks: ({ webhooks }) => webhooks.claim({ now_ms: 5, until_ms: 9, limit: 3 }),
  'amount of responses': ({ amounts }) => amounts.responses('tok_a'),
  'amount of tasks': ({ amounts }) => amounts.tasks('tok_a', 5),
  'amount of keys': ({ amounts }) => amounts.keys('tok_a'),
  'callback of a task': ({ webhooks }) => webhooks.ofTask('task_a'),
}

const TASK: Task = blankTask({
  task_id: 'task_a',
  token_id: 'tok_a',
  family: 'video-generation',
  model: 'm',
  submit_time: 1,
  request: {},
  base_url: '',
  provider: 'p',
  deadline_at: 9,
  due_ms: 1,
})

describe('no statement scans a table', () => {
  for (const [name, work] of Object.entries(cases))
    test(name, async () => {
      for (const plan of await plansOf(work)) expect(plan).not.toMatch(SCAN_OF_A_TABLE)
    })
})

describe('each query uses its index', () => {
  test('a status read uses only the primary key', async () => {
    const [plan] = await plansOf(({ tasks }) => tasks.find('task_a', 'tok_a'))
    expect(plan).toBe('SEARCH tasks USING INDEX sqlite_autoindex_tasks_1 (task_id=?)')
  })

  test("a token's list is read in order, from the end of the last page", async () => {
    const plans = await plansOf(async ({ tasks }) => {
      await tasks.add({ task: TASK })
      await tasks.list({ token_id: 'tok_a', after: 'task_a', limit: 3, statuses: ['SUCCESS'] })
    })
    expect(plans.at(-1)).toBe('SEARCH tasks USING INDEX tasks_of_token (token_id=? AND (submit_time,task_id)<(?,?))')
  })

  test('the list of one API is read in order too, each of its families from its index', async () => {
    const plans = await plansOf(async ({ tasks }) => {
      await tasks.add({ task: { ...TASK, family: '3d-generation' } })
      await tasks.list({ token_id: 'tok_a', families: ['3d-generation'], after: 'task_a', limit: 3 })
      await tasks.list({ token_id: 'tok_a', families: ['video-generation', 'chatcompat-video'], limit: 3 })
    })
    const alone = 'SEARCH tasks USING INDEX tasks_of_family (token_id=? AND family=? AND (submit_time,task_id)<(?,?))'
    expect(plans.at(-2)).toBe(alone)
    const each = /SEARCH tasks USING INDEX tasks_of_family \(token_id=\? AND family=\?\)/g
    expect(plans.at(-1)?.match(each)).toHaveLength(2)
    expect(plans.at(-1)).not.toContain('SCAN tasks')
  })

  test('the list of all tasks is read in order, and unfinished tasks without ended ones', async () => {
    const [all] = await plansOf(({ tasks }) => tasks.list({ limit: 3 }))
    expect(all).toBe('SCAN tasks USING INDEX tasks_by_time')
    const [unfinished] = await plansOf(({ tasks }) => tasks.list({ limit: 3, statuses: ['QUEUED', 'NOT_START'] }))
    expect(unfinished).toBe('SCAN tasks USING INDEX tasks_unfinished')
  })

  test('the orders that were sent lately are read from their index', async () => {
    const [plan] = await plansOf(({ tasks }) => tasks.sentSince({ provider: 'p', since: 5 }))
    expect(plan).toBe('SEARCH tasks USING INDEX tasks_sent (provider=? AND sent_at>?)')
  })

  test('health reads only unfinished tasks', async () => {
    const plans = await plansOf(({ tasks }) => tasks.health())
    expect(plans).toContain('SCAN tasks USING COVERING INDEX tasks_unfinished')
  })

  test('a claim reads only the heads of queues', async () => {
    const plans = (await plansOf(cases.claim ?? Promise.reject)).join('\n')
    expect(plans).toContain('SEARCH tasks USING COVERING INDEX tasks_due_of_token (provider=? AND token_id>?)')
    expect(plans).toContain(
      'SEARCH tasks USING COVERING INDEX tasks_due_of_token (provider=? AND token_id=? AND due_ms<?)',
    )
  })

  test('what a token has stored is summed from indexes alone, except for the inputs of unfinished tasks', async () => {
    const plans = await plansOf(async ({ amounts }) => {
      await amounts.responses('tok_a')
      await amounts.tasks('tok_a', 5)
      await amounts.keys('tok_a')
    })
    const searches = plans.flatMap((plan) => plan.split('\n')).toSorted()
    expect(searches).toEqual([
      'SEARCH conversation_items USING COVERING INDEX conversation_items_sizes (conversation_id=?)',
      'SEARCH conversations USING COVERING INDEX conversations_sizes (token_id=?)',
      'SEARCH conversations USING COVERING INDEX conversations_sizes (token_id=?)',
      'SEARCH response_events USING COVERING INDEX response_events_sizes (token_id=?)',
      'SEARCH response_runs USING COVERING INDEX response_runs_sizes (token_id=?)',
      'SEARCH responses USING COVERING INDEX responses_sizes (token_id=?)',
      'SEARCH task_inputs USING INDEX sqlite_autoindex_task_inputs_1 (task_id=?) LEFT-JOIN',
      'SEARCH task_keys USING COVERING INDEX sqlite_autoindex_task_keys_1 (token_id=?)',
      'SEARCH tasks USING COVERING INDEX tasks_sizes (token_id=? AND submit_time>?)',
      'SEARCH tasks USING COVERING INDEX tasks_unfinished_of_token (token_id=?)',
    ])
  })
})
