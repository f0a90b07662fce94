/** The calls of the README work as shown. */
import { afterAll, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { scripts } from '../package.json' with { type: 'json' }
import { systemClock } from '../src/kit/clock.ts'
import { ENDPOINT_FAMILIES } from '../src/spec/endpoint-family.ts'
import { startGateway } from './kit/gateway.ts'

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
const gateway = await startGateway({}, { clock: systemClock })
afterAll(() => gateway[Symbol.asyncDispose]())

/** Lines such as `ask /v1/embeddings '{...}'`, and what is written to a file. */
const calls = [...readme.matchAll(/^ask (\/\S+) '(.*)'(?: > (\S+))?$/gm)].map(([, path = '', json = '', file]) => ({
  path,
  body: JSON.parse(json) as Record<string, unknown>,
  file,
}))
/** Lines such as `curl http://...  -F model=m -F file=@hello.mp3`. */
const forms = [...readme.matchAll(/^curl http:\/\/[^/]+(\/\S+) .*-F model=(\S+) -F file=@(\S+)$/gm)].map(
  ([, path = '', model = '', file]) => ({ path, model, file }),
)

test('the README has a call for every family', () => {
  const all = [...calls, ...forms]
  expect(all).toHaveLength(ENDPOINT_FAMILIES.length)
  expect(new Set(all.map(({ path }) => path)).size).toBe(ENDPOINT_FAMILIES.length)
})

test('the first screen has three ways to start', () => {
  const screen = readme.split('\n').slice(0, 25).join('\n')
  for (const way of ['npx gatehouse', 'docker run', 'npm start']) expect(screen).toContain(`\n${way}`)
})

const ROOT = join(import.meta.dir, '..')
const documents = ['*.md', '.ci/*', 'bench/*.md', 'deploy/**', 'docs/**/*.md', 'packages/*/README.md'].flatMap(
  (glob) => [...new Bun.Glob(glob).scanSync({ cwd: ROOT, dot: true })],
)

test('no document names a command or a file of the repository that is not there', () => {
  expect(documents).toContain('docs/scale.md')
  const missing = documents.flatMap((name) => {
    const text = readFileSync(join(ROOT, name), 'utf8')
    const commands = [...text.matchAll(/npm run ([\w:-]+)/g)].filter(([, script = '']) => !(script in scripts))
    const files = [...text.matchAll(/`((?:bench|deploy|docs|scripts|src|test)\/[\w./-]+\.\w+)`/g)]
    return [...commands, ...files.filter(([, file = '']) => !existsSync(join(ROOT, file)))].map(
      ([found]) => `${name}: ${found}`,
    )
  })
  expect(missing).toEqual([])
})

const written = new Map<string | undefined, Uint8Array<ArrayBuffer>>()

test.each(calls)('$path returns 200 on a fresh start', async ({ path, body, file }) => {
  const response = await gateway.call(path, { json: body })
  if (file !== undefined) {
    written.set(file, await response.bytes())
    expect(response.status).toBe(200)
    return
  }
  const result = await response.json()
  expect([response.status, result.error ?? null]).toEqual([200, null])
})

test.each(forms)('$path understands the file of the call before', async ({ path, model, file }) => {
  const form = new FormData()
  form.append('model', model)
  form.append('file', new File([written.get(file) ?? new Uint8Array()], file ?? ''))
  const response = await gateway.call(path, { form })
  expect([response.status, ((await response.json()) as { text: string }).text]).toEqual([200, 'Hello'])
})
