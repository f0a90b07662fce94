/** The alerts and the configuration in the console. */
import { afterAll, beforeAll, expect, it } from 'bun:test'
import { describeInBrowser } from './support/chromium.ts'
import { axeFaults, openConsole, screenshots, settled, type TestConsole } from './support/console.ts'
import { expectSoon } from './support/soon.ts'

let opened: TestConsole

describeInBrowser('the alerts and the configuration in the console', () => {
  beforeAll(async () => {
    opened = await openConsole({ models: { 'sandbox/general': { prices: { input: 1, output: 4 } } } })
    const json = { name: 'poor', budgets: [{ amount: 0.000001, window: 'total' }] }
    const { secret } = await opened.admin<{ secret: string }>('/tokens', { json })
    await (await opened.chat({ max_tokens: 1000 }, secret)).text()
    await expectSoon(async () => (await opened.admin<{ data: object[] }>('/alerts?state=open')).data.length > 0, true)
  })
  afterAll(() => opened?.close())

  it('closes an open alert, which is past from then on', async () => {
    const page = await opened.open('/alerts')
    await page.getByText('The budget of the token').waitFor()
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, 'alerts')
    await page.setViewportSize({ width: 1280, height: 900 })
    await page.getByRole('button', { name: 'Close budget.refusing' }).press('Enter')
    await page.getByText('No alert is open').waitFor()
    await page.getByRole('button', { name: 'Past', exact: true }).click()
    await page.waitForURL('**state=past*')
    await settled(page)
    await page.getByText('The budget of the token').waitFor()
  })

  it('shows a viewer alerts without the act', async () => {
    const page = await opened.open('/alerts?state=past', { role: 'viewer' })
    expect(await page.getByRole('button', { name: /^Close/ }).count()).toBe(0)
  })

  it('finds a setting by a part of its name, in the address', async () => {
    const page = await opened.open('/config')
    await page.getByRole('searchbox', { name: 'Find a setting' }).fill('session_hours')
    await page.waitForURL('**q=session_hours*')
    await expectSoon(() => page.locator('tbody tr').allTextContents(), [expect.stringContaining('admin.session_hours')])
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, 'config', [390, 1280])
  })
})
