/** `gatehouse models import`, from files and a loopback server: what it shows, what it writes, what it refuses. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '../src/cli/commands/models.ts'
import { MAX_BYTES } from '../src/cli/commands/models-import-data.ts'
import { replaceFile } from '../src/cli/commands/models-import-file.ts'
import { run as runPrices } from '../src/cli/commands/prices.ts'
import type { Terminal } from '../src/cli/terminal.ts'
import type { FileConfig } from '../src/config/schema/schema.ts'

const FIXTURE = readFileSync(join(import.meta.dir, 'fixtures/models-dev/api.json'), 'utf8')
const DAY = '2026-11-02'

let directory: string
beforeEach(() => {
  directory = realpathSync(mkdtempSync(join(tmpdir(), 'gatehouse-import-')))
  give('api.json', FIXTURE)
  utimesSync(at('api.json'), new Date(`${DAY}T12:00:00Z`), new Date(`${DAY}T12:00:00Z`))
})
afterEach(() => rmSync(directory, { recursive: true }))

const at = (name: string) => join(directory, name)
const give = (name: string, text: string) => writeFileSync(at(name), text)
const written = () => readFileSync(at('gatehouse.yaml'), 'utf8')

type Env = Record<string, string>

async function gatehouse(args: string[], environment: Env = {}, command = run) {
  let out = ''
  let err = ''
  const terminal: Terminal = {
    out: (text) => {
      out += text
    },
    err: (text) => {
      err += text
    },
    environment: { GATEHOUSE_DISCOVER: '', ...environment },
    cwd: directory,
    color: false,
    interactive: false,
  }
  const code = await command(args, terminal)
  return { out, err, code }
}

/** An import from the file in the directory, which must succeed. */
async function importModels(args: string[] = [], environment: Env = {}): Promise<string> {
  const { out, err, code } = await gatehouse(['import', '--from', 'api.json', ...args], environment)
  expect({ err, code }).toEqual({ err: '', code: 0 })
  return out
}

const asJson = async (args: string[] = [], environment: Env = {}) =>
  JSON.parse(await importModels([...args, '--json'], environment))

const refusal = (args: string[], environment: Env = {}): Promise<string> =>
  gatehouse(['import', ...args], environment).then(
    ({ out }) => Promise.reject(new Error(`was not refused: ${out}`)),
    (error: Error) => error.message,
  )

/** The fixture with one row changed. */
function giveRow(vendor: string, model: string, row: Record<string, unknown>): void {
  const data = JSON.parse(FIXTURE)
  Object.assign(data[vendor].models[model], row)
  give('api.json', JSON.stringify(data))
}

const OPENAI = `# our models
providers:
  openai: { preset: openai, key: k }   # the key is elsewhere

models:
  # the large one
  openai/gpt-9:   # for all
    limits:
      max_tokens: { default: 4096 } # per call
    prices: { input: 1, cached_input: 0.5, output: 8, source: models.dev, as_of: "2026-01-01" } # imported
  openai/gpt-8:
    prices: { input: 3, output: 9 } # by contract
    capabilities: { image_input: true, audio_input: true }

  openai/mine: {}

server:   { port: 9000 }
`

