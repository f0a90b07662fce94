/** The manual is correct: its examples are valid and run, its links have targets. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { checkFile } from '../src/config/check/check.ts'
import { readYaml } from '../src/config/load/read-yaml.ts'
import { webhookSecret } from '../src/families/tasks/webhook-delivery.ts'
import { signatureHeaders } from '../src/jobs/signed-post.ts'
import { loadManual } from '../src/site/manual/load-manual.ts'
import { startGateway } from './kit/gateway.ts'
import { MANUAL_DIRECTORY, manualPages, manualPage as page } from './kit/manual.ts'

const ROOT = join(import.meta.dir, '..')
const pages = manualPages()
const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')

/** The blocks of code in this language, without their fences. */
const blocks = (text: string, language: string): string[] =>
  [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'))].map(([, code = '']) => code)

let directory: string
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-manual-'))
})
afterAll(() => rmSync(directory, { recursive: true }))

test('the README links to the index of the manual', () => {
  expect(readme).toContain('(docs/manual/README.md)')
})

test('every page has a unique base name', () => {
  expect(pages.map((path) => basename(path)).sort()).toEqual([...new Set(pages.map((path) => basename(path)))].sort())
})

test.each(pages)('the files that %s links to exist', (path) => {
  const links = [...page(basename(path)).matchAll(/\]\((?!https?:)([^)#]+)(#[^)]*)?\)/g)].map(
    ([, target = '']) => target,
  )
  expect(links.filter((target) => !existsSync(join(MANUAL_DIRECTORY, dirname(path), target)))).toEqual([])
})

test.each(pages)('every example of a configuration on %s is valid', (path) => {
  const problems = blocks(page(basename(path)), 'yaml')
    .filter((text) => !text.startsWith('#'))
    .flatMap((text) => {
      const environment = Object.fromEntries(
        [...text.matchAll(/\$\{(\w+)\}/g)].map(([, name = '']) => [name, name.padEnd(20, 'k')]),
      )
      const complete = /^providers:/m.test(text)
        ? text
        : `${text}\nproviders: ${JSON.stringify(Object.fromEntries(namedProviders(text)))}\n`
      return checkFile({
        file: 'x',
        yaml: readYaml(complete, environment, { secretAt: () => 'a-secret' }),
        discover: false,
        vendors: undefined,
        now: 0,
      }).problems
    })
  expect(problems).toEqual([])
})

/** The providers that an example names without configuring them. */
const namedProviders = (text: string) =>
  [...text.matchAll(/^ {2}(\w+)\/|provider: (\w+)/gm)].map(([, one, other]) => [
    one ?? other,
    { base_url: 'https://a.example/v1' },
  ])

test('the program on the page about videos is short and complete', () => {
  const [program = ''] = blocks(page('videos.md'), 'ts')
  expect(program).toContain("import { writeFile } from 'node:fs/promises'")
  expect(program.split('\n').filter(Boolean).length).toBeLessThanOrEqual(24)
})

test('the manual calls the command `gatehouse`; one page says where it is', () => {
  const naming = pages.filter((path) => page(basename(path)).includes('bin/gatehouse')).map((path) => basename(path))
  expect(naming.sort()).toEqual(['getting-started.md'])
})

test('the README fits on three screens', () => {
  expect(readme.split('\n').length).toBeLessThanOrEqual(121)
})

describe('the verification of webhooks', () => {
  const secret = webhookSecret('a master secret', 'tok_a')
  const body = '{"type":"task.succeeded","data":{"task_id":"task_ü"}}'
  const signed = (change: { timestamp?: number; secret?: string } = {}) =>
    signatureHeaders({ secret, id: 'evt_1', timestamp: Math.floor(Date.now() / 1000), ...change }, body)
  const now = () => Math.floor(Date.now() / 1000)

  /** The request, and whether it is the gateway's. */
  const CASES: [string, () => { headers: Record<string, string>; body?: string }, boolean][] = [
    ['accepts a signed webhook', () => ({ headers: signed() }), true],
    ['accepts one valid signature of several', () => with_((one) => `v1,AAAA v2,x ${one}`), true],
    ['rejects a changed body', () => ({ headers: signed(), body: body.replace('succeeded', 'failed') }), false],
    [
      'rejects the signature of another token',
      () => ({ headers: signed({ secret: webhookSecret('a master secret', 'b') }) }),
      false,
    ],
    ['rejects a changed id', () => ({ headers: { ...signed(), 'webhook-id': 'evt_2' } }), false],
    ['rejects a changed time', () => ({ headers: { ...signed(), 'webhook-timestamp': String(now() - 60) } }), false],
    ['rejects a webhook older than five minutes', () => ({ headers: signed({ timestamp: now() - 310 }) }), false],
    [
      'accepts a webhook a little younger than five minutes',
      () => ({ headers: signed({ timestamp: now() - 280 }) }),
      true,
    ],
    ['rejects an empty signature', () => with_(() => ''), false],
    ['rejects a truncated signature', () => with_((one) => one.slice(0, -4)), false],
  ]
  function with_(change: (signature: string) => string) {
    const headers = signed()
    return { headers: { ...headers, 'webhook-signature': change(headers['webhook-signature'] ?? '') } }
  }

  test.each(CASES)('in TypeScript %s', async (_, make, isValid) => {
    const file = join(directory, 'verify.ts')
    writeFileSync(file, blocks(page('webhooks.md'), 'ts')[0] ?? '')
    const { verifyWebhook } = await import(file)
    const sent = make()
    const event = verifyWebhook(new Headers(sent.headers), sent.body ?? body, secret)
    expect(event).toEqual(isValid ? JSON.parse(body) : undefined)
  })

  const python = Bun.which('python3')
  test.skipIf(!python)('in Python gives the same results', async () => {
    const file = join(directory, 'verify.py')
    const cases = CASES.map(([, make]) => ({ body, ...make() }))
    const run = `
import sys
for case in json.load(sys.stdin):
    event = verify_webhook(case["headers"], case["body"].encode(), ${JSON.stringify(secret)})
    print(json.dumps(event is not None))
`
    writeFileSync(file, (blocks(page('webhooks.md'), 'python')[0] ?? '') + run)
    const child = Bun.spawn([python ?? 'python3', file], {
      stdin: new Blob([JSON.stringify(cases)]),
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
    expect({ out: out.trim().split('\n'), err }).toEqual({
      out: CASES.map(([, , isValid]) => String(isValid)),
      err: '',
    })
  })
})

test('every picture that is named is there, is named, and is small', () => {
  const named = (text: string) =>
    [...text.matchAll(/!\[[^\]]+\]\([^)]*images\/([\w-]+\.png)\)/g)].map(([, name]) => name)
  const all = new Set([...pages.flatMap((path) => named(page(basename(path)))), ...named(readme)])
  const files = readdirSync(join(MANUAL_DIRECTORY, 'images'))
  expect([...all].sort()).toEqual(files.sort())
  expect(files.filter((name) => statSync(join(MANUAL_DIRECTORY, 'images', name)).size > 150_000)).toEqual([])
  expect(files.length).toBeLessThanOrEqual(8)
  expect(named(readme)).toHaveLength(1)
})

test('a picture of a page is served beside it, and no other file', async () => {
  await using gateway = await startGateway({}, { manual: loadManual })
  const page = await (await gateway.call('/manual/console', { headers: { accept: 'text/html' } })).text()
  const [, source = ''] = /<img src="(\/manual\/images\/[\w-]+\.png)" alt="[^"]+"/.exec(page) ?? []
  const picture = await gateway.call(source)
  expect([picture.status, picture.headers.get('content-type')]).toEqual([200, 'image/png'])
  for (const name of ['none.png', '..%2fREADME.md', 'console.md'])
    expect((await gateway.call(`/manual/images/${name}`)).status).toBe(404)
})
