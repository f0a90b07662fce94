/** The manual beside a page of the console: the page that fits, its links, and that every page has one. */
import { afterAll, beforeAll, describe, expect, it } from 'bun:test'
import { pages } from '../../console/src/pages/pages.ts'
import { MANUAL_PAGES, manualPageOf } from '../../console/src/shell/manual-pages.ts'
import { loadManual } from '../../src/site/manual/load-manual.ts'
import { manualPath } from '../kit/manual.ts'
import { describeInBrowser } from './support/chromium.ts'
import { axeFaults, openConsole, screenshots, type TestConsole } from './support/console.ts'

describe('the pages of the manual for the console', () => {
  it('exist', () => {
    for (const name of Object.values(MANUAL_PAGES)) expect(manualPath(`${name}.md`)).toEndWith(`${name}.md`)
  })

  it.each(pages.filter(({ nav }) => nav).map(({ path }) => path))('have one for %s', (path) => {
    expect(Object.keys(MANUAL_PAGES)).toContain(path)
    expect(manualPageOf(`${path}/one/other`)).toBe(MANUAL_PAGES[path] ?? '')
  })
})

describeInBrowser('the manual beside a page', () => {
  let opened: TestConsole
  beforeAll(async () => {
    opened = await openConsole({}, { manual: loadManual })
  })
  afterAll(() => opened?.close())

  it.each(['light', 'dark'] as const)('opens by keyboard, follows links and pages, and closes, %s', async (scheme) => {
    const page = await opened.open('/tokens', { scheme })
    const help = page.getByRole('button', { name: 'Help' })
    const manual = page.getByRole('complementary', { name: 'Manual' })
    await help.focus()
    await page.keyboard.press('Enter')
    await manual.getByRole('heading', { name: 'Tokens', exact: true }).waitFor()
    expect(await page.locator('h1').count()).toBe(1)
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, `manual-${scheme}`)
    await page.setViewportSize({ width: 1280, height: 900 })
    await page.getByRole('link', { name: 'Projects', exact: true }).click()
    await manual.getByRole('heading', { name: 'Projects and end users' }).waitFor()
    await manual.locator('.manual-link').first().click()
    await manual.getByRole('heading', { name: 'Projects and end users' }).waitFor({ state: 'detached' })
    await manual.getByRole('heading').first().waitFor()
    await manual.focus()
    await page.keyboard.press('Escape')
    await manual.waitFor({ state: 'detached' })
    expect(await help.evaluate((button) => button === document.activeElement)).toBe(true)
  })

  it('has pictures of this gateway only, and no script or style of the page', async () => {
    const page = await opened.open('/playground')
    await page.getByRole('button', { name: 'Help' }).click()
    const manual = page.getByRole('complementary', { name: 'Manual' })
    await manual.locator('img').first().waitFor()
    const sources = await manual.locator('img').evaluateAll((all) => all.map((one) => one.getAttribute('src')))
    expect(sources.filter((source) => !source?.startsWith('/manual/images/'))).toEqual([])
    expect(await manual.locator('script, style, form, iframe').count()).toBe(0)
  })
})