describe('the report', () => {
  test('lists every new, changed, kept, unknown and skipped setting, and writes nothing', async () => {
    give('gatehouse.yaml', OPENAI)
    const out = await importModels()
    expect(out).toBe(`api.json of ${DAY}, for gatehouse.yaml

~ openai/gpt-8
    + created                       1709164800
    + status                        deprecated
    + context_tokens                128000
    + limits.max_tokens.maximum     16384
    = capabilities.audio_input      true is kept, because you wrote it; models.dev says false
    + capabilities.audio_output     false
    = prices.input                  3 is kept, because you wrote it; models.dev says 2.5
    = prices.cached_input           none is kept, because you wrote it; models.dev says 0.25
    = prices.cache_write            none is kept, because you wrote it; models.dev says 3
    = prices.output                 9 is kept, because you wrote it; models.dev says 10
~ openai/gpt-9
    + created                       1772668800
    + context_tokens                400000
    + limits.max_tokens.maximum     128000
    + capabilities.audio_input      false
    + capabilities.audio_output     false
    + prices.currency               USD
    ~ prices.input                  1 -> 1.25
    ~ prices.cached_input           0.5 -> 0.125
    ~ prices.output                 8 -> 10
    + prices.tiers                  [{"above_input_tokens":200000,"input":2.5,"output":15}]
    ~ prices.as_of                  2026-01-01 -> ${DAY}
+ openai/gpt-9-mini  created 1777593600, context_tokens 128000, limits.max_tokens.maximum 16384, capabilities.image_input false, capabilities.audio_input false, capabilities.file_input false, capabilities.tools false, capabilities.json_schema false, capabilities.audio_output false, prices.currency USD, prices.input 0.1, prices.output 0.4, prices.source models.dev, prices.as_of ${DAY}
? openai/mine  models.dev does not know this model of openai
! openai/gpt-9-voice  skipped: its input and output are not both text
! openai/text-embedding-9  skipped: its name is not one of a chat model of this provider

Models: 1 new, 2 changed, 0 unchanged, 1 unknown, 2 skipped; 5 settings of yours kept.
Nothing was written; --write changes gatehouse.yaml.
`)
    expect(written()).toBe(OPENAI)
    expect(readdirSync(directory).sort()).toEqual(['api.json', 'gatehouse.yaml'])
  })

  test('is one line of JSON with --json', async () => {
    give('gatehouse.yaml', OPENAI)
    const report = await asJson(['--only', '*-mini', '--only', 'openai/gpt-9', '--only', 'mine'])
    expect(report).toMatchObject({
      source: 'api.json',
      as_of: DAY,
      file: at('gatehouse.yaml'),
      written: false,
      counts: { new: 1, changed: 1, unchanged: 0, kept: 0, unknown: 1, skipped: 0 },
      unknown: [{ id: 'openai/mine', provider: 'openai' }],
      skipped: [],
      providers: [],
    })
    expect(report.models.map(({ id, change }: { id: string; change: string }) => [id, change])).toEqual([
      ['openai/gpt-9', 'changed'],
      ['openai/gpt-9-mini', 'new'],
    ])
    expect(report.models[0]).toMatchObject({ provider: 'openai', vendor: 'openai', model: 'gpt-9' })
    expect(report.models[0].settings).toContainEqual({
      path: ['prices', 'input'],
      change: 'changed',
      from: 1,
      to: 1.25,
    })
    expect((await asJson(['--write'])).written).toBe(true)
  })

  test('suggests the model that was probably intended', async () => {
    give('gatehouse.yaml', 'providers: { openai: { preset: openai } }\nmodels: { openai/gtp-9: {} }\n')
    expect(await importModels(['--existing'])).toContain('of openai; the nearest name is "gpt-9"\n')
  })

  test('says when there is nothing to write', async () => {
    give('gatehouse.yaml', 'providers: { openai: { preset: openai } }\n')
    expect(await importModels(['--existing'])).toEndWith('There is nothing to write.\n')
  })
})

