/** Texts that a tenant, a provider or a model controls stay text on the pages of sessions, alerts and webhooks. */
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
const WEBHOOK_STEP = 5

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
  await store.close()
}

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

  it('stay text on the pages of webhooks', async () => {
    const page = await opened.open('/webhooks')
    for (let index = 0; index < PAYLOADS.length; index += WEBHOOK_STEP) {
      const payload = PAYLOADS[index] ?? ''
      await page.goto(`${opened.origin}/console/webhooks/evt_${index}`)
      await page.locator('main').getByText(payload, { exact: true }).first().waitFor()
      expect([payload, await injectedInto(page)]).toEqual([payload, []])
    }
  })
})
