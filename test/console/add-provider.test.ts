/** A provider is added in the console by a form, and one more key to a provider: tested, compared, written. */
import { afterAll, beforeAll, expect, it } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { describeInBrowser } from './support/chromium.ts'
import { axeFaults, openConsole, screenshots, type TestConsole } from './support/console.ts'

const SECRET = 'sk-typed-0123456789'
const MANY = 2_000

/** How it answers is the first part of the path. */
function startVendor() {
  return Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      const [, how] = new URL(request.url).pathname.split('/')
      if (how === 'refuses') return Response.json({ error: { message: 'no' } }, { status: 401 })
      if (how === 'page') return new Response('<h1>Welcome</h1>', { headers: { 'content-type': 'text/html' } })
      const count = how === 'many' ? MANY : 2
      const data = Array.from({ length: count }, (_, index) => ({
        id: `model-${index}`,
        object: 'model',
        owned_by: 'v',
      }))
      return Response.json({ object: 'list', data })
    },
  })
}

describeInBrowser('a provider in the console', () => {
  let opened: TestConsole
  let vendor: ReturnType<typeof startVendor>
  const root = mkdtempSync(join(tmpdir(), 'gatehouse-console-provider-'))
  const file = join(root, 'gatehouse.yaml')
  const address = (how: string) => `http://127.0.0.1:${vendor.port}/${how}/v1`
  beforeAll(async () => {
    vendor = startVendor()
    const data_dir = join(root, 'data')
    mkdirSync(data_dir)
    const acme = { base_url: address('two'), key: 'sk-present-0123456789' }
    writeFileSync(file, `# of the team\nproviders:\n  acme: { base_url: '${acme.base_url}', key: ${acme.key} }\n`)
    opened = await openConsole({ file, data_dir, providers: { acme } })
  })
  afterAll(async () => {
    await opened?.close()
    await vendor?.stop(true)
    rmSync(root, { recursive: true, force: true })
  })

  const status = (page: Page) => page.locator('main [role=status]').filter({ hasText: 'Result' })
  async function fill(page: Page, id: string, base_url: string): Promise<void> {
    await page.getByRole('button', { name: 'An address' }).click()
    await page.getByLabel('Address').fill(base_url)
    await page.getByLabel('Name', { exact: true }).fill(id)
    await page.getByLabel('API key').fill(SECRET)
  }

  it.each(['light', 'dark'] as const)('has a form without a serious fault for axe, %s', async (scheme) => {
    const page = await opened.open('/providers/new', { scheme })
    await page.getByRole('button', { name: 'Add a header' }).click()
    await page.getByLabel('Header 1', { exact: true }).waitFor()
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, `provider-new-${scheme}`)
  })

  it('is tested, compared and written, and the key is not shown again', async () => {
    const page = await opened.open('/providers')
    await page.getByRole('link', { name: 'Add a provider' }).click()
    await page.getByRole('heading', { name: 'Add a provider' }).waitFor()
    await fill(page, 'fresh', address('two'))
    await page.getByRole('button', { name: 'Test', exact: true }).click()
    await status(page).getByText('ok', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Show what would change' }).click()
    const yaml = page.getByRole('region', { name: 'configuration', exact: true })
    await yaml.getByText('discover: true').waitFor()
    expect(await yaml.textContent()).not.toContain(SECRET)
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, 'provider-new-compared')
    await page.getByRole('button', { name: 'Write it' }).click()
    await page
      .locator('.toasts')
      .getByText(/written/i)
      .waitFor()
    const written = readFileSync(file, 'utf8')
    expect(written).toStartWith('# of the team\n')
    expect(written).toContain(`key: ${SECRET}`)
    expect(await page.content()).not.toContain(SECRET)
  })

  it.each([
    ['refuses', /refuses the key/],
    ['page', /base_url/],
  ])('says what is wrong with a vendor that %s', async (how, expected) => {
    const page = await opened.open('/providers/new')
    await fill(page, 'wrong', address(how))
    await page.getByRole('button', { name: 'Test', exact: true }).press('Enter')
    await status(page).getByText('failed', { exact: true }).waitFor()
    expect(await status(page).textContent()).toMatch(expected)
  })

  it('offers some of 2,000 models, by keyboard', async () => {
    const page = await opened.open('/providers/new')
    await fill(page, 'many', address('many'))
    await page.getByRole('button', { name: 'Test', exact: true }).press('Enter')
    await page.getByRole('button', { name: 'Chosen ones' }).press('Enter')
    await page.getByText(`0 of ${MANY} chosen`).waitFor()
    await page.getByRole('searchbox', { name: 'Find a model' }).fill('model-1999')
    await page.getByRole('checkbox', { name: 'model-1999' }).press('Space')
    await page.getByText(`1 of ${MANY} chosen`).waitFor()
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, 'provider-new-models', [390, 1280])
    await page.getByRole('button', { name: 'Show what would change' }).press('Enter')
    const yaml = page.getByRole('region', { name: 'configuration', exact: true })
    await yaml.getByText('many/model-1999').waitFor()
    expect(await yaml.textContent()).not.toContain('discover')
  })

  it('gets one more key, which is tested alone', async () => {
    const page = await opened.open('/providers/acme')
    await page.getByRole('button', { name: 'Add a key' }).press('Enter')
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name of the key').fill('spare')
    await dialog.getByLabel('API key').fill(SECRET)
    await dialog.getByRole('button', { name: 'Test', exact: true }).click()
    await dialog.getByText('ok', { exact: true }).waitFor()
    await dialog.getByRole('button', { name: 'Show what would change' }).click()
    await dialog.getByRole('region', { name: 'configuration', exact: true }).getByText('name: spare').waitFor()
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, 'provider-key', [390, 1280])
    await dialog.getByRole('button', { name: 'Write it' }).click()
    await dialog.waitFor({ state: 'detached' })
    expect(readFileSync(file, 'utf8')).toContain(
      `keys: [{ name: "main", key: "sk-present-0123456789" }, { name: "spare", key: "${SECRET}" }]`,
    )
  })

  it('is added by owners only', async () => {
    const page = await opened.open('/providers', { role: 'operator' })
    expect(await page.getByRole('link', { name: 'Add a provider' }).count()).toBe(0)
  })
})
