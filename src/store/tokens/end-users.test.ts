/** Checks that what is stored of an end user is counted, erased and renamed on every engine. */
import { afterEach, describe, expect, it } from 'bun:test'
import { ENGINES } from '../../../test/kit/engines.ts'
import { entry } from '../../../test/kit/ledger.ts'
import { requestRow } from '../../../test/kit/request-rows.ts'
import { blankTask } from '../../families/tasks/lifecycle.ts'
import type { BudgetName } from '../ledger/budget-store.ts'
import type { StoredResponse } from '../responses/response-row.ts'
import type { Store } from '../store.ts'

const NOW = 1_767_270_600
const NOW_MS = NOW * 1000
const ANN = { end_user: 'ann' }
const NOTHING = { requests: 0, contents: 0, responses: 0, conversations: 0, tasks: 0 }
const TASK_ENDED = { status: 'SUCCESS', finish_time: NOW, due_ms: null } as const

const response = (response_id: string, change: Partial<StoredResponse> = {}): StoredResponse => ({
  response_id,
  token_id: 'tok_a',
  previous_id: null,
  created_at: NOW,
  expires_at: NOW + 1_000,
  input: [],
  response: { id: response_id, status: 'completed' },
  ...change,
})
const conversation = (conversation_id: string, token_id = 'tok_a') => ({
  conversation_id,
  token_id,
  created_at: NOW,
  expires_at: NOW + 1_000,
  metadata: {},
})
const message = (id: string) => ({ id, type: 'message' })

async function addTask(store: Store, task_id: string, end_user: string, isEnded = true): Promise<void> {
  const task = blankTask({
    task_id,
    token_id: 'tok_a',
    end_user,
    family: 'video-generation',
    model: 'sandbox/text-to-video',
    submit_time: NOW,
    request: { prompt: 'a boat' },
    base_url: 'http://gatehouse.test',
    deadline_at: NOW + 3_600,
    due_ms: NOW_MS,
  })
  await store.tasks.add({ task })
  const [claimed] = await store.tasks.claim({ by: 'w', provider: '', now_ms: NOW_MS, until_ms: NOW_MS + 9, limit: 1 })
  if (claimed && isEnded) await store.tasks.save(claimed, TASK_ENDED)
}

/** A project with one token, beside `tok_a` of no project. */
async function addProject(store: Store): Promise<void> {
  const account = {
    name: 'p',
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
    created_at: NOW,
  }
  await store.projects.add({ ...account, project_id: 'proj_a', log_contents: null, deleted_at: null })
  const token = { ...account, token_id: 'tok_p', project_id: 'proj_a', prefix: 'sk-p', last_used_at: null }
  await store.tokens.add({ ...token, hash: 'h', previous_hash: null, previous_expires_at: null })
}

async function eraseAll({ endUsers }: Store, user: { end_user: string; project_id?: string }) {
  const erased = { ...NOTHING }
  for (;;) {
    const batch = await endUsers.erase(user, NOW)
    if (Object.values(batch).every((count) => count === 0)) return erased
    for (const kind of Object.keys(erased) as (keyof typeof erased)[]) erased[kind] += batch[kind]
  }
}

