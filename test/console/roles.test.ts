/**
 * Each act of the console for each role: whether the page has its control, and whether the call behind it is allowed to
 * the session of that role. A route of the admin API that changes something must belong to an act.
 */
import { afterAll, beforeAll, describe, expect, it } from 'bun:test'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DEFAULT_ADMIN } from '../../src/config/config.ts'
import { blankTask } from '../../src/families/tasks/lifecycle.ts'
import { openStore } from '../../src/store/open-store.ts'
import type { TaskChange } from '../../src/store/store.ts'
import { startAdminGateway } from '../kit/admin.ts'
import { readDocument } from '../kit/document.ts'
import { requestRow } from '../kit/request-rows.ts'
import { ACTS, type Act, ROLES, type Role, WITHOUT_CONTROL } from './support/acts.ts'
import { describeInBrowser } from './support/chromium.ts'
import { openConsole, settled, type TestConsole } from './support/console.ts'
import { expectSoon } from './support/soon.ts'

const NOW = Math.floor(Date.now() / 1000)
const LATER_MS = (NOW + 864_000) * 1000
/** A refusal is an answer here; a fault of the gateway or an error in the page is not. */
const REFUSALS = / 4\d\d$/

describe('the table of acts', () => {
  it('has each route of the admin API that changes something', async () => {
    await using gateway = await startAdminGateway()
    const { operations } = await readDocument(gateway)
    const writing = operations
      .filter(({ path, operation }) => path.startsWith('/admin/v1/') && operation.security?.length !== 0)
      .map(({ name }) => name)
      .filter((name) => !name.startsWith('GET '))
    const listed = [...ACTS.flatMap(({ calls }) => calls), ...Object.keys(WITHOUT_CONTROL)]
    expect(writing.filter((name) => !listed.includes(name))).toEqual([])
    expect(listed.filter((name) => !name.startsWith('GET ') && !writing.includes(name))).toEqual([])
  })
})

describeInBrowser('what each role can do', () => {
  let opened: TestConsole
  const objects: Record<string, string> = {}
  beforeAll(async () => {
    const store_url = `sqlite:${join(tmpdir(), `gatehouse-roles-${process.pid}-${crypto.randomUUID()}.db`)}`
    const admin = { ...DEFAULT_ADMIN, requests_per_minute: 1_000_000 }
    const prices = { input: 1, output: 4 }
    const guards = { words: { kind: 'patterns' as const, patterns: ['falcon'], action: 'block' as const } }
    const settings = { admin, guards, models: { 'sandbox/general': { prices } } }
    // The project first: what the store is given below belongs to it.
    opened = await openConsole(settings, { store_url })
    const project = await opened.admin<{ project_id: string }>('/projects', { json: { name: 'team' } })
    const { project_id } = project
    const json = { name: 'service', project_id, budgets: [{ amount: 0.000001, window: 'total' }] }
    const token = await opened.admin<{ token_id: string; secret: string }>('/tokens', { json })
    Object.assign(
      objects,
      { project: project_id, token: token.token_id },
      await addTo(store_url, project_id, token.token_id),
    )
    await (await opened.chat({ max_tokens: 1_000 }, token.secret)).text()
    await expectSoon(async () => (await opened.admin<{ data: object[] }>('/alerts?state=open')).data.length > 0, true)
    // An admin token and a session besides those of the owner.
    await opened.open('/settings', { role: 'viewer' })
  })
  afterAll(() => opened?.close())

  const addressOf = (page: string) => page.replace(/\$(\w+)/, (_, name: string) => objects[name] ?? name)
  const PAGES = [...new Set(ACTS.map(({ page }) => page))]

  describe.each(ROLES)('%s', (role) => {
    it('finds the controls of its acts on each page, and no others', async () => {
      const page = await opened.open('/settings', { ...optionsOf(role), allowed: REFUSALS })
      for (const pattern of PAGES) {
        await page.goto(`${opened.origin}/console${addressOf(pattern)}`)
        await settled(page)
        const acts = ACTS.filter((one) => one.page === pattern)
        const control = (one: Act) => page.getByRole(one.control[0], { name: one.control[1] })
        for (const one of acts.filter(({ roles }) => roles.includes(role))) await control(one).first().waitFor()
        for (const one of acts.filter(({ roles }) => !roles.includes(role)))
          expect([pattern, `${one.control[1]}`, await control(one).count()]).toEqual([pattern, `${one.control[1]}`, 0])
      }
    })

    it('may make the calls of its acts, and no others', async () => {
      const page = await opened.open('/settings', { ...optionsOf(role), allowed: REFUSALS })
      for (const { calls, roles, callers = roles } of ACTS)
        for (const call of calls.filter((one) => !ENDS_SESSION.has(one))) {
          const status = await page.evaluate(callDirectly, addressedTo(call))
          const isAllowed = callers.includes(role)
          // Of an object that does not exist: 404, of a body without what is needed: 400.
          expect([call, status >= 500, [401, 403].includes(status)]).toEqual([call, false, !isAllowed])
        }
    })
  })

  const optionsOf = (role: Role) =>
    role.startsWith('project_') ? { role, project_id: objects.project ?? '' } : { role }
})

