/** Texts that a tenant, a provider or a model controls stay text on the pages of requests and tasks. */
import { afterAll, beforeAll, expect, it } from 'bun:test'
import { blankTask } from '../../src/families/tasks/lifecycle.ts'
import { openStore } from '../../src/store/open-store.ts'
import { requestRow } from '../kit/request-rows.ts'
import { describeInBrowser } from './support/chromium.ts'
import { openConsole, settled, type TestConsole } from './support/console.ts'
import { injectedInto } from './support/injected.ts'
import { PAYLOADS } from './support/payloads.ts'
import { storeWith } from './support/request-data.ts'

let opened: TestConsole
const NOW = Date.now()
const taskOf = (index: number) => `task_${String(index).padStart(32, '0')}`

/** A row in which every text is the payload. */
const rowOf = (payload: string, index: number) =>
  requestRow({
    row_id: index + 1,
    at_ms: NOW - index * 10,
    request_id: payload,
    session: payload,
    end_user: payload,
    trace_id: payload,
    model: payload,
    provider: payload,
    target: payload,
    error: payload,
    status: 502,
    tags: [payload, 'nightly'],
    detail: {
      method: 'POST',
      path: `/v1/${payload}`,
      outcome: payload,
      requested_model: `${payload}!`,
      key: payload,
      cache: payload,
      metadata: { [payload]: payload },
      task_id: payload,
      websocket: payload,
      units: { input_tokens: 1, output_tokens: 1, image_size: payload },
      attempts: [
        { target: payload, key: payload, start_ms: 1, ms: 2, error: payload, next: payload },
        { target: payload, key: payload, start_ms: 3, ms: 2 },
      ],
    },
  })

async function addTasks(url: string): Promise<void> {
  const store = await openStore({ url })
  for (const [index, payload] of PAYLOADS.entries()) {
    const task = blankTask({
      task_id: taskOf(index),
      token_id: payload,
      family: 'video-generation',
      model: payload,
      status: 'QUEUED',
      progress: 40,
      submit_time: Math.floor(NOW / 1000) - index,
      request: {},
      base_url: 'http://gateway.test',
      provider: payload,
      upstream_model: payload,
      sent_at: 1,
      sent_to: null,
      provider_key: payload,
      call_options: null,
      trace: null,
      operation: {},
      deadline_at: 9_999_999_999,
      due_ms: null,
    })
    await store.tasks.add({ task })
    await store.tasks.save(
      { task_id: taskOf(index), fence: 0 },
      {
        status: index % 2 ? 'SUCCESS' : 'FAILURE',
        ...(index % 2 ? {} : { fail_code: 'upstream_error', fail_reason: payload }),
        outputs: [{ url: payload, content_type: payload }],
        tried: [payload],
        late_outcome: { status: 'SUCCESS', at: 1, detail: payload },
        finish_time: 2,
        due_ms: null,
      },
    )
  }
  await store.close()
}

describeInBrowser('payloads', () => {
  beforeAll(async () => {
    const store_url = await storeWith(PAYLOADS.map(rowOf))
    await addTasks(store_url)
    opened = await openConsole({}, { store_url })
  })
  afterAll(() => opened?.close())

  it('stay text in the lists of requests and tasks', async () => {
    expect(PAYLOADS.length).toBeGreaterThanOrEqual(50)
    const page = await opened.open('/requests')
    expect(await page.locator('tbody tr').count()).toBe(PAYLOADS.length)
    expect(await injectedInto(page)).toEqual([])
    for (const path of ['/tasks', '/tasks?view=gallery&outputs=yes']) {
      await page.goto(`${opened.origin}/console${path}`)
      await settled(page)
      await page.waitForLoadState('networkidle')
      expect(await injectedInto(page)).toEqual([])
    }
  })

  it('stay text on the page of each request, and in its command', async () => {
    const page = await opened.open('/requests/1')
    for (const [index, payload] of PAYLOADS.entries()) {
      await page.goto(`${opened.origin}/console/requests/${index + 1}`)
      await page.getByRole('heading', { name: 'Session' }).waitFor()
      expect([payload, await injectedInto(page)]).toEqual([payload, []])
    }
    await page.getByRole('button', { name: 'Copy as curl' }).click()
    await page.getByRole('dialog').waitFor()
    expect(await injectedInto(page)).toEqual([])
  })

  it('stay text on the page of each task, with its outputs', async () => {
    const page = await opened.open(`/tasks/${taskOf(0)}`)
    for (const [index, payload] of PAYLOADS.entries()) {
      await page.goto(`${opened.origin}/console/tasks/${taskOf(index)}`)
      const answer = page.waitForResponse(/outputs$/)
      await page.getByRole('button', { name: 'Show outputs' }).click()
      await answer
      await settled(page)
      expect([payload, await injectedInto(page)]).toEqual([payload, []])
    }
  })
})
