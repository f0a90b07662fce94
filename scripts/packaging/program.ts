/** Gathers what an executable is made of: the entries of the program, the files that it reads, and how its sources are bundled. */
import { Database } from 'bun:sqlite'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { constants as zlib, zstdCompressSync } from 'node:zlib'
import type { BunPlugin } from 'bun'
import { fontFiles } from '../../packages/sandbox/src/render/canvas.ts'
import { readBuild } from '../../src/kit/build-info.ts'
import { NEW_DATABASE, openSqlite } from '../../src/store/engines/sqlite.ts'
import { buildConsole, CONSOLE_DIRECTORY, isConsoleStale } from '../build-console.ts'

export const ROOT = join(import.meta.dir, '../..')

/** Each is started by its path: a worker thread. */
export const WORKERS = [
  'src/gateway/proposed-config-worker.ts',
  'src/kit/tokenizer-worker.ts',
  'src/store/engines/checkpoints-worker.ts',
  'packages/sandbox/src/embed-worker.ts',
]
/** Processes that scripts/packaging/executable.ts starts by a command. */
const PROCESSES = ['packages/sandbox/src/render/renderer.ts', 'src/providers/mcp/program-launcher.ts']

const ENCODER = 'packages/sandbox/src/render/aac.ts'

/** The files of dependencies that are read by src/kit/resources.ts. */
const vendored = () => [
  resolved('gpt-tokenizer/data/o200k_base.tiktoken'),
  join(dirname(resolved('@scalar/api-reference')), 'browser/standalone.js'),
  ...fontFiles().map((name) => resolved(`@fontsource/inter/files/${name}`)),
]

const resolved = (name: string) => fileURLToPath(import.meta.resolve(name))

/** Copies the manual, the console and the files of dependencies into `directory`, as src/kit/resources.ts finds them. */
export async function stageResources(directory: string): Promise<void> {
  if (isConsoleStale()) await buildConsole()
  rmSync(directory, { recursive: true, force: true })
  mkdirSync(join(directory, 'packed'), { recursive: true })
  cpSync(join(ROOT, 'docs/manual'), join(directory, 'manual'), { recursive: true })
  cpSync(CONSOLE_DIRECTORY, join(directory, 'console'), { recursive: true })
  await packDatabase(directory)
  for (const file of vendored()) pack(directory, basename(file), readFileSync(file))
}

/** Higher levels take many times as long for a tenth of the size. */
const LEVEL = { [zlib.ZSTD_c_compressionLevel]: 9 }

export const pack = (directory: string, name: string, bytes: Uint8Array): void =>
  writeFileSync(join(directory, 'packed', `${name}.zst`), zstdCompressSync(bytes, { params: LEVEL }))

/** A database as the migrations leave a new one, equal in each build of one commit. */
async function packDatabase(directory: string): Promise<void> {
  const work = mkdtempSync(join(tmpdir(), 'gatehouse-database-'))
  try {
    const path = join(work, NEW_DATABASE)
    await (await openSqlite(path)).close()
    using database = new Database(path)
    database.run("update kysely_migration set timestamp = ''; update ledger_starts set start = 0")
    database.run('vacuum into ?', [`${path}.whole`])
    const bytes = readFileSync(`${path}.whole`)
    // Both versions of the file format: with a write-ahead log.
    pack(directory, NEW_DATABASE, bytes.fill(2, 18, 20))
  } finally {
    rmSync(work, { recursive: true })
  }
}

/** All files below `directory`, in an order of their own. */
export const filesIn = (directory: string): string[] =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()

/** A build waits for git on a busy machine: what it says is part of the executable. */
const GIT_TIMEOUT_MILLISECONDS = 120_000

/** The constants of src/kit/build-info.ts and src/kit/resources.ts. */
export const constants = async (resources: string): Promise<Record<string, string>> => ({
  BUNDLED_BUILD: JSON.stringify((await readBuild(ROOT, GIT_TIMEOUT_MILLISECONDS)) ?? null),
  EXECUTABLE_RESOURCES: JSON.stringify(resources),
})

/**
 * Makes the places where a source names another file fit the program. `placeOf`: where the entry of a worker lies, from
 * the module that starts it. Throws for a place that it does not know.
 */
export const places = (placeOf: (worker: string) => string): BunPlugin => ({
  name: 'places',
  setup(build) {
    build.onLoad({ filter: /[\\/]src[\\/].*\.ts$/ }, async ({ path }) => {
      if (path.includes('node_modules')) return undefined
      const text = await Bun.file(path).text()
      if (!text.includes('import.meta') && path !== join(ROOT, ENCODER)) return undefined
      return { contents: inProgram(text, path, placeOf), loader: 'ts' }
    })
  },
})

function inProgram(text: string, path: string, placeOf: (worker: string) => string): string {
  const name = path.slice(ROOT.length + 1)
  if (name === ENCODER) {
    // The encoder is named by a path of its package, which only a checkout has.
    const file = join(dirname(resolved('@mediabunny/aac-encoder')), '../modules/build/aac.js')
    if (!existsSync(file)) throw new Error(`${file}: is not there any more; ${ENCODER} names it`)
    return replaced(
      replaced(text, 'import(path.href)', `import(${JSON.stringify(file)})`, name),
      "new URL('../modules/build/aac.js', import.meta.resolve('@mediabunny/aac-encoder'))",
      'undefined',
      name,
    )
  }
  return text.replaceAll(/new URL\('(\.\/[\w-]+)\.ts', import\.meta\.url\)/g, (_, file: string) => {
    const entry = join(dirname(name), `${file}.ts`)
    if (![...PROCESSES, ...WORKERS].includes(entry)) throw new Error(`${name}: ${entry} is no entry of the program`)
    return `new URL(${JSON.stringify(placeOf(entry))}, import.meta.url)`
  })
}

function replaced(text: string, from: string, to: string, name: string): string {
  if (!text.includes(from)) throw new Error(`${name}: has no ${from}, which a program has in another place`)
  return text.replace(from, to)
}
