/**
 * Every page of the console's navigation: a heading, axe in both schemes, narrow screens, each role, and names that are
 * attacks. A page that is added to the table of pages is tested without another line.
 */
import { afterAll, beforeAll, describe, expect, it } from 'bun:test'
import type { Administrator } from '../../console/src/api/types.ts'
import { pages } from '../../console/src/pages/pages.ts'
import { describeInBrowser } from './support/chromium.ts'
import { axeFaults, openConsole, screenshots, settled, type TestConsole } from './support/console.ts'
import { openDay } from './support/day.ts'
import { PAYLOADS } from './support/payloads.ts'
import { expectSoon } from './support/soon.ts'
import type { ConsolePage } from './support/watched.ts'

const PATHS = pages.filter(({ path }) => !path.includes('$')).map(({ path, title }) => [path, title] as const)
const named = (path: string) => (path === '/' ? 'home' : path.slice(1).replaceAll('/', '-'))
const ROLES = ['owner', 'operator', 'viewer', 'project_admin', 'project_member'] as const

const overflow = (page: ConsolePage) =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)

describeInBrowser('every page of the console', () => {
  let opened: TestConsole
  let project_id: string
  beforeAll(async () => {
    opened = await openDay()
    const { data } = await opened.admin<{ data: { project_id: string }[] }>('/projects')
    project_id = data[0]?.project_id ?? ''
  })
  afterAll(() => opened?.close())

  describe.each(['light', 'dark'] as const)('in the %s scheme', (scheme) => {
    it.each(PATHS)('%s has one heading and no serious fault for axe', async (path) => {
      const page = await opened.open(path, { scheme })
      expect(await page.locator('h1').count()).toBe(1)
      expect(await page.locator('main').count()).toBe(1)
      expect(await axeFaults(page)).toEqual([])
      await screenshots(page, `page-${named(path)}-${scheme}`)
    })
  })

  it.each(PATHS)('%s fits a screen of 390 and one of 2560 pixels', async (path) => {
    const page = await opened.open(path, { width: 390, height: 844 })
    await expectSoon(() => overflow(page), 0)
    await page.setViewportSize({ width: 2560, height: 1300 })
    await expectSoon(() => overflow(page), 0)
  })

  it.each(ROLES)('those that the navigation shows a %s answer without an error', async (role) => {
    const page = await opened.open('/', { role, ...(role.startsWith('project_') && { project_id }) })
    const links = await page
      .locator('.side nav a')
      .evaluateAll((all) => all.map((one) => one.getAttribute('href') ?? ''))
    const me = await page.evaluate(async () => (await (await fetch('/admin/v1/me')).json()) as never)
    const shown = pages.filter(({ nav, isFor }) => nav && (!isFor || isFor(me as Administrator)))
    expect(links).toEqual(shown.map(({ path }) => `/console${path}`))
    for (const link of links) {
      await page.goto(opened.origin + link)
      await settled(page)
      expect([link, await page.getByText('You may not see this').count()]).toEqual([link, 0])
    }
  })
})

describeInBrowser('names that are attacks', () => {
  let opened: TestConsole
  beforeAll(async () => {
    const named = PAYLOADS.map((name) => [`team/${name}`, { targets: [{ provider: 'sandbox', model: 'general' }] }])
    opened = await openConsole({ models: Object.fromEntries(named) })
    for (const name of PAYLOADS) {
      const { project_id } = await opened.admin<{ project_id: string }>('/projects', { json: { name } })
      const { secret } = await opened.admin<{ secret: string }>('/tokens', { json: { name, project_id } })
      const metadata = { note: name.slice(0, 60) }
      await (await opened.chat({ model: `team/${name}`, user: name, metadata, max_tokens: 5 }, secret)).text()
      await (await opened.chat({ model: name, user: name }, secret)).text()
    }
    await opened.recorded(PAYLOADS.length)
  })
  afterAll(() => opened?.close())

  it.each(PATHS)('are text on %s', async (path) => {
    const page = await opened.open(path)
    expect(await page.evaluate(() => (window as { ran?: number }).ran)).toBeUndefined()
    // Nothing of them became an element.
    expect(await page.locator('main :is(script, iframe, object, marquee, math, [onerror], [onload])').count()).toBe(0)
  })

  it('are text in the palette', async () => {
    const page = await opened.open('/')
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: /^Find/ }).fill('onerror')
    await page
      .getByRole('option', { name: /onerror/ })
      .first()
      .waitFor()
    expect(await page.evaluate(() => (window as { ran?: number }).ran)).toBeUndefined()
  })
})
