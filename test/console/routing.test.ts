/** The explanation of a route in the console. */
import { afterAll, beforeAll, expect, it } from 'bun:test'
import { describeInBrowser } from './support/chromium.ts'
import { axeFaults, openConsole, screenshots, type TestConsole } from './support/console.ts'
import { expectSoon } from './support/soon.ts'

let opened: TestConsole

describeInBrowser('routing in the console', () => {
  beforeAll(async () => {
    opened = await openConsole({
      providers: { acme: { base_url: 'http://127.0.0.1:9/v1', key: 'key' } },
      models: {
        'team/large': {
          targets: [
            { provider: 'sandbox', model: 'general', priority: 1 },
            { provider: 'acme', model: 'large', priority: 2 },
          ],
        },
      },
    })
  })
  afterAll(() => opened?.close())

  it('is explained for a request, by keyboard, in the order in which targets are tried', async () => {
    const page = await opened.open('/routing')
    await page.getByRole('combobox', { name: 'Model' }).focus()
    await page.keyboard.type('team/la')
    await page.getByRole('option', { name: 'team/large' }).waitFor()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.waitForURL('**model=team*')
    await page.getByLabel('Body').fill('{"messages": [{"role": "user", "content": "Hello"}]}')
    await page.getByRole('button', { name: 'Explain' }).click()
    await page.getByRole('region', { name: 'Targets' }).waitFor()
    const rows = () => page.locator('tbody tr').allTextContents()
    await expectSoon(rows, [expect.stringContaining('sandbox'), expect.stringContaining('acme')])
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, 'explained', [390, 1280])
  })

  it('says of a body that is not JSON what is wrong with it, and makes no request', async () => {
    const page = await opened.open('/routing?model=team/large')
    await page.getByLabel('Body').fill('{"messages": ')
    await page.getByRole('button', { name: 'Explain' }).click()
    await page.getByText(/The body is not JSON/).waitFor()
    await page.getByLabel('Body').fill('[]')
    await page.getByRole('button', { name: 'Explain' }).click()
    await page.getByText('The body must be a JSON object.').waitFor()
    expect(await page.getByRole('region', { name: 'Targets' }).count()).toBe(0)
  })
})