describe('the written file', () => {
  test('changes only the settings and preserves comments, order and spacing', async () => {
    give('gatehouse.yaml', OPENAI)
    expect(await importModels(['--write'])).toEndWith('gatehouse.yaml was written.\n')
    expect(written()).toBe(`# our models
providers:
  openai: { preset: openai, key: k }   # the key is elsewhere

models:
  # the large one
  openai/gpt-9:   # for all
    limits:
      max_tokens: { default: 4096, maximum: 128000 } # per call
    prices: { input: 1.25, cached_input: 0.125, output: 10, source: models.dev, as_of: "${DAY}", currency: USD, tiers: [{ above_input_tokens: 200000, input: 2.5, output: 15 }] } # imported
    created: 1772668800
    context_tokens: 400000
    capabilities: { audio_input: false, audio_output: false }
  openai/gpt-8:
    prices: { input: 3, output: 9 } # by contract
    capabilities: { image_input: true, audio_input: true, audio_output: false }
    created: 1709164800
    status: deprecated
    context_tokens: 128000
    limits: { max_tokens: { maximum: 16384 } }

  openai/mine: {}
  openai/gpt-9-mini:
    created: 1777593600
    context_tokens: 128000
    limits: { max_tokens: { maximum: 16384 } }
    capabilities: { image_input: false, audio_input: false, file_input: false, tools: false, json_schema: false, audio_output: false }
    prices: { currency: USD, input: 0.1, output: 0.4, source: models.dev, as_of: "${DAY}" }

server:   { port: 9000 }
`)
  })

  test('is complete: a second import, also on another day, changes nothing', async () => {
    give('gatehouse.yaml', OPENAI)
    await importModels(['--write'])
    const first = written()
    utimesSync(at('api.json'), new Date('2026-11-09T12:00:00Z'), new Date('2026-11-09T12:00:00Z'))
    expect(await importModels(['--write'])).toContain('0 new, 0 changed, 3 unchanged')
    expect(written()).toBe(first)
  })

  test('replaces the own settings of the operator only with --overwrite', async () => {
    give('gatehouse.yaml', OPENAI)
    await importModels(['--write', '--overwrite', '--only', 'gpt-8'])
    expect(written()).toContain(
      `    prices: { input: 2.5, output: 10, currency: USD, cached_input: 0.25, cache_write: 3, source: models.dev, as_of: "${DAY}" } # by contract\n` +
        '    capabilities: { image_input: true, audio_input: false, audio_output: false }\n',
    )
  })

  test('removes a price of an earlier import that models.dev no longer has', async () => {
    give('gatehouse.yaml', OPENAI)
    giveRow('openai', 'gpt-9', { cost: { input: 1, output: 8 } })
    await importModels(['--write', '--existing'])
    expect(written()).toMatch(
      /prices: { input: 1, output: 8, source: models.dev, as_of: "[\d-]+", currency: USD } # imported/,
    )
  })

  test('adds no models with --existing', async () => {
    give('gatehouse.yaml', OPENAI)
    expect((await asJson(['--existing'])).counts).toMatchObject({ new: 0, changed: 2 })
  })

  test('keeps a limit below the own default or minimum, on both sides of it', async () => {
    const models = (value: number) =>
      `providers: { openai: { preset: openai } }\nmodels: { openai/gpt-9: { limits: { max_tokens: { default: ${value} } } } }\n`
    give('gatehouse.yaml', models(128_001))
    const out = await importModels(['--write', '--existing'])
    expect(out).toContain('none is kept, your minimum or default of 128001 is higher; models.dev says 128000')
    expect(written()).not.toContain('maximum')
    give('gatehouse.yaml', models(128_000))
    await importModels(['--write', '--existing'])
    expect(written()).toContain('max_tokens: { default: 128000, maximum: 128000 }')
  })

  test('does not change a lifecycle with dates of the operator, and restores none', async () => {
    const life = (text: string) => `providers: { openai: { preset: openai } }\nmodels: { openai/gpt-8: { ${text} } }\n`
    for (const text of ['deprecated_at: 4000000000', 'retired_at: 4000000000', 'status: retired', 'status: active']) {
      give('gatehouse.yaml', life(text))
      await importModels(['--write', '--existing'])
      expect(written()).not.toContain('status: deprecated')
    }
  })

  test('applies to a model with one target, and to none with several', async () => {
    give(
      'gatehouse.yaml',
      `providers: { openai: { preset: openai } }
models:
  house/one: { targets: [{ provider: openai, model: gpt-9 }] }
  house/two: { targets: [{ provider: openai, model: gpt-9 }, { provider: openai, model: gpt-8 }] }
`,
    )
    const report = await asJson(['--existing', '--write'])
    expect(report.models).toMatchObject([{ id: 'house/one', model: 'gpt-9', change: 'changed' }])
    expect(report.skipped).toMatchObject([{ id: 'house/two' }])
    expect(written()).toContain('model: gpt-9 }], created: 1772668800, context_tokens: 400000')
  })

  test('skips what cannot be changed alone, and gives the reason', async () => {
    give(
      'gatehouse.yaml',
      `providers: { openai: { preset: openai } }
models:
  openai/gpt-9: &shared { prices: { input: 1 } }
  openai/gpt-8: *shared
`,
    )
    const report = await asJson(['--write', '--existing'])
    expect(report).toMatchObject({ written: false, models: [] })
    expect(report.skipped).toEqual([
      { id: 'openai/gpt-8', why: 'it is written as *shared, which other places share' },
      { id: 'openai/gpt-9', why: 'it is part of &shared, which other places may share' },
    ])
  })

  test('preserves the mode of the file and a link', async () => {
    give('real.yaml', OPENAI)
    chmodSync(at('real.yaml'), 0o640)
    symlinkSync('real.yaml', at('gatehouse.yaml'))
    await importModels(['--write'])
    expect(lstatSync(at('gatehouse.yaml')).isSymbolicLink()).toBe(true)
    expect(statSync(at('real.yaml')).mode & 0o777).toBe(0o640)
    expect(readFileSync(at('real.yaml'), 'utf8')).toContain('gpt-9-mini')
    expect(readdirSync(directory).sort()).toEqual(['api.json', 'gatehouse.yaml', 'real.yaml'])
  })

  test('is not replaced when the file changed during the import', () => {
    give('gatehouse.yaml', 'sandbox: true\n')
    const replace = () => replaceFile({ path: at('gatehouse.yaml'), before: 'sandbox: false\n', text: 'x' })
    expect(replace).toThrow('it changed during the import')
    expect(written()).toBe('sandbox: true\n')
    expect(readdirSync(directory).sort()).toEqual(['api.json', 'gatehouse.yaml'])
  })

  test('appears in `gatehouse models`', async () => {
    give('gatehouse.yaml', OPENAI)
    await importModels(['--write'])
    const { out } = await gatehouse(['--json'])
    const { models } = JSON.parse(out)
    const found = models.find(({ id }: { id: string }) => id === 'openai/gpt-9')
    expect(found).toMatchObject({ context_tokens: 400_000, created: 1772668800, status: 'active' })
    expect((await gatehouse([])).out).toMatch(/^openai\/gpt-8 +deprecated .* 128000 /m)
  })
})

