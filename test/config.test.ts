/** The configuration: what is read from where, and that whatever is wrong is told with its place. */
import { describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Ajv from 'ajv'
import fc from 'fast-check'
import { parse } from 'yaml'
import { ConfigError } from '../src/config/check/problem.ts'
import {
  DEFAULT_ADMIN,
  DEFAULT_BATCHES,
  DEFAULT_CACHE,
  DEFAULT_FILES,
  DEFAULT_LEDGER,
  DEFAULT_LIMITS,
  DEFAULT_OUTPUTS,
  DEFAULT_REQUEST_LOG,
  DEFAULT_RESPONSES,
  DEFAULT_SERVER,
  DEFAULT_TASKS,
  DEFAULT_TIMEOUTS,
} from '../src/config/config.ts'
import { type LoadParts, loadConfig } from '../src/config/load/load.ts'
import { configJsonSchema, configJsonSchemaText } from '../src/config/schema/json-schema.ts'
import { knownVendors } from '../src/gateway/known-vendors.ts'
import { loadManual } from '../src/site/manual/load-manual.ts'

const ROOT = join(import.meta.dir, '..')
const NOW = Date.UTC(2026, 0, 1) / 1000

type Settings = Partial<LoadParts> & { yaml?: string }

function load({ yaml, ...parts }: Settings = {}) {
  const readFile = (path: string) => (path === '/etc/gate/gatehouse.yaml' ? yaml : undefined)
  return loadConfig({ environment: {}, cwd: '/etc/gate', readFile, vendors: knownVendors({}), now: NOW, ...parts })
}

/** The lines in which the problems are told. */
function problems(settings: Settings): string[] {
  try {
    load(settings)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.message.split('\n')
  }
  return []
}

const wrong = (yaml: string, environment: Record<string, string> = {}) => problems({ yaml, environment })

describe('without a file', () => {
  test('all settings have their defaults', () => {
    expect(load()).toEqual({
      file: undefined,
      data_dir: '/etc/gate/data',
      store_url: 'sqlite:/etc/gate/data/gatehouse.db',
      store: { migrate: 'auto' },
      log_level: 'info',
      bootstrap_token: undefined,
      admin_token: undefined,
      server: DEFAULT_SERVER,
      sandbox: true,
      discover: true,
      when_retired: 'refuse',
      tokens: { models: ['*'] },
      projects: {},
      api_tokens: {},
      admin_tokens: {},
      timeouts: DEFAULT_TIMEOUTS,
      calls: { finish_after_leave_seconds: 30 },
      tasks: DEFAULT_TASKS,
      outputs: DEFAULT_OUTPUTS,
      cache: DEFAULT_CACHE,
      rate_limits: {},
      limits: DEFAULT_LIMITS,
      valkey: undefined,
      budgets: [],
      alerts: {},
      telemetry: {},
      metrics: { enabled: true, require_token: 'remote' },
      mcp: {
        enabled: true,
        approve: 'auto',
        max_sessions: 2000,
        max_token_sessions: 200,
        idle_minutes: 30,
        max_chat_rounds: 10,
        max_chat_calls: 50,
        max_chat_seconds: 300,
        servers: {},
      },
      admin: DEFAULT_ADMIN,
      request_log: DEFAULT_REQUEST_LOG,
      responses: DEFAULT_RESPONSES,
      files: DEFAULT_FILES,
      batches: DEFAULT_BATCHES,
      ledger: DEFAULT_LEDGER,
      providers: {},
      guards: {},
      models: {},
    })
  })

  test('a named file must exist', () => {
    expect(problems({ environment: { GATEHOUSE_CONFIG: 'other.yaml' } })).toEqual([
      'other.yaml  cannot be read: there is no such file',
    ])
  })

  test('an unreadable file is reported', () => {
    const readFile = () => {
      throw Object.assign(new Error('secret words'), { code: 'EACCES' })
    }
    expect(problems({ readFile })).toEqual(['gatehouse.yaml  cannot be read: permission denied'])
  })

  test('a file in another encoding than UTF-8 is reported', () => {
    const path = join(mkdtempSync(join(tmpdir(), 'gatehouse-')), 'utf-16.yaml')
    writeFileSync(path, '\ufeffsandbox: false', 'utf16le')
    expect(() => loadConfig({ environment: { GATEHOUSE_CONFIG: path }, cwd: '/' })).toThrow('it is not UTF-8')
  })

  test('a directory is reported', () => {
    expect(() => loadConfig({ environment: { GATEHOUSE_CONFIG: '/' }, cwd: '/' })).toThrow('it is a directory')
  })
})

describe('the environment', () => {
  test('sets what it names', () => {
    const config = load({
      environment: {
        GATEHOUSE_HOST: '::1',
        GATEHOUSE_PORT: '0',
        GATEHOUSE_DATA_DIR: '../elsewhere',
        GATEHOUSE_BOOTSTRAP_TOKEN: 'sk-abcdefghijklmnopqrstuvwxyz',
        GATEHOUSE_LOG: 'DEBUG',
        GATEHOUSE_DISCOVER: 'off',
      },
    })
    expect(config.server).toEqual({ ...DEFAULT_SERVER, host: '::1', port: 0 })
    expect(config).toMatchObject({
      data_dir: '/etc/elsewhere',
      bootstrap_token: 'sk-abcdefghijklmnopqrstuvwxyz',
      log_level: 'debug',
      discover: false,
    })
  })

  test('wins over the file, and a flag wins over both', () => {
    const yaml = 'server: { host: 10.0.0.1, port: 1 }'
    expect(load({ yaml }).server).toMatchObject({ host: '10.0.0.1', port: 1 })
    const environment = { GATEHOUSE_HOST: 'b.example', GATEHOUSE_PORT: '2' }
    expect(load({ yaml, environment }).server).toMatchObject({ host: 'b.example', port: 2 })
    const flags = { host: '0.0.0.0', port: '3', data_dir: '/d' }
    const config = load({ yaml, environment: { ...environment, GATEHOUSE_DATA_DIR: '/e' }, flags })
    expect(config.server).toMatchObject({ host: '0.0.0.0', port: 3 })
    expect(config.data_dir).toBe('/d')
  })

  test('ignores empty variables', () => {
    const environment = Object.fromEntries(
      ['CONFIG', 'HOST', 'PORT', 'DATA_DIR', 'BOOTSTRAP_TOKEN', 'ADMIN_TOKEN', 'LOG', 'DISCOVER'].map((name) => [
        `GATEHOUSE_${name}`,
        '',
      ]),
    )
    expect(load({ environment })).toEqual(load())
  })

  test.each([
    [{ GATEHOUSE_PORT: '65536' }, 'GATEHOUSE_PORT: found "65536", must be an integer from 0 to 65535'],
    [{ GATEHOUSE_PORT: '-1' }, 'GATEHOUSE_PORT: found "-1", must be an integer from 0 to 65535'],
    [{ GATEHOUSE_PORT: '80.5' }, 'GATEHOUSE_PORT: found "80.5", must be an integer from 0 to 65535'],
    [
      { GATEHOUSE_HOST: 'http://x' },
      'GATEHOUSE_HOST: found "http://x", must be an address or a host name, such as 127.0.0.1 or ::',
    ],
    [
      { GATEHOUSE_HOST: 'a b' },
      'GATEHOUSE_HOST: found "a b", must be an address or a host name, such as 127.0.0.1 or ::',
    ],
    [{ GATEHOUSE_LOG: 'loud' }, 'GATEHOUSE_LOG: found "loud", must be one of debug, info, warn, error, silent'],
    [{ GATEHOUSE_DISCOVER: 'yes' }, 'GATEHOUSE_DISCOVER: found "yes", must be on or off'],
    [
      { GATEHOUSE_BOOTSTRAP_TOKEN: 'guessable-guessable' },
      'GATEHOUSE_BOOTSTRAP_TOKEN: found 19 characters, must be 20 to 512 visible ASCII characters without spaces',
    ],
    [
      { GATEHOUSE_ADMIN_TOKEN: 'guessable-guessable' },
      'GATEHOUSE_ADMIN_TOKEN: found 19 characters, must be 20 to 512 visible ASCII characters without spaces',
    ],
    [
      { GATEHOUSE_ADMIN_TOKEN: 'a'.repeat(20), GATEHOUSE_BOOTSTRAP_TOKEN: 'a'.repeat(20) },
      'GATEHOUSE_ADMIN_TOKEN: is the value of GATEHOUSE_BOOTSTRAP_TOKEN too; an API token is no admin token',
    ],
    [
      { GATEHOUSE_BOOTSTRAP_TOKEN: 'with a space in the middle' },
      'GATEHOUSE_BOOTSTRAP_TOKEN: found 26 characters, must be 20 to 512 visible ASCII characters without spaces',
    ],
  ])('rejects %p', (environment, message) => {
    expect(problems({ environment })).toEqual([message])
  })

  test('is accepted at its limits', () => {
    expect(load({ environment: { GATEHOUSE_PORT: '65535' } }).server.port).toBe(65_535)
    for (const length of [20, 512]) {
      const token = 'a'.repeat(length)
      expect(load({ environment: { GATEHOUSE_BOOTSTRAP_TOKEN: token } }).bootstrap_token).toBe(token)
    }
    expect(problems({ environment: { GATEHOUSE_BOOTSTRAP_TOKEN: 'a'.repeat(513) } })).toHaveLength(1)
  })

  test('and flags are reported by name, together with the problems of the file', () => {
    const settings = { yaml: 'sandbox: 1', environment: { GATEHOUSE_LOG: 'x' }, flags: { port: 'many', data_dir: '' } }
    expect(problems(settings)).toEqual([
      '--port: found "many", must be an integer from 0 to 65535',
      'GATEHOUSE_LOG: found "x", must be one of debug, info, warn, error, silent',
      '--data-dir: is empty, must be the path of a directory',
      'gatehouse.yaml:1:10  sandbox: found 1 (number), must be true or false',
    ])
  })

  test.each([
    [undefined, undefined, true],
    [undefined, 'off', false],
    ['{}', undefined, false],
    ['discover: true', undefined, true],
    ['discover: false', undefined, false],
    ['discover: true', 'off', false],
    ['discover: false', 'on', true],
    ['{}', 'on', true],
  ])('with the file %p and GATEHOUSE_DISCOVER=%p, discovery is %p', (yaml, word, expected) => {
    const environment = word === undefined ? {} : { GATEHOUSE_DISCOVER: word }
    expect(load({ environment, ...(yaml === undefined ? {} : { yaml }) }).discover).toBe(expected)
  })
})

describe('a file', () => {
  test('sets its values and leaves the rest at the defaults', () => {
    const config = load({
      yaml: 'server: { keep_alive_seconds: 5 }\ntimeouts: { idle_seconds: 7 }\ntokens: { expires_after_days: 3 }',
    })
    expect(config.file).toBe('/etc/gate/gatehouse.yaml')
    expect(config.server).toEqual({ ...DEFAULT_SERVER, keep_alive_seconds: 5 })
    expect(config.timeouts).toEqual({ ...DEFAULT_TIMEOUTS, idle_seconds: 7 })
    expect(config.tokens).toEqual({ models: ['*'], expires_after_days: 3 })
  })

  test('accepts the longest and the shortest copying deadline', () => {
    const minutes = (value: number) => load({ yaml: `tasks: { copy_deadline_minutes: ${value} }` }).tasks
    expect(minutes(43_200)).toEqual({ ...DEFAULT_TASKS, copy_deadline_minutes: 43_200 })
    expect(minutes(0.1).copy_deadline_minutes).toBe(0.1)
    expect(DEFAULT_TASKS.copy_deadline_minutes).toBe(1_440)
  })

  test.each(['', '# only a remark\n', '---\n', '{}', 'server:\nproviders:\nmodels:\n  # acme/large:\n'])(
    '%p is valid: empty sections are absent ones',
    (yaml) => {
      expect(load({ yaml })).toEqual({ ...load(), file: '/etc/gate/gatehouse.yaml', discover: false })
    },
  )

  test('a model or provider without settings has its defaults', () => {
    const config = load({ yaml: 'providers: { mine: { kind: sandbox } }\nmodels:\n  mine/general:\n' })
    expect(config.models).toEqual({ 'mine/general': {} })
  })

  test('is deeply frozen', () => {
    const config = load({ yaml: 'models: { sandbox/x: { limits: { top_p: { default: 1 } }, fields: [web_search] } }' })
    const model = config.models['sandbox/x']
    for (const part of [config, config.server, config.models, model, model?.limits?.top_p, model?.fields]) {
      expect(Object.isFrozen(part)).toBe(true)
    }
  })

  test('may use anchors, aliases and merged mappings', () => {
    const yaml = `
models:
  sandbox/a: &shared
    limits: { temperature: { maximum: 1 } }
    fields: [web_search]
  sandbox/b: *shared
  sandbox/c:
    <<: *shared
    fields: []
`
    const { models } = load({ yaml })
    expect(models['sandbox/b']).toEqual(models['sandbox/a'] ?? {})
    expect(models['sandbox/c']).toEqual({ limits: { temperature: { maximum: 1 } }, fields: [] })
  })

  test('may have a byte order mark and CR LF line ends', () => {
    expect(load({ yaml: '\uFEFFsandbox: false\r\nwhen_retired: serve\r\n' })).toMatchObject({
      sandbox: false,
      when_retired: 'serve',
    })
    expect(wrong('sandbox: false\r\nwhen_retired: x\r\n')[0]).toStartWith('gatehouse.yaml:2:15  ')
  })
})

describe('references to the environment', () => {
  const provider = (rest: string) => `providers:\n  acme:\n    base_url: https://a.example\n    ${rest}\n`

  test('are filled in, in values of any depth', () => {
    const environment = { KEY: 'k-1', TEAM: 'red' }
    const { providers } = load({
      yaml: provider('key: ${KEY}\n    headers: { x-team: "team ${TEAM}", x: "$${KEY}" }'),
      environment,
    })
    expect(providers.acme).toMatchObject({ key: 'k-1', headers: { 'x-team': 'team red', x: '${KEY}' } })
  })

  test('are not filled in, in keys', () => {
    expect(wrong('${KEY}: 1', { KEY: 'sandbox' })[0]).toStartWith('gatehouse.yaml:1:1  ${KEY}: unknown key "${KEY}"')
  })

  test('become numbers and booleans where the schema requires them', () => {
    const yaml = `server: { port: "\${PORT}" }\nsandbox: \${ON}\n${provider('key: ${PORT}')}`
    const config = load({ yaml, environment: { PORT: '9000', ON: 'false' } })
    expect(config.server.port).toBe(9000)
    expect(config.sandbox).toBe(false)
    expect(config.providers.acme?.key).toBe('9000')
  })

  test('become numbers and booleans where the schema takes a word beside them', () => {
    const yaml = `server:\n  workers: \${WORKERS:-2}\n${provider('calls: { max: "${MAX}" }')}`
    const config = load({ yaml, environment: { MAX: '3' } })
    expect([config.server.workers, config.providers.acme?.calls?.max]).toEqual([2, 3])
    const words = load({ yaml, environment: { WORKERS: 'auto', MAX: 'adaptive' } })
    expect([words.server.workers, words.providers.acme?.calls?.max]).toEqual(['auto', 'adaptive'])
    const models = [
      'sandbox/a: { three_d: { target_polycount: "${OFF}" } }',
      'sandbox/b: { three_d: { target_polycount: { minimum: "${LOW}" } } }',
    ]
    const counts = load({ yaml: `models:\n  ${models.join('\n  ')}\n`, environment: { OFF: 'false', LOW: '7' } }).models
    expect([counts['sandbox/a'], counts['sandbox/b']].map((model) => model?.three_d?.target_polycount)).toEqual([
      false,
      { minimum: 7 },
    ])
  })

  test('become numbers in more places than problems are told', () => {
    const names = Array.from({ length: 150 }, (_, index) => `p${index}`)
    const entries = names.map(
      (name) => `  ${name}: { base_url: https://a.example, timeouts: { idle_seconds: "\${S}" } }`,
    )
    const yaml = `providers:\n${entries.join('\n')}\n`
    const { providers } = load({ yaml, environment: { S: '9' } })
    expect(names.map((name) => providers[name]?.timeouts?.idle_seconds)).toEqual(names.map(() => 9))
    const told = wrong(yaml, { S: 'nine' })
    expect([told.length, told[0]]).toEqual([
      100,
      'gatehouse.yaml:2:64  providers.p0.timeouts.idle_seconds: found "${S}" (string), must be a number',
    ])
  })

  test('are refused with the word and the number where they are neither', () => {
    expect(wrong('server:\n  workers: ${WORKERS}\n', { WORKERS: 'many' })).toEqual([
      'gatehouse.yaml:2:12  server.workers: found "${WORKERS}" (string), must be "auto" or an integer',
    ])
    expect(wrong('server:\n  workers: ${WORKERS}\n', { WORKERS: '129' })).toEqual([
      'gatehouse.yaml:2:12  server.workers: found "${WORKERS}" (string), must be from 1 to 128',
    ])
  })

  test('are all reported with their positions when the variable is not set', () => {
    expect(wrong(provider('key: ${NOPE}\n    headers: { a: "${ALSO_NOT}", b: "${" }'))).toEqual([
      'gatehouse.yaml:4:10  providers.acme.key: the environment variable NOPE is not set',
      'gatehouse.yaml:5:19  providers.acme.headers.a: the environment variable ALSO_NOT is not set',
      'gatehouse.yaml:5:37  providers.acme.headers.b: a "${" that is not ${NAME}, ${NAME:-default} or ${file:path}; write "$${" for the characters themselves',
    ])
  })

  test('never show their value in a message', () => {
    const SECRET = 'sesame "open\\wide" 1234567'
    const anywhere = [
      'server: { host: "${SECRET}" }',
      'server: { port: "${SECRET}", base_url: "${SECRET}", cors_origins: ["${SECRET}"] }',
      'sandbox: "${SECRET}"',
      'when_retired: "x${SECRET}"',
      'tokens: { models: ["a ${SECRET}"], families: ["${SECRET}"] }',
      'providers: { acme: { base_url: "${SECRET}", key: "${SECRET}", headers: { host: "${SECRET}\\n" }, preset: "${SECRET}" } }',
      'providers: { acme: { kind: "${SECRET}", timeouts: { idle_seconds: "${SECRET}" } } }',
      'models: { sandbox/x: { replaced_by: "${SECRET}", status: "${SECRET}", targets: [{ provider: "${SECRET}", model: m }] } }',
      'models: { sandbox/x: { retired_at: "${SECRET}", fields: ["${SECRET}"], prices: { currency: "${SECRET}" } } }',
    ]
    for (const yaml of anywhere) {
      const told = wrong(yaml, { SECRET })
      expect(told.length).toBeGreaterThan(0)
      for (const part of ['sesame', '"open', 'wide', '1234567']) expect(told.join('\n')).not.toContain(part)
    }
  })

  test('a literal key does not appear in a message either', () => {
    expect(wrong(provider('key: 12345'))).toEqual([
      'gatehouse.yaml:4:10  providers.acme.key: found a number (not shown), must be a string',
    ])
    expect(wrong(provider('headers: { authorization: [sesame] }')).join()).not.toContain('sesame')
  })
})

/** What is written, and where and how it is told; each line is one kind of mistake. */
const MISTAKES: [string, string][] = [
  // YAML itself
  ['server:\n  port: 1\n  port: 2', '3:3  duplicate key; each key may appear once'],
  [
    'server: [1',
    '1:11  not valid YAML: Flow sequence in block collection must be sufficiently indented and end with a ]',
  ],
  ['server:\n\tport: 1', '2:1  not valid YAML: Tabs are not allowed as indentation'],
  ['sandbox: true\n---\nsandbox: false', '2:1  a second document starts here; the file must have one'],
  ['sandbox: !on true', '1:10  Unresolved tag: !on; tags are not supported'],
  ['models: *none', '1:9  models: the alias *none has no anchor before it'],
  ['tokens: { models: &a [*a] }', '1:23  is nested too deeply or has too many values'],
  ['[a]: 1', '1:1  a key must be plain text'],
  ['<<: 3', '1:5  "<<" must be a mapping or a list of mappings'],
  ['server: { port: .inf }', '1:17  server.port: must be a finite number'],
  ['- 1', '1:1  found a list, must be a mapping'],
  ['hello', '1:1  found "hello" (string), must be a mapping'],
  // types, ranges, sets
  ['server: 7', '1:9  server: found 7 (number), must be a mapping'],
  ['server: { port: "80" }', '1:17  server.port: found "80" (string), must be an integer'],
  ['server: { port: 80.5 }', '1:17  server.port: found 80.5 (number), must be an integer'],
  ['server: { port: 65536 }', '1:17  server.port: found 65536 (number), must be from 0 to 65535'],
  ['server: { port: -1 }', '1:17  server.port: found -1 (number), must be from 0 to 65535'],
  ['server: { port: }', '1:17  server.port: found nothing, must be an integer'],
  ['server: { body_seconds: 0 }', '1:25  server.body_seconds: found 0 (number), must be more than 0 and at most 86400'],
  [
    'server: { max_body_bytes: 1023 }',
    '1:27  server.max_body_bytes: found 1023 (number), must be from 1024 to 1073741824',
  ],
  ['server: { cors_origins: x }', '1:25  server.cors_origins: found "x" (string), must be a list'],
  ['sandbox: yes', '1:10  sandbox: found "yes" (string), must be true or false'],
  ['when_retired: drop', '1:15  when_retired: found "drop" (string), must be one of "refuse", "serve", "redirect"'],
  ['tasks: { copy_deadline_minutes: 0 }', '1:33  tasks.copy_deadline_minutes: found 0 (number), must be more than 0'],
  [
    'tasks: { copy_deadline_minutes: 43201 }',
    '1:33  tasks.copy_deadline_minutes: found 43201 (number), must be more than 0 and at most 43200',
  ],
  [
    'tokens: { expires_after_days: 0 }',
    '1:31  tokens.expires_after_days: found 0 (number), must be more than 0 and at most 36500',
  ],
  [
    'models: { sandbox/compact: { retired_at: 1795999363032 } }',
    '1:42  models.sandbox/compact.retired_at: found 1795999363032 (number), must be from 0 to 253402300799',
  ],
  [
    'admin_tokens: { a: { role: viewer, secret: 0123456789abcdefghij, expires_at: 1795999363032 } }',
    '1:78  admin_tokens.a.expires_at: found 1795999363032 (number), must be from 1 to 253402300799',
  ],
  [
    'providers: { a: { kind: other, base_url: "http://a" } }',
    '1:25  providers.a.kind: found "other" (string), must be one of "chatcompat", "sandbox"',
  ],
  [
    'providers: { a: { base_url: "http://a", key: "" } }',
    '1:46  providers.a.key: found a string (not shown), must be a string that is not empty',
  ],
  [
    'models: { sandbox/x: { targets: [] } }',
    '1:33  models.sandbox/x.targets: found an empty list, must be at least 1 item',
  ],
  [
    'models: { sandbox/x: { prices: { currency: usd } } }',
    '1:44  models.sandbox/x.prices.currency: found "usd" (string), must be text like ^[A-Z]{3}$',
  ],
  [
    'models: { sandbox/x: { retired_at: 2027-01-01 } }',
    '1:36  models.sandbox/x.retired_at: found "2027-01-01" (string), must be an integer (unix seconds: 2027-01-01 is 1798761600)',
  ],
  [
    'models: { sandbox/x: { targets: [{ provider: sandbox }] } }',
    '1:34  models.sandbox/x.targets[0].model: is missing, but required',
  ],
  [
    'models: { "sandbox/v1.5": { statu: active } }',
    '1:29  models."sandbox/v1.5".statu: unknown key "statu"; did you mean "status"? (allowed: families, targets, alias_of, created, status',
  ],
  [
    'wholly_unknown: 1',
    '1:1  wholly_unknown: unknown key "wholly_unknown" (allowed: $schema, data_dir, server, sandbox,',
  ],
  ['budgets: 5', '1:10  budgets: found 5 (number), must be a list or a mapping'],
  ['budgets: { hold: all }', '1:18  budgets.hold: found "all" (string), must be one of "most", "likely"'],
  [
    'budgets: { holds: likely }',
    '1:12  budgets.holds: unknown key "holds"; did you mean "hold"? (allowed: hold, installation)',
  ],
  [
    'budgets: { hold: likely, installation: [{ amount: 5, window: day, time_zone: Berlin }] }',
    '1:78  budgets.installation[0].time_zone: is not a time zone; use a name such as Europe/Berlin',
  ],
  // limits may narrow what all models share, not widen it
  ...(
    [
      ['max_tokens: { minimum: 0 }', 'max_tokens.minimum: found 0 (number), must be at least 1'],
      ['max_tokens: { maximum: 1.5 }', 'max_tokens.maximum: found 1.5 (number), must be an integer'],
      ['temperature: { maximum: 2.1 }', 'temperature.maximum: found 2.1 (number), must be from 0 to 2'],
      ['top_p: { default: -0.1 }', 'top_p.default: found -0.1 (number), must be from 0 to 1'],
      ['presence_penalty: { minimum: -3 }', 'presence_penalty.minimum: found -3 (number), must be from -2 to 2'],
      ['frequency_penalty: { maximum: 3 }', 'frequency_penalty.maximum: found 3 (number), must be from -2 to 2'],
      ['repetition_penalty: { minimum: -1 }', 'repetition_penalty.minimum: found -1 (number), must be at least 0'],
    ] as const
  ).map(([limit, told]): [string, string] => {
    const yaml = `models:\n  sandbox/x:\n    limits:\n      ${limit}`
    return [yaml, `4:${7 + limit.search(/[\d.-]+ }$/)}  models.sandbox/x.limits.${told}`]
  }),
  // what only the whole can tell
  [
    'server: { host: "http://x" }',
    '1:17  server.host: found "http://x", must be an address or a host name, such as 127.0.0.1 or ::',
  ],
  [
    'server: { files_base_url: "https://files.example/below" }',
    '1:27  server.files_base_url: has a path; must be an origin such as https://files.example.com',
  ],
  [
    'server: { base_url: "https://a.example/v1", files_base_url: "https://a.example" }',
    '1:61  server.files_base_url: has the host of `base_url`; must be a different host, so that nothing in a file runs in its origin',
  ],
  [
    'server: { base_url: "ftp://x" }',
    '1:21  server.base_url: must be an http or https address, such as https://api.example.com/v1',
  ],
  [
    'server: { hosts: [a.example, "b.example:8787"] }',
    '1:30  server.hosts[1]: must be a host name such as models.example.com, without a scheme, port or path',
  ],
  [
    'server: { cors_origins: ["https://a.example/x"] }',
    '1:26  server.cors_origins[0]: must be "*" or an origin such as https://app.example.com, without a path',
  ],
  [
    'tokens: { models: [""] }',
    '1:20  tokens.models[0]: found an empty pattern, must be a model id or a pattern such as "acme/*"',
  ],
  [
    'tokens: { models: [a, "b/*,c/*"] }',
    '1:23  tokens.models[1]: found "b/*,c/*" with ","; a pattern is one model id in which "*" matches any text',
  ],
  ['providers: { a: {} }', '1:14  providers.a: needs `base_url`, or `preset` for a known provider'],
  [
    'providers: { a/b: { preset: openai } }',
    '1:14  providers.a/b: found "a/b", must be letters, digits, ".", "_" and "-", and no "/"',
  ],
  [
    'providers: { sandbox: { preset: openai } }',
    '1:14  providers.sandbox: is the name of the built-in sandbox; choose another name, or set `sandbox: false`',
  ],
  [
    'providers: { a: { preset: opnai } }',
    '1:27  providers.a.preset: found "opnai" (string), must be one of alibaba, anthropic, ',
  ],
  [
    'providers: { a: { base_url: api.example.com } }',
    '1:29  providers.a.base_url: must be an http or https address, such as https://api.example.com/v1',
  ],
  [
    'providers: { a: { base_url: "https://u:p@a.example" } }',
    '1:29  providers.a.base_url: contains a user name or password; use `key` or `headers` instead',
  ],
  [
    'providers: { a: { base_url: "https://a.example/v1?key=x" } }',
    '1:29  providers.a.base_url: contains a query or fragment (from "?" or "#" on); must end with its path',
  ],
  [
    'providers: { a: { base_url: "http://a", key: "a b" } }',
    '1:46  providers.a.key: contains a space, a line break or a character outside ASCII (not shown); it cannot be sent',
  ],
  [
    'providers: { a: { base_url: "http://a", headers: { "a b": c } } }',
    '1:52  providers.a.headers."a b": found "a b", must be the name of an HTTP header',
  ],
  [
    'providers: { a: { base_url: "http://a", headers: { Host: c } } }',
    '1:52  providers.a.headers.Host: is set by the gateway and cannot be configured',
  ],
  [
    'providers: { a: { base_url: "http://a", headers: { x: "c\\nd" } } }',
    '1:55  providers.a.headers.x: contains a line break or a character outside ASCII (not shown); it cannot be sent',
  ],
  [
    'models: { "a b": {} }',
    '1:11  models."a b": found "a b", must be like "provider/model", without white space or empty parts',
  ],
  [
    'models: { /x: {} }',
    '1:11  models./x: found "/x", must be like "provider/model", without white space or empty parts',
  ],
  ['models: { lone: {} }', '1:11  models.lone: needs `targets`, because its id names no provider'],
  [
    'models: { sandbx/x: {} }',
    '1:11  models.sandbx/x: has no `targets`, so "sandbx" serves it, which is not a provider (did you mean "sandbox"?); known: sandbox',
  ],
  [
    'sandbox: false\nmodels: { sandbox/x: {} }',
    '2:11  models.sandbox/x: has no `targets`, so "sandbox" serves it, which is not a provider; there are none',
  ],
  [
    'models: { m: { targets: [{ provider: a, model: b }] } }',
    '1:38  models.m.targets[0].provider: found "a", which is not a provider; known: sandbox',
  ],
  [
    'models: { m: { targets: [{ provider: constructor, model: b }] } }\nproviders: {}',
    '1:38  models.m.targets[0].provider: found "constructor", which is not a provider; known: sandbox',
  ],
  [
    'models: { sandbox/x: { limits: { top_p: { minimum: 0.6, maximum: 0.5 } } } }',
    '1:52  models.sandbox/x.limits.top_p.minimum: found 0.6 (number), must not be above `maximum`, which is 0.5',
  ],
  [
    'models: { sandbox/x: { limits: { top_p: { minimum: 0.6, default: 0.5 } } } }',
    '1:66  models.sandbox/x.limits.top_p.default: found 0.5 (number), must not be below `minimum`, which is 0.6',
  ],
  [
    'models: { sandbox/x: { limits: { top_p: { maximum: 0.4, default: 0.5 } } } }',
    '1:66  models.sandbox/x.limits.top_p.default: found 0.5 (number), must not be above `maximum`, which is 0.4',
  ],
  [
    'models: { sandbox/x: { when_retired: redirect } }',
    '1:38  models.sandbox/x.when_retired: found "redirect" (string), but the model has no `replaced_by` to redirect to',
  ],
  [
    'models: { sandbox/x: { deprecated_at: 5, retired_at: 4 } }',
    '1:39  models.sandbox/x.deprecated_at: found 5 (number), must not be after `retired_at`, which is 4',
  ],
  [
    'models: { sandbox/x: { replaced_by: sandbox/x } }',
    '1:37  models.sandbox/x.replaced_by: leads back to itself: sandbox/x -> sandbox/x',
  ],
  [
    'models: { sandbox/x: { replaced_by: sandbox/genral } }',
    '1:37  models.sandbox/x.replaced_by: found "sandbox/genral", must be the id of a model; did you mean "sandbox/general"?',
  ],
  [
    `models: { sandbox/x: { replaced_by: sandbox/y }, sandbox/y: { retired_at: ${NOW} } }`,
    '1:37  models.sandbox/x.replaced_by: found "sandbox/y": retired itself; must lead to a model that is not',
  ],
  [
    'models: { sandbox/x: { families: [rerank], replaced_by: sandbox/general } }',
    '1:57  models.sandbox/x.replaced_by: found "sandbox/general", which answers chatcompat; must answer one of: rerank',
  ],
  [
    'models: { "claude-*": { families: [rerank] } }',
    '1:11  models.claude-*: is a pattern, and needs `alias_of` with the id of a model',
  ],
  [
    'models: { "claude-*": { alias_of: sandbox/genral } }',
    '1:35  models.claude-*.alias_of: found "sandbox/genral", must be the full id of a model; did you mean "sandbox/general"?',
  ],
  [
    'models: { fast: { alias_of: sandbox/general }, "*": { alias_of: fast } }',
    '1:65  models.*.alias_of: found "fast", which is an alias itself; name the model it leads to: "sandbox/general"',
  ],
  [
    'models: { fast: { alias_of: sandbox/general, created: 5 } }',
    '1:46  models.fast.created: cannot stand beside `alias_of`; set it at the model "sandbox/general"',
  ],
  [
    'models: { "a*b*": { alias_of: sandbox/general }, "a*c*": { alias_of: sandbox/embedding } }',
    '1:50  models.a*c*: matches the same ids as "a*b*", and neither is more specific; make the prefix of one longer',
  ],
  [
    'models: { fast: { alias_of: sandbox/general }, sandbox/x: { replaced_by: fast } }',
    '1:74  models.sandbox/x.replaced_by: found "fast", must be the id of a model',
  ],
]

describe('a file with one mistake is rejected with one line', () => {
  test.each(MISTAKES)('%s', (yaml, told) => {
    const lines = wrong(yaml)
    expect(lines).toHaveLength(1)
    expect(lines[0]).toStartWith(`gatehouse.yaml:${told}`)
  })

  // Each range's other side: the same words within their bounds are taken.
  test.each([
    'server: { port: 0, body_seconds: 86400, max_body_bytes: 1024, host: localhost, base_url: "https://a.example/x", files_base_url: "https://b.example/" }',
    'server: { port: 65535, max_body_bytes: 1073741824, shutdown_seconds: 0, hosts: [A.example, 10.0.0.1], cors_origins: ["*", "https://a.example:8443"] }',
    'models: { sandbox/x: { limits: { max_tokens: { minimum: 1, maximum: 1, default: 1 } } } }',
    'models: { sandbox/x: { limits: { temperature: { minimum: 0, maximum: 2 }, top_p: { minimum: 0, maximum: 1 } } } }',
    'models: { sandbox/x: { limits: { presence_penalty: { minimum: -2 }, frequency_penalty: { maximum: 2 } } } }',
    'models: { sandbox/x: { limits: { repetition_penalty: { minimum: 0, maximum: 1000 } } } }',
    'models: { sandbox/x: { deprecated_at: 4, retired_at: 4, replaced_by: sandbox/general, when_retired: redirect } }',
    `models: { sandbox/x: { replaced_by: sandbox/y }, sandbox/y: { retired_at: ${NOW + 1} } }`,
    'providers: { sandbox: { kind: sandbox } }',
    'sandbox: false\nproviders: { sandbox: { preset: openai } }',
    'providers: { a: { preset: openai, discover: true } }\nmodels: { a/x: { replaced_by: a/found-later } }',
    'providers: { a: { base_url: "https://a.example:8443/v1/" } }\nmodels: { "a/b/c:d@e": {} }',
    '$schema: ./gatehouse.schema.json',
    'budgets: [{ amount: 5, window: day }]',
    'budgets: { hold: most }',
    'budgets: { hold: likely, installation: [{ amount: 5, window: day }] }',
  ])('accepts %s', (yaml) => {
    expect(wrong(yaml)).toEqual([])
  })
})

describe('a file that is not YAML', () => {
  const rest = Array.from({ length: 100 }, (_, index) => `  sandbox/m${index}: {}\n`).join('')
  const hint = '; a value with "${" needs quotes around it here: "${NAME}"'

  test('is rejected with its first error, and the advice to quote where that is a reference without quotes', () => {
    expect(wrong(`server: { workers: \${X}, port: 1 }\nmodels:\n${rest}`, { X: '1' })).toEqual([
      `gatehouse.yaml:1:21  not valid YAML: Unexpected flow-map-start at node end${hint}`,
    ])
    expect(wrong(`server: { base_url: https://\${X}/ }\nmodels:\n${rest}`, { X: '1' })).toEqual([
      `gatehouse.yaml:1:30  not valid YAML: Unexpected flow-map-start at node end${hint}`,
    ])
    expect(wrong(`tokens: { models: [\${X}] }\nmodels:\n${rest}`)).toEqual([
      `gatehouse.yaml:1:21  not valid YAML: Missing , or : between flow sequence items${hint}`,
    ])
    expect(wrong('server:\n  host: ${X:-a: b}\n')).toEqual([
      `gatehouse.yaml:2:9  not valid YAML: Nested mappings are not allowed in compact mappings${hint}`,
    ])
  })

  test('is rejected with its first error alone where that is something else', () => {
    expect(wrong(`server: { port: 1 } }\nmodels:\n${rest}`)).toEqual([
      'gatehouse.yaml:1:21  not valid YAML: Unexpected flow-map-end token in YAML stream: "}"',
    ])
  })

  test('needs no quotes around a reference on a line of its own', () => {
    expect(load({ yaml: 'server:\n  port: ${X}\n', environment: { X: '1' } }).server.port).toBe(1)
  })
})

describe('a file with many mistakes', () => {
  test('is rejected with all of them, in the order of the file', () => {
    const yaml = `server:
  port: 70000
  prot: 1
providers:
  acme:
    base_url: https://a.example?x
    key: \${NOPE}
models:
  acme/large:
    limits: { temperature: { maximum: 3, default: many } }
    replaced_by: acme/larg
  zzz/a: { status: gone }
`
    expect(wrong(yaml).map((line) => line.slice(0, line.indexOf(': ')))).toEqual([
      'gatehouse.yaml:2:9  server.port',
      'gatehouse.yaml:3:3  server.prot',
      'gatehouse.yaml:6:15  providers.acme.base_url',
      'gatehouse.yaml:7:10  providers.acme.key',
      'gatehouse.yaml:10:39  models.acme/large.limits.temperature.maximum',
      'gatehouse.yaml:10:51  models.acme/large.limits.temperature.default',
      'gatehouse.yaml:11:18  models.acme/large.replaced_by',
      'gatehouse.yaml:12:3  models.zzz/a',
      'gatehouse.yaml:12:20  models.zzz/a.status',
    ])
  })

  test('has each as data: file, line, column, path, message', () => {
    const error = (() => {
      try {
        return load({ yaml: '\n  sandbox: 3\n' })
      } catch (caught) {
        return caught as ConfigError
      }
    })() as ConfigError
    expect(error.problems).toEqual([
      {
        file: 'gatehouse.yaml',
        line: 2,
        column: 12,
        path: 'sandbox',
        message: 'found 3 (number), must be true or false',
      },
    ])
  })

  test('reports an invalid member once, without further problems elsewhere', () => {
    const yaml = `
providers: { acme: { base_url: 7 } }
models:
  acme/a: { replaced_by: [b], when_retired: redirect }
  acme/b: { targets: [{ provider: 3, model: x }] }
  acme/c: 3
  acme/d: { replaced_by: acme/c }
`
    expect(wrong(yaml).map((line) => line.slice(0, line.indexOf(': ')))).toEqual([
      'gatehouse.yaml:2:32  providers.acme.base_url',
      'gatehouse.yaml:4:26  models.acme/a.replaced_by',
      'gatehouse.yaml:5:35  models.acme/b.targets[0].provider',
      'gatehouse.yaml:6:11  models.acme/c',
    ])
  })

  test('is rejected quickly when aliases make it grow without bound', () => {
    const levels = Array.from(
      { length: 30 },
      (_, i) => `l${i + 1}: &l${i + 1} [${Array(10).fill(`*l${i}`).join(', ')}]`,
    )
    const lines = wrong(`l0: &l0 x\n${levels.join('\n')}`)
    expect(lines.some((line) => line.includes('is nested too deeply or has too many values'))).toBe(true)
  })

  test('any text yields a configuration or problems with positions', () => {
    const value = fc.jsonValue({ maxDepth: 4 })
    const section = fc.constantFrom('server', 'tokens', 'timeouts', 'providers', 'models', 'sandbox', '__proto__', 'x')
    const document = fc.dictionary(section, fc.oneof(value, fc.dictionary(fc.string(), value)))
    fc.assert(
      fc.property(document, (content) => {
        for (const line of wrong(JSON.stringify(content))) {
          if (line.startsWith('gatehouse.yaml')) expect(line).toMatch(/^gatehouse\.yaml:[1-9]\d*:[1-9]\d* {2}/)
        }
      }),
      { numRuns: 200, seed: 7 },
    )
  })
})

describe('providers that are found by their keys', () => {
  const yaml = 'discover: true\nmodels: { openai/x: {} }'
  test('may be named by models when discovery is on', () => {
    const environment = { OPENAI_API_KEY: 'k' }
    expect(problems({ yaml, environment, vendors: knownVendors(environment) })).toEqual([])
    expect(problems({ yaml, vendors: knownVendors({}) })).toHaveLength(1)
    const off = { ...environment, GATEHOUSE_DISCOVER: 'off' }
    expect(problems({ yaml, environment: off, vendors: knownVendors(off) })).toHaveLength(1)
  })
})

describe('the schema for editors', () => {
  const schema = configJsonSchema()
  const accepts = new Ajv({ strict: false }).compile(schema)
  const example = readFileSync(join(ROOT, 'gatehouse.example.yaml'), 'utf8')

  test('is up to date in the repository (else: gatehouse check --schema > gatehouse.schema.json)', () => {
    expect(readFileSync(join(ROOT, 'gatehouse.schema.json'), 'utf8')).toBe(configJsonSchemaText())
    expect(JSON.parse(configJsonSchemaText())).toEqual(schema)
  })

  test('describes every setting', () => {
    expect(schema).toMatchObject({ $schema: 'http://json-schema.org/draft-07/schema#', title: 'gatehouse.yaml' })
    expect(JSON.stringify(schema)).toContain('Address to listen on. Default 127.0.0.1.')
  })

  test('accepts the example with its references, and rejects what the gateway rejects', () => {
    expect(accepts(parse(example))).toBe(true)
    expect(accepts({ server: { port: 70_000 } })).toBe(false)
    expect(accepts({ server: { prot: 1 } })).toBe(false)
    expect(accepts({ server: { port: '${PORT}' } })).toBe(true)
    expect(accepts({ server: { port: 'many' } })).toBe(false)
  })

  test('is named in the first line of the example', () => {
    expect(example.split('\n')[0]).toBe('# yaml-language-server: $schema=./gatehouse.schema.json')
  })

  test('and the example shows every section, and loads', () => {
    const config = load({ yaml: example, environment: { OPENAI_API_KEY: 'a', ACME_KEY: 'b', PORT: '9000' } })
    expect(config.server.port).toBe(9000)
    expect(Object.keys(config.providers)).toEqual(['openai', 'acme', 'workshop'])
    const sections = Object.keys((schema.properties ?? {}) as object).filter((name) => name !== '$schema')
    expect(Object.keys(parse(example)).sort()).toEqual(sections.sort())
  })
})

describe('the manual', () => {
  test('is loaded page by page', async () => {
    const pages = await loadManual()
    expect(pages.map(({ name }) => name)).toContain('configuration')
    expect(pages.find(({ name }) => name === 'configuration')?.text).toStartWith('# Configuration')
  })

  test('is empty when it is not installed', async () => {
    expect(await loadManual('/nowhere/at/all')).toEqual([])
  })

  test('contains only valid configurations', async () => {
    const shown = (await loadManual()).flatMap(({ name, text }) =>
      // A block that begins with the path of a file is another program's.
      [...text.matchAll(/```yaml\n(?!# ~\/)([\s\S]*?)```/g)].map((match) => ({ name, yaml: match[1] ?? '' })),
    )
    expect(shown.length).toBeGreaterThan(5)
    for (const { name, yaml } of shown) {
      // A page shows a part of a file: providers that it does not repeat are not held against it.
      const environment = {
        GATEHOUSE_CONTENTS_KEY: Buffer.from('0123456789abcdef0123456789abcdef').toString('base64'),
        ...Object.fromEntries([...yaml.matchAll(/\$\{(\w+)/g)].map(([, name = '']) => [name, name.padEnd(24, 'x')])),
      }
      const told = problems({ yaml, environment, readSecret: () => 'a-secret' })
      const own = told.filter(
        (line) => !line.includes('is not a provider') && !line.includes('must be the id of a model'),
      )
      expect({ name, yaml, told: own }).toEqual({ name, yaml, told: [] })
    }
  })
})

describe('several keys of a provider', () => {
  const provider = (lines: string) => `providers:\n  acme:\n    base_url: https://acme.test/v1\n${lines}`

  test('are kept with their weights, names and models', () => {
    const yaml = provider(
      '    keys:\n      - { key: one-secret, weight: 3, name: main }\n      - { key: two-secret, models: ["small-*"] }\n',
    )
    expect(load({ yaml }).providers.acme?.keys).toEqual([
      { key: 'one-secret', weight: 3, name: 'main' },
      { key: 'two-secret', models: ['small-*'] },
    ])
  })

  test.each([
    ['    key: a-secret\n    keys: [{ key: b-secret }]\n', 'cannot stand beside `keys`'],
    ['    keys: [{ key: "two words" }]\n', 'contains a space'],
    ['    keys: []\n', 'keys'],
    ['    keys: [{ key: a-secret, name: x }, { key: b-secret, name: x }]\n', 'has the name "x" like keys[0]'],
    ['    keys: [{ key: a-secret, name: "2" }, { key: b-secret }]\n', 'has the name "2" like keys[0]'],
    ['    keys: [{ key: a-secret, weight: -1 }]\n', 'weight'],
  ])('are rejected where they contradict each other: %s', (lines, message) => {
    const found = wrong(provider(lines)).join('\n')
    expect(found).toContain(message)
    expect(found).not.toContain('secret')
  })

  test('must leave one for the model of each target', () => {
    const yaml = `${provider('    keys: [{ key: a-secret, models: ["small-*"] }]\n')}models:
  acme/large:
    targets: [{ provider: acme, model: large }]
  acme/small:
    targets: [{ provider: acme, model: small-1 }]
`
    expect(wrong(yaml)).toEqual([
      expect.stringContaining('models.acme/large.targets[0].model: found "large", which no key'),
    ])
  })
})

describe('fallback models', () => {
  const models = (fallbacks: string) => `models:\n  sandbox/general:\n    fallbacks: ${fallbacks}\n`

  test.each(['[sandbox/compact]', '{ unavailable: [sandbox/compact], content_policy: [sandbox/compact] }'])(
    'are a list, or a list for each reason: %s',
    (fallbacks) => {
      expect(wrong(models(fallbacks))).toEqual([])
    },
  )

  test.each([
    ['[sandbox/general]', 'models.sandbox/general.fallbacks[0]: is the model itself'],
    ['[sandbox/compactt]', 'did you mean "sandbox/compact"?'],
    ['{ context_length: [sandbox/none-of-these] }', 'models.sandbox/general.fallbacks.context_length[0]: found'],
    ['[]', 'fallbacks'],
    ['{ broken: [sandbox/compact] }', 'fallbacks'],
  ])('must exist: %s', (fallbacks, message) => {
    expect(wrong(models(fallbacks)).join('\n')).toContain(message)
  })
})

describe('prices', () => {
  const prices = (text: string) => wrong(`models: { sandbox/x: { prices: ${text} } }`)

  test.each([
    '{ input: 0, output: 0, request: 0 }',
    '{ input: 3, output: 15, tiers: [{ above_input_tokens: 200000, input: 6 }, { above_input_tokens: 500000, input: 9 }] }',
    '[{ input: 3 }, { from: 2026-03-01, input: 2 }, { from: "2026-03-01T12:30Z", input: 1 }]',
    '{ images: [{ size: 1024x1024, quality: high, price: 0.2 }, { quality: high, price: 0.3 }], image: 0.1 }',
    '{ video_seconds: [{ size: 720p, sound: true, price: 0.4 }, { size: 720p, price: 0.2 }], video: 1 }',
    '{ currency: CNY, service_tiers: { batch: 0.5, flex: 0.5, priority: 2 } }',
  ])('may be %s', (text) => {
    expect(prices(text)).toEqual([])
  })

  test.each([
    ['{ input: -0.1 }', 'prices.input: found -0.1 (number), must be from 0 to 1000000'],
    ['{ tiers: [] }', 'prices.tiers'],
    ['{ images: [{ size: 1024x1024 }] }', 'prices.images[0].price'],
    ['{ from: 2026-02-30 }', 'prices.from: found "2026-02-30", which is no date'],
    ['{ from: yesterday }', 'prices.from'],
    ['[{ from: 2026-03-01 }, { input: 1 }]', 'prices[1]: needs `from`'],
    ['[{ from: 2026-03-01 }, { from: 2026-03-01 }]', 'prices[1].from: found "2026-03-01", must be after'],
    ['[{ from: 2026-03-01 }, { from: 2026-02-01 }]', 'prices[1].from'],
    [
      '{ tiers: [{ above_input_tokens: 5, input: 6 }, { above_input_tokens: 5, input: 9 }] }',
      'prices.tiers[1].above_input_tokens: found 5, must be above 5',
    ],
    [
      '{ images: [{ quality: high, price: 1 }, { size: 1x1, quality: high, price: 2 }] }',
      'prices.images[1]: can never count, because images[0]',
    ],
    [
      '{ video_seconds: [{ size: 720p, sound: true, price: 1 }, { size: 720p, sound: true, price: 2 }] }',
      'prices.video_seconds[1]: can never count',
    ],
  ])('may not be %s', (text, message) => {
    expect(prices(text).join('\n')).toContain(message)
  })

  test('of a target are checked as well', () => {
    const yaml =
      'models: { house/m: { targets: [{ provider: sandbox, model: general, prices: { from: 2026-13-01 } }] } }'
    expect(wrong(yaml).join('\n')).toContain('models.house/m.targets[0].prices.from')
  })

  test('are in a currency that the ledger knows the rate of, which is not its own', () => {
    const ledger = (text: string) => wrong(`ledger: ${text}`)
    expect(ledger('{ currency: EUR, exchange_rates: { USD: 0.9, CNY: 0.12 } }')).toEqual([])
    expect(ledger('{ exchange_rates: { USD: 1 } }').join()).toContain('ledger.exchange_rates.USD')
    expect(ledger('{ exchange_rates: { CNY: 0 } }').join()).toContain('ledger.exchange_rates.CNY')
    expect(ledger('{ exchange_rates: { yuan: 1 } }').join()).toContain('yuan')
  })
})

describe('the rules of a target', () => {
  const targets = (rules: string) =>
    `models:\n  house/m:\n    targets: [{ provider: sandbox, model: general, ${rules} }]\n`

  test.each([
    'when: { families: [chatcompat], tools: true, images: false, tags: ["team:a"] }',
    'when: { min_input_tokens: 100, max_input_tokens: 100 }',
    'timeouts: { first_byte_seconds: 0.5, total_seconds: 86400 }',
    'prices: { input: 0 }',
    'prices: { output: 1 }',
    'prices: [{ input: 1 }, { input: 2, from: 2026-12-01 }]',
  ])('may be %s', (rules) => {
    expect(wrong(targets(rules))).toEqual([])
  })

  test.each([
    [
      'when: { min_input_tokens: 101, max_input_tokens: 100 }',
      'targets[0].when.min_input_tokens: found 101, must be at most',
    ],
    ['when: { tags: ["a b"] }', 'when.tags[0]'],
    ['when: { tags: [] }', 'when.tags'],
    ['when: { tool: true }', 'did you mean'],
    ['timeouts: { total_seconds: 0 }', 'timeouts.total_seconds'],
    ['timeouts: { total_seconds: 86401 }', 'timeouts.total_seconds'],
    ['prices: { input: -1 }', 'prices.input'],
  ])('may not be %s', (rules, message) => {
    expect(wrong(targets(rules)).join('\n')).toContain(message)
  })
})

describe('valkey', () => {
  test('has defaults, and the address may come from the environment', () => {
    const yaml = 'valkey: { url: "redis://:${PW}@cache:6379/1" }\ncache: { storage: valkey }'
    const { valkey, cache } = load({ yaml, environment: { PW: 'hidden-word' } })
    expect(valkey).toEqual({ url: 'redis://:hidden-word@cache:6379/1', prefix: 'gatehouse', timeout_ms: 100 })
    expect(cache.storage).toBe('valkey')
  })

  const EXAMPLES = 'must be an address such as redis://127.0.0.1:6379 or rediss://:<password>@<host>:6379/0'
  test.each([
    ['http://:hidden-word@cache', EXAMPLES],
    ['cache:6379', EXAMPLES],
    ['redis://:hidden-word/x@cache:6379', 'must be an address'],
    ['redis://:hidden-word@cache:6379/x', 'has a path that is not the number of a database, such as /0'],
    ['redis://cache?password=hidden-word', 'contains a query or fragment'],
    [5, 'found a number (not shown), must be a string'],
  ])('the address %p is refused and not repeated', (url, message) => {
    const [line = '', ...others] = wrong(`valkey:\n  url: ${JSON.stringify(url)}`)
    expect(others).toEqual([])
    expect(line).toStartWith('gatehouse.yaml:2:8  valkey.url: ')
    expect(line).toContain(message)
    expect(line).not.toContain('hidden-word')
  })

  test.each(['redis://cache', 'rediss://user:a%2Fb@[::1]:6379/15'])('the address %s is accepted', (url) => {
    expect(wrong(`valkey: { url: "${url}" }`)).toEqual([])
  })

  test('a cache in Valkey needs its address', () => {
    expect(wrong('cache: { storage: valkey }')).toEqual([
      'gatehouse.yaml:1:19  cache.storage: found "valkey" (string), but there is no section `valkey` with the address of a server',
    ])
  })

  test('limits in Valkey need its address', () => {
    expect(wrong('limits: { store: valkey }')).toEqual([
      'gatehouse.yaml:1:18  limits.store: found "valkey" (string), but there is no section `valkey` with the address of a server',
    ])
    expect(wrong('limits: { store: valkey }\nvalkey: { url: "redis://cache" }')).toEqual([])
  })

  test('the prefix and the time-out have bounds', () => {
    const of = (settings: string) => wrong(`valkey: { url: "redis://cache", ${settings} }`)
    for (const good of ['prefix: a.b:c-d', `prefix: ${'a'.repeat(64)}`, 'timeout_ms: 1', 'timeout_ms: 10000']) {
      expect(of(good)).toEqual([])
    }
    for (const bad of [
      'prefix: ""',
      'prefix: "a b"',
      `prefix: ${'a'.repeat(65)}`,
      'timeout_ms: 0',
      'timeout_ms: 10001',
    ]) {
      expect(of(bad)).toHaveLength(1)
    }
  })
})

describe('a message never shows what a variable holds', () => {
  const secret = 'a-secret-of-the-environment'

  test.each([
    ['in a text with replacement patterns', 'server: { host: "$&${X}$1" }'],
    ['where another value is its beginning', 'server: { host: "known/${X}" }\nlog_level: "${NONE:-known/}"'],
    ['where another form contains it', 'server: { host: "${X}" }\nlog_level: "${NONE:-known}"'],
  ])('%s', (_, yaml) => {
    const found = wrong(yaml, { X: secret })
    expect(found.length).toBeGreaterThan(0)
    expect(found.join('\n')).not.toContain(secret)
  })
})

describe('a semantic cache', () => {
  const withModel = (semantic: string) =>
    wrong(`providers: { a: { base_url: https://a.example } }
models:
  a/small: {}
  a/b: { cache: { semantic: ${semantic} } }`)

  test.each(['threshold: 0.5', 'threshold: 1', 'timeout_ms: 1', 'timeout_ms: 10000'])('may have %s', (setting) => {
    expect(withModel(`{ embedding_model: a/small, ${setting} }`)).toEqual([])
  })

  test.each(['threshold: 0.49', 'threshold: 1.01', 'timeout_ms: 0', 'timeout_ms: 10001'])('not %s', (setting) => {
    expect(withModel(`{ embedding_model: a/small, ${setting} }`)).toHaveLength(1)
  })

  test('needs a model that exists', () => {
    expect(withModel('{ embedding_model: a/smal }')).toEqual([
      'gatehouse.yaml:4:48  models.a/b.cache.semantic.embedding_model: found "a/smal", must be the full id of a model; did you mean "a/small"?',
    ])
    expect(withModel('{ threshold: 0.9 }')).toHaveLength(1)
    expect(withModel('{ embedding_model: sandbox/embedding }')).toEqual([])
  })
})

test('an export by OTLP has an address without secrets, headers that can be sent, and known providers', () => {
  const problems = wrong(`
sandbox: false
providers: { acme: { base_url: 'https://a.example' } }
telemetry:
  otlp:
    endpoint: https://user:hunter2@collector.example
    headers: { content-type: text/plain }
    propagate_to: [acme, '*', acmee]`)
  expect(problems).toHaveLength(3)
  expect(problems[0]).toContain('telemetry.otlp.endpoint: contains a user name or password')
  expect(problems[1]).toContain('telemetry.otlp.headers.content-type: is set by the gateway')
  expect(problems[2]).toContain(
    'telemetry.otlp.propagate_to[2]: found "acmee", which is not a provider (did you mean "acme"?)',
  )
  expect(problems.join()).not.toContain('hunter2')
})

test('the secret of alerts is checked, and not repeated', () => {
  const file = (secret: string) => wrong(`alerts: { webhook: { url: 'https://ops.example.com', secret: ${secret} } }`)
  expect(file(`whsec_${Buffer.alloc(24, 1).toString('base64')}`)).toEqual([])
  const short = file(`whsec_${Buffer.alloc(23, 1).toString('base64')}`)
  expect(short).toHaveLength(1)
  expect(short[0]).toContain('must be whsec_ and 24 to 64 bytes in base64')
  expect(short[0]).not.toContain('AQEB')
})