for (const engine of ENGINES) {
  describe(`end users: ${engine.name}`, () => {
    afterEach(() => engine.cleanup())

    it('erases the rows of the request log with their contents, feedback and tags, and nothing else', async () => {
      const store = await engine.open()
      const { requestLog, requestContents } = store
      const rows = Array.from({ length: 1_010 }, (_, at) =>
        requestRow({ row_id: at + 1, at_ms: at, end_user: 'ann', tags: ['t'] }),
      )
      const others = [
        requestRow({ row_id: 2_000, end_user: 'annie', tags: ['t'] }),
        requestRow({ row_id: 2_001, end_user: null, tags: ['t'] }),
        requestRow({ row_id: 2_002, end_user: 'ann', project_id: 'proj_a' }),
      ]
      await requestLog.append([...rows, ...others])
      const contents = { at_ms: 1, key_id: 'k', sealed: 'AAAA', project_id: null }
      await requestContents.append([
        { ...contents, row_id: 1, end_user: 'ann' },
        { ...contents, row_id: 5_000, end_user: 'ann' },
        { ...contents, row_id: 2_000, end_user: 'annie' },
      ])
      await requestLog.addFeedback({ row_id: 1, score: 1, text: 'good', created_ms: 1 })
      expect(await store.endUsers.count(ANN)).toMatchObject({ requests: 1_011, contents: 2 })
      expect(await eraseAll(store, { ...ANN, project_id: 'proj_a' })).toEqual({ ...NOTHING, requests: 1 })
      expect(await store.endUsers.erase(ANN, NOW)).toEqual({ ...NOTHING, requests: 500, contents: 2 })
      expect(await eraseAll(store, ANN)).toEqual({ ...NOTHING, requests: 510 })
      const found = async (filter: object) =>
        (await requestLog.search({ filter, limit: 9 })).rows.map(({ row_id }) => row_id)
      expect(await found({})).toEqual([2_001, 2_000])
      expect(await found({ tag: 't' })).toEqual([2_001, 2_000])
      expect(await requestLog.feedback([1])).toEqual([])
      expect([await requestContents.find(5_000), await requestContents.find(2_000)]).toMatchObject([
        undefined,
        { row_id: 2_000 },
      ])
    })

    it('erases responses with what runs of them, and conversations with an item of the end user', async () => {
      const store = await engine.open()
      const { responses, responseRuns, conversations } = store
      await responses.add(response('resp_1', ANN), [])
      await responses.add(response('resp_2', { end_user: 'bob' }), [])
      await responses.add(response('resp_3'), [])
      const events = { last_number: 1, events: 'created' }
      await responseRuns.add({ response: response('resp_4', ANN), request: {}, ...ANN, events, due_ms: 1 }, [])
      await conversations.add(conversation('conv_1'), [message('m1')], 'ann')
      await conversations.add(conversation('conv_2'), [message('m1')], 'bob')
      await conversations.add(conversation('conv_3'), [message('m1')])
      const appending = { conversation_id: 'conv_2', owner: 'resp_5', items: [message('m2')], expires_at: NOW + 1_000 }
      await conversations.append({ ...appending, ...ANN }, response('resp_5', ANN))
      expect(await store.endUsers.count(ANN)).toMatchObject({ responses: 3, conversations: 2 })
      expect(await eraseAll(store, ANN)).toEqual({ ...NOTHING, responses: 3, conversations: 2 })
      const ids = ['resp_1', 'resp_2', 'resp_3', 'resp_4', 'resp_5']
      const left = await responses.find(ids, 'tok_a', NOW)
      expect(left.map(({ response_id }) => response_id).sort()).toEqual(['resp_2', 'resp_3'])
      expect([await responseRuns.isRunning('resp_4'), await responseRuns.events('resp_4', -1)]).toEqual([false, []])
      const of = { token_id: 'tok_a', now: NOW }
      const states = ['conv_1', 'conv_2', 'conv_3'].map((conversation_id) =>
        conversations.find({ conversation_id, ...of }),
      )
      expect((await Promise.all(states)).map((state) => state !== undefined)).toEqual([false, false, true])
      expect(await conversations.items('conv_2')).toEqual([])
    })

    it('erases of a project what its tokens have stored', async () => {
      const store = await engine.open()
      await addProject(store)
      await store.responses.add(response('resp_1', ANN), [])
      await store.responses.add(response('resp_2', { ...ANN, token_id: 'tok_p' }), [])
      await store.conversations.add(conversation('conv_1'), [message('m')], 'ann')
      await store.conversations.add(conversation('conv_2', 'tok_p'), [message('m')], 'ann')
      const user = { ...ANN, project_id: 'proj_a' }
      expect(await store.endUsers.count(user)).toMatchObject({ responses: 1, conversations: 1 })
      expect(await eraseAll(store, user)).toEqual({ ...NOTHING, responses: 1, conversations: 1 })
      expect(await store.endUsers.count(ANN)).toMatchObject({ responses: 1, conversations: 1 })
    })

    it('deletes ended tasks with their request and files, and leaves those that have not ended', async () => {
      const store = await engine.open()
      await addTask(store, 'task_1', 'ann')
      await addTask(store, 'task_2', 'bob')
      await addTask(store, 'task_3', 'ann', false)
      expect(await store.endUsers.count(ANN)).toMatchObject({ tasks: 1, unfinished_tasks: 1 })
      expect(await eraseAll(store, ANN)).toEqual({ ...NOTHING, tasks: 1 })
      expect(await store.tasks.find('task_1')).toBeUndefined()
      expect((await store.tasks.outputsToRemove(NOW, 9)).map(({ task_id }) => task_id)).toEqual(['task_1'])
      expect([await store.tasks.find('task_2'), await store.tasks.find('task_3')]).toMatchObject([
        { end_user: 'bob', request: { prompt: 'a boat' } },
        { end_user: 'ann', request: { prompt: 'a boat' } },
      ])
      expect(await store.endUsers.count(ANN)).toMatchObject({ tasks: 0, unfinished_tasks: 1 })
    })

    it('renames the end user in the ledger, its sums and budgets, which still add up', async () => {
      const store = await engine.open()
      const { ledger, budgets } = store
      const day_ms = Math.floor(NOW_MS / 86_400_000) * 86_400_000
      const budget = (scope_key: string): BudgetName => ({
        account_key: `${scope_key}/day/UTC/0`,
        scope_key,
        window: 'day',
        start_ms: day_ms,
        end_ms: day_ms + 86_400_000,
      })
      const of = ['ann', 'joann', 'ANN', 'x/ann']
      const leases = of.map((name) => ({ budget: budget(`user:tok_a/${name}`), limit: 1_000, need: 100, want: 0 }))
      await budgets.lease('p1', leases, { now_ms: NOW_MS, expires_ms: NOW_MS + 60_000 })
      const old_ms = NOW_MS - 40 * 86_400_000
      await ledger.append([
        ...of.map((end_user) => entry({ at_ms: NOW_MS, end_user })),
        entry({ at_ms: old_ms, end_user: 'ann' }),
        entry({ at_ms: NOW_MS, end_user: 'ann', project_id: 'proj_a' }),
      ])
      expect(await store.endUsers.count(ANN)).toMatchObject({ ledger_entries: 3 })
      const as = { pseudonym: 'erased_1', now_ms: NOW_MS }
      expect(await store.endUsers.pseudonymise({ ...ANN, project_id: 'proj_b' }, as)).toBe(0)
      expect(await store.endUsers.pseudonymise(ANN, as)).toBe(3)
      expect(await store.endUsers.count(ANN)).toMatchObject({ ledger_entries: 0 })
      expect(await store.endUsers.count({ end_user: 'erased_1' })).toMatchObject({ ledger_entries: 3 })
      const listed = await budgets.list({ now_ms: NOW_MS, limit: 9 })
      const names = listed.map(({ account_key, scope_key, settled }) => [account_key, scope_key, settled])
      const expected = ['ANN', 'erased_1', 'joann', 'x/ann'].map((name) => `user:tok_a/${name}`)
      expect(names.sort()).toEqual(
        expected.map((scope) => [`${scope}/day/UTC/0`, scope, scope.endsWith('1') ? 60 : 30]),
      )
      expect(await ledger.differences({ from: 0, to: NOW + 86_400 })).toEqual([])
    })
  })
}
