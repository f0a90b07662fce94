/** Changes of tasks, webhooks and budgets over the admin API: each has its row in the audit log. */
import { afterEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { blankTask } from '../src/families/tasks/lifecycle.ts'
import type { FailCode } from '../src/spec/task.ts'
import { openStore } from '../src/store/open-store.ts'
import { refusal, startAdminGateway } from './kit/admin.ts'
import { completion, startVendor, whole } from './kit/vendor.ts'

const TRIED = { at_ms: 1, error: null, took_ms: 5 }

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

type Audit = { data: { action: string; object_id: string; before: unknown; after: unknown }[] }

async function start(settings: Parameters<typeof startAdminGateway>[0] = {}) {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-actions-'))
  closing.push(() => rmSync(directory, { recursive: true, force: true }))
  const store_url = `sqlite:${join(directory, 'gatehouse.db')}`
  const gateway = await startAdminGateway(settings, { store_url })
  closing.push(() => gateway[Symbol.asyncDispose]())
  const store = await openStore({ url: store_url })
  closing.push(() => store.close())
  const post = (path: string, json: object = {}, headers: Record<string, string> = {}) =>
    gateway.admin(path, { method: 'POST', json, headers })
  const audited = async (action: string) =>
    (await gateway.read<Audit>('/audit')).data.filter((row) => row.action === action)
  let made = 0

  /** A task that its provider has, with a webhook, and how it has ended; undefined: it has not. */
  async function task(fail_code?: FailCode | 'none', webhook = true): Promise<string> {
    const now = Math.floor(gateway.clock.now() / 1000)
    const task_id = `task_${String(++made).padStart(32, '0')}`
    const row = blankTask({
      task_id,
      token_id: 'tok_a',
      family: 'video-generation',
      model: 'far/film',
      status: 'QUEUED',
      progress: 20,
      submit_time: now,
      request: { model: 'far/film', prompt: 'a boat' },
      base_url: 'http://gateway.test',
      provider: 'far',
      upstream_model: 'film',
      sent_at: now,
      sent_to: null,
      provider_key: null,
      call_options: null,
      trace: null,
      operation: fail_code === 'submit_outcome_unknown' ? null : { id: '1' },
      deadline_at: now - 10,
      due_ms: null,
    })
    const url = 'https://app.test/hook'
    await store.tasks.add({ task: row, ...(webhook && { callback: { callback_id: `evt_${made}`, url } }) })
    if (fail_code === undefined) return task_id
    const end =
      fail_code === 'none'
        ? ({ status: 'SUCCESS' } as const)
        : ({ status: 'FAILURE', fail_code, fail_reason: 'So it was.' } as const)
    expect(await store.tasks.save({ task_id, fence: 0 }, { ...end, finish_time: now, due_ms: null })).toBe(true)
    return task_id
  }
  return { gateway, store, post, audited, task }
}

describe('the outputs of a task', () => {
  test('are links that work without a token, and each read is a row of the audit log', async () => {
    const { gateway, store, audited, task } = await start()
    const task_id = await task()
    expect(await gateway.read(`/tasks/${task_id}/outputs`)).toEqual({
      object: 'task.outputs',
      task_id,
      outputs: [],
      poster: null,
    })
    const outputs = [
      { key: `${task_id}/0.mp4`, content_type: 'video/mp4', bytes: 3 },
      { url: 'https://far.test/1.png', content_type: 'image/png' },
    ]
    const end = { status: 'SUCCESS' as const, finish_time: 1, due_ms: null, outputs }
    expect(await store.tasks.save({ task_id, fence: 0 }, end)).toBe(true)
    expect(await audited('task.read_outputs')).toEqual([])
    const answer = await gateway.read<{ outputs: object[]; poster: string | null }>(`/tasks/${task_id}/outputs`)
    expect(answer.poster).toBe('https://far.test/1.png')
    expect(answer.outputs).toEqual([
      {
        content_type: 'video/mp4',
        url: expect.stringMatching(new RegExp(`^/v1/videos/${task_id}/content\\?expires=\\d+&signature=`)),
      },
      { content_type: 'image/png', url: 'https://far.test/1.png' },
    ])
    expect(await audited('task.read_outputs')).toMatchObject([{ object_id: task_id }])
    expect(await refusal(await gateway.admin('/tasks/task_none/outputs'))).toEqual([404, 'object_not_found'])
  })
})

describe('resuming a task', () => {
  test('makes its next step due, with a new deadline where the old one has passed', async () => {
    const { gateway, store, post, audited, task } = await start()
    const task_id = await task()
    const late = await post(`/tasks/${task_id}/resume`)
    expect([late.status, (await late.json()).error.message]).toEqual([
      400,
      `The deadline of task ${task_id} has passed. Set a new one, as in "deadline_seconds": 7200.`,
    ])
    expect(await audited('task.resume')).toEqual([])
    const response = await post(`/tasks/${task_id}/resume`, { deadline_seconds: 7_200 })
    const deadline_at = Math.floor(gateway.clock.now() / 1000) + 7_200
    expect([response.status, await response.json()]).toMatchObject([200, { task_id, deadline_at }])
    expect((await store.tasks.find(task_id))?.due_ms).toBe(gateway.clock.now())
    expect(await audited('task.resume')).toMatchObject([
      { object_id: task_id, before: { deadline_at: expect.any(Number) }, after: { deadline_at } },
    ])
  })

  test('polls for the late result of one that timed out, and says why another cannot be resumed', async () => {
    const { post, audited, task } = await start()
    const [late, unknown, done] = [await task('timeout'), await task('submit_outcome_unknown'), await task('none')]
    expect((await post(`/tasks/${late}/resume`)).status).toBe(200)
    const refused = await post(`/tasks/${unknown}/resume`)
    expect([refused.status, (await refused.json()).error.message]).toEqual([
      400,
      expect.stringContaining('A resume does not send the order again'),
    ])
    expect(await refusal(await post(`/tasks/${done}/resume`))).toEqual([400, 'invalid_value'])
    expect(await refusal(await post('/tasks/task_none/resume'))).toEqual([404, 'object_not_found'])
    for (const deadline_seconds of [0, 86_401])
      expect(await refusal(await post(`/tasks/${late}/resume`, { deadline_seconds }))).toEqual([400, 'invalid_value'])
    expect((await audited('task.resume')).map(({ object_id }) => object_id)).toEqual([late])
  })
})

describe('delivering a webhook again', () => {
  test('makes that of an ended task due with the same id, whether or not it was delivered', async () => {
    const { gateway, store, post, audited, task } = await start()
    const task_id = await task('none')
    const delivered_at = 1_700_000_000
    await store.webhooks.save('evt_1', { due_ms: null, delivered_at, status: 200, ...TRIED })
    const response = await post(`/tasks/${task_id}/retry-delivery`)
    expect([response.status, await response.json()]).toEqual([
      200,
      { task_id, webhook_id: 'evt_1', attempts: 0, delivered_at: null },
    ])
    expect(await store.webhooks.earliest()).toBe(gateway.clock.now())
    expect(await audited('task.retry_delivery')).toMatchObject([{ object_id: task_id }])
  })

  test('is listed with its attempts, without what its address may hide, and delivered once more', async () => {
    const { gateway, store, post, audited, task } = await start()
    const task_id = await task('none')
    await store.webhooks.save('evt_1', { due_ms: null, delivered_at: null, status: 503, ...TRIED })
    const { data } = await gateway.read<{ data: object[] }>('/webhooks?state=given_up')
    expect(data).toMatchObject([
      {
        webhook_id: 'evt_1',
        task_id,
        state: 'given_up',
        attempts: [{ at_ms: 1, status: 503, error: null, took_ms: 5 }],
      },
    ])
    expect(await gateway.read<{ data: object[] }>('/webhooks?state=delivered')).toEqual({
      data: [],
      next_cursor: null,
    } as never)
    const response = await post('/webhooks/evt_1/redeliver')
    expect([response.status, await response.json()]).toMatchObject([200, { state: 'pending', webhook_id: 'evt_1' }])
    expect(await audited('task.retry_delivery')).toMatchObject([{ object_id: task_id }])
    expect(await refusal(await post('/webhooks/none/redeliver'))).toEqual([404, 'object_not_found'])
    expect(await refusal(await gateway.admin('/webhooks?state=lost'))).toEqual([400, 'invalid_value'])
  })

  test('is refused for a task without a webhook, and for one that has not ended', async () => {
    const { store, post, audited, task } = await start()
    const [open, silent] = [await task(), await task('none', false)]
    for (const task_id of [open, silent])
      expect(await refusal(await post(`/tasks/${task_id}/retry-delivery`))).toEqual([400, 'invalid_value'])
    expect(await refusal(await post('/tasks/task_none/retry-delivery'))).toEqual([404, 'object_not_found'])
    expect([await store.webhooks.earliest(), await audited('task.retry_delivery')]).toEqual([null, []])
  })
})

describe('credit', () => {
  test('pays for calls at once, is given once for an idempotency key, and is in the audit log', async () => {
    const vendor = startVendor()
    closing.push(vendor.stop)
    vendor.otherwise(whole(completion('hi', { usage: { prompt_tokens: 1, completion_tokens: 4, total_tokens: 5 } })))
    const { gateway, post, audited } = await start({
      providers: { v: { base_url: vendor.url } },
      models: { 'v/m': { prices: { input: 0, output: 1_000_000 } } },
    })
    const created = await post('/tokens', { name: 'customer', budgets: [{ amount: 0, window: 'total' }] })
    const { secret, token_id } = await created.json()
    const call = async () => {
      const json = { model: 'v/m', max_tokens: 4, messages: [{ role: 'user', content: 'hi' }] }
      const response = await gateway.chat(json, { headers: { authorization: `Bearer ${secret}` } })
      await response.text()
      return response.status
    }
    expect(await call()).toBe(429)
    const order = { token_id, amount: 5.5, note: 'invoice 7' }
    const bodies = []
    for (let times = 0; times < 2; times++)
      bodies.push(await (await post('/budgets/credit', order, { 'idempotency-key': 'k1' })).json())
    expect(bodies[0]).toEqual({
      entry_id: expect.stringMatching(/^credit_\w{24}$/),
      amount: 5.5,
      token_id,
      project_id: null,
      currency: 'USD',
      warnings: [],
    })
    expect(bodies[1]).toEqual(bodies[0])
    gateway.clock.advance(500)
    expect([await call(), await call()]).toEqual([200, 429])
    expect(await audited('budget.credit')).toMatchObject([
      { object_id: token_id, after: { entry_id: bodies[0].entry_id, amount: 5.5, note: 'invoice 7' } },
    ])
  })

  test('is refused without an amount or an owner, and warned of where it has no effect', async () => {
    const { post, audited } = await start()
    const project = await (await post('/projects', { name: 'shop' })).json()
    const { project_id } = project
    const refused = [
      { project_id, amount: 0 },
      { project_id, amount: 1e-12 },
      { project_id, amount: 9_000_001 },
      { amount: 1 },
      { amount: 1, project_id, token_id: 'tok_a' },
    ]
    for (const order of refused)
      expect([order, await refusal(await post('/budgets/credit', order))]).toEqual([order, [400, 'invalid_value']])
    const unknown = { amount: 1, token_id: 'tok_none' }
    expect(await refusal(await post('/budgets/credit', unknown))).toEqual([404, 'object_not_found'])
    expect(await audited('budget.credit')).toEqual([])
    const most = await (await post('/budgets/credit', { project_id, amount: 9_000_000 })).json()
    expect(most.warnings).toEqual(['shop has no budget that never starts again, so its credit has no effect.'])
  })
})
