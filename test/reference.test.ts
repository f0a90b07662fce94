/** The generated pages of the manual are those that the code makes now. */
import { describe, expect, it } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { consoleTypes } from '../scripts/reference/console-types.ts'
import { manualIndex } from '../scripts/reference/manual-index.ts'
import { pagesWithTables } from '../scripts/reference/page-tables.ts'
import { referencePages } from '../scripts/reference/pages.ts'
import { providerFromEnvironment, providerOf } from '../scripts/reference/providers.ts'
import { ENVIRONMENT_VARIABLES } from '../src/config/load/environment.ts'
import { DEFAULT_ADDRESSES, KINDS, type KindRow, PROVIDER_KINDS } from '../src/config/schema/provider-kinds.ts'
import { AI_SDK_VENDORS } from '../src/providers/ai-sdk/vendors.ts'
import { PRESETS } from '../src/providers/presets.ts'
import { MANUAL_DIRECTORY } from './kit/manual.ts'

const SOURCE = join(import.meta.dir, '../src')
const sources = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
  .map((name) => ({ name, text: readFileSync(join(SOURCE, name), 'utf8') }))
const pages = [...(await referencePages()), ...pagesWithTables(), await consoleTypes()]

describe('the generated reference (else: npm run docs:reference)', () => {
  it.each(pages.map(({ path, text }) => [path, text]))('%s is up to date', (path, text) => {
    expect(readFileSync(join(MANUAL_DIRECTORY, path), 'utf8')).toBe(text)
  })

  it('has an index of all pages that is up to date', async () => {
    const { path, text } = await manualIndex()
    expect(readFileSync(join(MANUAL_DIRECTORY, path), 'utf8')).toBe(text)
  })

  it('gives a meaning for every setting', () => {
    const { text = '' } = pages.find(({ path }) => path.endsWith('/settings.md')) ?? {}
    const rows = text.split('\n').filter((line) => line.startsWith('- `'))
    expect(rows.length).toBeGreaterThan(250)
    expect(rows.filter((row) => !/[)`]: \S/.test(row) && !/\((range|as above|as \[.*)\)$/.test(row))).toEqual([])
  })
})

describe('the table of provider kinds', () => {
  const rows = PROVIDER_KINDS.map((kind) => [kind, KINDS[kind] as KindRow] as const)

  it.each(rows)('has every option of %s', (kind, { options = {} }) => {
    const wrong = { kind, base_url: 'https://api.example.com/v1', options: { no_such_option: 1 } }
    let message = ''
    try {
      providerOf(wrong)
    } catch (error) {
      message = error instanceof Error ? error.message : String(error)
    }
    const [, names] = /it has (.*)$/.exec(message) ?? []
    // A kind that does not check the names of its options reads each by name.
    if (names) expect(Object.keys(options)).toEqual(names.split(', '))
    const read = sources.filter(({ name }) => name.startsWith('providers/')).map(({ text }) => text)
    for (const name of Object.keys(options))
      expect(read.some((text) => new RegExp(`\\b${name}\\b`).test(text))).toBe(true)
  })

  const fromTable = rows.filter(([kind]) => {
    const row = Object.hasOwn(AI_SDK_VENDORS, kind) && AI_SDK_VENDORS[kind as keyof typeof AI_SDK_VENDORS]
    return row && typeof row !== 'function' && row.keyVariables === undefined
  })

  it.each(fromTable)('lists the variables from which %s reads its key', (kind, { environment = [] }) => {
    expect(() => providerFromEnvironment(kind, {})).toThrow(`, or set ${environment.join(' or ')}`)
    for (const name of environment) expect(providerFromEnvironment(kind, { [name]: 'a-key' }).kind).toBe(kind)
  })

  it('has every variable that the code of a kind reads, and no other', () => {
    const listed = new Set(rows.flatMap(([, { environment = [] }]) => environment))
    const presets = new Set(Object.values(PRESETS).flatMap(({ key_env }) => key_env))
    const readFromTable = new Set(fromTable.flatMap(([, { environment = [] }]) => environment))
    const isRead = (name: string) =>
      readFromTable.has(name) ||
      sources.some(({ name: file, text }) => file.startsWith('providers/') && new RegExp(`\\b${name}\\b`).test(text))
    expect([...listed].filter((name) => !isRead(name))).toEqual([])
    const named = sources
      .filter(({ name }) => name.startsWith('providers/') && name !== 'providers/presets.ts')
      .flatMap(({ text }) => [...text.matchAll(/'([A-Z]+(?:_[A-Z]+)*_(?:KEY|TOKEN|SECRET|KEY_ID))'/g)])
      .map(([, name = '']) => name)
    expect(named.length).toBeGreaterThan(10)
    expect([...new Set(named)].filter((name) => !listed.has(name) && !presets.has(name))).toEqual([])
  })
})

describe('the table of default addresses', () => {
  const addresses = Object.entries(DEFAULT_ADDRESSES).flatMap(([kind, text]) =>
    [...text.matchAll(/`([^`]+)`/g)].map(([, address = '']) => [kind, address] as const),
  )

  it.each(addresses)('has for %s the address %s that the code calls', (_, address) => {
    const calling = sources.filter(({ name }) => name.startsWith('providers/'))
    expect(calling.some(({ text }) => text.includes(`'${address}`))).toBe(true)
  })
})

describe('the table of environment variables', () => {
  it('has every GATEHOUSE_ variable that the gateway reads', () => {
    const read = sources
      .filter(({ name }) => name === 'config/load/environment.ts')
      .flatMap(({ text }) => [...text.matchAll(/given\('(GATEHOUSE_\w+)'/g)].map(([, name = '']) => name))
      // Read before all others, by config/load/environment-file.ts; and by commands, in cli/admin-api.ts.
      .concat('GATEHOUSE_ENV_FILE', 'GATEHOUSE_URL')
    expect(read.sort()).toEqual(Object.keys(ENVIRONMENT_VARIABLES).sort())
  })
})
