/** Requests of the log that are opened in the playground with their stored contents. */
import { afterAll, beforeAll, expect, it } from 'bun:test'
import { DEFAULT_REQUEST_LOG } from '../../src/config/config.ts'
import { describeInBrowser } from './support/chromium.ts'
import { openConsole, type TestConsole } from './support/console.ts'
import { expectSoon } from './support/soon.ts'

const HOSTILE = '<img src=x onerror="window.hit=1">'
const KEY = Buffer.from('0123456789abcdef0123456789abcdef').toString('base64')
let opened: TestConsole

/** The row of the request with this response. */
async function rowOf(response: Response): Promise<string> {
  await response.text()
  opened.port.gateway.instance.flushRequests()
  const path = `/requests?request_id=${response.headers.get('x-request-id')}`
  const rows = async () => (await opened.admin<{ data: { id: string }[] }>(path)).data
  await expectSoon(async () => (await rows()).length, 1)
  return (await rows())[0]?.id ?? ''
}

describeInBrowser('a request with stored contents', () => {
  beforeAll(async () => {
    const contents = { on_for: ['*'] }
    opened = await openConsole({ contents_key: KEY, request_log: { ...DEFAULT_REQUEST_LOG, contents } })
  })
  afterAll(() => opened?.close())

  it('is a conversation whose last question can be sent again', async () => {
    const messages = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: HOSTILE },
      { role: 'assistant', content: `An answer with ${HOSTILE}` },
      { role: 'user', content: 'And now?' },
    ]
    const row = await rowOf(await opened.chat({ messages }))
    const page = await opened.open(`/requests/${row}`)
    await page.getByRole('link', { name: 'Open in playground' }).click()
    await page.waitForURL('**/playground?**')
    await page.getByText('An answer with').waitFor()
    await expectSoon(() => page.getByRole('textbox', { name: 'Message' }).inputValue(), 'And now?')
    await expectSoon(() => page.getByRole('textbox', { name: 'System prompt' }).inputValue(), 'Be brief.')
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.locator('.figures').nth(1).waitFor()
    await expectSoon(() => page.locator('article').count(), 4)
    expect(await page.locator('article img').count()).toBe(0)
    expect(await page.evaluate(() => 'hit' in window)).toBe(false)
  })

  it('fills in the query and the documents of a rerank', async () => {
    const body = { model: 'sandbox/rerank', query: 'who', documents: ['me', 'you'] }
    const row = await rowOf(await opened.port.gateway.call('/v1/rerank', { json: body }))
    const page = await opened.open(`/playground?model=sandbox/rerank&request=${row}`)
    await expectSoon(() => page.getByRole('textbox', { name: 'Query' }).inputValue(), 'who')
    await expectSoon(() => page.getByRole('textbox', { name: 'Documents' }).inputValue(), 'me\nyou')
  })

  it('stays closed to who may not read contents', async () => {
    const row = await rowOf(await opened.chat())
    const page = await opened.open(`/playground?request=${row}`, { role: 'operator' })
    await page.getByText('You may not see the contents of this request').waitFor()
  })
})
