/** The audit log of the console in real Chromium: its rows, its filters, its check, and one change. */
import { afterAll, beforeAll, describe, expect, it } from 'bun:test'
import { changesOf, pageOf } from '../../console/src/pages/audit/changes.ts'
import { describeInBrowser } from './support/chromium.ts'
import { axeFaults, openConsole, screenshots, type TestConsole } from './support/console.ts'
import { expectSoon } from './support/soon.ts'

describe('the changes of a row', () => {
  it('are the members that differ, as text', () => {
    expect(changesOf({ name: 'a', same: 1 }, { name: 'b', same: 1, limits: { x: 2 } })).toEqual([
      { member: 'name', before: 'a', after: 'b' },
      { member: 'limits', before: undefined, after: '{\n  "x": 2\n}' },
    ])
    expect(changesOf(null, 'made')).toEqual([{ member: '', before: undefined, after: 'made' }])
    expect(changesOf(null, undefined)).toEqual([])
  })

  it('lead to the page of the object where there is one', () => {
    expect([pageOf('token', 'tok_1'), pageOf('cache', 'x')]).toEqual(['/tokens/tok_1', undefined])
  })
})

let opened: TestConsole
const TROUBLE = '<img src=x onerror=alert(1)>'

describeInBrowser('the audit log of the console', () => {
  beforeAll(async () => {
    opened = await openConsole()
    for (let number = 0; number < 120; number++) await opened.admin('/projects', { json: { name: `p${number}` } })
    const { token_id } = await opened.admin('/tokens', { json: { name: TROUBLE } })
    await opened.admin(`/tokens/${token_id}`, { method: 'PATCH', json: { name: 'renamed' } })
  })
  afterAll(() => opened?.close())

  it.each(['light', 'dark'] as const)('has no serious fault for axe in the %s scheme', async (scheme) => {
    const page = await opened.open('/audit', { scheme })
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, `audit-${scheme}`)
    await page.locator('.row-link').first().click()
    await page.getByRole('heading', { name: 'What changed' }).waitFor()
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, `audit-change-${scheme}`, [390, 1280])
  })

  it('is read by keyboard, filtered in the address, and checked', async () => {
    const page = await opened.open('/audit')
    await page.getByRole('button', { name: 'Load more' }).click()
    await page.getByText(/^12\d changes$/).waitFor()
    await page.getByRole('combobox', { name: 'Action' }).click()
    await page.getByRole('option', { name: 'token.create' }).click()
    await page.waitForURL('**/audit?action=token.create')
    const made = expect.stringContaining('token.create')
    await expectSoon(() => page.locator('tbody tr').allTextContents(), [made, made])
    await page.locator('section.table-scroll').focus()
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.waitForURL(/audit\/\d+\?action=token\.create$/)
    await page.getByRole('heading', { level: 1, name: 'token.create' }).waitFor()
    await expectSoon(() => page.locator('.audit-changes').textContent(), expect.stringContaining(TROUBLE))
    expect(await page.locator('main img').count()).toBe(0)
    await page.goto(`${opened.origin}/console/audit?object_id=none`)
    await page.getByRole('button', { name: 'Clear filters' }).first().click()
    await page.waitForURL('**/audit')
    await page.getByRole('button', { name: 'Check integrity' }).click()
    await page.getByText(/\d+ rows in order/).waitFor()
    expect(await axeFaults(page)).toEqual([])
  })

  it('says of a number without a row that there is none, and shows a project_admin its own rows only', async () => {
    const page = await opened.open('/audit/99999', { allowed: /404/ })
    await page.getByRole('alert').waitFor()
    const { data } = await opened.admin<{ data: { project_id: string }[] }>('/projects')
    const options = { role: 'project_admin' as const, project_id: data[0]?.project_id ?? '', allowed: /audit\/1 404/ }
    const own = await opened.open('/audit', options)
    expect(await own.locator('tbody tr').count()).toBeLessThan(4)
    expect(await own.getByRole('button', { name: 'Check integrity' }).count()).toBe(0)
    await own.goto(`${opened.origin}/console/audit/1`)
    await own.getByRole('alert').waitFor()
  })
})
