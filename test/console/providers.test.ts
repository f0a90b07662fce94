/** The providers in the console: the list, one of them, its test, and out of service and back. */
import { afterAll, beforeAll, expect, it } from 'bun:test'
import { startVendor, type Vendor } from '../kit/vendor.ts'
import { describeInBrowser } from './support/chromium.ts'
import { axeFaults, openConsole, screenshots, type TestConsole } from './support/console.ts'

let opened: TestConsole
let vendor: Vendor

describeInBrowser('the providers in the console', () => {
  beforeAll(async () => {
    vendor = startVendor()
    opened = await openConsole({
      providers: {
        acme: {
          base_url: vendor.url,
          keys: [
            { key: 'first-key-0001', name: 'main' },
            { key: 'second-key-0002', name: 'spare' },
          ],
        },
        gone: { base_url: 'http://127.0.0.1:9/v1', key: 'third-key-0003' },
      },
      models: { 'acme/m': {}, 'gone/m': {} },
    })
    for (const model of ['acme/m', 'acme/m', 'gone/m']) await (await opened.chat({ model })).text()
    await opened.recorded(3)
  })
  afterAll(async () => {
    await opened?.close()
    await vendor?.stop()
  })

  it.each(['light', 'dark'] as const)(
    'have a page each, without a serious fault for axe and without keys, %s',
    async (scheme) => {
      const page = await opened.open('/providers/acme', { scheme })
      await page.locator('.uplot').nth(1).waitFor()
      expect(await axeFaults(page)).toEqual([])
      await page.getByRole('region', { name: 'Keys' }).getByText('spare').first().waitFor()
      expect(await page.locator('main').textContent()).not.toMatch(/(first|second)-key/)
      await screenshots(page, `provider-${scheme}`)
    },
  )

  it('are tested by a button', async () => {
    const page = await opened.open('/providers/gone')
    await page.getByRole('button', { name: 'Test', exact: true }).click()
    await page.getByText('failed', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Forget failures' }).click()
    await page.getByText(/starts? afresh/).waitFor()
    expect(await axeFaults(page)).toEqual([])
  })

  it('are taken out of service, which asks first, and put back, by keyboard', async () => {
    const page = await opened.open('/providers/acme')
    await page.getByRole('button', { name: 'Service of acme', exact: true }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('menuitem', { name: 'Drain' }).and(page.locator(':focus')).waitFor()
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('alertdialog')
    await dialog.getByText('2 calls in the last 24 hours').waitFor()
    expect(await axeFaults(page)).toEqual([])
    await dialog.getByRole('button', { name: 'Drain' }).press('Enter')
    await dialog.waitFor({ state: 'detached' })
    await page.locator('.page-head').getByText('drained').waitFor()
    expect(await opened.admin('/overrides/provider/acme')).toMatchObject({ state: 'drained' })
    await page.getByRole('button', { name: 'Service of acme', exact: true }).click()
    await page.getByRole('menuitem', { name: 'Put back into service' }).click()
    await page.locator('.page-head').getByText('in service').waitFor()
  })

  it('take one key out of service', async () => {
    const page = await opened.open('/providers/acme')
    await page.getByRole('button', { name: 'Service of acme#spare' }).click()
    await page.getByRole('menuitem', { name: 'Disable' }).click()
    await page.getByRole('alertdialog').getByRole('button', { name: 'Disable' }).click()
    await page.getByRole('region', { name: 'Keys' }).getByText('disabled').waitFor()
    const { data } = await opened.admin<{ data: object[] }>('/overrides')
    expect(data).toContainEqual(expect.objectContaining({ kind: 'key', name: 'acme#spare', state: 'disabled' }))
  })

  it('are shown to a viewer without acts', async () => {
    const page = await opened.open('/providers/acme', { role: 'viewer' })
    expect(await page.getByRole('button', { name: /^Service of/ }).count()).toBe(0)
    expect(await page.getByRole('button', { name: 'Test', exact: true }).count()).toBe(0)
  })
})
