/** Texts that a tenant, a provider or a model controls stay text on the pages of sessions, alerts, webhooks, batches and files. */
import { afterAll, beforeAll, expect, it } from 'bun:test'
import { blankTask } from '../../src/families/tasks/lifecycle.ts'
import { openStore } from '../../src/store/open-store.ts'
import { requestRow } from '../kit/request-rows.ts'
import { describeInBrowser } from './support/chromium.ts'
import { openConsole, type TestConsole } from './support/console.ts'
import { injectedInto } from './support/injected.ts'
import { PAYLOADS } from './support/payloads.ts'
import { storeWith } from './support/request-data.ts'

const NOW_MS = Date.now()
/** Each has the same page: every fifth is opened. */
const PAGE_STEP = 5

let opened: TestConsole

const rowOf = (payload: string, index: number) =>
  requestRow({ row_id: index + 1, at_ms: NOW_MS - index * 10, session: payload, end_user: payload, model: payload })

/** An alert and a webhook for each payload. */
async function addTo(url: string): Promise<void> {
  const store = await openStore({ url })
  for (const [index, payload] of PAYLOADS.entries()) {
    await store.alertHistory.record({
      alert_id: `alert_${index}`,
      key: `${index}`,
      type: 'budget.refusing',
      message: payload,
      data: { token_id: payload, project_id: payload, provider: payload, [payload]: payload },
      now_ms: NOW_MS,
      open_until_ms: NOW_MS + 86_400_000 * (index % 2),
    })
    const task_id = `task_${String(index).padStart(32, '0')}`
    const task = blankTask({
      task_id,
      token_id: payload,
      family: 'video-generation',
      model: payload,
      submit_time: Math.floor(NOW_MS / 1000),
      request: {},
      base_url: 'http://gateway.test',
      provider: payload,
      deadline_at: 9_999_999_999,
      due_ms: null,
    })
    await store.tasks.add({ task, callback: { callback_id: `evt_${index}`, url: payload } })
    const ended = { status: 'FAILURE', fail_code: 'upstream_error', fail_reason: payload, finish_time: 2 } as const
    await store.tasks.save({ task_id, fence: 0 }, { ...ended, due_ms: null, webhook_due_ms: NOW_MS })
    const attempt = { at_ms: NOW_MS, status: 0, error: payload, took_ms: 1 }
    await store.webhooks.save(`evt_${index}`, { due_ms: null, delivered_at: null, ...attempt })
  }
  for (const [index, payload] of PAYLOADS.entries()) {
    const token = { token_id: payload, project_id: payload, created_at: Math.floor(NOW_MS / 1000) }
    const file = { ...token, file_id: fileOf(index), purpose: 'batch', expires_at: null } as const
    const content = { filename: payload, content_type: payload, bytes: 1, output_key: 'none', problems: null }
    await store.files.begin({ ...file, ...content })
    await store.files.finish({ ...file, ...content })
    const metadata = { [payload]: payload }
    const request = { headers: {}, base_url: 'http://gateway.test', input_file_id: payload, metadata }
    await store.batches.add({ ...BATCH, ...token, batch_id: batchOf(index), request })
  }
  await store.close()
}

const fileOf = (index: number) => `file-gh${String(index).padStart(24, '0')}`
const batchOf = (index: number) => `batch_${String(index).padStart(24, '0')}`
const BATCH = {
  api: 'openai',
  endpoint: '/v1/chat/completions',
  status: 'in_progress',
  progress: {},
  expires_at: Math.floor(NOW_MS / 1000) + 86_400,
  cancelling_at: null,
  deleted_at: null,
  ...{ total: 3, succeeded: 1, errored: 0, canceled: 0, expired: 0 },
  ...{ input_tokens: 0, cached_tokens: 0, output_tokens: 0, reasoning_tokens: 0 },
  due_ms: NOW_MS + 864_000_000,
  leased_by: '',
  fence: 0,
} as const

describeInBrowser('payloads', () => {
  beforeAll(async () => {
    const store_url = await storeWith(PAYLOADS.map(rowOf))
    await addTo(store_url)
    opened = await openConsole({}, { store_url })
    for (const name of PAYLOADS) await opened.admin('/admin-tokens', { json: { name, role: 'viewer' } })
  })
  afterAll(() => opened?.close())

  it.each([
    '/sessions',
    '/alerts',
    '/alerts?state=past',
    '/webhooks',
    '/batches',
    '/files',
    '/audit',
    '/settings',
    '/usage?by=user',
    `/requests?session=${encodeURIComponent(PAYLOADS[0] ?? '')}`,
    `/models?q=${encodeURIComponent(PAYLOADS[0] ?? '')}`,
    `/tokens?q=${encodeURIComponent(PAYLOADS[0] ?? '')}`,
  ])('stay text on %s', async (path) => {
    const page = await opened.open(path)
    expect([path, await injectedInto(page)]).toEqual([path, []])
  })

  it('stay text on the pages of batches and files', async () => {
    const page = await opened.open('/files')
    for (let index = 0; index < PAYLOADS.length; index += PAGE_STEP)
      for (const path of [`/files/${fileOf(index)}`, `/batches/${batchOf(index)}`]) {
        await page.goto(`${opened.origin}/console${path}`)
        await page
          .locator('main')
          .getByText(PAYLOADS[index] ?? '')
          .first()
          .waitFor()
        expect([path, await injectedInto(page)]).toEqual([path, []])
      }
  })

  it('stay text on the pages of webhooks', async () => {
    const page = await opened.open('/webhooks')
    for (let index = 0; index < PAYLOADS.length; index += PAGE_STEP) {
      const payload = PAYLOADS[index] ?? ''
      await page.goto(`${opened.origin}/console/webhooks/evt_${index}`)
      await page.locator('main').getByText(payload, { exact: true }).first().waitFor()
      expect([payload, await injectedInto(page)]).toEqual([payload, []])
    }
  })
})
