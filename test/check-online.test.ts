/** `gatehouse check --online`: what it asks, and how it explains what providers return. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '../src/cli/commands/check.ts'
import { type ManualClock, manualClock } from './kit/clock.ts'
import { collectingTerminal } from './kit/terminal.ts'
import { type Answer, failure, hang, hangUp, startVendor, type VendorRequest, whole } from './kit/vendor.ts'

let directory: string
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-online-'))
})
afterAll(() => rmSync(directory, { recursive: true }))

const open: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of open.splice(0)) await close()
})

type Given = { providers: Record<string, object>; environment?: Record<string, string>; clock?: ManualClock }
type Report = Record<'provider' | 'kind' | 'result' | 'models' | 'upstream_status' | 'message', unknown>

async function runOnline({ providers, environment = {}, clock = manualClock() }: Given, args: string[]) {
  writeFileSync(join(directory, 'gatehouse.yaml'), JSON.stringify({ providers }))
  const { terminal, printed } = collectingTerminal({ cwd: directory, environment })
  const code = await run(['--online', ...args], terminal, clock)
  return { ...printed, code }
}

async function reports(given: Given): Promise<{ online: Report[]; code: number; out: string }> {
  const { out, code } = await runOnline(given, ['--json'])
  return { ...JSON.parse(out), code, out }
}

/** The explanation for the one provider `p`. */
async function messageFor(provider: object, environment?: Record<string, string>): Promise<unknown> {
  const { online, code } = await reports({ providers: { p: provider }, ...(environment ? { environment } : {}) })
  expect([online[0]?.result, code]).toEqual(['failed', 1])
  return online[0]?.message
}

const LIST = whole({ object: 'list', data: [{ id: 'large-2', object: 'model' }] })
const KEY = 'sk-0123456789abcdef'

function vendorWith(answer: Answer) {
  const vendor = startVendor()
  vendor.otherwise(answer)
  open.push(vendor.stop)
  return vendor
}

/** Answers by the path of a request. */
const at =
  (rows: Record<string, Answer>): Answer =>
  (wire) =>
    (rows[wire.request.path] ?? failure(404))(wire)

const asked = (requests: VendorRequest[]) => requests.map(({ method, path }) => `${method} ${path}`)