describe('without a file', () => {
  test('a new one is created by --write only, for the providers found by their keys', async () => {
    const env = { MISTRAL_API_KEY: 'k' }
    expect(await importModels([], env)).toEndWith('Nothing was written; --write creates gatehouse.yaml.\n')
    expect(existsSync(at('gatehouse.yaml'))).toBe(false)
    await importModels(['--write'], env)
    expect(written()).toBe(`# Created by \`gatehouse models import\`. All settings: docs/manual/reference/settings.md
discover: true # as without a file: find providers by environment keys, and model servers on this machine

providers:
  mistral:
    preset: mistral
    discover: true
models:
  mistral/large-4:
    created: 1772668800
    context_tokens: 128000
    limits: { max_tokens: { maximum: 16384 } }
    capabilities: { audio_input: false, audio_output: false }
    prices: { currency: USD, input: 2.5, cached_input: 0.25, cache_write: 3, output: 10, source: models.dev, as_of: "${DAY}" }
  "mistral/small-4:free":
    created: 1780272000
`)
    expect(await importModels(['--write'], env)).toContain('0 new, 0 changed, 2 unchanged')
  })

  test('a file named by --config is created as well', async () => {
    await importModels(['--write', '--config', 'other.yaml'], { MISTRAL_API_KEY: 'k' })
    expect(readFileSync(at('other.yaml'), 'utf8')).toContain('mistral/large-4')
  })

  test('without a provider there is nothing to do', async () => {
    expect(await refusal(['--from', 'api.json'])).toContain('No provider is configured')
  })
})

