/** First tasks of a new user by clicking alone: each takes less than ten clicks from the first page. */
import { afterAll, beforeAll, expect, it } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Locator, Page } from 'playwright-core'
import { describeInBrowser } from './support/chromium.ts'
import { openConsole, type TestConsole } from './support/console.ts'

const CLICKS = 10
/** Calls of the token that runs away; others make one. */
const MANY = 30

const root = mkdtempSync(join(tmpdir(), 'gatehouse-first-tasks-'))
const file = join(root, 'gatehouse.yaml')
/** As the gateway is started with. */
const TEXT = `providers:
  unreachable: { base_url: 'http://127.0.0.1:9/v1', key: sk-first-0123456789 }
models:
  unreachable/model: {}
  sandbox/general: { prices: { input: 100, output: 400 } }
sandbox: true
`
let opened: TestConsole
let runaway: string

/** Clicks, and counts them. */
function counting() {
  let clicks = 0
  return {
    async click(place: Locator) {
      clicks++
      await place.click()
    },
    clicks: () => clicks,
  }
}

const inNavigation = (page: Page, name: string) => page.locator('.side nav').getByRole('link', { name, exact: true })

async function choose(page: Page, user: ReturnType<typeof counting>, [field, value]: [string, string]) {
  await user.click(page.getByRole('combobox', { name: field }))
  await user.click(page.getByRole('option', { name: value, exact: true }))
}

/** Makes the call of a curl command that the console shows. */
function runCurl(command: string): Promise<Response> {
  const [, url = ''] = /^curl (\S+)/.exec(command) ?? []
  const headers = [...command.matchAll(/-H '([^:]+): ([^']+)'/g)].map(([, name = '', value = '']) => [name, value])
  const [, body = ''] = /-d '(.*)'$/s.exec(command) ?? []
  return fetch(url, { method: 'POST', headers: Object.fromEntries(headers) as Record<string, string>, body })
}

describeInBrowser('the first tasks of a new user', () => {
  beforeAll(async () => {
    const data_dir = join(root, 'data')
    mkdirSync(data_dir)
    writeFileSync(file, TEXT)
    opened = await openConsole({
      file,
      data_dir,
      providers: { unreachable: { base_url: 'http://127.0.0.1:9/v1', key: 'sk-first-0123456789' } },
      models: { 'unreachable/model': {}, 'sandbox/general': { prices: { input: 100, output: 400 } } },
    })
    const secrets: Record<string, string> = {}
    for (const name of ['Search team', 'Mobile team']) {
      const { project_id } = await opened.admin<{ project_id: string }>('/projects', { json: { name } })
      const json = { name: `service of ${name}`, project_id }
      secrets[name] = (await opened.admin<{ secret: string }>('/tokens', { json })).secret
    }
    runaway = secrets['Mobile team'] ?? ''
    await (await opened.chat({}, secrets['Search team'])).text()
    for (let call = 0; call < MANY; call++) await (await opened.chat({}, runaway)).text()
    await (await opened.chat({ model: 'unreachable/model' }, secrets['Search team'])).text()
    await opened.recorded(MANY + 2)
  })
  afterAll(async () => {
    await opened?.close()
    rmSync(root, { recursive: true, force: true })
  })

  it('makes a token, and a call with the command that is shown', async () => {
    const page = await opened.open('/')
    const user = counting()
    await user.click(inNavigation(page, 'Tokens'))
    await page.getByText('Refused calls are not counted.').waitFor()
    await user.click(page.getByRole('button', { name: 'New token' }))
    await page.getByRole('textbox', { name: 'Name' }).fill('laptop')
    await user.click(page.getByRole('button', { name: 'Create token' }))
    const command = page.getByRole('dialog').locator('pre', { hasText: 'curl ' })
    await command.waitFor()
    const response = await runCurl((await command.textContent()) ?? '')
    expect(response.status).toBe(200)
    await user.click(page.getByRole('button', { name: 'I have copied it' }))
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    expect(user.clicks()).toBeLessThan(CLICKS)
  })

  it('finds why a request failed', async () => {
    const page = await opened.open('/')
    const user = counting()
    await user.click(inNavigation(page, 'Requests'))
    await user.click(page.locator('tbody tr', { hasText: 'upstream' }).first().getByRole('link').first())
    await page.waitForURL(/\/requests\/\d+/)
    // Not text of the list, which is there until the request has been read. The names that people know, not those of the API.
    const details = page.locator('.facts')
    for (const text of ['Tokenservice of Search team', 'APIChat'])
      await details.filter({ hasText: text }).first().waitFor()
    await page.getByText('unreachable/model').first().waitFor()
    await page
      .getByText(/upstream_\w+/)
      .first()
      .waitFor()
    expect(user.clicks()).toBeLessThan(CLICKS)
  })

  it('reads what a team spent last week', async () => {
    const page = await opened.open('/')
    const user = counting()
    await user.click(inNavigation(page, 'Usage and cost'))
    // The first page has a range too.
    await page.getByRole('heading', { level: 1, name: 'Usage and cost' }).waitFor()
    await choose(page, user, ['Time', 'Last 7 days'])
    await page.waitForURL('**range=7d*')
    const row = page.getByRole('row', { name: /Search team/ })
    await row.filter({ hasText: /\$0\.\d*[1-9]/ }).waitFor()
    expect(user.clicks()).toBeLessThan(CLICKS)
  })

  it('stops a token that runs away', async () => {
    const page = await opened.open('/')
    const user = counting()
    await user.click(inNavigation(page, 'Usage and cost'))
    await choose(page, user, ['By', 'Token'])
    await page.waitForURL('**by=token*')
    await user.click(page.getByRole('row').getByRole('link', { name: 'service of Mobile team' }))
    await user.click(page.getByRole('button', { name: 'Revoke' }))
    const dialog = page.getByRole('alertdialog').or(page.getByRole('dialog'))
    await dialog.getByText(`${MANY} calls in the last 24 hours`).waitFor()
    // The time of the last call is stored later than the calls.
    expect(await dialog.textContent()).not.toContain('never')
    await user.click(dialog.getByRole('button', { name: 'Revoke token' }))
    await page.getByText('Token revoked').waitFor()
    expect((await opened.chat({}, runaway)).status).toBe(401)
    expect(user.clicks()).toBeLessThan(CLICKS)
  })

  it('adds a second key of a vendor', async () => {
    const page = await opened.open('/')
    const user = counting()
    await user.click(inNavigation(page, 'Providers'))
    await user.click(page.locator('main').getByRole('link', { name: 'unreachable', exact: true }))
    await user.click(page.getByRole('button', { name: 'Add a key' }))
    const dialog = page.getByRole('dialog')
    // A click into each field, as somebody without a keyboard's Tab.
    const fill = async (field: string, value: string) => {
      await user.click(dialog.getByLabel(field))
      await dialog.getByLabel(field).fill(value)
    }
    await fill('Name of the key', 'spare')
    await fill('API key', 'sk-second-0123456789')
    await user.click(dialog.getByRole('button', { name: 'Show what would change' }))
    await user.click(dialog.getByRole('button', { name: 'Write it' }))
    await dialog.waitFor({ state: 'detached' })
    expect(readFileSync(file, 'utf8')).toContain('sk-second-0123456789')
    expect(user.clicks()).toBeLessThan(CLICKS)
  })
})
