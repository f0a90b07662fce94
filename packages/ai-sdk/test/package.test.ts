/** The package as it is published: built, with what belongs into it and no more, run by its name. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DEFAULT_TASKS } from '../../../src/config/config.ts'
import { manualPage } from '../../../test/kit/manual.ts'
import { openPort, type Port } from '../../../test/kit/served.ts'

const HOME = join(import.meta.dir, '..')
const ROOT = join(HOME, '../..')
const TSC = join(ROOT, 'node_modules/.bin/tsc')
const ADDRESS = 'http://127.0.0.1:8787'
const readme = readFileSync(join(HOME, 'README.md'), 'utf8')
const manual = manualPage('client-package.md')
const blocks = (text: string) => [...text.matchAll(/^```ts\n([\s\S]*?)^```/gm)].map(([, code = '']) => code)

let directory: string
let port: Port
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-package-'))
  for (const name of ['package.json', 'tsconfig.json', 'README.md', 'LICENSE', 'src']) {
    cpSync(join(HOME, name), join(directory, name), { recursive: true })
  }
  symlinkSync(join(ROOT, 'node_modules'), join(directory, 'node_modules'))
  await run([TSC, '-p', 'tsconfig.json'])
  port = await openPort({ tasks: { ...DEFAULT_TASKS, poll_seconds: 0.2, slow_poll_seconds: 1 } })
})
afterAll(async () => {
  await port.close()
  rmSync(directory, { recursive: true })
})

async function run(command: string[], env: Record<string, string> = {}): Promise<string> {
  const child = Bun.spawn(command, {
    cwd: directory,
    env: { PATH: process.env.PATH ?? '', HOME: directory, ...env },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if ((await child.exited) !== 0) throw new Error(`${command.join(' ')}: ${out}${err}`)
  return out
}

test('publishes only what is needed', async () => {
  const [packed] = JSON.parse(await run(['npm', 'pack', '--dry-run', '--json', '--ignore-scripts', '--offline']))
  const modules = readdirSync(join(HOME, 'src')).filter((name) => name.endsWith('.ts'))
  const built = modules.flatMap((name) => [name.replace(/ts$/, 'js'), name.replace(/ts$/, 'd.ts')])
  expect(packed.files.map(({ path }: { path: string }) => path).sort()).toEqual(
    ['LICENSE', 'README.md', 'package.json', ...built.map((name) => `dist/${name}`)].sort(),
  )
})

test.each(['nodenext', 'bundler'])('has types for module resolution "%s"', async (moduleResolution) => {
  const program = `
import { createGatehouse, type ThreeDResult } from '@gatehouse/ai-sdk'
import type { ProviderV4 } from '@ai-sdk/provider'
const gatehouse = createGatehouse() satisfies ProviderV4
export const made: Promise<ThreeDResult> = gatehouse.threeD('m').generate({ prompt: 'A teapot' })
// @ts-expect-error: a model is no number
export const wrong: number = gatehouse.video('m')
`
  writeFileSync(join(directory, 'consumer.ts'), program)
  const module = moduleResolution === 'nodenext' ? 'nodenext' : 'esnext'
  const flags = ['--noEmit', '--strict', '--target', 'es2022', '--types', '', '--skipLibCheck', '--ignoreConfig']
  await run([TSC, ...flags, '--module', module, '--moduleResolution', moduleResolution, 'consumer.ts'])
})

/** Tiny ones, so that a test need not wait. */
const quickly = (program: string) =>
  program
    .replaceAll(ADDRESS, port.url.replace(/\/v1$/, ''))
    .replaceAll(/prompt: '(A red kite|A small clay)/g, "prompt: '@sandbox quick=1\\n$1")

const runtimes = [process.execPath, Bun.which('node')].filter((path) => path !== null)
test.each(runtimes)('the program in the README runs as shown with %s', async (runtime) => {
  const [program = ''] = blocks(readme)
  expect(program.split('\n').filter(Boolean).length).toBeLessThanOrEqual(20)
  writeFileSync(join(directory, 'example.mjs'), quickly(program))
  const said = await run([runtime, 'example.mjs'], { GATEHOUSE_API_KEY: port.token })
  expect(said).toContain('Gatehouse')
  expect(readFileSync(join(directory, 'kite.mp4')).subarray(4, 8).toString()).toBe('ftyp')
  expect(readFileSync(join(directory, 'teapot.glb')).subarray(0, 4).toString()).toBe('glTF')
})

describe('with another version of the ai package beside it', () => {
  /** The package as npm installs it, next to an `ai` that has only a version. */
  async function importBeside(version: string, runtime: string): Promise<string> {
    const modules = join(directory, `beside-${version}/node_modules`)
    mkdirSync(join(modules, 'ai'), { recursive: true })
    writeFileSync(join(modules, 'ai/package.json'), JSON.stringify({ name: 'ai', version }))
    for (const name of ['package.json', 'dist']) {
      cpSync(join(directory, name), join(modules, '@gatehouse/ai-sdk', name), { recursive: true })
    }
    writeFileSync(join(modules, '../package.json'), '{}') // ends the package above, which would resolve its own name
    const program = join(modules, '../program.mjs')
    writeFileSync(
      program,
      "import { createGatehouse } from '@gatehouse/ai-sdk'\ncreateGatehouse()\nconsole.log('loaded')\n",
    )
    return run([runtime, program]).catch((error: unknown) => String(error))
  }

  test.each(runtimes)('refuses ai 6 in words with %s', async (runtime) => {
    const output = await importBeside('6.0.326', runtime)
    expect(output).toContain('@gatehouse/ai-sdk works with ai 7 or later; ai 6.0.326 is installed.')
    expect(output).toContain('npm install ai@7')
  })

  test.each(runtimes)('accepts ai 7 with %s', async (runtime) => {
    expect(await importBeside('7.0.0', runtime)).toBe('loaded\n')
  })
})

test('declares the ai package as a peer of the version that its models have', () => {
  const { peerDependencies, peerDependenciesMeta } = JSON.parse(readFileSync(join(HOME, 'package.json'), 'utf8'))
  expect(peerDependencies.ai).toBe('^7.0.0')
  // Optional: npm reports another version, and does not add `ai` to an installation of the gateway.
  expect(peerDependenciesMeta.ai.optional).toBe(true)
  for (const text of [readme, manual]) expect(text).toContain('npm install @gatehouse/ai-sdk ai@7')
})

test.each(blocks(manual).map((program, at) => [at, program] as const))(
  'program %d of the manual’s page runs as it is shown',
  async (_, program) => {
    writeFileSync(join(directory, 'example.ts'), quickly(program))
    const environment = { GATEHOUSE_API_KEY: port.token, GATEHOUSE_BASE_URL: port.url }
    expect(await run([process.execPath, 'example.ts'], environment)).not.toBe('')
  },
)
