/** Completion in the console's editor: what is suggested at the cursor of a configuration, `|` in the texts. */
import { describe, expect, it } from 'bun:test'
import { completionAt, type Schema } from '../console/src/pages/config/completion.ts'
import { configJsonSchema } from '../src/config/schema/json-schema.ts'

const SCHEMA = configJsonSchema() as Schema

function at(marked: string) {
  const cursor = marked.indexOf('|')
  const text = marked.replace('|', '')
  const found = completionAt(SCHEMA, text, cursor)
  const labels = found?.suggestions.map(({ label }) => label) ?? []
  const apply = (label: string) => {
    const chosen = found?.suggestions.find((one) => one.label === label)
    if (!found || !chosen) throw new Error(`${label} is not suggested: ${labels}`)
    return `${text.slice(0, found.from)}${chosen.insert}|${text.slice(found.to)}`
  }
  return { labels, apply, first: found?.suggestions[0] }
}

describe('keys', () => {
  it.each([
    ['|', 'providers'],
    ['prov|', 'providers'],
    ['server:\n  po|', 'port'],
    ['server:\n  port: 1\n  |', 'host'],
    ['server: { po| }', 'port'],
    ['server: {\n  port: 1,\n  ho|\n}', 'host'],
    ['providers:\n  acme:\n    ba|', 'base_url'],
    ['models:\n  a/b:c:\n    tar|', 'targets'],
    ['models:\n  m:\n    targets:\n      - pro|', 'provider'],
    ['models:\n  m:\n    targets:\n    - provider: x\n      mo|', 'model'],
    ['models:\n  m:\n    targets: [{ provider: x, m| }]', 'model'],
    ['providers:\n  acme: # of the team\n    base_url: "http://a#b" # c\n    ke|', 'key'],
    ['providers:\n  "a: b": { ke|', 'key'],
  ])('suggests in %j the key %s', (text, key) => {
    expect(at(text).labels).toContain(key)
  })

  it('leaves out keys that are there, before and after the cursor', () => {
    const { labels } = at('server:\n  host: a\n  |\n  port: 1\n')
    expect(labels).not.toContain('host')
    expect(labels).not.toContain('port')
    expect(at('server: { host: a, | , port: 1 }').labels).not.toContain('port')
    expect(at('server: { host: a, po|rt: 1 }').labels).toContain('port')
  })

  it('goes on in the next line where the value is a mapping, and keeps a colon that is there', () => {
    expect(at('serv|').apply('server')).toBe('server:\n  |')
    expect(at('server:\n  po|').apply('port')).toBe('server:\n  port: |')
    expect(at('server:\n  po|: 1').apply('port')).toBe('server:\n  port|: 1')
    expect(at('server: { po|xx }').apply('port')).toBe('server: { port: | }')
  })

  it('says what a key is for', () => {
    expect(at('server:\n  po|').first?.note).toContain('Port to listen on')
  })
})

describe('values', () => {
  it.each([
    ['sandbox: t|', 'true'],
    ['sandbox: |', 'false'],
    ['server: { workers: | }', 'auto'],
    ['cache:\n  storage: v|', 'valkey'],
    ['providers: { acme: {} }\nmodels:\n  m:\n    targets:\n      - provider: |', 'acme'],
    ['models:\n  m: { targets: [{ provider: | }] }\nproviders:\n  acme: {}', 'acme'],
  ])('suggests in %j the value %s', (text, value) => {
    expect(at(text).labels).toContain(value)
  })

  it.each([
    '# prov|',
    'sandbox: true # t|',
    'data_dir: "t|',
    'data_dir: |',
    'models:\n  m:\n    description: >\n      prov|',
    'nobody:\n  knows:\n    th|',
    'server: { port: 1 } |',
    '- |',
  ])('suggests nothing in %j', (text) => {
    expect(at(text).labels).toEqual([])
  })

  it('replaces the rest of a word and quotes a name that YAML would read as something else', () => {
    expect(at('sandbox: t|ru').apply('true')).toBe('sandbox: true|')
    const names = at('providers: { "a: b": {} }\nmodels: { m: { targets: [{ provider: | }] } }')
    expect(names.apply('a: b')).toContain('provider: "a: b"|')
  })
})

it('stays quick, and throws nowhere, at every place of a long and of a broken text', () => {
  const line = 'models:\n  a: { targets: [{ provider: p, model: "m" }], x: [1, \'2\', {' // left open
  for (let cursor = 0; cursor <= line.length; cursor++) completionAt(SCHEMA, line, cursor)
  const long = 'providers:\n'.concat(
    Array.from({ length: 3_000 }, (_, n) => `  p${n}: { base_url: 'http://127.0.0.1/${n}', key: k }\n`).join(''),
  )
  const began = performance.now()
  expect(at(`${long}  last:\n    ba|`).labels).toContain('base_url')
  expect(performance.now() - began).toBeLessThan(10_000)
})
