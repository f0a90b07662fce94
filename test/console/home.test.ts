/** The home page of the console: first steps, figures, charts, what stands out; for the operator and for a project. */
import { afterAll, beforeAll, expect, it } from 'bun:test'
import { describeInBrowser } from './support/chromium.ts'
import { axeFaults, openConsole, screenshots, type TestConsole } from './support/console.ts'
import { expectSoon } from './support/soon.ts'

let opened: TestConsole
let project_id: string

describeInBrowser('the home page of the console', () => {
  beforeAll(async () => {
    opened = await openConsole({
      providers: { acme: { base_url: 'http://127.0.0.1:9/v1', key: 'key' } },
      models: { 'acme/model': { prices: { input: 1, output: 4 } } },
    })
    ;({ project_id } = await opened.admin<{ project_id: string }>('/projects', { json: { name: 'Search' } }))
  })
  afterAll(() => opened?.close())

  it('leads a new gateway to its first call, made by a button', async () => {
    const page = await opened.open('/')
    await page.getByRole('heading', { name: 'First steps' }).waitFor()
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, 'home-empty')
    await page.getByRole('button', { name: 'Make a call' }).click()
    await page.getByText('sandbox/general', { exact: true }).first().waitFor()
    await opened.recorded(1)
    await page.reload()
    await page.locator('.stats').waitFor()
    await page.getByRole('heading', { name: 'First steps' }).waitFor({ state: 'detached' })
  })

  it.each(['light', 'dark'] as const)('shows what was called, without a serious fault for axe, %s', async (scheme) => {
    if (scheme === 'light') {
      for (let call = 0; call < 12; call++) await opened.chat()
      for (let call = 0; call < 2; call++) await opened.chat({ model: 'acme/model' })
      await opened.recorded(15)
    }
    const page = await opened.open('/?range=1h', { scheme })
    await page.locator('.uplot').nth(3).waitFor()
    await expectSoon(() => page.locator('.stats').textContent(), expect.stringContaining('Calls15'))
    const models = page.getByRole('list', { name: 'Calls of models' })
    await expectSoon(() => models.textContent(), expect.stringContaining('sandbox/general13 calls'))
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, `home-${scheme}`)
    await page.setViewportSize({ width: 1280, height: 900 })
    await page.getByRole('button', { name: 'Show table' }).first().click()
    expect(await axeFaults(page)).toEqual([])
  })

  it('has the open alerts above everything else', async () => {
    const json = { name: 'poor', budgets: [{ amount: 0.000001, window: 'total' }] }
    const { secret } = await opened.admin<{ secret: string }>('/tokens', { json })
    await opened.chat({ model: 'acme/model', max_tokens: 1000 }, secret)
    await expectSoon(async () => (await opened.admin<{ data: object[] }>('/alerts?state=open')).data.length > 0, true)
    const page = await opened.open('/')
    await page.getByRole('heading', { name: '1 open alert' }).waitFor()
    await expectSoon(() => page.locator('main').textContent(), expect.stringContaining('budget refusing'))
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, 'home-alert', [390, 1280])
  })

  it('keeps the range in the address', async () => {
    const page = await opened.open('/')
    await page.getByRole('combobox', { name: 'Time' }).click()
    await page.getByRole('option', { name: 'Last 7 days' }).click()
    await page.waitForURL('**range=7d*')
    await page.getByRole('combobox', { name: 'Time' }).click()
    await page.getByRole('option', { name: 'Other range…' }).click()
    await page.getByLabel('From').fill('2026-01-01T00:00')
    await page.getByLabel('To').fill('2026-01-03T00:00')
    await page.getByRole('button', { name: 'Show', exact: true }).click()
    await page.waitForURL('**range=custom*')
    await page.goBack()
    await page.waitForURL('**range=7d*')
  })

  it.each(['project_admin', 'project_member'] as const)('is of their project for a %s', async (role) => {
    const page = await opened.open('/', { role, project_id })
    await expectSoon(() => page.locator('.stats').textContent(), expect.stringContaining('Calls0'))
    expect(await page.getByRole('heading', { name: 'Providers' }).count()).toBe(0)
  })
})
