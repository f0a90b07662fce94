/** The page of the response cache: its size, what it has answered, and its purge. */
import { afterAll, beforeAll, expect, it } from 'bun:test'
import { describeInBrowser } from './support/chromium.ts'
import { axeFaults, openConsole, screenshots, type TestConsole } from './support/console.ts'
import { expectSoon } from './support/soon.ts'

let opened: TestConsole

describeInBrowser('the cache in the console', () => {
  beforeAll(async () => {
    opened = await openConsole({
      models: { 'team/cached': { targets: [{ provider: 'sandbox', model: 'general' }], cache: { requests: 'all' } } },
    })
    for (let count = 0; count < 2; count++) await (await opened.chat({ model: 'team/cached', max_tokens: 5 })).text()
    await opened.recorded(2)
  })
  afterAll(() => opened?.close())

  it.each(['light', 'dark'] as const)('shows its size, and has no serious fault for axe, %s', async (scheme) => {
    const page = await opened.open('/cache', { scheme })
    const facts = () => page.locator('.facts dd').allTextContents()
    await expectSoon(async () => (await facts())[1], '1')
    expect((await facts())[0]).toContain('the memory of the process')
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, `cache-${scheme}`)
  })

  it('is purged of one model by keyboard, after it says what that costs', async () => {
    const page = await opened.open('/cache')
    await page.getByRole('button', { name: 'Purge' }).focus()
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('alertdialog').or(page.getByRole('dialog'))
    await dialog.getByText('calls its provider again').waitFor()
    await dialog.getByRole('combobox', { name: 'Model' }).fill('team/cached')
    await page.getByRole('option', { name: 'team/cached' }).click()
    await dialog.getByText('Purge the cached responses of team/cached?').waitFor()
    await screenshots(page, 'cache-purge', [390, 1280])
    const [purged] = await Promise.all([
      page.waitForResponse((response) => response.url().endsWith('/cache/purge')),
      dialog.getByRole('button', { name: 'Purge' }).click(),
    ])
    expect(await purged.json()).toEqual({ model: 'team/cached', project_id: null, entries: 1 })
    await expectSoon(async () => (await page.locator('.facts dd').allTextContents())[1], '0')
  })
  it('is purged of one project, in place of a model', async () => {
    const { project_id } = await opened.admin<{ project_id: string }>('/projects', { json: { name: 'Shop' } })
    const { secret } = await opened.admin<{ secret: string }>('/tokens', { json: { name: 'till', project_id } })
    for (const token of [secret, undefined])
      await (await opened.chat({ model: 'team/cached', max_tokens: 7 }, token)).text()
    const page = await opened.open('/cache')
    await page.getByRole('button', { name: 'Purge' }).click()
    const dialog = page.getByRole('alertdialog').or(page.getByRole('dialog'))
    await dialog.getByRole('combobox', { name: 'Project' }).fill('sho')
    await page.getByRole('option', { name: 'Shop' }).click()
    await dialog.getByText('Purge the cached responses to Shop?').waitFor()
    await screenshots(page, 'cache-purge-project', [390, 1280])
    const [purged] = await Promise.all([
      page.waitForResponse((response) => response.url().endsWith('/cache/purge')),
      dialog.getByRole('button', { name: 'Purge' }).click(),
    ])
    expect(await purged.json()).toEqual({ model: null, project_id, entries: 1 })
  })
})