describe('check --online', () => {
  test('asks each provider once for its list of models, and nothing else', async () => {
    const [one, two] = [vendorWith(LIST), vendorWith(LIST)]
    const { online, code } = await reports({
      providers: {
        one: { base_url: one.url, key: KEY },
        two: { kind: 'messages-compat', base_url: two.origin, key: KEY },
        three: { preset: 'meshy', key: KEY },
      },
    })
    expect(code).toBe(0)
    expect(online).toEqual([
      {
        provider: 'one',
        key: null,
        kind: 'chatcompat',
        result: 'ok',
        models: 1,
        milliseconds: 0,
        upstream_status: 200,
        message: '',
      },
      {
        provider: 'two',
        key: null,
        kind: 'messages-compat',
        result: 'ok',
        models: 1,
        milliseconds: 0,
        upstream_status: 200,
        message: '',
      },
      {
        provider: 'three',
        key: null,
        kind: 'meshy',
        result: 'not asked',
        models: null,
        milliseconds: null,
        upstream_status: null,
        message: 'its API has no list of models',
      },
    ] as unknown as Report[])
    expect(asked(one.requests)).toEqual(['GET /v1/models'])
    expect(asked(two.requests)).toHaveLength(1)
    expect(asked(two.requests)[0]).toStartWith('GET /v1/models')
  })

  test('rounds times to whole milliseconds', async () => {
    const clock = manualClock()
    const slow = vendorWith((wire) => {
      clock.advance(24.510498046875)
      return LIST(wire)
    })
    const { out } = await runOnline({ providers: { p: { base_url: slow.url, key: KEY } }, clock }, [])
    expect(out).toMatch(/ 25 ms/)
  })

  test('prints a table, and exits with 1 when a provider failed', async () => {
    const vendor = vendorWith(LIST)
    const closed = startVendor()
    await closed.stop()
    const { out, code } = await runOnline(
      { providers: { works: { base_url: vendor.url }, broken: { base_url: closed.url } } },
      [],
    )
    expect(code).toBe(1)
    expect(out.split('\n')).toEqual([
      'gatehouse.yaml is valid: 2 providers, 0 models.',
      '',
      'PROVIDER  KIND        RESULT  MODELS  TIME',
      'works     chatcompat  ok      1       0 ms',
      'broken    chatcompat  failed  -       0 ms  nothing listens at its address; check base_url and the network',
      '',
    ])
  })

  test('asks with each of several keys, by name, as calls are made', async () => {
    const vendor = vendorWith((wire) =>
      (wire.request.headers.authorization === `Bearer ${KEY}-2` ? failure(401) : LIST)(wire),
    )
    const keys = [{ key: KEY, name: 'first' }, { key: `${KEY}-2` }]
    const providers = { p: { base_url: vendor.url, keys } }
    const { online, code, out } = await reports({ providers })
    expect(code).toBe(1)
    expect(online).toMatchObject([
      { provider: 'p', key: 'first', result: 'ok', models: 1, message: '' },
      {
        provider: 'p',
        key: '2',
        result: 'failed',
        message: '401: the provider refuses the key "2" of providers.p.keys',
      },
    ])
    expect(out).not.toContain(KEY)
    expect(vendor.requests.map(({ headers }) => headers.authorization).sort()).toEqual([
      `Bearer ${KEY}`,
      `Bearer ${KEY}-2`,
    ])
    const { out: printed } = await runOnline({ providers }, [])
    expect(printed).toContain('\np#first   chatcompat  ok ')
    expect(printed).toContain('\np#2       chatcompat  failed ')
  })

  test('reports that there is no provider', async () => {
    expect(await runOnline({ providers: {} }, [])).toMatchObject({
      code: 0,
      out: expect.stringContaining('no provider to ask'),
    })
  })

  test('does not ask the sandbox, and asks nobody without the flag', async () => {
    const vendor = vendorWith(LIST)
    expect((await reports({ providers: { s: { kind: 'sandbox' } } })).online).toEqual([])
    writeFileSync(join(directory, 'gatehouse.yaml'), JSON.stringify({ providers: { p: { base_url: vendor.url } } }))
    expect(await run([], collectingTerminal({ cwd: directory }).terminal)).toBe(0)
    expect(vendor.requests).toEqual([])
  })

  test('asks all at once, each for 10 seconds at most', async () => {
    const clock = manualClock()
    const [one, two] = [vendorWith(hang()), vendorWith(hang())]
    const ended = reports({ providers: { one: { base_url: one.url }, two: { base_url: two.url } }, clock })
    await Promise.all([one.request(), two.request()])
    clock.advance(9_999)
    expect(one.connections()).toBeGreaterThan(0)
    clock.advance(1)
    const { online, code } = await ended
    expect(code).toBe(1)
    for (const report of online) {
      expect(report).toMatchObject({ result: 'failed', milliseconds: 10_000, message: 'no answer within 10 s' })
    }
  })
})

