/**
 * `npm run build:binary [-- TARGET ...]`: one file with the gateway, its runtime, the console and the manual, as
 * `dist/gatehouse-linux-x64`. Without a target, for this machine. The runtime and the drawing library of another
 * target come from the registry, once.
 */
import { execFileSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { BunPlugin } from 'bun'
import lock from '../package-lock.json' with { type: 'json' }
import { constants, filesIn, pack, places, ROOT, stageResources, WORKERS } from './packaging/program.ts'
import { thirdPartyLicenses } from './packaging/third-party-licenses.ts'
import { trimExecutable } from './packaging/trim.ts'

/** The packages that hold the runtime and the drawing library of each target. */
export const TARGETS: Record<string, { bun: Bun.Build.CompileTarget; runtime: string; canvas: string }> = {
  'linux-x64': { bun: 'bun-linux-x64', runtime: '@oven/bun-linux-x64', canvas: '@napi-rs/canvas-linux-x64-gnu' },
  'linux-arm64': {
    bun: 'bun-linux-arm64',
    runtime: '@oven/bun-linux-aarch64',
    canvas: '@napi-rs/canvas-linux-arm64-gnu',
  },
  'linux-x64-musl': {
    bun: 'bun-linux-x64-musl',
    runtime: '@oven/bun-linux-x64-musl',
    canvas: '@napi-rs/canvas-linux-x64-musl',
  },
  'linux-arm64-musl': {
    bun: 'bun-linux-arm64-musl',
    runtime: '@oven/bun-linux-aarch64-musl',
    canvas: '@napi-rs/canvas-linux-arm64-musl',
  },
  'macos-x64': { bun: 'bun-darwin-x64', runtime: '@oven/bun-darwin-x64', canvas: '@napi-rs/canvas-darwin-x64' },
  'macos-arm64': {
    bun: 'bun-darwin-arm64',
    runtime: '@oven/bun-darwin-aarch64',
    canvas: '@napi-rs/canvas-darwin-arm64',
  },
}
const DIST = join(ROOT, 'dist')
/** Belongs to each executable. */
export const LICENSES = join(DIST, 'THIRD_PARTY_LICENSES')
const CACHE = join(DIST, '.targets')
const STAGE = join(DIST, '.resources')
/** Imports all of them. */
const LIST = '.resources.ts'
/** The drawing library, packed, and what loads it. */
const CANVAS = 'canvas.node'
const NATIVE = join(ROOT, 'scripts/packaging/native.ts')
/** Where the runtime shows the files that an executable holds. */
const INSIDE = '/$bunfs/root'

export const hostTarget = (): string => {
  const system = process.platform === 'darwin' ? 'macos' : process.platform
  // Of the runtime itself: the files of the other C library may be installed beside.
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } }
  const isMusl = process.platform === 'linux' && !header.glibcVersionRuntime
  return `${system}-${process.arch}${isMusl ? '-musl' : ''}`
}

/** `withMaps`: stacks name the places in the sources, for 2 MB. */
async function build(target: string, name: string, withMaps: boolean): Promise<string> {
  const packages = TARGETS[target]
  if (!packages) throw new Error(`${target}: no such target; there are ${Object.keys(TARGETS).join(', ')}`)
  const outfile = join(DIST, name)
  // The executable has its name inside: two builds are equal only if it is the same.
  const unfinished = join(DIST, `.${process.pid}/${name}`)
  const canTrim = target.startsWith('linux-')
  const runtime = target === hostTarget() ? process.execPath : join(packageOf(packages.runtime, 'bun'), 'bin/bun')
  const canvas = packageOf(packages.canvas, '@napi-rs/canvas')
  const { main } = JSON.parse(readFileSync(join(canvas, 'package.json'), 'utf8')) as { main: string }
  pack(STAGE, CANVAS, readFileSync(join(canvas, main)))
  const list = filesIn(STAGE).map((file, at) => `export { default as file${at} } from ${JSON.stringify(file)}\n`)
  writeFileSync(join(DIST, LIST), list.join(''))
  const { success, logs } = await Bun.build({
    root: ROOT,
    entrypoints: ['scripts/packaging/executable.ts', ...WORKERS, `dist/${LIST}`].map((name) => join(ROOT, name)),
    target: 'bun',
    format: 'esm',
    bytecode: true,
    splitting: true,
    // They also say what of an executable can be trimmed.
    sourcemap: withMaps || canTrim ? 'external' : 'none',
    minify: { whitespace: true, syntax: true, identifiers: false },
    naming: { asset: '[dir]/[name].[ext]', entry: '[dir]/[name].[ext]' },
    define: await constants(`${INSIDE}/dist/.resources`),
    plugins: [
      places((worker) => `file://${INSIDE}/${worker.replace(/\.ts$/, '.js')}`),
      asFiles(`${STAGE}/`),
      drawing,
      tables,
      oneCopy,
    ],
    compile: {
      target: packages.bun,
      outfile: unfinished,
      executablePath: runtime,
      // What happens to lie where the command is typed changes nothing.
      autoloadDotenv: false,
      autoloadBunfig: false,
    },
    throw: false,
  })
  if (!success) throw new Error(`${target}: ${logs.map(String).join('\n')}`)
  if (canTrim) trimExecutable(unfinished, withMaps)
  renameSync(unfinished, outfile)
  rmSync(dirname(unfinished), { recursive: true })
  return outfile
}

