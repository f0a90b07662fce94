/** People and sign-in in the console: invitations, sessions, admin tokens. */
import { afterAll, beforeAll, expect, it } from 'bun:test'
import type { Page } from 'playwright-core'
import { describeInBrowser } from './support/chromium.ts'
import { axeFaults, openConsole, screenshots, type TestConsole } from './support/console.ts'
import { expectSoon } from './support/soon.ts'

let opened: TestConsole
let shop = ''
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const codeOf = async (page: Page, name: string) =>
  (await page.getByRole('region', { name, exact: true }).locator('code').textContent()) ?? ''

describeInBrowser('people and sign-in in the console', () => {
  beforeAll(async () => {
    opened = await openConsole()
    shop = (await opened.admin<{ project_id: string }>('/projects', { json: { name: 'Shop' } })).project_id
  })
  afterAll(() => opened?.close())

  it.each(['light', 'dark'] as const)('have no serious fault for axe, %s', async (scheme) => {
    const page = await opened.open('/settings', { scheme })
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, `settings-${scheme}`)
    await page.setViewportSize({ width: 1280, height: 900 })
    await button(page, 'Invite a person').click()
    await page.getByLabel('Name').waitFor()
    expect(await axeFaults(page)).toEqual([])
  })

  it('invite a person by a link that logs in once, with the role that was chosen', async () => {
    const page = await opened.open('/settings')
    await button(page, 'Invite a person').click()
    await page.getByLabel('Name').fill('Ann')
    await page.getByRole('combobox', { name: 'Role' }).click()
    await page.getByRole('option', { name: /Member of a project/ }).click()
    await page.getByRole('combobox', { name: 'Project' }).fill('Sho')
    await page.getByRole('option', { name: 'Shop' }).click()
    await button(page, 'Make a link').click()
    await page.getByRole('heading', { name: 'A link for Ann' }).waitFor()
    const link = (await codeOf(page, 'login link')).split('#')[1]
    const login = () =>
      fetch(`${opened.origin}/admin/v1/login`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-gatehouse-csrf': '1' },
        body: JSON.stringify({ link }),
      })
    const first = await login()
    expect([first.status, await first.json()]).toMatchObject([200, { role: 'project_member', project_id: shop }])
    expect((await login()).status).toBe(401)
  })

  it('end a session after a question, and never the own one by accident', async () => {
    await opened.open('/', { role: 'operator' })
    const page = await opened.open('/settings')
    const sessions = page.getByRole('region', { name: 'Sessions' })
    await expectSoon(() => sessions.getByText('this one').count(), 1)
    const row = sessions.getByRole('row', { name: /operator/i })
    await row.getByRole('button', { name: 'End' }).click()
    await button(page, 'End session').click()
    await page.locator('.toasts').getByText('Session ended').waitFor()
    await row.waitFor({ state: 'detached' })
  })

  it('make an admin token whose secret is shown once, and revoke it', async () => {
    const page = await opened.open('/settings')
    await button(page, 'New admin token').click()
    await page.getByLabel('Name').fill('dashboard')
    await button(page, 'Create admin token').click()
    await page.getByRole('heading', { name: 'The secret of dashboard' }).waitFor()
    const authorization = `Bearer ${await codeOf(page, 'secret')}`
    const me = () => fetch(`${opened.origin}/admin/v1/me`, { headers: { authorization } })
    expect(await (await me()).json()).toMatchObject({ role: 'viewer' })
    await button(page, 'I have copied it').click()
    await page
      .getByRole('row', { name: /dashboard/ })
      .getByRole('button', { name: 'Revoke' })
      .click()
    await page.getByText('sessions that it began end').waitFor()
    await button(page, 'Revoke admin token').click()
    await page.locator('.toasts').getByText('Admin token revoked').waitFor()
    expect((await me()).status).toBe(401)
  })

  it('show a viewer only their own role', async () => {
    const page = await opened.open('/settings', { role: 'viewer' })
    await expectSoon(() => page.getByRole('heading', { level: 2 }).allTextContents(), ['You'])
    expect(await button(page, 'Invite a person').count()).toBe(0)
  })
})
