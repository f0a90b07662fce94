/** The pages of tasks in real Chromium: the list, the gallery, one task, and what an operator does with it. */
import { afterAll, beforeAll, expect, it } from 'bun:test'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { blankTask } from '../../src/families/tasks/lifecycle.ts'
import type { TaskStatus } from '../../src/spec/task.ts'
import { openStore } from '../../src/store/open-store.ts'
import type { TaskChange } from '../../src/store/store.ts'
import { describeInBrowser } from './support/chromium.ts'
import { axeFaults, openConsole, screenshots, settled, type TestConsole } from './support/console.ts'
import { cleared, expectSoon } from './support/soon.ts'

const NOW = Math.floor(Date.now() / 1000)
/** No webhook is sent while the tests run. */
const LATER = (NOW + 864_000) * 1000
const idOf = (number: number) => `task_${String(number).padStart(32, '0')}`
const [DONE, FAILED, RUNNING] = [idOf(149), idOf(148), idOf(147)]

let filled: TestConsole
let empty: TestConsole

/** A store with tasks in every state: most are done, and one has never been sent. */
async function storeWithTasks(): Promise<string> {
  const store_url = `sqlite:${join(tmpdir(), `gatehouse-tasks-${process.pid}-${crypto.randomUUID()}.db`)}`
  const store = await openStore({ url: store_url })
  const add = async (number: number, change: TaskChange & { status: TaskStatus }, family = 'video-generation') => {
    const task_id = idOf(number)
    const submit_time = NOW - (150 - number) * 60
    const task = blankTask({
      task_id,
      token_id: 'tok_a',
      family: family as 'video-generation',
      model: family === '3d-generation' ? 'far/sculpt' : 'far/film',
      status: 'QUEUED',
      progress: 40,
      submit_time,
      request: { model: 'far/film', prompt: 'a boat' },
      base_url: 'http://gateway.test',
      provider: 'far',
      upstream_model: 'film',
      sent_at: submit_time + 1,
      sent_to: null,
      provider_key: null,
      call_options: null,
      trace: null,
      operation: { id: '1' },
      deadline_at: NOW + 7_200,
      due_ms: null,
    })
    await store.tasks.add({ task, callback: { callback_id: `evt_${number}`, url: 'https://127.0.0.1:9/hook?key=1' } })
    await store.tasks.save({ task_id, fence: 0 }, { due_ms: null, ...change })
  }
  for (let number = 0; number < 147; number++)
    await add(number, { status: 'SUCCESS', start_time: NOW - 100, finish_time: NOW, webhook_due_ms: LATER })
  await add(147, { status: 'IN_PROGRESS', progress: 60, start_time: NOW - 100 })
  await add(148, {
    status: 'FAILURE',
    fail_code: 'timeout',
    fail_reason: 'The task did not end before its deadline.',
    finish_time: NOW,
    webhook_due_ms: LATER,
  })
  await add(
    149,
    {
      status: 'SUCCESS',
      start_time: NOW - 50,
      finish_time: NOW,
      outputs: OUTPUTS.map((url, index) => ({ url, content_type: TYPES[index % 3] ?? '', bytes: 2_400_000 })),
      webhook_due_ms: LATER,
    },
    '3d-generation',
  )
  await store.close()
  return store_url
}

/** Addresses that a provider has chosen. */
const OUTPUTS = [
  'javascript:alert(1)',
  '//evil.example/a.png',
  '/\\evil.example/a.mp4',
  'data:text/html,<script>alert(1)</script>',
  'https://real.example@evil.example/a',
  'https://vendor.example/model.glb',
]
const TYPES = ['model/gltf-binary', 'image/png', 'video/mp4']

