/** The pages of the request log in real Chromium: search, filters, live tail, one request, by pointer and by keyboard. */
import { afterAll, beforeAll, expect, it } from 'bun:test'
import { requestRow } from '../kit/request-rows.ts'
import { describeInBrowser } from './support/chromium.ts'
import { axeFaults, openConsole, screenshots, settled, type TestConsole } from './support/console.ts'
import { someRequests, storeWith } from './support/request-data.ts'
import { expectSoon } from './support/soon.ts'

let filled: TestConsole
let small: TestConsole

const SPECIAL = requestRow({
  row_id: 900_000,
  at_ms: Date.now() - 500,
  request_id: 'req_special',
  session: 'session-1',
  end_user: 'ann',
  trace_id: '0af7651916cd43dd8448eb211c80319c',
  model: 'openai/gpt-5',
  provider: 'azure',
  target: 'azure/gpt-5',
  total_ms: 2_400,
  cost: 12_300_000,
  tags: ['team:blue', 'nightly'],
  detail: {
    method: 'POST',
    path: '/v1/chat/completions',
    outcome: 'done',
    stream: true,
    queued_ms: 140,
    first_byte_ms: 1_420,
    requested_model: 'gpt-5',
    provider_cost: 9_000_000,
    metadata: { team: 'blue' },
    units: { input_tokens: 4_200, output_tokens: 612, cached_tokens: 3_000, reasoning_tokens: 200 },
    attempts: [
      {
        target: 'openai/gpt-5',
        key: 'main',
        start_ms: 140,
        ms: 380,
        error: 'upstream_error',
        upstream_status: 503,
        next: 'other_target',
      },
      { target: 'azure/gpt-5', start_ms: 530, ms: 890, next: 'hedge' },
      { target: 'openai/gpt-5', key: 'spare', start_ms: 1_100, ms: 320, hedge: true, lost: true },
    ],
  },
})

