import { afterEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import schema from '../../../gatehouse.schema.json' with { type: 'json' }
import { ConfigError } from '../check/problem.ts'
import { loadConfig } from '../load/load.ts'
import { changesBetween } from './config-diff.ts'
import { createConfigSource } from './source.ts'

const directories: string[] = []
afterEach(() => {
  for (const path of directories.splice(0)) rmSync(path, { recursive: true })
})

const KEY = 'sk-secret-0123456789'
const TEXT = `server:
  port: 9000
providers:
  acme:
    base_url: https://api.acme.test/v1
    key: \${ACME_KEY}
  other: { base_url: 'https://other.test/v1', key: ${KEY} }
models:
  acme/large: { targets: [{ provider: acme, model: large }] }
`

function setUp(text?: string, environment: Record<string, string> = { ACME_KEY: KEY }) {
  const cwd = mkdtempSync(join(tmpdir(), 'gatehouse-source-'))
  directories.push(cwd)
  const file = join(cwd, 'gatehouse.yaml')
  if (text !== undefined) writeFileSync(file, text)
  const source = createConfigSource({ environment, cwd })
  const setting = (path: string) => source.show().find((one) => one.path === path)
  return { cwd, file, source, setting, environment }
}

describe('the configuration in use', () => {
  test('says of each setting where it comes from', () => {
    const { setting, file } = setUp(TEXT, { ACME_KEY: KEY, GATEHOUSE_HOST: '0.0.0.0', GATEHOUSE_LOG: 'warn' })
    expect(setting('server.port')).toEqual({
      path: 'server.port',
      value: 9000,
      source: { from: 'file', file, line: 2 },
    })
    expect(setting('server.host')).toMatchObject({
      value: '0.0.0.0',
      source: { from: 'environment', name: 'GATEHOUSE_HOST' },
    })
    expect(setting('log_level')?.source).toEqual({ from: 'environment', name: 'GATEHOUSE_LOG' })
    expect(setting('timeouts.connect_seconds')).toMatchObject({ value: 10, source: { from: 'default' } })
    expect(setting('models.acme/large.targets[0].model')?.source).toMatchObject({ from: 'file', line: 9 })
  })

  test('names a flag', () => {
    const { cwd } = setUp(TEXT)
    const source = createConfigSource({ environment: { ACME_KEY: KEY }, cwd, flags: { port: '1' } })
    expect(source.show().find(({ path }) => path === 'server.port')).toMatchObject({
      value: 1,
      source: { from: 'command line', name: '--port' },
    })
  })

  test('never shows a secret, and names the variable of one', () => {
    const { source, setting } = setUp(TEXT)
    expect(JSON.stringify(source.show())).not.toContain(KEY)
    expect(setting('providers.acme.key')).toMatchObject({ value: '${ACME_KEY}', source: { from: 'file', line: 6 } })
    expect(setting('providers.other.key')?.value).toBe('***')
  })

  test('of a running gateway may be older than the file', () => {
    const { source, cwd, file, environment } = setUp(TEXT)
    const running = loadConfig({ environment, cwd })
    writeFileSync(file, TEXT.replace('9000', '9001'))
    const shown = source.show(running)
    expect(shown.find(({ path }) => path === 'server.port')).toMatchObject({
      value: 9000,
      source: { from: 'earlier file' },
    })
    expect(shown.find(({ path }) => path === 'providers.acme.base_url')?.source).toMatchObject({ from: 'file' })
  })

  test('hides what a variable may have filled in, where the file has changed since', () => {
    const text = "outputs: { directory: '${ACME_KEY}', keep_days: 3 }\n"
    const { source, cwd, file, environment, setting } = setUp(text)
    expect(setting('outputs.directory')?.value).toBe('${ACME_KEY}')
    const running = loadConfig({ environment, cwd })
    writeFileSync(file, 'outputs: { directory: elsewhere, keep_days: 4 }\n')
    const shown = source.show(running).filter(({ path }) => path.startsWith('outputs.'))
    expect(shown).toContainEqual({ path: 'outputs.directory', value: '***', source: { from: 'earlier file' } })
    expect(shown).toContainEqual({ path: 'outputs.keep_days', value: 3, source: { from: 'earlier file' } })
  })
})

describe('a proposed file', () => {
  test('is compared by setting, without secrets', () => {
    const { source } = setUp(TEXT)
    const next = TEXT.replace('9000', '9001').replace('key: ${ACME_KEY}', `key: ${KEY}-2\n    health: {}`)
    const { changes, needs_restart, emptied } = source.diff(next)
    expect(changes).toEqual([
      { path: 'server.port', kind: 'changed', before: 9000, after: 9001 },
      { path: 'providers.acme.key', kind: 'changed', before: '${ACME_KEY}', after: '***' },
      { path: 'providers.acme.health', kind: 'added', before: null, after: {} },
    ])
    expect([needs_restart, emptied]).toEqual([['server.port'], []])
    expect(source.diff('').emptied).toEqual(['providers', 'models'])
  })

  test('needs a restart for each setting whose description says so', () => {
    const sections = Object.entries(schema.properties as Record<string, { description?: string; properties?: object }>)
    const isNamed = ({ description = '' }: { description?: string }) => description.includes('Needs a restart')
    const named = sections.flatMap(([section, one]) =>
      Object.entries(one.properties ?? {})
        .filter(([, member]) => isNamed(one) || isNamed(member))
        .map(([member]) => [section, member] as const),
    )
    expect(named.length).toBeGreaterThan(8)
    const config = (section: string, member: string, value: number) =>
      ({ [section]: { [member]: value } }) as unknown as Parameters<typeof changesBetween>[0]
    for (const [section, member] of named) {
      const { needs_restart } = changesBetween(config(section, member, 1), config(section, member, 2))
      expect(needs_restart).toEqual([`${section}.${member}`])
    }
  })

  test('is applied once, with a backup of what was there', async () => {
    const { source, file } = setUp(TEXT)
    const next = TEXT.replace('9000', '9001')
    expect(await source.apply(next)).toMatchObject({ written: true, backup: `${file}.bak` })
    expect(readFileSync(file, 'utf8')).toBe(next)
    expect(await source.apply(next)).toEqual({
      written: false,
      backup: null,
      changes: [],
      needs_restart: [],
      emptied: [],
    })
    expect(readFileSync(`${file}.bak`, 'utf8')).toBe(TEXT)
  })

  test('that is not valid is not applied', async () => {
    const { source, file } = setUp(TEXT)
    await expect(source.apply('server: { port: many }')).rejects.toBeInstanceOf(ConfigError)
    expect(readFileSync(file, 'utf8')).toBe(TEXT)
  })

  test('that no gateway could start with is not applied', async () => {
    const { cwd, file } = setUp(TEXT)
    const check = () => {
      throw new Error('providers.acme: no such kind')
    }
    const source = createConfigSource({ environment: { ACME_KEY: KEY }, cwd, check })
    await expect(source.apply(`${TEXT}sandbox: false\n`)).rejects.toThrow('no such kind')
    expect(readFileSync(file, 'utf8')).toBe(TEXT)
  })

  test('replaces one that is not valid, and creates one where there is none', async () => {
    const invalid = setUp('server: [')
    expect(await invalid.source.apply(TEXT)).toMatchObject({ written: true })
    const none = setUp()
    expect(await none.source.apply(TEXT)).toMatchObject({ written: true, backup: null })
    expect(readFileSync(none.file, 'utf8')).toBe(TEXT)
  })
})