describe('the vendor of a provider', () => {
  const vendorsOf = async (providers: FileConfig['providers'], args: string[] = []) => {
    give('gatehouse.yaml', JSON.stringify({ providers, sandbox: false }))
    const { models, providers: unpaired } = await asJson(args)
    const pairs = models.map(({ provider, vendor }: { provider: string; vendor: string }) => `${provider}=${vendor}`)
    return { pairs: [...new Set(pairs)], unpaired: unpaired.map(({ provider }: { provider: string }) => provider) }
  }

  test('is found by the preset, the kind and the address', async () => {
    const found = await vendorsOf({
      one: { preset: 'openai' },
      two: { kind: 'mistral', key: 'k' },
      three: { base_url: 'https://api.workshop.example/v1' },
      four: { base_url: 'https://api.mistral.ai/v1/' },
      five: { base_url: 'https://elsewhere.example/v1' },
      six: { preset: 'ollama' },
      seven: { kind: 'fal', key: 'k' },
      eight: { preset: 'groq' },
    })
    expect(found.pairs.sort()).toEqual(['four=mistral', 'one=openai', 'three=workshop-ai', 'two=mistral'])
    expect(found.unpaired).toEqual(['five', 'six', 'seven', 'eight'])
  })

  test('is the one of --provider, and only that provider is imported', async () => {
    const providers = { acme: { base_url: 'https://acme.example/v1' }, openai: { preset: 'openai' } }
    expect((await vendorsOf(providers, ['--provider', 'acme=mistral'])).pairs).toEqual(['acme=mistral'])
    expect((await vendorsOf(providers, ['--provider', 'openai'])).pairs).toEqual(['openai=openai'])
    expect((await vendorsOf(providers, ['--provider', 'openai', '--provider', 'acme=mistral'])).pairs.sort()).toEqual([
      'acme=mistral',
      'openai=openai',
    ])
  })

  test.each([
    ['acme', '"acme" is not known to models.dev'],
    ['acme=mistrul', 'has no vendor "mistrul"; did you mean "mistral"?'],
    ['acne=mistral', 'there is no provider "acne"; did you mean "acme"?'],
  ])('is reported when it cannot be found: --provider %s', async (wish, message) => {
    give('gatehouse.yaml', 'providers: { acme: { base_url: "https://acme.example/v1" } }\n')
    expect(await refusal(['--from', 'api.json', '--provider', wish])).toContain(message)
  })
})

describe('invalid input', () => {
  beforeEach(() => give('gatehouse.yaml', OPENAI))
  afterEach(() => expect(written()).toBe(OPENAI))

  test.each([
    [{ cost: { input: -0.01, output: 1 } }, 'cost.input: found the number -0.01, must be from 0 to 10000'],
    [{ cost: { input: 1, output: 10_000.5 } }, 'cost.output: found the number 10000.5, must be from 0 to 10000'],
    [{ cost: { input: '1', output: 1 } }, 'cost.input: found the string "1", must be a number'],
    [{ cost: { input: 1, cache_read: -1 } }, 'cost.cache_read: found the integer -1, must be from 0 to 10000'],
    [{ limit: { context: 1_000_000_001 } }, 'limit.context: found the integer 1000000001, must be from 0 to'],
    [{ limit: { output: 1.5 } }, 'limit.output: found the number 1.5, must be an integer'],
    [{ release_date: '2026-13-01' }, 'release_date: found the string "2026-13-01", must be text like'],
    [{ modalities: { input: 'text' } }, 'modalities.input: found the string "text", must be an array'],
    [{ tool_call: 'yes' }, 'tool_call: found the string "yes", must be a boolean'],
  ])('rejects an invalid row with its path: %j', async (row, message) => {
    giveRow('openai', 'gpt-9', row)
    expect(await refusal(['--from', 'api.json', '--write'])).toContain(`  openai.models.gpt-9.${message}`)
    expect((await asJson(['--only', 'gpt-9-mini'])).counts).toMatchObject({ new: 1 })
  })

  test.each([
    [{ cost: { input: 0, output: 10_000, cache_read: null } }],
    [{ limit: { context: 1_000_000_000, output: 1 } }],
    [{ release_date: '2026-12-31', status: null, cost: null, modalities: null, limit: null }],
    [{ tool_call: { supported: false }, anything: { else: [null] } }],
  ])('accepts a row at the limit: %j', async (row) => {
    giveRow('openai', 'gpt-9', row)
    expect((await asJson()).counts).toMatchObject({ changed: 2 })
  })

  test.each([
    ['[]', 'found an empty array, must be an object of vendors'],
    ['{}', 'found an object, must be an object of vendors'],
    ['{"openai": 1}', 'openai: found the integer 1, must be an object'],
    ['{"openai": {"models": []}}', 'openai.models: found an empty array, must be an object of models'],
    ['{"openai": ', 'is not JSON'],
  ])('rejects a file with other data: %s', async (text, message) => {
    give('other.json', text)
    expect(await refusal(['--from', 'other.json', '--write'])).toMatch(/^other\.json/)
    expect(await refusal(['--from', 'other.json', '--write'])).toContain(message)
  })

  test('rejects a missing file, a directory, and a file that is too large by a byte', async () => {
    expect(await refusal(['--from', 'none.json'])).toBe('none.json cannot be read: there is no such file')
    expect(await refusal(['--from', '.'])).toBe('. cannot be read: it is a directory')
    const data = JSON.stringify(JSON.parse(FIXTURE))
    give('large.json', data.padEnd(MAX_BYTES + 1))
    expect(await refusal(['--from', 'large.json'])).toContain(`the limit is ${MAX_BYTES}`)
    give('large.json', data.padEnd(MAX_BYTES))
    expect((await gatehouse(['import', '--from', 'large.json'])).out).toContain('1 new')
  })

  test.each([
    [['--only', ''], '--only: found an empty pattern'],
    [['--onyl', 'x'], 'has no option --onyl; did you mean --only?'],
    [['extra'], 'does not take "extra"'],
  ])('rejects mistyped arguments: %j', async (args, message) => {
    expect(await refusal(args)).toContain(message)
  })

  test('skips names that are not valid ids', async () => {
    const data = JSON.parse(FIXTURE)
    data.openai.models = { 'a b': {}, 'a//b': {}, 'gpt-\u001b[2J': {} }
    give('api.json', JSON.stringify(data))
    const { out } = await gatehouse(['import', '--from', 'api.json'])
    expect(out).toContain('! "openai/gpt-\\u001b[2J"  skipped: its name is not a valid id')
    expect(out).toContain('0 new, 0 changed, 0 unchanged, 3 unknown, 3 skipped')
  })
})

