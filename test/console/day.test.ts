/** The console of a gateway with a day of calls: its charts, and the pictures of the manual, which `npm run docs:pictures` makes. */
import { afterAll, beforeAll, expect, it } from 'bun:test'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { describeInBrowser } from './support/chromium.ts'
import { axeFaults, screenshots, settled, type TestConsole } from './support/console.ts'
import { openDay } from './support/day.ts'
import { expectSoon } from './support/soon.ts'

let opened: TestConsole

/** The repository stays small. */
const MAX_PICTURE_BYTES = 150_000

/** Asks both models, and waits for what both answers took. */
async function ask(page: Page): Promise<void> {
  await page.getByRole('textbox', { name: 'Message' }).fill('Hello')
  await page.keyboard.press('Enter')
  await page.locator('.figures').nth(1).waitFor()
}

describeInBrowser('the console after a day of calls', () => {
  beforeAll(async () => {
    opened = await openDay()
  })
  afterAll(() => opened?.close())

  it.each(['light', 'dark'] as const)('has a home page with charts, %s', async (scheme) => {
    const page = await opened.open('/', { scheme, height: 1200 })
    await page.locator('.uplot').nth(3).waitFor()
    const costs = page.getByRole('list', { name: 'Cost of projects' })
    await expectSoon(() => costs.textContent(), expect.stringContaining('Search$'))
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, `day-home-${scheme}`)
  })

  it.each([390, 1280])('fills each row of figures on a screen of %d pixels', async (width) => {
    const page = await opened.open('/', { width })
    const right = (selector: string) =>
      page.locator(selector).evaluate((element) => Math.round(element.getBoundingClientRect().right))
    expect((await right('.stats')) - (await right('.stat:last-child'))).toBeLessThanOrEqual(2)
  })

  it('says of a model who uses it', async () => {
    const page = await opened.open('/models/team/large', { height: 1200 })
    await page.locator('.uplot').waitFor()
    const usage = page.locator('section', { hasText: 'Who uses it' }).last()
    await expectSoon(() => usage.textContent(), expect.stringContaining('Support assistant'))
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, 'day-model', [1280])
  })

  it('makes the pictures of the manual', async () => {
    const pictures = process.env.GATEHOUSE_PICTURES
    const projects = await opened.admin<{ data: { project_id: string; name: string }[] }>('/projects')
    const project = projects.data.find(({ name }) => name === 'Search')?.project_id
    const failed = await opened.admin<{ data: { id: string }[] }>('/requests?model=backup/large&limit=1')
    const pages: Record<string, string> = {
      'console-home': '/',
      'console-samples': '/models/team/large?tab=samples',
      'console-providers': '/providers',
      'console-project': `/projects/${project}`,
      'console-request': `/requests/${failed.data[0]?.id}`,
      'console-playground': '/playground?model=sandbox/general,sandbox/compact&max_tokens=40',
    }
    for (const [name, path] of Object.entries(pages)) {
      const page = await opened.open(path, { width: 1280, height: 860 })
      if (name === 'console-home') await page.locator('.uplot').nth(3).waitFor()
      if (name === 'console-project') await page.locator('.uplot').first().waitFor()
      if (name === 'console-playground') await ask(page)
      if (pictures) await page.screenshot({ path: join(pictures, `${name}.png`) })
      const file = Bun.file(join(import.meta.dir, '../../docs/manual/images', `${name}.png`))
      expect([name, await file.exists(), file.size < MAX_PICTURE_BYTES]).toEqual([name, true, true])
    }
  })

  it('tells when the first page is painted on a processor that is four times slower', async () => {
    const page = await opened.open('/models')
    const session = await page.context().newCDPSession(page)
    await session.send('Emulation.setCPUThrottlingRate', { rate: 4 })
    await page.goto(`${opened.origin}/console`)
    await settled(page)
    const paints = () =>
      page.evaluate(() => performance.getEntriesByName('first-contentful-paint').map((one) => one.startTime))
    await expectSoon(paints, [expect.any(Number)])
    process.stderr.write(`first contentful paint with 4x CPU throttling: ${(await paints()).map(Math.round)} ms\n`)
  })
})
