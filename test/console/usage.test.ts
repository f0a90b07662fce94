/** Use and cost in the console: split, sorted, exported, with the forecast of budgets. */
import { afterAll, beforeAll, expect, it } from 'bun:test'
import { describeInBrowser } from './support/chromium.ts'
import { axeFaults, screenshots, settled, type TestConsole } from './support/console.ts'
import { openDay } from './support/day.ts'
import { expectSoon } from './support/soon.ts'

let opened: TestConsole

describeInBrowser('use and cost in the console', () => {
  beforeAll(async () => {
    opened = await openDay()
  })
  afterAll(() => opened?.close())

  it.each(['light', 'dark'] as const)('has no serious fault for axe, %s', async (scheme) => {
    const page = await opened.open('/usage?range=24h', { scheme, height: 1400 })
    await page.locator('.uplot').waitFor()
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, `usage-${scheme}`)
    const narrow = await opened.open('/usage?range=24h', { scheme, width: 390, height: 844 })
    expect(await narrow.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true)
  })

  it('splits by what is chosen, in the address, and leads to the rows behind a number', async () => {
    const page = await opened.open('/usage?range=24h')
    await page.getByRole('combobox', { name: 'By' }).click()
    await page.getByRole('option', { name: 'Model' }).click()
    await page.waitForURL('**by=model*')
    await settled(page)
    const large = page.getByRole('row', { name: /team\/large/ })
    expect(await large.getByRole('link').first().getAttribute('href')).toBe('/console/models/team/large')
    expect(await large.getByRole('link').nth(1).getAttribute('href')).toContain('/console/requests?model=team%2Flarge')
    expect(await large.getByRole('link').nth(2).getAttribute('href')).toContain('model=team%2Flarge&error=any')
    await page.getByRole('button', { name: 'Calls' }).click()
    await page.waitForURL('**sort=-calls*')
    const calls = async () =>
      (await page.locator('tbody tr td:nth-child(2)').allTextContents()).map((text) => Number(text))
    const isSorted = async () => {
      const now = await calls()
      return now.length > 1 && now.every((one, index) => one <= (now[index - 1] ?? one))
    }
    await expectSoon(isSorted, true)
    await page.goBack()
    await page.getByRole('button', { name: 'Show table' }).waitFor()
  })

  it('adds up to what the summary says in all', async () => {
    const { total } = await opened.admin<{ total: { calls: number } }>('/summary?by=none&step=day')
    const page = await opened.open('/usage?range=7d&by=project')
    const shown = () => page.locator('tbody tr td:nth-child(2)').allTextContents()
    const sum = async () => (await shown()).reduce((sum, text) => sum + Number(text.replaceAll(',', '')), 0)
    await expectSoon(sum, total.calls)
  })

  it('says whether the ledger adds up, when it is asked', async () => {
    const page = await opened.open('/usage?range=7d')
    const [checked] = await Promise.all([
      page.waitForResponse((response) => response.url().includes('/ledger/reconcile')),
      page.getByRole('button', { name: 'Check the ledger' }).click(),
    ])
    expect((await checked.json()).difference).toBe(0)
    await page.getByText('adds up').waitFor()
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, 'usage-ledger', [390, 1280])
    const difference = {
      what: 'day',
      at: 1_767_225_600,
      of: ['tok_1', '', '<img src=x onerror=alert(1)>'],
      count: 'requests',
      difference: '-1',
    }
    await page.route('**/ledger/reconcile**', async (route) =>
      route.fulfill({ json: { ...(await checked.json()), difference: 1, differences: [difference] } }),
    )
    await page.getByRole('button', { name: 'Check the ledger' }).click()
    await page.getByText('1 sum differs').waitFor()
    expect(await page.locator('main img').count()).toBe(0)
    await screenshots(page, 'usage-ledger-differs', [390, 1280])
  })

  it('covers last week from Monday to Sunday', async () => {
    const page = await opened.open('/usage')
    const [asked] = await Promise.all([
      page.waitForRequest((request) => request.url().includes('/summary') && request.url().includes('points=false')),
      (async () => {
        await page.getByRole('combobox', { name: 'Time' }).click()
        await page.getByRole('option', { name: 'Last week' }).click()
        await page.waitForURL('**range=last-week*')
      })(),
    ])
    expect(asked.url()).toContain('/summary')
    await settled(page)
    await screenshots(page, 'usage-last-week', [1280])
  })

  it('is exported as CSV of the ledger', async () => {
    const page = await opened.open('/usage?range=7d&by=model')
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Export CSV' }).click(),
    ])
    expect(download.suggestedFilename()).toBe('usage-by-model.csv')
    const text = await Bun.file(await download.path()).text()
    expect(text.split('\n')[0]).toContain('model')
    expect(text).toContain('team/large')
  })

  it('says what to do where there were no calls', async () => {
    const page = await opened.open('/usage?range=custom&from=1000000&to=1086400')
    await page.getByText('There were no calls in this range').waitFor()
    await screenshots(page, 'usage-empty', [1280])
  })

  it('says where a budget will stand at the end of its window', async () => {
    const page = await opened.open('/models')
    const now = Math.floor(Date.now() / 1000)
    const budget = { scope: 'project:a', project_id: 'a', window: 'month', soft: false, credit: 0, held: 0, amount: 10 }
    // So long that the time the test takes changes no cent.
    const window = { window_start: now - 50_000_000, window_end: now + 50_000_000 }
    const data = [
      { ...budget, ...window, budget: 'project:a/month/UTC/0', owner: 'the project "calm"', used: 2 },
      { ...budget, ...window, budget: 'project:b/month/UTC/0', owner: 'the project "busy"', used: 9 },
    ]
    await page.route('**/admin/v1/budgets*', (route) => route.fulfill({ json: { data, next_cursor: null } }))
    await page.getByRole('link', { name: 'Usage and cost' }).click()
    const rows = page.locator('.usage-forecasts li')
    await expectSoon(
      () => rows.allTextContents(),
      [
        expect.stringMatching(/^the project "busy"used up .*\$18\.00 of \$10\.00$/),
        expect.stringMatching(/^the project "calm"\$4\.00 of \$10\.00$/),
      ],
    )
  })
})