test('rejects an invalid configuration before it reads any data', async () => {
  give('gatehouse.yaml', 'servr: {}\n')
  expect(await refusal(['--from', 'none.json', '--write'])).toContain('gatehouse.yaml:1:1  servr: unknown key "servr"')
  expect(written()).toBe('servr: {}\n')
})

describe('over the network', () => {
  const servers: { stop(force: boolean): unknown }[] = []
  afterEach(() => {
    for (const server of servers.splice(0)) server.stop(true)
  })
  function serve(answer: (request: Request) => Response) {
    const requests: Request[] = []
    const server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch(request) {
        requests.push(request)
        return answer(request)
      },
    })
    servers.push(server)
    return { url: `http://127.0.0.1:${server.port}/api.json`, requests }
  }
  beforeEach(() => give('gatehouse.yaml', OPENAI))

  test('sends one GET and dates the data by Last-Modified', async () => {
    const headers = { 'last-modified': 'Tue, 03 Nov 2026 07:00:00 GMT' }
    const { url, requests } = serve(() => new Response(FIXTURE, { headers }))
    const { out } = await gatehouse(['import', '--from', url, '--write'])
    expect(out).toStartWith(`${url} of 2026-11-03, for gatehouse.yaml\n`)
    expect(requests.map(({ method }) => method)).toEqual(['GET'])
    expect(requests[0]?.headers.get('authorization')).toBeNull()
    expect(written()).toContain('as_of: "2026-11-03"')
  })

  test('dates the data by the import without Last-Modified', async () => {
    const { url } = serve(() => new Response(FIXTURE))
    const before = new Date().toISOString().slice(0, 10)
    const { as_of } = JSON.parse((await gatehouse(['import', '--from', url, '--json'])).out)
    expect([before, new Date().toISOString().slice(0, 10)]).toContain(as_of)
  })

  test('reports a response without data', async () => {
    const gone = serve(() => new Response('no', { status: 404 }))
    expect(await refusal(['--from', gone.url])).toBe(`${gone.url} could not be read: the server returned HTTP 404`)
    const moved = serve(() => new Response(null, { status: 308, headers: { location: 'https://elsewhere.example/' } }))
    expect(await refusal(['--from', moved.url])).toEndWith('HTTP 308, a redirect to https://elsewhere.example/')
    const page = serve(() => new Response('<html>'))
    expect(await refusal(['--from', page.url])).toContain('is not JSON')
  })

  test('reads no more than the limit', async () => {
    const { url } = serve(() => new Response(FIXTURE.padEnd(MAX_BYTES + 1)))
    expect(await refusal(['--from', url])).toContain(`answered with more than ${MAX_BYTES} bytes`)
    const edge = serve(() => new Response(FIXTURE.padEnd(MAX_BYTES)))
    expect((await gatehouse(['import', '--from', edge.url])).out).toContain('1 new')
  })

  test('explains the import from a file when there is no connection', async () => {
    const { url } = serve(() => new Response(FIXTURE))
    servers.pop()?.stop(true)
    expect(await refusal(['--from', url])).toContain(
      `curl -o api.json ${url}) and use: gatehouse models import --from api.json`,
    )
    expect(await refusal(['--from', 'http://user:secret@127.0.0.1/'])).not.toContain('secret')
  })
})

