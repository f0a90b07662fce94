/** The configuration file in the console's editor: checked, compared, applied, and its history. */
import { afterAll, beforeAll, expect, it } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describeInBrowser } from './support/chromium.ts'
import { axeFaults, openConsole, screenshots, type TestConsole } from './support/console.ts'
import { expectSoon } from './support/soon.ts'

const SECRET = 'sk-literal-0123456789'
const TEXT = `# of the team
providers:
  acme: { base_url: 'http://127.0.0.1:9/v1', key: ${SECRET} }
sandbox: true
`
const root = mkdtempSync(join(tmpdir(), 'gatehouse-console-config-'))
const file = join(root, 'gatehouse.yaml')
let opened: TestConsole

describeInBrowser('the configuration in the console', () => {
  beforeAll(async () => {
    const data_dir = join(root, 'data')
    mkdirSync(data_dir)
    writeFileSync(file, TEXT)
    opened = await openConsole({ file, data_dir })
  })
  afterAll(async () => {
    await opened?.close()
    rmSync(root, { recursive: true, force: true })
  })

  it.each(['light', 'dark'] as const)(
    'has an editor and a history without a serious fault for axe, %s',
    async (scheme) => {
      for (const path of ['/config/edit', '/config/history']) {
        const page = await opened.open(path, { scheme })
        expect([path, await axeFaults(page)]).toEqual([path, []])
        await screenshots(page, `${path.slice(1).replace('/', '-')}-${scheme}`)
      }
    },
  )

  it('names the line of what is not valid, and does not offer to apply it', async () => {
    const page = await opened.open('/config/edit')
    const editor = page.getByRole('textbox', { name: file })
    expect(await page.content()).not.toContain(SECRET)
    await editor.fill(`${await editor.inputValue()}server: { port: many }\n`)
    await page.getByRole('button', { name: 'Check and compare' }).click()
    await page.getByText('line 5').waitFor()
    expect(await page.getByRole('button', { name: 'Apply' }).count()).toBe(0)
    await page.getByRole('button', { name: 'Discard' }).click()
    await expectSoon(() => editor.inputValue(), expect.not.stringContaining('port: many'))
  })

  it('is compared, applied after a question, and keeps its secrets', async () => {
    const page = await opened.open('/config/edit')
    const editor = page.getByRole('textbox', { name: file })
    await editor.fill(
      (await editor.inputValue())
        .replace('# of the team', '# of both teams')
        .concat('tokens: { rate_limits: { requests_per_minute: 60 } }\n'),
    )
    await page.getByRole('button', { name: 'Check and compare' }).click()
    await page.getByRole('region', { name: 'Changes' }).getByText('tokens.rate_limits.requests_per_minute').waitFor()
    expect(await axeFaults(page)).toEqual([])
    await page.getByRole('button', { name: 'Apply' }).click()
    let reads = 0
    page.on('request', (request) => {
      if (request.url().endsWith('/config/text')) reads++
    })
    await page.getByRole('button', { name: 'Apply it' }).click()
    await page
      .locator('.toasts')
      .getByText(/in force|next start/)
      .waitFor()
    const written = readFileSync(file, 'utf8')
    expect(written).toBe(
      `${TEXT.replace('# of the team', '# of both teams')}tokens: { rate_limits: { requests_per_minute: 60 } }\n`,
    )
    // Once at once, and again after a gateway has applied the file.
    await expectSoon(async () => reads > 1, true)
    const history = await opened.open('/config/history')
    await expectSoon(() => history.locator('main').textContent(), expect.stringContaining('requests_per_minute'))
    expect(await history.content()).not.toContain(SECRET)
  })

  it('suggests keys and values at the cursor, by keyboard alone', async () => {
    const page = await opened.open('/config/edit')
    const editor = page.getByRole('textbox', { name: file })
    const before = await editor.inputValue()
    const list = page.getByRole('listbox', { name: 'Suggestions' })
    const text = async () => (await editor.inputValue()).slice(before.length)
    await editor.focus()
    await page.keyboard.press('Control+End')
    await page.keyboard.type('cac')
    await list.waitFor()
    expect(await editor.getAttribute('aria-activedescendant')).toBe(
      await list.getByRole('option', { selected: true }).getAttribute('id'),
    )
    expect(await axeFaults(page)).toEqual([])
    await page.keyboard.press('Enter')
    expect(await text()).toBe('cache:\n  ')
    await page.keyboard.press('Control+Space')
    await page
      .locator('.code-area [role=status]')
      .getByText(/suggestions/)
      .waitFor()
    await screenshots(page, 'config-completion', [390, 1280])
    await list.getByRole('option', { name: 'storage' }).click()
    expect(await text()).toBe('cache:\n  storage: ')
    await page.keyboard.type('d')
    await page.keyboard.press('Tab')
    expect(await text()).toBe('cache:\n  storage: database')
    await page.keyboard.press('Control+z')
    expect(await text()).not.toContain('database')
    await page.keyboard.press('End')
    await page.keyboard.press('Control+Space')
    await list.waitFor()
    await page.keyboard.press('Escape')
    expect(await list.count()).toBe(0)
    await page.keyboard.press('Tab')
    expect(await editor.evaluate((element) => element === document.activeElement)).toBe(false)
  })

  // By click, then by keyboard: each change of the walk is undone at its end.
  it.each([
    ['click', 41],
    ['keyboard', 42],
  ] as const)('is changed, found in the history and rolled back by %s', async (how, limit) => {
    const before = readFileSync(file, 'utf8')
    const page = await opened.open('/config')
    const act = async (kind: 'button' | 'link', name: string) => {
      const control = page.getByRole(kind, { name, exact: true }).first()
      if (how === 'click') return control.click()
      await control.focus()
      await page.keyboard.press('Enter')
    }
    const reviewAndApply = async (change: string) => {
      await act('button', 'Check and compare')
      await page.getByRole('region', { name: 'Changes' }).getByText(change).first().waitFor()
      await act('button', 'Apply')
      await act('button', 'Apply it')
      await page
        .locator('.toasts')
        .getByText(/in force|next start/)
        .first()
        .waitFor()
    }
    await act('link', 'Edit')
    const editor = page.getByRole('textbox', { name: file })
    await editor.fill(`${await editor.inputValue()}server: { keep_alive_seconds: ${limit} }\n`)
    await reviewAndApply('server.keep_alive_seconds')
    await expectSoon(async () => readFileSync(file, 'utf8'), expect.stringContaining(`keep_alive_seconds: ${limit}`))
    await act('link', 'Earlier configurations')
    await page.getByRole('heading', { name: 'Earlier configurations' }).waitFor()
    await page.getByText(String(limit)).first().waitFor()
    await act('link', 'Restore in the editor')
    await page.waitForURL('**version=cfg_*')
    await page.getByText('Nothing changes before you apply it.').waitFor()
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, `config-restored-${how}`, [390, 1440, 2560])
    await expectSoon(() => editor.inputValue(), expect.not.stringContaining(`keep_alive_seconds: ${limit}`))
    await reviewAndApply('server.keep_alive_seconds')
    await expectSoon(async () => readFileSync(file, 'utf8'), before)
    expect(await page.content()).not.toContain(SECRET)
  })

  it('keeps a draft when the file changes meanwhile, and compares it with the new file or takes that', async () => {
    const before = readFileSync(file, 'utf8')
    const page = await opened.open('/config/edit', { allowed: /412/ })
    const editor = page.getByRole('textbox', { name: file })
    const changed = page.getByRole('alert').filter({ hasText: 'The file has changed' })
    await editor.fill(`${await editor.inputValue()}server: { keep_alive_seconds: 43 }\n`)
    writeFileSync(file, before.replace('# of', '# Changed by another hand, of'))
    await page.getByRole('button', { name: 'Check and compare' }).click()
    await changed.waitFor()
    expect(await editor.inputValue()).toContain('keep_alive_seconds: 43')
    expect(await axeFaults(page)).toEqual([])
    await screenshots(page, 'config-changed', [390, 1280])
    await page.getByRole('button', { name: 'Compare with the new file' }).click()
    await page.getByRole('region', { name: 'Changes' }).getByText('server.keep_alive_seconds').waitFor()
    expect(await changed.count()).toBe(0)
    writeFileSync(file, before)
    await page.getByRole('button', { name: 'Check and compare' }).click()
    await page.getByRole('button', { name: 'Discard mine and take the new file' }).click()
    await expectSoon(() => editor.inputValue(), expect.not.stringContaining('keep_alive_seconds: 43'))
    expect(await changed.count()).toBe(0)
  })

  it('gives the masks of a draft the numbers of the new file', async () => {
    const before = readFileSync(file, 'utf8')
    const page = await opened.open('/config/edit', { allowed: /412|400/ })
    const editor = page.getByRole('textbox', { name: file })
    const draft = `${await editor.inputValue()}server: { keep_alive_seconds: 44 }\n`
    const compareWithNew = () => page.getByRole('button', { name: 'Compare with the new file' }).click()
    await editor.fill(`${draft}server: [`)
    writeFileSync(
      file,
      before.replace('  acme:', `  aaa: { base_url: 'http://127.0.0.1:9/v1', key: sk-of-another-01 }\n  acme:`),
    )
    await page.getByRole('button', { name: 'Check and compare' }).click()
    await compareWithNew()
    await page.getByText('not valid YAML').waitFor()
    await editor.fill(draft)
    await compareWithNew()
    const changes = page.getByRole('region', { name: 'Changes' })
    await changes.getByText('server.keep_alive_seconds').waitFor()
    expect(await editor.inputValue()).toContain("key: '***2'")
    expect(await changes.textContent()).not.toContain('acme')
    writeFileSync(file, before)
  })

  it('offers earlier configurations where the file is broken, and forgets the earlier one when it is discarded', async () => {
    const before = readFileSync(file, 'utf8')
    writeFileSync(file, 'providers: [')
    const page = await opened.open('/config/edit')
    await page.getByText('There is no file to edit').waitFor()
    await page.getByRole('link', { name: 'Restore an earlier configuration' }).click()
    await page.getByRole('link', { name: 'Restore in the editor' }).last().click()
    const editor = page.getByRole('textbox', { name: file })
    await expectSoon(() => editor.inputValue(), expect.stringContaining("'***99999'"))
    await page.getByText('write secrets (***99999) anew').waitFor()
    writeFileSync(file, before)
    await page.getByRole('button', { name: 'Discard' }).click()
    await expectSoon(() => page.getByText('Nothing changes before you apply it.').count(), 0)
  })

  it('is edited by owners only', async () => {
    const page = await opened.open('/config', { role: 'viewer' })
    expect(await page.getByRole('link', { name: 'Edit' }).count()).toBe(0)
  })
})
