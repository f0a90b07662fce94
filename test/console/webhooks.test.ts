/** Webhooks in the console: the list, one with its attempts, and a delivery that is made again. */
import { afterAll, beforeAll, expect, it } from 'bun:test'
import { describeInBrowser } from './support/chromium.ts'
import { axeFaults, openConsole, screenshots, type TestConsole } from './support/console.ts'
import { expectSoon } from './support/soon.ts'

const NOW = Math.floor(Date.now() / 1000)
const WEBHOOK = {
  object: 'webhook',
  webhook_id: 'evt_1',
  task_id: 'task_1',
  token_id: 'tok_1',
  project_id: null,
  url: 'https://shop.example/<img src=x onerror=alert(1)>',
  state: 'given_up',
  ended_at: NOW - 600,
  next_attempt_at: null,
  delivered_at: null,
  attempts: [
    { at_ms: (NOW - 500) * 1000, status: 0, error: 'connection refused', took_ms: 12 },
    { at_ms: (NOW - 400) * 1000, status: 503, error: null, took_ms: 80 },
  ],
}

let opened: TestConsole

/** With one webhook, whatever the gateway has. */
async function openWith(path: string) {
  const page = await opened.open('/models')
  const posted: string[] = []
  await page.route('**/admin/v1/webhooks**', (route) => {
    const { pathname } = new URL(route.request().url())
    if (route.request().method() === 'POST') posted.push(pathname)
    return route.fulfill({ json: pathname.endsWith('/webhooks') ? { data: [WEBHOOK], next_cursor: null } : WEBHOOK })
  })
  await page.goto(`${opened.origin}/console${path}`)
  await page.getByText('given up').first().waitFor()
  return { page, posted }
}

describeInBrowser('webhooks in the console', () => {
  beforeAll(async () => {
    opened = await openConsole()
  })
  afterAll(() => opened?.close())

  it('say what to do where there is none', async () => {
    const page = await opened.open('/webhooks')
    await page.getByText('There is no webhook yet').waitFor()
    expect(await axeFaults(page)).toEqual([])
  })

  it('are listed, and opened by keyboard', async () => {
    const { page } = await openWith('/webhooks')
    expect(await axeFaults(page)).toEqual([])
    expect(await page.locator('main img').count()).toBe(0)
    await screenshots(page, 'webhooks', [390, 1280])
    await page.getByRole('region', { name: 'Webhooks' }).focus()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/webhooks/evt_1')
  })

  it('show each attempt, and are delivered again', async () => {
    const { page, posted } = await openWith('/webhooks/evt_1')
    await page.getByRole('region', { name: 'Attempts' }).waitFor()
    const rows = () => page.locator('tbody tr').allTextContents()
    await expectSoon(rows, [expect.stringContaining('connection refused'), expect.stringContaining('503')])
    expect(await axeFaults(page)).toEqual([])
    await page.getByRole('button', { name: 'Deliver again' }).click()
    await page.locator('.toasts').getByText('It is sent again').waitFor()
    expect(posted).toEqual(['/admin/v1/webhooks/evt_1/redeliver'])
  })
})