/** It would end the session that the next call needs. */
const ENDS_SESSION: ReadonlySet<string> = new Set(['DELETE /admin/v1/sessions'])

const addressedTo = (call: string): [method: string, path: string] => {
  const [method = '', path = ''] = call.split(' ')
  return [
    method,
    path
      .replace('{path}', method === 'DELETE' ? 'v1/responses/none' : 'v1/chat/completions')
      .replaceAll(/\{\w+\}/g, 'none'),
  ]
}

/** In the page, by its session. The precondition fails where there is an object. */
async function callDirectly([method, path]: [string, string]): Promise<number> {
  const headers = { 'x-gatehouse-csrf': '1', 'content-type': 'application/json', 'if-match': '"none"' }
  const body = method === 'POST' || method === 'PATCH' ? { body: '{}' } : {}
  return (await fetch(path, { method, headers, ...body })).status
}

/** A request, a webhook, a task in each state, a batch, a file, a tool that is not approved, and a person with an account. */
async function addTo(url: string, project_id: string, token_id: string): Promise<Record<string, string>> {
  const store = await openStore({ url })
  for (const hash of ['one', 'other'])
    await store.mcpTools.see([{ server: 'tools', tool: 'search', hash, definition: '{}', seen_at: NOW }], undefined)
  await store.mcpConnections.connect(
    { person: 'ada https://login.example.com', server: 'tools' },
    { connection_id: 'mcpc_1', sealed: 'none', connected_at: NOW },
    { actor: 'gateway', action: 'test', object_type: 'test', object_id: 'tools', at_ms: NOW * 1000 },
  )
  const row_id = await store.requestLog.reserve(1)
  await store.requestLog.append([
    requestRow({ row_id, at_ms: NOW * 1000, project_id, token_id, model: 'sandbox/general' }),
  ])
  const ids: Record<string, string> = { request: String(row_id) }
  const states: Record<string, TaskChange & { status: 'IN_PROGRESS' | 'FAILURE' | 'SUCCESS' }> = {
    running: { status: 'IN_PROGRESS', start_time: NOW },
    failed: { status: 'FAILURE', fail_code: 'timeout', fail_reason: 'Too late.', finish_time: NOW },
    done: { status: 'SUCCESS', finish_time: NOW, outputs: [{ url: '/v1/files/x', content_type: 'video/mp4' }] },
  }
  for (const [at, [name, change]] of Object.entries(states).entries()) {
    const task_id = `task_${String(at).padStart(32, '0')}`
    ids[name] = task_id
    const task = blankTask({
      task_id,
      token_id,
      project_id,
      family: 'video-generation',
      model: 'far/film',
      submit_time: NOW,
      request: { model: 'far/film', prompt: 'a boat' },
      base_url: 'http://gateway.test',
      provider: 'far',
      sent_at: NOW,
      operation: { id: '1' },
      deadline_at: NOW + 7_200,
      due_ms: null,
    })
    await store.tasks.add({ task, callback: { callback_id: `evt_${at}`, url: 'https://127.0.0.1:9/hook' } })
    await store.tasks.save({ task_id, fence: 0 }, { due_ms: null, webhook_due_ms: LATER_MS, ...change })
    ids.webhook = `evt_${at}`
  }
  await store.batches.add({ ...BATCH, token_id, project_id })
  const bytes = { filename: 'a.jsonl', content_type: 'application/jsonl', bytes: 1, output_key: 'none', problems: null }
  const file = { file_id: 'file-gh0000000000000000000000aa', token_id, project_id, created_at: NOW, expires_at: null }
  await store.files.begin({ ...file, ...bytes, purpose: '' })
  await store.files.finish({ ...file, ...bytes, purpose: 'batch' })
  await store.close()
  return { ...ids, batch: BATCH.batch_id, file: file.file_id }
}

/** It is not due while the test runs. */
const BATCH = {
  batch_id: 'batch_000000000000000000000000',
  api: 'openai',
  endpoint: '/v1/chat/completions',
  status: 'in_progress',
  request: { headers: {}, base_url: 'http://gateway.test', input_file_id: 'file-none' },
  progress: {},
  created_at: NOW,
  expires_at: NOW + 86_400,
  cancelling_at: null,
  deleted_at: null,
  ...{ total: 3, succeeded: 1, errored: 0, canceled: 0, expired: 0 },
  ...{ input_tokens: 0, cached_tokens: 0, output_tokens: 0, reasoning_tokens: 0 },
  due_ms: LATER_MS,
  leased_by: '',
  fence: 0,
} as const
