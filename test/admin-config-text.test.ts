/** The configuration for an editor: its text with masks, and the configurations that were in force. */
import { afterEach, describe, expect, it } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type AdminGateway, refusal, startAdminGateway } from './kit/admin.ts'
import { ENGINES } from './kit/engines.ts'

const TEXT = `# of the team
providers:
  acme: { base_url: 'https://api.acme.test/v1', key: sk-literal-0123456789 }
`
const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function start(store_url = 'sqlite::memory:') {
  const root = mkdtempSync(join(tmpdir(), 'gatehouse-config-text-'))
  closing.push(() => rmSync(root, { recursive: true }))
  const [file, data_dir] = [join(root, 'gatehouse.yaml'), join(root, 'data')]
  mkdirSync(data_dir)
  writeFileSync(file, TEXT)
  const gateway: AdminGateway = await startAdminGateway({ file, data_dir }, { store_url })
  closing.push(() => gateway[Symbol.asyncDispose]())
  const shown = () => gateway.read<{ text: string; version: string; file: string }>('/config/text')
  const apply = (text: string, base?: string) => gateway.admin('/config/apply', { json: { text, base } })
  const history = async () => (await gateway.read<{ data: { version_id: string }[] }>('/config/history')).data
  return { gateway, file, shown, apply, history }
}

describe('the text of the configuration', () => {
  it('is edited without its secrets, which stay in the file', async () => {
    const { file, shown, apply } = await start()
    const { text, version } = await shown()
    expect(text).toBe(TEXT.replace('sk-literal-0123456789', "'***1'"))
    const response = await apply(`${text}sandbox: false\n`, version)
    expect([response.status, readFileSync(file, 'utf8')]).toEqual([200, `${TEXT}sandbox: false\n`])
  })

  it('is audited with the guards that it changes, and without their patterns', async () => {
    const { gateway, shown, apply } = await start()
    const { text, version } = await shown()
    const guards = 'guards:\n  falcons: { kind: patterns, words: [project-falcon], mode: observe }\n'
    expect((await apply(`${text}${guards}`, version)).status).toBe(200)
    const audit = JSON.stringify(await gateway.read('/audit'))
    expect(audit).toContain('guards.falcons.mode')
    expect(audit).not.toContain('project-falcon')
  })

  it('is refused where the file was changed since, where masks have no base, and where a secret would leave', async () => {
    const { file, shown, apply } = await start()
    const { text, version } = await shown()
    expect(await refusal(await apply(text))).toEqual([400, 'invalid_value'])
    const elsewhere = await apply(text.replace('api.acme.test', 'evil.test'), version)
    expect(await refusal(elsewhere)).toEqual([400, 'invalid_value'])
    writeFileSync(file, `${TEXT}log_level: debug\n`)
    expect(await refusal(await apply(`${text}sandbox: false\n`, version))).toEqual([412, 'precondition_failed'])
  })
})

describe('a configuration of the history', () => {
  it('comes back with its own secrets, whatever was added above them', async () => {
    const { gateway, file, shown, apply, history } = await start()
    const { text, version } = await shown()
    const added = text.replace(
      '  acme:',
      "  aaa: { base_url: 'https://aaa.test/v1', key: sk-added-0123456789 }\n  acme:",
    )
    gateway.clock.advance(1_000)
    expect((await apply(added, version)).status).toBe(200)
    const first = (await history()).at(-1)?.version_id
    const { text: earlier } = await gateway.read<{ text: string }>(`/config/history/${first}`)
    expect(earlier).toBe(text.replace('***1', '***2'))
    gateway.clock.advance(1_000)
    expect((await apply(earlier, (await shown()).version)).status).toBe(200)
    expect(readFileSync(file, 'utf8')).toBe(TEXT)
    const second = (await history())[1]?.version_id
    const { text: lost } = await gateway.read<{ text: string }>(`/config/history/${second}`)
    expect(lost).toContain("key: '***99999'")
    expect(await refusal(await apply(lost, (await shown()).version))).toEqual([400, 'invalid_value'])
  })
})

describe('an earlier configuration, while the present file is broken', () => {
  it('names the file that its masks are of, and replaces it with its secrets written anew', async () => {
    const { gateway, file, shown, apply, history } = await start()
    const [first] = await history()
    writeFileSync(file, 'providers: [')
    const present = await shown()
    expect(present.text).toBeNull()
    const earlier = await gateway.read<{ text: string; base: string }>(`/config/history/${first?.version_id}`)
    expect(earlier).toMatchObject({ text: TEXT.replace('sk-literal-0123456789', "'***99999'"), base: present.version })
    expect(await refusal(await apply(earlier.text, earlier.base))).toEqual([400, 'invalid_value'])
    const response = await apply(earlier.text.replace("'***99999'", 'sk-anew-0123456789'), earlier.base)
    expect([response.status, readFileSync(file, 'utf8')]).toEqual([
      200,
      TEXT.replace('sk-literal-0123456789', 'sk-anew-0123456789'),
    ])
  })
})

describe.each(ENGINES)('the history of configurations, on $name', (engine) => {
  it('has the first one and each that was applied, with who did it, and no secret', async () => {
    closing.push(engine.cleanup)
    await engine.open()
    const { gateway, shown, apply, history } = await start(engine.url?.())
    const { text, version } = await shown()
    gateway.clock.advance(1_000)
    await apply(`${text}sandbox: false\n`, version)
    await apply(`${text}sandbox: false\n`, (await shown()).version)
    const versions = await history()
    expect(versions).toMatchObject([
      { object: 'config.version', actor: 'environment', changes: [{ path: 'sandbox', after: false }] },
      { actor: 'gateway', changes: [], version },
    ])
    const one = await gateway.read(`/config/history/${versions[0]?.version_id}`)
    expect(one).toMatchObject({ text: `${text}sandbox: false\n` })
    expect(JSON.stringify([versions, one])).not.toContain('sk-literal')
    expect(await refusal(await gateway.admin('/config/history/none'))).toEqual([404, 'object_not_found'])
  })
})
