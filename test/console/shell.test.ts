/** The frame of the console in real Chromium: its pages, the palette, the login, colours, widths. */
import { afterAll, beforeAll, expect, it } from 'bun:test'
import { OWNER } from '../kit/admin.ts'
import { describeInBrowser } from './support/chromium.ts'
import { axeFaults, openConsole, screenshots, type TestConsole } from './support/console.ts'
import { expectSoon } from './support/soon.ts'

let opened: TestConsole

describeInBrowser('the console', () => {
  beforeAll(async () => {
    opened = await openConsole()
  })
  afterAll(() => opened?.close())

  it.each(['light', 'dark'] as const)('has no serious fault for axe in the %s scheme', async (scheme) => {
    const page = await opened.open('/models', { scheme })
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, `models-${scheme}`)
  })

  it('has one heading, one main and a link that skips the navigation', async () => {
    const page = await opened.open('/models')
    await expectSoon(() => page.locator('h1').allTextContents(), ['Models'])
    expect(await page.locator('main').count()).toBe(1)
    await page.keyboard.press('Tab')
    await expectSoon(() => page.evaluate(() => document.activeElement?.textContent), 'Skip to the content')
    await page.keyboard.press('Enter')
    await expectSoon(() => page.evaluate(() => document.activeElement?.id), 'content')
  })

  it('finds pages and models by Ctrl-K and opens them by keyboard', async () => {
    const page = await opened.open('/')
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: /^Find/ }).fill('sandbox/gen')
    await page.getByRole('option', { name: /sandbox\/general/ }).waitFor()
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, 'palette', [1280])
    await page.keyboard.press('Enter')
    await page.waitForURL('**/console/models/sandbox/general')
    await page.getByRole('heading', { level: 1, name: 'sandbox/general' }).waitFor()
  })

  it('opens its navigation from a button on a narrow screen, and closes it with the page', async () => {
    const page = await opened.open('/', { width: 390, height: 844 })
    expect(await page.locator('.side').isVisible()).toBe(false)
    await page.getByRole('button', { name: 'Open the navigation' }).click()
    await page.getByRole('dialog').getByRole('link', { name: 'Models' }).click()
    await page.waitForURL('**/console/models')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await expectSoon(() => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true)
  })

  it('asks nobody in particular to log in', async () => {
    const page = await opened.open('/models', { role: 'nobody', allowed: /login 40[01]|me 401/ })
    await page.getByRole('heading', { level: 1, name: 'Log in' }).waitFor()
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, 'login', [390, 1280])
    await page.getByLabel('Admin token').fill('wrong')
    await page.getByRole('button', { name: 'Log in' }).click()
    await page.getByRole('alert').waitFor()
  })

  it.each(['click', 'keyboard'] as const)('logs in by a link that is opened, after a %s', async (way) => {
    const { link } = await opened.admin<{ link: string }>('/login-links', { json: { name: 'Ada', role: 'viewer' } })
    expect(link).toStartWith(`${opened.origin}/console#ghl-`)
    const path = link.slice(`${opened.origin}/console`.length)
    const page = await opened.open(path, { role: 'nobody', allowed: /me 401/ })
    expect(await page.evaluate(() => location.href)).toBe(`${opened.origin}/console`)
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, 'login-link', [390, 1280])
    const button = page.getByRole('button', { name: 'Log in', exact: true })
    if (way === 'click') await button.click()
    else await button.press('Enter')
    await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor()
    const again = await opened.open(path, { role: 'nobody', allowed: /me 401|login 401/ })
    await again.getByRole('button', { name: 'Log in', exact: true }).click()
    await again.getByRole('alert').waitFor()
    await again.getByRole('button', { name: 'Go on without the link' }).click()
    await again.getByLabel('Admin token').waitFor()
    // Into the address of the open page: nothing is loaded then.
    await again.evaluate((hash) => {
      location.hash = hash
    }, path)
    await again.getByText('It works once.').waitFor()
    expect(await again.evaluate(() => location.href)).toBe(`${opened.origin}/console`)
  })

  it('asks who has lost the session to log in over the page, and goes on with all that was typed', async () => {
    const page = await opened.open('/models?view=table', { role: 'operator', allowed: /\b401$/ })
    await page.getByRole('searchbox', { name: 'Find a model' }).fill('sandbox/g')
    await page.getByRole('link', { name: 'sandbox/general' }).waitFor()
    await page.getByRole('button', { name: 'Find a page' }).click()
    const palette = page.getByRole('combobox', { name: /^Find/ })
    await palette.waitFor()
    const { data } = await opened.admin<{ data: { session_id: string; role: string }[] }>('/sessions')
    const { session_id } = data.find(({ role }) => role === 'operator') ?? {}
    await opened.admin(`/sessions/${session_id}`, { method: 'DELETE' })
    await palette.fill('sandbox')
    const dialog = page.getByRole('dialog', { name: 'Log in again' })
    await dialog.waitFor()
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, 'login-again', [390, 1280])
    await dialog.getByLabel('Admin token').fill(OWNER)
    await page.keyboard.press('Enter')
    await dialog.waitFor({ state: 'detached' })
    // The call that had to wait is made again, and what was typed is still there.
    await page.getByRole('option', { name: /sandbox\/general/ }).waitFor()
    await page.keyboard.press('Escape')
    expect(await page.getByRole('searchbox', { name: 'Find a model' }).inputValue()).toBe('sandbox/g')
  })

  it('keeps the chosen colours', async () => {
    const page = await opened.open('/')
    await page.getByRole('button', { name: 'Colours' }).click()
    await page.getByRole('menuitem', { name: 'Dark' }).click()
    await page.reload()
    await expectSoon(() => page.evaluate(() => document.documentElement.dataset.theme), 'dark')
  })

  it('says of an address without a page that there is none', async () => {
    const page = await opened.open('/no/such/page')
    await page.getByRole('heading', { level: 1, name: 'There is no such page' }).waitFor()
  })
})
