/**
 * Makes `dist/console`, the web console as the gateway serves it: scripts and one style sheet with hashed names, and the
 * page that loads them. All but the smallest are compressed.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, constants } from 'node:zlib'

const ROOT = join(import.meta.dir, '..')
const SOURCE = join(ROOT, 'console/src')
export const CONSOLE_DIRECTORY = join(ROOT, 'dist/console')

/** The sheets in their order: tokens before what uses them, pages last. */
const SHEETS = [
  'styles/tokens.css',
  'styles/base.css',
  'styles/*.css',
  'shell/**/*.css',
  'ui/**/*.css',
  'pages/**/*.css',
]
/** Compression gains nothing below this size. */
const MIN_COMPRESSED_BYTES = 256

type Built = { name: string; bytes: Uint8Array }

/** Builds into `directory`, which is complete or not there at all for a gateway that runs meanwhile. */
export async function buildConsole(directory = CONSOLE_DIRECTORY): Promise<void> {
  const scripts = await bundleScripts()
  const style = await bundleStyle()
  const entry = scripts.find(({ isEntry }) => isEntry)
  if (!entry) throw new Error('the console has no entry script')
  const early = importsOf(new TextDecoder().decode(entry.bytes))
  const work = `${directory}.${process.pid}`
  rmSync(work, { recursive: true, force: true })
  mkdirSync(join(work, 'assets'), { recursive: true })
  for (const asset of [...scripts, style]) write(join(work, 'assets', asset.name), asset.bytes)
  const page = pageOf({ script: entry.name, style: style.name, early })
  write(join(work, 'index.html'), new TextEncoder().encode(page))
  const former = `${work}.old`
  if (existsSync(directory)) renameSync(directory, former)
  renameSync(work, directory)
  rmSync(former, { recursive: true, force: true })
}

/** Whether a source of the console is newer than what was built. */
export function isConsoleStale(directory = CONSOLE_DIRECTORY): boolean {
  const page = join(directory, 'index.html.br')
  if (!existsSync(page)) return true
  const built_at = statSync(page).mtimeMs
  const sources = [...new Bun.Glob('**/*').scanSync({ cwd: SOURCE, absolute: true }), import.meta.path]
  return sources.some((path) => statSync(path).mtimeMs > built_at)
}

async function bundleScripts(): Promise<(Built & { isEntry: boolean })[]> {
  const { outputs } = await Bun.build({
    entrypoints: [join(SOURCE, 'main.tsx')],
    target: 'browser',
    format: 'esm',
    splitting: true,
    minify: true,
    naming: { entry: '[name]-[hash].[ext]', chunk: '[name]-[hash].[ext]', asset: '[name]-[hash].[ext]' },
    define: { 'process.env.NODE_ENV': '"production"' },
    publicPath: '/console/assets/',
  })
  return Promise.all(
    outputs.map(async (output) => ({
      name: output.path.replace(/^.*\//, ''),
      bytes: new Uint8Array(await output.arrayBuffer()),
      isEntry: output.kind === 'entry-point',
    })),
  )
}

/** All sheets of the console in one: a page that is loaded later has its style already. */
async function bundleStyle(): Promise<Built> {
  const names = new Set(SHEETS.flatMap((pattern) => [...new Bun.Glob(pattern).scanSync(SOURCE)].sort()))
  const imports = [
    Bun.resolveSync('uplot/dist/uPlot.min.css', SOURCE),
    ...[...names].map((name) => join(SOURCE, name)),
  ].map((path) => `@import ${JSON.stringify(path)};`)
  const entry = join(SOURCE, 'console.css')
  const { outputs } = await Bun.build({
    entrypoints: [entry],
    files: { [entry]: imports.join('\n') },
    minify: true,
    target: 'browser',
  })
  const bytes = new Uint8Array((await outputs[0]?.arrayBuffer()) ?? new ArrayBuffer(0))
  const hash = createHash('sha256').update(bytes).digest('hex').slice(0, 10)
  return { name: `console-${hash}.css`, bytes }
}

/** The scripts that the entry imports at once: the browser may load them beside it. */
function importsOf(script: string): string[] {
  const names = [...script.matchAll(/(?:from|import)\s*"(?:\/console\/assets\/|\.\/)([\w.-]+\.js)"/g)]
  return [...new Set(names.map(([, name = '']) => name))]
}

function write(path: string, bytes: Uint8Array): void {
  const params = { [constants.BROTLI_PARAM_QUALITY]: 9, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length }
  if (bytes.length < MIN_COMPRESSED_BYTES) writeFileSync(path, bytes)
  else writeFileSync(`${path}.br`, brotliCompressSync(bytes, { params }))
}

const ICON = readFileSync(join(SOURCE, 'icon.svg'), 'utf8')

function pageOf({ script, style, early }: { script: string; style: string; early: string[] }): string {
  const preloads = early.map((name) => `<link rel="modulepreload" href="/console/assets/${name}">\n`).join('')
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Gatehouse console</title>
<link rel="icon" href="data:image/svg+xml,${encodeURIComponent(ICON)}">
<link rel="stylesheet" href="/console/assets/${style}">
${preloads}<script type="module" src="/console/assets/${script}"></script>
</head>
<body>
<div id="console"></div>
<noscript>The console needs JavaScript. The admin API does not: see <a href="/manual/admin-api">the manual</a>.</noscript>
</body>
</html>
`
}

if (import.meta.main) await buildConsole()