/** Every file below `directory` is held as it is, scripts and pages too: the bundler would follow what a page names. */
const asFiles = (directory: string): BunPlugin => ({
  name: 'files',
  setup(build) {
    build.onResolve({ filter: /\.html$/ }, ({ path }) => ({ path, namespace: 'page' }))
    const load = async ({ path }: { path: string }) => ({
      contents: await Bun.file(path).bytes(),
      loader: 'file' as const,
    })
    build.onLoad({ filter: new RegExp(`^${RegExp.escape(directory)}`) }, load)
    build.onLoad({ filter: /./, namespace: 'page' }, load)
  },
})

/** The drawing library looks at run time which package its system needs: each is the one of the target, the only one inside. */
const drawing: BunPlugin = {
  name: 'canvas',
  setup(build) {
    build.onResolve({ filter: /^@napi-rs\/canvas-(?!wasm)/ }, () => ({ path: 'native', namespace: 'canvas' }))
    build.onLoad({ filter: /./, namespace: 'canvas' }, () => ({
      contents: `module.exports = require(${JSON.stringify(NATIVE)}).loadNative('${CANVAS}')`,
      loader: 'js',
    }))
  },
}

/** The tables of languages, packed: as members of an object they and their bytecode take 3.5 MB more. */
const tables: BunPlugin = {
  name: 'tables',
  setup(build) {
    build.onLoad({ filter: /[\\/]eld[\\/]src[\\/]ngrams[\\/]\w+\.js$/ }, async ({ path }) => {
      const packed = gzipSync(JSON.stringify((await import(path)).ngramsData), { level: 9 }).toString('base64')
      const contents = `import { gunzipSync } from 'node:zlib'
        export const ngramsData = JSON.parse(gunzipSync(Buffer.from('${packed}', 'base64')))`
      return { contents, loader: 'js' }
    })
  },
}

/** Packages that npm has installed several times in one version: of each the first, whichever is asked for first. */
export const oneCopy: BunPlugin = {
  name: 'one copy',
  setup(build) {
    const copies = new Map<string, string>()
    for (const [directory, { version }] of Object.entries(lock.packages as Record<string, { version?: string }>)) {
      const key = `${directory.slice(directory.lastIndexOf('node_modules/') + 13)} ${version}`
      // The lock file also names what is for development only.
      if (!copies.has(key) && existsSync(join(ROOT, directory))) copies.set(key, join(ROOT, directory))
    }
    build.onResolve({ filter: /^(@ai-sdk\/provider|zod)/ }, ({ path, resolveDir }) => {
      const file = Bun.resolveSync(path, resolveDir)
      const [, directory = '', name = '', rest = ''] =
        /^(.*\/node_modules\/(@ai-sdk\/[\w-]+|zod))(\/.*)$/.exec(file) ?? []
      if (!directory) return undefined
      const { version } = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8'))
      const copy = copies.get(`${name} ${version}`)
      return copy ? { path: copy + rest } : undefined
    })
  },
}

/** The directory of an installed package, or of one from the registry in the version of `like`. */
function packageOf(name: string, like: string): string {
  const installed = join(ROOT, 'node_modules', name)
  if (existsSync(join(installed, 'package.json'))) return installed
  const { version } = JSON.parse(readFileSync(join(ROOT, 'node_modules', like, 'package.json'), 'utf8'))
  const directory = join(CACHE, `${name.replace('/', '-')}-${version}`)
  if (existsSync(directory)) return directory
  const work = mkdtempSync(join(tmpdir(), 'gatehouse-target-'))
  try {
    const [packed] = JSON.parse(
      execFileSync('npm', ['pack', '--json', '--pack-destination', work, `${name}@${version}`], {
        stdio: ['ignore', 'pipe', 'inherit'],
        encoding: 'utf8',
      }),
    )
    execFileSync('tar', ['-xzf', join(work, packed.filename), '-C', work])
    mkdirSync(CACHE, { recursive: true })
    cpSync(join(work, 'package'), directory, { recursive: true })
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
  return directory
}

/** The executable of each target, in order; without targets, of this machine. */
export async function buildBinaries(targets: string[]): Promise<[target: string, file: string][]> {
  const built = await withResources(async () => {
    const files: [string, string][] = []
    for (const target of targets.length > 0 ? targets : [hostTarget()])
      files.push([target, await build(target, `gatehouse-${target}`, false)])
    return files
  })
  writeFileSync(
    LICENSES,
    thirdPartyLicenses(new Set(Object.values(TARGETS).flatMap(({ runtime, canvas }) => [runtime, canvas]))),
  )
  return built
}

/** `dist/gatehouse`, for this machine: what `bin/gatehouse` of a checkout starts. */
export const buildForCheckout = (): Promise<string> => withResources(() => build(hostTarget(), 'gatehouse', true))

/** Runs `work` while the files that an executable holds are gathered. */
async function withResources<Result>(work: () => Promise<Result>): Promise<Result> {
  mkdirSync(DIST, { recursive: true })
  await stageResources(STAGE)
  try {
    return await work()
  } finally {
    rmSync(STAGE, { recursive: true })
    rmSync(join(DIST, LIST), { force: true })
  }
}

if (import.meta.main) {
  for (const [, file] of await buildBinaries(process.argv.slice(2)))
    process.stdout.write(`${file.slice(ROOT.length + 1)}  ${(statSync(file).size / 1e6).toFixed(0)} MB\n`)
}
