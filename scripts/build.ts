/**
 * Makes `dist/gatehouse.js`, the gateway in one file with its bytecode, which starts in less than half the time.
 * `bin/gatehouse` uses it while it is newer than all it was made of. Beside it, `dist/console`, the web console.
 */
import { copyFileSync, mkdirSync, renameSync, rmSync, utimesSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import type { BunPlugin } from 'bun'
import { readBuild } from '../src/kit/build-info.ts'
import { buildConsole } from './build-console.ts'

const ROOT = join(import.meta.dir, '..')
/** What only some gateways load, and only when they need it: inside, it would take memory in all of them. */
const LOADED_LATER = [
  '@ai-sdk/*',
  '@gltf-transform/*',
  '@mediabunny/*',
  // Inside, it would find the `zod` of other packages, which is an older one.
  '@modelcontextprotocol/*',
  '@napi-rs/canvas',
  '@opentelemetry/*',
  '@scalar/*',
  '@smithy/*',
  'aws4fetch',
  'eld/*',
  'google-auth-library',
  'gpt-tokenizer',
  'gpt-tokenizer/*',
  'h264-mp4-encoder',
  'jose',
  'mediabunny',
  'minisearch',
  'nodemailer',
  'openid-client',
  're2js',
  'stemmer',
  'zod',
]

/** Files beside a source, such as a worker, are found as from the source itself: the bundle contains none of them. */
const sourceUrls: BunPlugin = {
  name: 'source-urls',
  setup(build) {
    build.onLoad({ filter: /[\\/]src[\\/].*\.ts$/ }, async ({ path }) => {
      if (path.includes('node_modules')) return undefined
      const text = await Bun.file(path).text()
      if (!text.includes('import.meta')) return undefined
      const url = `new URL(${JSON.stringify(relative(ROOT, path))}, Bun.pathToFileURL(bundleDirectory + '/../')).href`
      const contents = text
        .replaceAll('import.meta.url', url)
        .replaceAll(
          'import.meta.resolve(',
          '((name: string) => Bun.pathToFileURL(Bun.resolveSync(name, bundleDirectory)).href)(',
        )
      if (contents.includes('import.meta'))
        throw new Error(`${path}: only .url and .resolve of import.meta can be bundled`)
      return { contents, loader: 'ts' }
    })
  },
}

/** Into `directory`, complete or not at all for who starts meanwhile. */
async function build(directory: string): Promise<void> {
  const started_at = new Date()
  const work = join(directory, `.${process.pid}`)
  const { outputs } = await Bun.build({
    entrypoints: [join(ROOT, 'src/main.ts')],
    outdir: work,
    naming: 'gatehouse.[ext]',
    target: 'bun',
    // The format of which the runtime keeps bytecode; modules are in strict mode, a script must say so.
    format: 'cjs',
    bytecode: true,
    // The source is held in memory: without comments and indentation a fourth less. Names stay as errors show them.
    minify: { whitespace: true, syntax: true, identifiers: false },
    // Inside of a module, `__dirname` would become the directory of its source at the time of the build.
    banner: '"use strict"; const bundleDirectory = __dirname;',
    external: LOADED_LATER,
    define: { BUNDLED_BUILD: JSON.stringify((await readBuild(ROOT)) ?? null) },
    sourcemap: 'external',
    plugins: [sourceUrls],
  })
  for (const { path } of outputs) {
    const name = basename(path)
    if (name === 'gatehouse.js.map') await writeMap(path, join(directory, 'gatehouse.map'))
    else {
      // A source that was edited since the build began is newer.
      utimesSync(path, started_at, started_at)
      renameSync(path, join(directory, name))
    }
  }
  copyFileSync(join(ROOT, 'package.json'), join(directory, 'package.json'))
  rmSync(work, { recursive: true })
}

/** For src/kit/source-stack.ts: under another name than the one that the runtime would load at start, without the sources. */
async function writeMap(from: string, to: string): Promise<void> {
  const { version, sources, names, mappings } = await Bun.file(from).json()
  const ofDirectory = sources.map((source: string) => relative(dirname(to), resolve(dirname(from), source)))
  await Bun.write(to, JSON.stringify({ version, sources: ofDirectory, names, mappings }))
}

const directory = join(ROOT, 'dist')
mkdirSync(directory, { recursive: true })
await build(directory)
// After the gateway, which starts without it.
await buildConsole()