describeInBrowser('the tasks of the console', () => {
  beforeAll(async () => {
    filled = await openConsole({}, { store_url: await storeWithTasks() })
    empty = await openConsole()
  })
  afterAll(() => Promise.all([filled?.close(), empty?.close()]))

  it.each(['light', 'dark'] as const)('have no serious fault for axe in the %s scheme', async (scheme) => {
    const page = await filled.open('/tasks', { scheme })
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, `tasks-${scheme}`)
    await page.setViewportSize({ width: 1280, height: 900 })
    await page.getByRole('button', { name: 'Gallery' }).click()
    await page.locator('.gallery-card').first().waitFor()
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, `tasks-gallery-${scheme}`)
    for (const [name, id] of [
      ['running', RUNNING],
      ['failed', FAILED],
      ['done', DONE],
    ]) {
      await page.goto(`${filled.origin}/console/tasks/${id}`)
      await settled(page)
      expect(await axeFaults(page)).toEqual([])
      await screenshots(page, `task-${name}-${scheme}`, [390, 1280])
    }
  })

  it('say what to do where there are none', async () => {
    const page = await empty.open('/tasks')
    await page.getByRole('heading', { name: 'No tasks yet' }).waitFor()
    expect(await axeFaults(page)).toEqual([])
  })

  it('are filtered by state, and opened by keyboard', async () => {
    const page = await filled.open('/tasks')
    await page.getByRole('combobox', { name: 'State' }).click()
    await page.getByRole('option', { name: 'In flight' }).click()
    await page.waitForURL('**/tasks?status=unfinished')
    await page.getByText('1 task, 1 in flight').waitFor()
    await page.locator('section.table-scroll').focus()
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.waitForURL(`**/tasks/${RUNNING}?status=unfinished`)
    await settled(page)
    await page.keyboard.press('Escape')
    await page.waitForURL('**/tasks?status=unfinished')
  })

  it('are filtered by kind, and lead to the next and the previous of the same filter', async () => {
    const page = await filled.open('/tasks')
    await page.getByRole('combobox', { name: 'Kind' }).click()
    await page.getByRole('option', { name: '3D model' }).click()
    await page.waitForURL('**/tasks?kind=3d')
    await page.getByText('1 task', { exact: true }).waitFor()
    await page.goto(`${filled.origin}/console/tasks/${RUNNING}?kind=video&status=IN_PROGRESS,FAILURE`)
    const neighbors = page.getByRole('navigation', { name: 'Tasks beside this one' })
    await neighbors.getByRole('link', { name: 'Previous' }).click()
    await page.waitForURL(
      ({ pathname, searchParams }) => pathname.endsWith(FAILED) && searchParams.get('kind') === 'video',
    )
    await neighbors.getByText('Previous').and(page.locator('[aria-disabled]')).waitFor()
    await page.keyboard.press('j')
    await page.waitForURL(({ pathname }) => pathname.endsWith(RUNNING))
    await page.keyboard.press('Escape')
    await page.getByText('2 tasks, 1 in flight').waitFor()
  })

  it('are read again to the same length after a reload', async () => {
    const page = await filled.open('/tasks')
    await page.getByRole('button', { name: 'Load more' }).click()
    await page.waitForURL('**/tasks?pages=2')
    await page.getByText('150 tasks, 1 in flight').waitFor()
    await page.reload()
    await page.getByText('150 tasks, 1 in flight').waitFor()
  })

  it('are canceled after a question, which the audit log records', async () => {
    const page = await filled.open(`/tasks/${RUNNING}`)
    await page.getByRole('button', { name: 'Cancel task' }).click()
    const dialog = page.getByRole('alertdialog')
    await dialog.getByText('far may still finish it and charge for it').waitFor()
    expect(await axeFaults(page)).toEqual([])
    await dialog.getByRole('button', { name: 'Cancel', exact: true }).click()
    await dialog.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Cancel task' }).click()
    await dialog.getByRole('button', { name: 'Cancel task' }).click()
    await page.getByText('The task is canceled at its next step').waitFor()
    await page
      .getByText('It was asked to be canceled')
      .or(page.getByText('canceled', { exact: true }))
      .first()
      .waitFor()
    const { data } = await filled.admin<{ data: { action: string; object_id: string }[] }>('/audit')
    expect(data.find(({ action }) => action === 'task.cancel')?.object_id).toBe(RUNNING)
  })

  it('are resumed in a dialog, which shows what the gateway refuses', async () => {
    const page = await filled.open(`/tasks/${FAILED}`, { allowed: /resume 400/ })
    await page.getByRole('button', { name: 'Resume' }).click()
    await page.getByLabel('New deadline in hours').fill('3')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').getByText('it takes no deadline').waitFor()
    await cleared(page.getByLabel('New deadline in hours'))
    await page.keyboard.press('Enter')
    await page.getByText('The next step of the task is due now').waitFor()
  })

  it('have their webhook delivered again after a question', async () => {
    const page = await filled.open(`/tasks/${DONE}`)
    await page.getByRole('button', { name: 'Deliver again' }).click()
    const dialog = page.getByRole('alertdialog')
    await dialog.getByText('https://127.0.0.1:9/hook?...').waitFor()
    await dialog.getByRole('button', { name: 'Deliver again' }).click()
    await page.getByText('The webhook is sent again now').waitFor()
  })

  it('show outputs to who may read contents, and link no address that is a script', async () => {
    const page = await filled.open(`/tasks/${DONE}`)
    const [response] = await Promise.all([
      page.waitForResponse(/outputs$/),
      page.getByRole('button', { name: 'Show outputs' }).click(),
    ])
    expect((await response.json()).outputs).toHaveLength(OUTPUTS.length)
    await settled(page)
    const links = page.locator('main a:not([href^="/console"])')
    await expectSoon(() => links.evaluateAll((all) => all.map((one) => one.getAttribute('href'))), [OUTPUTS[5]])
    // The page reports a request to another host as a fault.
    expect(await page.locator('main :is(img, video)').count()).toBe(0)
    const { data } = await filled.admin<{ data: { action: string }[] }>('/audit')
    expect(data.some(({ action }) => action === 'task.read_outputs')).toBe(true)
    const viewer = await filled.open(`/tasks/${DONE}`, { role: 'viewer' })
    expect(await viewer.getByRole('button', { name: /Show outputs|Cancel|Resume|Deliver/ }).count()).toBe(0)
  })

  it('show what a finished task has generated, in the gallery and on its page', async () => {
    const order = { model: 'sandbox/text-to-video', prompt: 'a boat\n@sandbox quick=1', duration: 4 }
    const response = await empty.port.gateway.call('/v1/video/generations', { json: order })
    const { data } = (await response.json()) as { data: { task_id: string } }
    const page = await empty.open(`/tasks/${data.task_id}`)
    await page.getByRole('button', { name: 'Show outputs' }).click()
    await page.locator('video').waitFor()
    await page.waitForFunction(() => (document.querySelector('video')?.readyState ?? 0) >= 2)
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, 'task-video', [1280])
    await page.goto(`${empty.origin}/console/tasks?view=gallery`)
    await page.getByLabel('Show outputs').check()
    await page.waitForFunction(() => (document.querySelector('video')?.readyState ?? 0) >= 2)
    await screenshots(page, 'tasks-gallery-video', [1280])
  })
})