test('the command exists', async () => {
  give('gatehouse.yaml', OPENAI)
  const command = join(import.meta.dir, '../bin/gatehouse')
  const child = Bun.spawn([command, 'models', 'import', '--from', 'api.json', '--json'], {
    cwd: directory,
    env: { PATH: process.env.PATH ?? '' },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  expect({ err, code }).toEqual({ err: '', code: 0 })
  expect(JSON.parse(out).counts).toMatchObject({ new: 1, changed: 2 })
  expect((await gatehouse(['import', '--help'])).out).toStartWith('Usage: gatehouse models import ')
})

describe("LiteLLM's price map", () => {
  const MAP = {
    sample_spec: { litellm_provider: 'one of https://docs.litellm.ai/docs/providers', input_cost_per_token: 0 },
    'gpt-9': {
      litellm_provider: 'openai',
      mode: 'chat',
      max_input_tokens: 400_000,
      max_output_tokens: 128_000,
      input_cost_per_token: 1.25e-6,
      output_cost_per_token: 1e-5,
      cache_read_input_token_cost: '0.000000125',
      cache_creation_input_token_cost: 1.5e-6,
      cache_creation_input_token_cost_above_1hr: 2.5e-6,
      output_cost_per_reasoning_token: 1.2e-5,
      input_cost_per_audio_token: 3.2e-5,
      output_cost_per_image: 0.1,
      input_cost_per_token_above_200k_tokens: 2.5e-6,
      output_cost_per_token_above_200k_tokens: 1.5e-5,
    },
    'openai/gpt-image-9': { litellm_provider: 'openai', mode: 'image_generation', output_cost_per_image: 0.04 },
    'sora-9': { litellm_provider: 'openai', mode: 'video_generation', output_cost_per_video_per_second: 0.1 },
    'rerank-9': { litellm_provider: 'openai', mode: 'rerank', input_cost_per_token: 0, input_cost_per_query: 0.002 },
  }
  const FILE = `providers:
  openai: { preset: openai, key: k }
models:
  openai/gpt-9: {}
  openai/gpt-image-9: { families: [image-generation] }
  openai/sora-9: { families: [video-generation] }
  openai/rerank-9: { families: [rerank] }
`

  test('brings the prices of all families', async () => {
    give('gatehouse.yaml', FILE)
    give('api.json', JSON.stringify(MAP))
    await importModels(['--write'])
    const prices = (text: string) => new RegExp(`${text}:[\\s\\S]*?prices: (.*)`).exec(written())?.[1]
    expect(prices('openai/gpt-9')).toStartWith(
      '{ currency: USD, input: 1.25, cached_input: 0.125, cache_write: 1.5, cache_write_1h: 2.5, input_audio: 32, output: 10, reasoning: 12, ' +
        'tiers: [{ above_input_tokens: 200000, input: 2.5, output: 15 }], source: LiteLLM',
    )
    expect(written()).toContain('{ currency: USD, image: 0.04, source: LiteLLM')
    expect(written()).toContain('{ currency: USD, video_second: 0.1, source: LiteLLM')
    expect(written()).toContain('{ currency: USD, input: 0, searches: 2, source: LiteLLM')
  })

  test('adds models of chat only, and updates what it wrote before', async () => {
    give('gatehouse.yaml', 'providers:\n  openai: { preset: openai, key: k }\n')
    give('api.json', JSON.stringify(MAP))
    await importModels(['--write'])
    expect(written()).toContain('openai/gpt-9')
    expect(written()).not.toContain('sora-9')
    const tiers = { input_cost_per_token_above_200k_tokens: 3e-6 }
    give('api.json', JSON.stringify({ ...MAP, 'gpt-9': { ...MAP['gpt-9'], ...tiers, input_cost_per_token: 2e-6 } }))
    await importModels(['--write'])
    expect(written()).toMatch(/input: 2, .*tiers: \[\{ above_input_tokens: 200000, input: 3, output: 15 \}\]/)
  })

  test('is named in messages about it', async () => {
    give('gatehouse.yaml', `${FILE}  openai/mine: {}\n`)
    give('api.json', JSON.stringify({ ...MAP, 'gpt-9': { ...MAP['gpt-9'], max_input_tokens: 1 } }))
    const out = await importModels()
    expect(out).toContain('LiteLLM does not know this model of openai')
    give('gatehouse.yaml', FILE.replace('openai/gpt-9: {}', 'openai/gpt-9: { context_tokens: 2 }'))
    expect(await importModels()).toContain('2 is kept, because you wrote it; LiteLLM says 1\n')
    const vendor = ['--from', 'api.json', '--provider', 'openai=mistrul']
    expect(await refusal(vendor)).toContain('--provider: LiteLLM has no vendor "mistrul"')
    give('gatehouse.yaml', 'providers:\n  acme: { base_url: https://acme.test/v1, key: k }\n')
    const provider = ['--from', 'api.json', '--provider', 'acme']
    expect(await refusal(provider)).toContain('"acme" is not known to LiteLLM by its preset or address')
  })

  test('reports figures that are none', async () => {
    give('gatehouse.yaml', FILE)
    give('api.json', JSON.stringify({ 'gpt-9': { ...MAP['gpt-9'], input_cost_per_token: 'much' } }))
    expect(await refusal(['--from', 'api.json'])).toContain('cost.input')
  })
})

describe('prices diff', () => {
  const DATED = `providers:
  openai: { preset: openai, key: k }
models:
  openai/gpt-9: { prices: { input: 1.25, cached_input: 0.125, output: 10, tiers: [{ above_input_tokens: 200000, input: 2, output: 15 }] } }
  openai/gpt-8:
    prices:
      - { input: 99, output: 99 }
      - { from: 2026-01-01, input: 2.5, cached_input: 0.25, cache_write: 3, output: 10 }
      - { from: 2999-01-01, input: 1, output: 1 }
  openai/gpt-9-mini: {}
  openai/mine: {}
`
  const diff = (...args: string[]) => gatehouse(['diff', '--from', 'api.json', ...args], {}, runPrices)

  test('shows which prices in force differ, and changes nothing', async () => {
    give('gatehouse.yaml', DATED)
    const { out, code } = await diff('--json')
    expect(code).toBe(0)
    expect(JSON.parse(out)).toMatchObject({
      compared: 3,
      differences: [
        {
          model: 'openai/gpt-9',
          price: 'tiers',
          configured: [{ above_input_tokens: 200_000, input: 2, output: 15 }],
          public: [{ above_input_tokens: 200_000, input: 2.5, output: 15 }],
        },
        { model: 'openai/gpt-9-mini', price: 'input', configured: null, public: 0.1 },
        { model: 'openai/gpt-9-mini', price: 'output', configured: null, public: 0.4 },
      ],
      unknown: [{ id: 'openai/mine' }],
    })
    expect(written()).toBe(DATED)
  })

  test('has a line for each', async () => {
    give('gatehouse.yaml', DATED)
    const { out } = await diff('--only', 'gpt-9-mini')
    expect(out).toBe(`model              price   gatehouse.yaml  models.dev
openai/gpt-9-mini  input   none            0.1
openai/gpt-9-mini  output  none            0.4

1 model compared with api.json of ${DAY}; 2 differ, 0 unknown there.
`)
    expect((await diff('--only', 'gpt-8')).out).toBe(
      `1 model compared with api.json of ${DAY}; no price differs, 0 unknown there.\n`,
    )
  })

  test('refuses other words', async () => {
    const refused = await gatehouse(['dif'], {}, runPrices).catch((error: Error) => error.message)
    expect(refused).toBe('unknown command "dif"; did you mean "diff"? (commands: diff)')
  })
})
