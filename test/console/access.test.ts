/** Tokens, projects and budgets in the console: made, changed, rotated and revoked by click and by keyboard. */
import { afterAll, beforeAll, expect, it } from 'bun:test'
import type { Page } from 'playwright-core'
import { describeInBrowser } from './support/chromium.ts'
import { axeFaults, openConsole, screenshots, type TestConsole } from './support/console.ts'
import { cleared, expectSoon } from './support/soon.ts'

const XSS = '<img src=x onerror=alert(1)>'
let opened: TestConsole
let shop = ''
let token_id = ''

const create = <T>(path: string, json: object) => opened.admin<T>(path, { json })
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const toast = (page: Page, text: string) => page.locator('.toasts').getByText(text).waitFor()

describeInBrowser('tokens, projects and budgets in the console', () => {
  beforeAll(async () => {
    opened = await openConsole({
      guards: { 'no-falcon': { kind: 'patterns', patterns: ['project-falcon'], action: 'block' } },
    })
    const budgets = [{ amount: 50, window: 'month' }]
    const project = await create<{ project_id: string }>('/projects', { name: 'Shop', budgets })
    shop = project.project_id
    const limits = { rate_limits: { requests_per_minute: 100 }, budgets: [{ amount: 5, window: 'day' }] }
    const token = await create<{ token_id: string; secret: string }>('/tokens', {
      name: 'till',
      project_id: shop,
      ...limits,
    })
    token_id = token.token_id
    for (const name of [XSS, 'laptop of Ann', 'nightly import'])
      await create('/tokens', { name, labels: { note: XSS } })
    const headers = { authorization: `Bearer ${token.secret}` }
    const json = { model: 'sandbox/general', messages: [{ role: 'user', content: 'Hello' }] }
    for (let call = 0; call < 3; call++) await opened.port.gateway.call('/v1/chat/completions', { headers, json })
  })
  afterAll(() => opened?.close())

  it.each([
    ['tokens', () => '/tokens'],
    ['token', () => `/tokens/${token_id}`],
    ['new-token', () => '/tokens?add=yes'],
    ['projects', () => '/projects'],
    ['project', () => `/projects/${shop}`],
    ['budgets', () => '/budgets'],
    ['credit', () => '/budgets?credit=yes'],
  ] as [string, () => string][])('have no serious fault for axe: %s', async (name, pathOf) => {
    for (const scheme of ['light', 'dark'] as const) {
      const page = await opened.open(pathOf(), { scheme })
      expect(await axeFaults(page)).toEqual([])
      await screenshots(page, `${name}-${scheme}`)
    }
    const narrow = await opened.open(pathOf(), { width: 390, height: 844 })
    expect(await narrow.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true)
  })

  it('are found by their ids with Ctrl-K', async () => {
    const page = await opened.open('/')
    await page.keyboard.press('Control+k')
    const palette = page.getByRole('combobox', { name: /^Find/ })
    for (const [id, name] of [
      [shop, 'Shop'],
      [token_id, 'till'],
    ] as const) {
      await palette.fill(id)
      await page.getByRole('option', { name }).waitFor()
    }
  })

  it('are named by a filter of requests that has their ids', async () => {
    const page = await opened.open(`/requests?token=${token_id}&project=${shop}`)
    await page.getByRole('button', { name: 'Token till', exact: true }).waitFor()
    await page.getByRole('button', { name: 'Project Shop', exact: true }).waitFor()
  })

  it('makes a token by keyboard, and shows its secret once with a call that works', async () => {
    const page = await opened.open('/tokens')
    await button(page, 'New token').first().focus()
    await page.keyboard.press('Enter')
    await page.getByLabel('Name').and(page.locator(':focus')).waitFor()
    await page.keyboard.type('keyboard')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'The secret of keyboard' }).waitFor()
    const secret = await page.getByRole('region', { name: 'secret', exact: true }).locator('code').textContent()
    const curl = (await page.getByRole('region', { name: 'curl command' }).locator('code').textContent()) ?? ''
    const body = /-d '(.*)'/s.exec(curl)?.[1] ?? ''
    const headers = { authorization: `Bearer ${secret}` }
    const { status } = await opened.port.gateway.call('/v1/chat/completions', { headers, json: JSON.parse(body) })
    expect([status, curl.includes(`Bearer ${secret}`)]).toEqual([200, true])
    await screenshots(page, 'secret', [390, 1280])
    await page.setViewportSize({ width: 1280, height: 900 })
    await button(page, 'I have copied it').click()
    await page.getByRole('heading', { name: 'The secret of keyboard' }).waitFor({ state: 'detached' })
    await page.getByRole('link', { name: 'keyboard' }).waitFor()
    expect(await page.content()).not.toContain(secret ?? 'no secret')
  })

  it('gives a token guards and kinds of calls, says which guards there are, and takes them back', async () => {
    const made = await create<{ token_id: string }>('/tokens', { name: 'guarded' })
    const page = await opened.open(`/tokens/${made.token_id}`, { allowed: /tokens\/\w+ 400/ })
    const settings = async () => {
      const { families, guards } = await opened.admin<{ families: string[]; guards: string[] }>(
        `/tokens/${made.token_id}`,
      )
      return { families, guards }
    }
    await button(page, 'Edit').click()
    await page.getByText('Configured: no-falcon.').waitFor()
    await page.getByText('All. Choose some to refuse the others.').click()
    await page.getByLabel('Tools of MCP servers').press('Space')
    await page.getByLabel('Embeddings').check()
    await page.getByLabel('Guards').fill('no-such')
    await button(page, 'Save').click()
    await page.getByRole('alert').filter({ hasText: 'no-such' }).waitFor()
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, 'token-guards', [390, 1280])
    await page.getByLabel('Guards').fill('no-falcon')
    await button(page, 'Save').click()
    await toast(page, 'Token changed')
    expect(await settings()).toEqual({ families: ['embeddings', 'mcp'], guards: ['no-falcon'] })
    await page.getByText('Embeddings, Tools of MCP servers').waitFor()
    await button(page, 'Edit').click()
    await page.getByLabel('Tools of MCP servers').uncheck()
    await page.getByLabel('Embeddings').uncheck()
    await expectSoon(() => page.getByLabel('Guards').inputValue(), 'no-falcon')
    await cleared(page.getByLabel('Guards'))
    await button(page, 'Save').click()
    await expectSoon(settings, { families: null, guards: [] })
  })

  it('makes a token with a limit and a budget, and says beside the field what is wrong', async () => {
    const page = await opened.open(`/tokens?add=yes&project=${shop}`, { allowed: /tokens 400/ })
    await page.getByLabel('Name').fill('limited')
    await page.getByLabel('Allowed addresses').fill('not an address')
    await button(page, 'Add a rate limit').click()
    await page.getByLabel('At most').fill('7')
    await button(page, 'Add a budget').click()
    await page.getByLabel('Amount').fill('2.5')
    await button(page, 'Create token').click()
    await page.getByRole('alert').first().waitFor()
    await expectSoon(() => page.getByLabel('Allowed addresses').getAttribute('aria-invalid'), 'true')
    await page.getByLabel('Allowed addresses').fill('203.0.113.0/24')
    await button(page, 'Create token').click()
    await page.getByRole('heading', { name: 'The secret of limited' }).waitFor()
    const { data } = await opened.admin<{ data: object[] }>('/tokens?q=limited')
    expect(data[0]).toMatchObject({
      project_id: shop,
      rate_limits: { requests_per_minute: 7 },
      budgets: [{ amount: 2.5, window: 'month' }],
      allowed_addresses: ['203.0.113.0/24'],
    })
  })

  it.each(['light', 'dark'] as const)('gives a project labels, and limits for each end user, %s', async (scheme) => {
    const { project_id } = await create<{ project_id: string }>('/projects', { name: `Fair ${scheme}` })
    const page = await opened.open(`/projects/${project_id}`, { scheme, allowed: /projects\/\w+ 400/ })
    const stored = async () => {
      const { labels, end_users } = await opened.admin(`/projects/${project_id}`)
      return { labels, end_users }
    }
    await button(page, 'Edit').click()
    await button(page, 'Add a rate limit of end users').press('Enter')
    await page.getByLabel('At most').fill('30')
    await button(page, 'Add a budget of end users').click()
    await page.getByLabel('Amount').fill('1.5')
    await page.getByLabel('Labels').fill(`no name=1\nnote=${XSS}`)
    await button(page, 'Save').click()
    await page.getByRole('alert').filter({ hasText: 'no name' }).waitFor()
    await expectSoon(() => page.getByLabel('Labels').getAttribute('aria-invalid'), 'true')
    await page.getByRole('alert').scrollIntoViewIfNeeded()
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, `project-end-users-${scheme}`, [390, 1440, 2560])
    await page.getByLabel('Labels').fill(`team=a=b\nempty\nnote=${XSS}`)
    await button(page, 'Save').click()
    await toast(page, 'Project changed')
    const end_users = { rate_limits: { requests_per_minute: 30 }, budgets: [{ amount: 1.5, window: 'month' }] }
    expect(await stored()).toEqual({ labels: { team: 'a=b', empty: '', note: XSS }, end_users })
    await page.getByText('Requests per minute: 30, $1.50 a month').waitFor()
    await page.getByText(`team=a=b, empty=, note=${XSS}`).waitFor()
    await screenshots(page, `project-facts-${scheme}`, [390, 1440, 2560])
    await button(page, 'Edit').click()
    await button(page, 'Remove this limit').click()
    await button(page, 'Remove this budget').click()
    await cleared(page.getByLabel('Labels'))
    await button(page, 'Save').click()
    await expectSoon(stored, { labels: {}, end_users: {} })
  })

  it('makes a token with labels and a limit for each end user', async () => {
    const page = await opened.open('/tokens?add=yes')
    await page.getByLabel('Name').fill('fair')
    await button(page, 'Add a rate limit of end users').click()
    await page.getByLabel('At most').fill('0')
    await page.getByLabel('Labels').fill('team=search')
    await button(page, 'Create token').click()
    await page.getByRole('heading', { name: 'The secret of fair' }).waitFor()
    const { data } = await opened.admin<{ data: object[] }>('/tokens?q=fair')
    expect(data[0]).toMatchObject({
      labels: { team: 'search' },
      end_users: { rate_limits: { requests_per_minute: 0 } },
      rate_limits: {},
    })
  })

  it('lets the admin of a project change its labels, and nothing else of it', async () => {
    const page = await opened.open(`/projects/${shop}`, { role: 'project_admin', project_id: shop })
    expect([await button(page, 'Delete').count(), await button(page, 'Disable').count()]).toEqual([0, 0])
    await button(page, 'Edit').click()
    expect(await page.getByRole('dialog').getByRole('textbox').count()).toBe(1)
    await page.getByLabel('Labels').fill('cost-center=42')
    await button(page, 'Save').click()
    await toast(page, 'Project changed')
    expect(await opened.admin(`/projects/${shop}`)).toMatchObject({ labels: { 'cost-center': '42' }, name: 'Shop' })
  })

  it('finds tokens by text and state, in the address', async () => {
    const page = await opened.open('/tokens')
    await page.getByRole('searchbox', { name: 'Find a token' }).fill('ANN')
    await page.waitForURL('**q=ANN*')
    const found = () => page.locator('tbody .row-link').allTextContents()
    await expectSoon(found, ['laptop of Ann'])
    await page.reload()
    await expectSoon(found, ['laptop of Ann'])
    await page.getByRole('searchbox', { name: 'Find a token' }).fill('nothing like it')
    await page.getByText('No token fits these filters').waitFor()
  })

  it('changes only the field that was changed', async () => {
    const page = await opened.open(`/tokens/${token_id}`)
    await button(page, 'Edit').click()
    await page.getByLabel('At most').fill('200')
    await opened.admin(`/tokens/${token_id}`, { method: 'PATCH', json: { labels: { changed: 'meanwhile' } } })
    await button(page, 'Save').click()
    await toast(page, 'Token changed')
    const limits = { requests_per_minute: 200 }
    expect(await opened.admin(`/tokens/${token_id}`)).toMatchObject({
      rate_limits: limits,
      labels: { changed: 'meanwhile' },
    })
  })

  it('shows the use of a token, and what is left of its limits', async () => {
    const page = await opened.open(`/tokens/${token_id}`)
    await page.getByRole('meter', { name: 'Requests per minute' }).waitFor()
    await page.getByText('Limits of its project').first().waitFor()
    const calls = page.locator('.stat').filter({ hasText: 'Calls' }).getByRole('link')
    const search = new URL((await calls.getAttribute('href')) ?? '', opened.origin).searchParams
    expect([search.get('token'), search.get('range'), search.get('to')]).toEqual([
      token_id,
      'custom',
      expect.stringMatching(/^\d+$/),
    ])
    expect(await page.getByRole('link', { name: 'Shop' }).getAttribute('href')).toBe(`/console/projects/${shop}`)
  })

  it('rotates a secret, after saying when the present one ends', async () => {
    const page = await opened.open(`/tokens/${token_id}`)
    await button(page, 'Rotate').click()
    await page.getByText('calls in the last 24 hours').waitFor()
    await page.getByRole('combobox', { name: 'The present secret ends' }).click()
    await page.getByRole('option', { name: 'in an hour' }).click()
    await page.getByRole('combobox', { name: 'The present secret ends' }).getByText('in an hour').waitFor()
    await button(page, 'Make a new secret').click()
    await page.getByRole('heading', { name: 'The secret of till' }).waitFor()
    const rotated = await opened.admin<{ previous_expires_at: number }>(`/tokens/${token_id}`)
    expect(rotated.previous_expires_at).toBeGreaterThan(Date.now() / 1000 + 3_500)
  })

  it('revokes a token only after a confirmation that says how much it was used', async () => {
    const made = await create<{ token_id: string }>('/tokens', { name: 'runaway' })
    const page = await opened.open(`/tokens/${made.token_id}`)
    await button(page, 'Revoke').click()
    await page.getByText('It has never been used.').waitFor()
    await page.keyboard.press('Escape')
    expect(await opened.admin(`/tokens/${made.token_id}`)).toMatchObject({ disabled: false })
    await button(page, 'Revoke').click()
    await button(page, 'Revoke token').click()
    await toast(page, 'Token revoked')
    await page.getByText('revoked', { exact: true }).waitFor()
    expect(await opened.admin(`/tokens/${made.token_id}`)).toMatchObject({ disabled: true })
    await expectSoon(() => button(page, 'Revoke').count(), 0)
  })

  it('makes, disables and deletes a project, whose name must be typed', async () => {
    const page = await opened.open('/projects?add=yes')
    await page.getByLabel('Name').fill('Short-lived')
    await button(page, 'Create project').click()
    await toast(page, 'Project Short-lived created')
    await page.getByRole('link', { name: 'Short-lived' }).click()
    await button(page, 'Disable').click()
    await button(page, 'Disable project').click()
    await page.getByText('disabled', { exact: true }).waitFor()
    await button(page, 'Enable').click()
    await button(page, 'Delete').click()
    await expectSoon(() => button(page, 'Delete project').isDisabled(), true)
    await page.getByLabel('Type Short-lived to confirm').fill('Short-lived')
    await button(page, 'Delete project').click()
    await page.waitForURL('**/console/projects')
  })

  it('gives credit to a project', async () => {
    const page = await opened.open('/budgets?credit=yes')
    await page.getByRole('combobox', { name: 'Project or token' }).fill('Shop')
    await page.getByRole('option', { name: /Shop/ }).click()
    await page.getByLabel('Amount').fill('5')
    await button(page, 'Give credit').last().click()
    await page
      .locator('.toasts')
      .getByText(/Credit given/)
      .waitFor()
  })

  it('shows a viewer no act, and the admin of a project only its own', async () => {
    const viewer = await opened.open(`/tokens/${token_id}`, { role: 'viewer' })
    for (const act of ['Edit', 'Rotate', 'Revoke']) expect(await button(viewer, act).count()).toBe(0)
    const lead = await opened.open('/tokens?state=all', { role: 'project_admin', project_id: shop })
    await lead.getByRole('link', { name: 'till' }).waitFor()
    expect(await lead.getByRole('link', { name: 'laptop of Ann' }).count()).toBe(0)
    const budgets = await opened.open('/budgets', { role: 'project_admin', project_id: shop })
    expect(await budgets.getByRole('link', { name: 'Shop' }).count()).toBeLessThanOrEqual(1)
    expect(await button(budgets, 'Give credit').count()).toBe(0)
  })

  it('writes names that look like markup as text', async () => {
    for (const path of ['/tokens', `/tokens?q=${encodeURIComponent('<img')}`]) {
      const page = await opened.open(path)
      await page.getByText(XSS).first().waitFor()
      expect(await page.locator('main img').count()).toBe(0)
    }
  })
})
