/** The models in the console: cards, table, filters, one model with its samples and its life. */
import { afterAll, beforeAll, expect, it } from 'bun:test'
import { describeInBrowser } from './support/chromium.ts'
import { axeFaults, openConsole, screenshots, settled, type TestConsole } from './support/console.ts'
import { expectSoon } from './support/soon.ts'

const SOON = Math.floor(Date.now() / 1000) + 86_400 * 20
const NAME = 'acme/<img src=x onerror=alert(1)>'
let opened: TestConsole

describeInBrowser('the models in the console', () => {
  beforeAll(async () => {
    opened = await openConsole({
      providers: { acme: { base_url: 'http://127.0.0.1:9/v1', key: 'key' } },
      models: {
        'acme/old': {
          context_tokens: 128_000,
          limits: { max_tokens: { maximum: 8_192 } },
          prices: { input: 2.5, output: 10, cached_input: 0.25 },
          deprecated_at: SOON - 86_400 * 60,
          retired_at: SOON,
          replaced_by: 'acme/new',
        },
        'acme/new': { context_tokens: 1_000_000, prices: { input: 1, output: 4 } },
        [NAME]: {},
      },
    })
  })
  afterAll(() => opened?.close())

  it.each(['light', 'dark'] as const)('are cards and a table without a serious fault for axe, %s', async (scheme) => {
    const page = await opened.open('/models', { scheme })
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, `models-cards-${scheme}`)
    await page.setViewportSize({ width: 1280, height: 900 })
    await page.getByRole('button', { name: 'Table' }).click()
    await page.getByRole('table').waitFor()
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, `models-table-${scheme}`)
  })

  it('are filtered and sorted in the address', async () => {
    const page = await opened.open('/models?view=table')
    await page.getByRole('searchbox', { name: 'Find a model' }).fill('acme/')
    await page.waitForURL('**q=acme*')
    await page.getByRole('combobox', { name: 'Status' }).click()
    // The name of an option has its count.
    await page.getByRole('option', { name: 'active 2', exact: true }).waitFor()
    await page.getByRole('option', { name: 'retired 0', exact: true }).waitFor()
    expect(await axeFaults(page)).toEqual([])
    await page.getByRole('option', { name: 'deprecated 1', exact: true }).click()
    await page.waitForURL('**status=deprecated*')
    const names = () => page.locator('tbody .row-link').allTextContents()
    await expectSoon(names, ['acme/old'])
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await page.getByRole('button', { name: 'Context' }).click()
    await page.waitForURL('**sort=-context*')
    const first = async () => (await names())[0]
    await expectSoon(first, 'acme/new')
    await page.reload()
    await expectSoon(first, 'acme/new')
  })

  it('are opened from the table by keyboard', async () => {
    const page = await opened.open('/models?view=table&q=acme')
    await page.getByRole('region', { name: 'Models' }).focus()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/models/acme/new')
  })

  it.each(['light', 'dark'] as const)('have a page each without a serious fault for axe, %s', async (scheme) => {
    const page = await opened.open('/models/acme/old', { scheme })
    await page.getByRole('heading', { level: 1, name: 'acme/old' }).waitFor()
    await expectSoon(() => page.locator('main').textContent(), expect.stringContaining('Its successor is acme/new'))
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, `model-${scheme}`)
    await page.setViewportSize({ width: 1280, height: 900 })
    for (const tab of ['Samples', 'Targets']) {
      await page.getByRole('tab', { name: tab }).click()
      await page.waitForURL(`**tab=${tab.toLowerCase()}*`)
      await settled(page)
      expect(await axeFaults(page)).toEqual([])
      await screenshots(page, `model-${tab}-${scheme}`, [390, 1280])
      await page.setViewportSize({ width: 1280, height: 900 })
    }
  })

  it('show samples with the address of the gateway for each API and client', async () => {
    const page = await opened.open('/models/sandbox/general?tab=samples')
    const code = page.getByRole('region', { name: /sample$/ })
    const shows = (text: string) => expectSoon(() => code.textContent(), expect.stringContaining(text))
    await shows(`curl ${opened.origin}/v1/chat/completions`)
    await page.getByRole('combobox', { name: 'API' }).click()
    await page.getByRole('option', { name: 'Messages' }).click()
    await page.getByRole('button', { name: 'Claude Code' }).click()
    await shows(`ANTHROPIC_BASE_URL=${opened.origin}`)
    await shows('ANTHROPIC_MODEL=sandbox/general')
  })

  it('show what a configuration calls a model as text', async () => {
    const page = await opened.open('/models?q=onerror')
    await expectSoon(() => page.locator('.model-card').textContent(), expect.stringContaining(NAME))
    await page.locator('.model-card a').click()
    await expectSoon(() => page.locator('h1').textContent(), NAME)
  })

  it('say what is wrong with the address of a model that is not there', async () => {
    const page = await opened.open('/models/no/such', { allowed: / 404$/ })
    await page.getByRole('alert').getByText('There is no such thing').waitFor()
  })
})
