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
import { expectSoon } from './support/soon.ts'

let opened: TestConsole
/** So many in one test. */
const PART = 10
const PARTS = Array.from({ length: PAYLOADS.length / PART }, (_, part) => part * PART)
const NOW = Date.now()
/** Of one row only: its page is there once this is. */
const markOf = (index: number) => `row-${index}-of-${PAYLOADS.length}`
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
    tags: [payload, markOf(index)],
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
    await expectSoon(() => page.locator('tbody tr').count(), PAYLOADS.length)
    expect(await injectedInto(page)).toEqual([])
    await page.goto(`${opened.origin}/console/tasks`)
    await expectSoon(() => page.locator('tbody tr').count(), PAYLOADS.length)
    expect(await injectedInto(page)).toEqual([])
    await page.goto(`${opened.origin}/console/tasks?view=gallery&outputs=yes`)
    const finished = PAYLOADS.filter((_, index) => index % 2)
    await expectSoon(() => page.locator('.gallery-poster').allTextContents(), expect.arrayContaining(finished))
    expect(await injectedInto(page)).toEqual([])
  })

  // From row to row within the page: to load it for each takes many times as long.
  it.each(PARTS)('stay text on the pages of requests, from number %i on, and in a command', async (first) => {
    const page = await opened.open(`/requests/${first + PART}`)
    for (let index = first + PART - 1; index >= first; index--) {
      await page.getByText(markOf(index), { exact: true }).waitFor()
      await page.getByRole('heading', { name: 'Session' }).waitFor()
      expect([PAYLOADS[index], await injectedInto(page)]).toEqual([PAYLOADS[index], []])
      if (index > first) await page.locator(`a[href="/console/requests/${index}"]`).click()
    }
    await page.getByRole('button', { name: 'Copy as curl' }).click()
    await page.getByRole('dialog').waitFor()
    expect(await injectedInto(page)).toEqual([])
  })

  it.each(PARTS)('stay text on the pages of tasks, from number %i on, with their outputs', async (first) => {
    const page = await opened.open('/tasks')
    for (const [index, payload] of [...PAYLOADS.entries()].slice(first, first + PART)) {
      await page.locator(`tbody a[href="/console/tasks/${taskOf(index)}"]`).click()
      await page.getByText(taskOf(index), { exact: true }).waitFor()
      await Promise.all([page.waitForResponse(/outputs$/), page.getByRole('button', { name: 'Show outputs' }).click()])
      await settled(page)
      expect([payload, await injectedInto(page)]).toEqual([payload, []])
      await page.getByRole('link', { name: 'Tasks' }).last().click()
    }
  })
})