describe('a refused key', () => {
  const refused = () => vendorWith(failure(401)).url

  test('is explained by where the key came from, without the key', async () => {
    const base_url = refused()
    expect(await messageFor({ base_url, key: KEY })).toBe('401: the provider refuses the key in providers.p.key')
    const environment = { OPENAI_API_KEY: KEY }
    expect(await messageFor({ preset: 'openai', base_url }, environment)).toBe(
      '401: the provider refuses the key in OPENAI_API_KEY',
    )
    const key_file = join(directory, 'vendor-key')
    writeFileSync(key_file, KEY, { mode: 0o600 })
    expect(await messageFor({ base_url, key_file })).toBe('401: the provider refuses the key in providers.p.key_file')
    const { out } = await reports({ providers: { p: { base_url, key: KEY } } })
    expect(out).not.toContain(KEY)
  })

  test('is explained as a missing one where there is none', async () => {
    const base_url = refused()
    expect(await messageFor({ base_url })).toBe('401: the provider wants a key: write providers.p.key')
    expect(await messageFor({ preset: 'openai', base_url })).toBe(
      '401: the provider wants a key: write providers.p.key, or set OPENAI_API_KEY',
    )
  })

  test('of a status 403 is the same', async () => {
    const { url } = vendorWith(failure(403))
    expect(await messageFor({ base_url: url, key: KEY })).toBe('403: the provider refuses the key in providers.p.key')
  })
})

describe('a wrong address', () => {
  test('without /v1 is found out by asking the address with it', async () => {
    const vendor = vendorWith(at({ '/v1/models': LIST }))
    expect(await messageFor({ base_url: vendor.origin })).toBe(
      `404: there is no list of models at ${vendor.origin}, but one at ${vendor.url}: write base_url: ${vendor.url}`,
    )
    expect(asked(vendor.requests)).toEqual(['GET /models', 'GET /v1/models'])
  })

  test('without /v1beta is found out for the Gemini API', async () => {
    const vendor = vendorWith((wire) =>
      (wire.request.path.startsWith('/proxy/v1beta/models')
        ? whole({ models: [{ name: 'models/gemini-3', supportedGenerationMethods: ['generateContent'] }] })
        : failure(404))(wire),
    )
    expect(await messageFor({ kind: 'contentgen-compat', base_url: `${vendor.origin}/proxy`, key: KEY })).toContain(
      `write base_url: ${vendor.origin}/proxy/v1beta`,
    )
  })

  test('of an endpoint instead of its base is found out', async () => {
    const vendor = vendorWith(at({ '/v1/models': LIST }))
    expect(await messageFor({ base_url: `${vendor.url}/chat/completions` })).toContain(`write base_url: ${vendor.url}`)
  })

  test('with a /v1 too much is found out', async () => {
    const vendor = vendorWith(at({ '/models': LIST }))
    expect(await messageFor({ base_url: vendor.url })).toContain(`write base_url: ${vendor.origin}`)
  })

  test('of a web page is found out, and explained where no other address has a list', async () => {
    const page = whole('<!doctype html><title>Hello</title>', { headers: { 'content-type': 'text/html' } })
    const vendor = vendorWith(at({ '/models': page, '/v1/models': LIST }))
    expect(await messageFor({ base_url: vendor.origin })).toContain(`write base_url: ${vendor.url}`)
    const pages = vendorWith(page)
    expect(await messageFor({ base_url: pages.origin })).toBe(
      `200: answered with something that is not a list of models at ${pages.origin}; base_url usually ends with /v1`,
    )
  })

  test('that only wants a key at the other address is found out too', async () => {
    const vendor = vendorWith(at({ '/v1/models': failure(401) }))
    expect(await messageFor({ base_url: vendor.origin })).toContain(`write base_url: ${vendor.url}`)
  })

  test('that redirects is explained', async () => {
    const vendor = vendorWith(whole('', { status: 301, headers: { location: 'https://api.example.com/v1/models' } }))
    expect(await messageFor({ base_url: vendor.url })).toBe(
      '301: base_url redirects, which is not followed; write the final address',
    )
  })
})

test.each([
  [402, '402: the account at the provider is out of credit'],
  [429, '429: the provider limits requests now; ask again later'],
  [500, '500: the provider reports an error of its own'],
  [503, '503: the provider reports an error of its own'],
])('a status %d is explained', async (status, message) => {
  expect(await messageFor({ base_url: vendorWith(failure(status)).url })).toBe(message)
})

test('a connection that is closed without a response is explained', async () => {
  expect(await messageFor({ base_url: vendorWith(hangUp()).url })).toContain('closed the connection before it answered')
})
