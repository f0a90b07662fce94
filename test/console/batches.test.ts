/** The pages of batches and of files: lists, one of each, the files and requests of a batch, its cancellation, a deletion. */
import { afterAll, beforeAll, expect, it } from 'bun:test'
import { readFileSync } from 'node:fs'
import type OpenAI from 'openai'
import { chatLine, createBatch, openai } from '../kit/batches.ts'
import { describeInBrowser } from './support/chromium.ts'
import { axeFaults, openConsole, screenshots, settled, type TestConsole } from './support/console.ts'
import { expectSoon } from './support/soon.ts'

let opened: TestConsole
let empty: TestConsole
let done: OpenAI.Batch
let waiting: string

describeInBrowser('batches and files in the console', () => {
  beforeAll(async () => {
    opened = await openConsole({ models: { 'sandbox/general': { prices: { input: 1, output: 4 } } } })
    empty = await openConsole()
    const client = openai(opened.port.gateway)
    const [a, b, wrong] = ['a', 'b', 'c'].map((name) => chatLine(name))
    const lines = [a, b, { ...wrong, body: { ...wrong?.body, max_tokens: -1 } }]
    const created = await createBatch(client, lines)
    const read = () => client.batches.retrieve(created.id)
    await expectSoon(async () => (await read()).status, 'completed')
    done = await read()
    // Its budget is used up before the batch begins, so that it waits.
    const { secret } = await opened.admin<{ secret: string }>('/tokens', {
      json: { name: 'poor', budgets: [{ amount: 0, window: 'total' }] },
    })
    waiting = (await createBatch(openai(opened.port.gateway, { apiKey: secret }), [chatLine('a')])).id
  })
  afterAll(async () => {
    await opened?.close()
    await empty?.close()
  })

  it.each(['light', 'dark'] as const)('have no serious fault for axe, %s', async (scheme) => {
    for (const path of ['/batches', `/batches/${done.id}`, '/files', `/files/${done.output_file_id}`]) {
      const page = await opened.open(path, { scheme })
      expect([path, await axeFaults(page)]).toEqual([path, []])
      await screenshots(page, `${path.split('/').slice(1, 2)}${path.split('/').length > 2 ? '-one' : ''}-${scheme}`)
    }
  })

  it('leads from the list to a batch, its results and its requests, by keyboard', async () => {
    const page = await opened.open('/batches?status=completed')
    const link = page.getByRole('region', { name: 'Batches' }).getByRole('link').first()
    await link.focus()
    await page.keyboard.press('Enter')
    await settled(page)
    await page.getByText('3 of 3').waitFor()
    const errors = page.locator('.facts').getByRole('link', { name: done.error_file_id ?? 'none' })
    expect(await errors.count()).toBe(1)
    await page.getByRole('link', { name: 'Requests', exact: true }).last().click()
    await settled(page)
    expect(page.url()).toContain(`session=${done.id}`)
    const { data } = await opened.admin<{ data: { session: string }[] }>(`/requests?session=${done.id}`)
    expect(data.length).toBe(3)
  })

  it('shows why a batch waits, and cancels it after a question', async () => {
    const page = await opened.open(`/batches/${waiting}`)
    await page.locator('.facts').getByRole('link', { name: 'poor' }).waitFor()
    await page.getByRole('button', { name: 'Cancel batch' }).click()
    await page.getByText('1 requests are not executed').waitFor()
    await page.keyboard.press('Tab')
    await page.getByRole('button', { name: 'Cancel it' }).press('Enter')
    await expectSoon(() => page.locator('main').textContent(), expect.stringMatching(/Canceled|Being canceled/))
    await expectSoon(() => page.getByRole('button', { name: 'Cancel batch' }).count(), 0)
  })

  it('downloads a file, which the audit log records, and deletes it after a question', async () => {
    const page = await opened.open('/files?purpose=batch_output')
    await page.getByRole('region', { name: 'Files' }).getByRole('link').first().click()
    await settled(page)
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Download' }).click(),
    ])
    expect(readFileSync(String(await download.path()), 'utf8')).toContain('custom_id')
    expect(JSON.stringify(await opened.admin('/audit'))).toContain('file.read_content')
    const file_id = new URL(page.url()).pathname.split('/').at(-1)
    // Results of the batch that was canceled may be stored meanwhile.
    const stored = async () => {
      const { data } = await opened.admin<{ data: { file_id: string }[] }>('/files?purpose=batch_output')
      return data.some((file) => file.file_id === file_id)
    }
    expect(await stored()).toBe(true)
    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByText('cannot read these results any more').waitFor()
    await page.getByRole('button', { name: 'Delete it' }).click()
    await expectSoon(async () => new URL(page.url()).pathname, '/console/files')
    await expectSoon(stored, false)
  })

  it('say what to do where there are none', async () => {
    for (const [path, text] of [
      ['/batches', 'POST /v1/batches'],
      ['/files', 'POST /v1/files'],
    ] as const) {
      const page = await empty.open(path)
      await page.getByText(text).first().waitFor()
      await screenshots(page, `empty-${path.slice(1)}`, [1280])
    }
  })
})