describeInBrowser('the requests of the console', () => {
  beforeAll(async () => {
    const store_url = await storeWith([...someRequests(1_200), SPECIAL])
    filled = await openConsole({}, { store_url })
    small = await openConsole()
  })
  afterAll(() => Promise.all([filled?.close(), small?.close()]))

  it.each(['light', 'dark'] as const)('have no serious fault for axe in the %s scheme', async (scheme) => {
    const page = await filled.open('/requests?status=5xx&model=openai/gpt-5', { scheme })
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, `requests-filtered-${scheme}`, [1280])
    await page.goto(`${filled.origin}/console/requests`)
    await settled(page)
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, `requests-${scheme}`)
    await page.goto(`${filled.origin}/console/requests/900000`)
    await settled(page)
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, `request-${scheme}`)
  })

  it('shows what to do where there are none', async () => {
    const page = await small.open('/requests')
    await page.getByRole('heading', { name: 'No requests yet' }).waitFor()
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, 'requests-empty', [1280])
    await page.goto(`${small.origin}/console/requests?model=none`)
    await page.getByRole('button', { name: 'Clear filters' }).first().click()
    await page.getByRole('heading', { name: 'No requests yet' }).waitFor()
  })

  it('are filtered by a menu and a field, in the address, and cleared', async () => {
    const page = await filled.open('/requests')
    await page.getByRole('button', { name: 'Add filter' }).click()
    await page.getByRole('menuitem', { name: 'Status' }).click()
    await page.getByLabel('Another value').fill('600')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').waitFor()
    await page.getByLabel('Another value').fill('5xx')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/requests?status=5xx')
    const statuses = async () => new Set(await page.locator('.request-status .badge').allTextContents())
    await expectSoon(statuses, new Set(['502']))
    await page.getByRole('button', { name: 'Remove the filter Status' }).click()
    await page.waitForURL('**/requests')
    await page.goBack()
    await page.waitForURL('**/requests?status=5xx')
    await page.getByLabel('Find by request or trace id').fill('req_special')
    await page.waitForURL('**/requests?status=5xx&request_id=req_special')
    await page.getByRole('button', { name: 'Clear filters' }).first().click()
    await page.waitForURL('**/requests')
  })

  it('offer the values of a filter with their counts', async () => {
    const page = await filled.open('/requests?status=5xx&range=7d')
    await page.getByRole('button', { name: 'Add filter' }).click()
    await page.getByRole('menuitem', { name: 'Model' }).click()
    const values = page.getByRole('list', { name: 'Values' }).getByRole('button')
    await expectSoon(() => values.count(), 4)
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, 'requests-facets', [1280])
    await values.filter({ hasText: 'sandbox/general' }).click()
    await page.waitForURL('**/requests?status=5xx&range=7d&model=sandbox%2Fgeneral')
  })

  it('load more rows, of which only those in view are in the document', async () => {
    const page = await filled.open('/requests?range=7d')
    for (const expected of ['200', '300']) {
      await page.getByRole('button', { name: 'Load more' }).click()
      await page.getByText(`${expected} requests so far`).waitFor()
    }
    expect(await page.locator('tbody tr').count()).toBeLessThan(80)
  })

  it('lead through their rows by keyboard, and next and previous keep the filter', async () => {
    const page = await filled.open('/requests?model=openai%2Fgpt-5&range=7d')
    await page.locator('section.table-scroll').focus()
    await page.keyboard.press('j')
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.waitForURL(/requests\/\d+\?/)
    await settled(page)
    const first = page.url()
    expect(new URL(first).search).toBe('?model=openai%2Fgpt-5&range=7d')
    await page.getByRole('link', { name: 'Older' }).waitFor()
    await page.keyboard.press('j')
    await page.waitForURL((url) => url.href !== first)
    await page.locator('.page-note').getByText('openai/gpt-5').waitFor()
    const newer = page.getByRole('link', { name: 'Newer' })
    // Until the page is that of the older row, the link is the one that was there before.
    await expectSoon(async () => new URL((await newer.getAttribute('href')) ?? '', first).href, first)
    await newer.click()
    await page.waitForURL(first)
    await page.reload()
    await page.getByRole('link', { name: 'Newer' }).click()
    await page.waitForURL(/requests\/900000\?model/)
    await page.keyboard.press('Escape')
    await page.waitForURL('**/requests?model=openai%2Fgpt-5&range=7d')
  })

  it('are summed up by their session, which leads to them', async () => {
    const page = await filled.open('/sessions')
    await expectSoon(() => page.locator('tbody tr').count(), 3)
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, 'sessions')
    await page.getByRole('link', { name: 'session-2' }).click()
    await page.waitForURL('**/requests?session=session-2*')
    await page.locator('tbody tr').nth(10).waitFor()
    const none = await small.open('/sessions?user=nobody')
    await none.getByRole('heading', { name: 'No session of this end user' }).waitFor()
  })

  it('have a page that explains the routing, repeats the call and leads to the same session', async () => {
    const page = await filled.open('/requests/900000')
    await page.getByText('Given up after 320 ms, because another target answered first.').waitFor()
    await expectSoon(() => page.locator('.waterfall-row').count(), 5)
    await page.getByRole('button', { name: 'Copy as curl' }).click()
    await page.getByText('"model": "gpt-5"').waitFor()
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, 'request-curl', [1280])
    await page.getByRole('button', { name: 'Close' }).click()
    const link = page.getByRole('link', { name: 'Open in playground' })
    expect(await link.getAttribute('href')).toBe('/console/playground?model=openai%2Fgpt-5&request=900000')
    await page.getByRole('link', { name: 'session-1' }).click()
    await page.waitForURL('**/requests?session=session-1&range=30d')
  })

  it('say of a row that is not there that there is none', async () => {
    const page = await filled.open('/requests/123456789', { allowed: /404/ })
    await page.getByRole('alert').waitFor()
    await page.getByRole('heading', { level: 3, name: 'There is no such thing' }).waitFor()
  })

  it('explain how a request would be routed now, and say where contents are not stored', async () => {
    await small.chat({ model: 'sandbox/general' })
    await small.recorded(1)
    const page = await small.open('/requests', { allowed: /contents 404/ })
    await page.locator('.row-link').first().click()
    await page.getByRole('button', { name: 'How would it be routed now?' }).click()
    await page.getByRole('region', { name: 'Targets now' }).waitFor()
    await page.getByRole('button', { name: 'Show contents' }).click()
    await page.getByText('are not stored').waitFor()
  })

  it('appear live, stand still while paused, and open', async () => {
    const page = await small.open('/requests?live=yes')
    await page.getByText('Waiting for requests').waitFor()
    await page.getByText('Live', { exact: true }).last().waitFor()
    await small.chat({ model: 'sandbox/general' })
    await page.locator('.live-table tbody tr').first().waitFor()
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, 'requests-live')
    await page.keyboard.press('p')
    await page.getByText('Paused').waitFor()
    for (let call = 0; call < 3; call++) await small.chat({ model: 'sandbox/general' })
    await page.getByText('3 new').waitFor()
    expect(await page.locator('.live-table tbody tr').count()).toBe(1)
    await page.keyboard.press('p')
    await page.locator('.live-table tbody tr').nth(3).waitFor()
    await page.locator('.live-table .row-link').first().click()
    await page.waitForURL(/requests\/\d+$/)
  })

  it.each([
    ['/requests', '/admin/v1/requests?'],
    ['/requests/900000', '/admin/v1/requests/900000'],
    ['/sessions', '/admin/v1/request-sessions?'],
    ['/tasks', '/admin/v1/tasks?'],
    ['/audit', '/admin/v1/audit?'],
  ])('%s says what failed, and reads it again', async (path, failing) => {
    const page = await filled.open('/models', { allowed: /503/ })
    const error = { message: 'The store is away.', code: 'storage_unavailable', type: 'server_error' }
    const answer = { status: 503, contentType: 'application/json', body: JSON.stringify({ error }) }
    await page.route(
      ({ href }) => href.includes(failing),
      (route) => route.fulfill(answer),
    )
    await page.goto(`${filled.origin}/console${path}`)
    await page.getByRole('alert').getByText('The store is away.').waitFor()
    expect(await axeFaults(page)).toEqual([])
    await page.unrouteAll({ behavior: 'wait' })
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('alert').waitFor({ state: 'detached' })
  })
})
