/** The import rule: a module imports from a lower layer or from itself, never from another module of its layer, never from above. */
import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

const ROOT = join(import.meta.dir, '..')
const SOURCE = join(ROOT, 'src')
/** The client package is published on its own and imports nothing of `src`; the sandbox imports what its own rule allows. */
const PACKAGES = join(ROOT, 'packages')

/** The layers, the lowest first. A folder that stands here is a module, also inside of another one. */
const LAYERS = [
  ['spec', 'kit'],
  ['protocols', 'config'],
  ['providers', 'store', 'outputs', 'http', 'jobs'],
  ['models', 'calls/routing', 'calls/limits', 'calls/budgets', 'calls/cache', 'calls/recording', 'calls/guards'],
  ['calls'],
  ['accounts', 'observe'],
  ['families/shared'],
  ['families/tasks', 'families/files'],
  [
    'families/chat',
    'families/embeddings',
    'families/rerank',
    'families/moderations',
    'families/audio',
    'families/images',
    'families/mcp',
    'families/passthrough',
    'families/batches',
    'families/realtime',
    'site',
  ],
  ['admin'],
  ['gateway', 'listen.ts'],
  ['cli'],
]
/** The process: parses the command line and loads one command. The only file outside of the layers. */
const PROCESS = 'main.ts'

/** Modules that may use the Bun API. All others use web standards. */
const BUN_MODULES = ['main.ts', 'listen.ts', 'cli', 'kit', 'store/engines', 'outputs']
const LINES_AT_MOST = 320

const readAll = (directory: string, wanted: RegExp) =>
  readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter((name) => wanted.test(name) && !name.endsWith('.test.ts'))
    .map((name) => ({ name, text: readFileSync(join(directory, name), 'utf8') }))

const files = readAll(SOURCE, /\.ts$/)
const packaged = readAll(PACKAGES, /^[^/]+\/src\/.*\.ts$/)

/** The longest first: `calls/limits` is not `calls`. */
const MODULES = LAYERS.flat().sort((a, b) => b.length - a.length)
const moduleOf = (name: string) => MODULES.find((module) => name === module || name.startsWith(`${module}/`)) ?? name
const layerOf = (module: string) => LAYERS.findIndex((modules) => modules.includes(module))

/** The files of this project that a file imports, as paths below src. */
function importsOf(name: string, text: string): string[] {
  const found = text.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)
  return [...found].map((match) => relative(SOURCE, join(SOURCE, dirname(name), match[1] ?? '')))
}

/** What is wrong with an import; undefined for a correct one. */
function violationOf(name: string, target: string): string | undefined {
  const module = moduleOf(name)
  const other = moduleOf(target)
  if (module === other || name === PROCESS || target.startsWith('..')) return undefined
  if (other === PROCESS) return `${name} imports ${target}: nothing imports the process`
  if (layerOf(other) === layerOf(module))
    return `${name} imports ${target}: modules of one layer do not import each other`
  if (layerOf(other) > layerOf(module)) return `${name} imports ${target}: that module is on a higher layer`
  return undefined
}

test('every source file but the process belongs to a module of a layer', () => {
  const strays = files.filter(({ name }) => layerOf(moduleOf(name)) === -1).map(({ name }) => name)
  expect(strays).toEqual([PROCESS])
})

test('a module of the table has files', () => {
  const used = new Set(files.map(({ name }) => moduleOf(name)))
  expect(LAYERS.flat().filter((module) => !used.has(module))).toEqual([])
})

test('the picture in docs/architecture.md has the layers of this table', () => {
  const page = readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8')
  const rows = [...page.matchAll(/^ *(\d+) {2}(\S.*?)(?: {3,}.*)?$/gm)].map(([, number, modules = '']) => ({
    number: Number(number),
    modules: modules.split(/ +/).map((module) => module.replace(/\/$/, '')),
  }))
  expect(rows).toEqual(LAYERS.map((modules, index) => ({ number: index + 1, modules })).reverse())
})

test('docs/architecture.md opens each module with a sentence', () => {
  const page = readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8')
  const described = [...page.matchAll(/^\| `([a-z/]+?)\/?(?:\.ts)?` \|/gm)].map(([, module = '']) => module)
  const rooms = new Set(LAYERS.flat().map((module) => module.split('/')[0]?.replace('.ts', '')))
  expect([...rooms].filter((room) => !described.includes(room ?? ''))).toEqual([])
})

test('a file imports from a lower layer or from its own module', () => {
  const violations = files.flatMap(({ name, text }) => importsOf(name, text).map((target) => violationOf(name, target)))
  expect(violations.filter(Boolean)).toEqual([])
})

/** Files that read requests and write responses: routes, pages, the app. */
const SERVES_HTTP =
  /^(gateway|listen\.ts|http|cli|admin\/(routes|explain-)|site\/[^/]+$|families\/shared)|\/routes\/|-routes?\.ts$/

test('only routes, pages, observers and the composition root import http/', () => {
  const strays = files
    .filter(({ name }) => !SERVES_HTTP.test(name) && moduleOf(name) !== 'observe')
    .flatMap(({ name, text }) =>
      importsOf(name, text)
        .filter((target) => moduleOf(target) === 'http')
        .map((target) => `${name} imports ${target}`),
    )
  expect(strays).toEqual([])
})

test('what decides about calls, and the families, use no HTTP requests and responses', () => {
  const HTTP = /\bnew Response\(|\bResponse\.json\(|[:<|] ?(Request|Response|Context)\b(?!\w|\.)/
  const deciding = files.filter(({ name }) => layerOf(moduleOf(name)) >= 3 && !SERVES_HTTP.test(name))
  const strays = deciding.filter(({ text }) => HTTP.test(text))
  expect(strays.map(({ name }) => name)).toEqual([])
})

test('a wire protocol imports no other wire protocol', () => {
  const protocolOf = (name: string) => /^protocols\/([^/]+)\//.exec(name)?.[1]
  const shared = new Set([undefined, 'shared'])
  const violations = files.flatMap(({ name, text }) =>
    importsOf(name, text)
      .filter((target) => name.startsWith('protocols/') && !shared.has(protocolOf(target)))
      .filter((target) => protocolOf(target) !== protocolOf(name))
      .map((target) => `${name} imports ${target}`),
  )
  expect(files.some(({ name }) => name.startsWith('protocols/messages/'))).toBe(true)
  expect(violations).toEqual([])
})

/** They load the SDK of OpenTelemetry, which takes 60 ms and 20 MB. */
const EXPORTERS = /^observe\/export\/otlp-(common|logs|metrics|traces)\.ts$/

test('the SDK of OpenTelemetry is loaded only where an export is configured', () => {
  const users = files.filter(({ text }) => text.includes("'@opentelemetry/")).map(({ name }) => name)
  expect(users.filter((name) => !EXPORTERS.test(name))).toEqual([])
  expect(users).not.toEqual([])
  const loading = files.flatMap(({ name, text }) =>
    [...text.matchAll(/^import (?!type ).*'([^']*\/otlp-(common|logs|metrics|traces)\.ts)'/gm)].map(() => name),
  )
  expect(loading.filter((name) => !EXPORTERS.test(name))).toEqual([])
})

test('there is no import cycle', () => {
  const graph = new Map([...files, ...sandbox].map(({ name, text }) => [name, importsOf(name, text)]))
  const cycles: string[] = []
  const visit = (name: string, path: string[]): void => {
    const at = path.indexOf(name)
    if (at !== -1) return void cycles.push([...path.slice(at), name].join(' -> '))
    if (done.has(name)) return
    for (const next of graph.get(name) ?? []) visit(next, [...path, name])
    done.add(name)
  }
  const done = new Set<string>()
  for (const name of graph.keys()) visit(name, [])
  expect(cycles).toEqual([])
})

/** The simulated provider is a package that stands behind the provider contract: what it may import of `src`. */
const SANDBOX = '../packages/sandbox/src/'
const MAY_SANDBOX_IMPORT = /^((spec|kit)\/|providers\/(provider|audio|realtime)\.ts$)/
const sandbox = packaged
  .filter(({ name }) => name.startsWith('sandbox/src/'))
  .map(({ name, text }) => ({ name: `../packages/${name}`, text }))

test('the sandbox imports the public schemas, the general tools and the provider contract, nothing else of `src`', () => {
  const targets = sandbox.flatMap(({ name, text }) => importsOf(name, text))
  expect(targets).toContain('providers/provider.ts')
  expect(targets.filter((target) => !target.startsWith(SANDBOX) && !MAY_SANDBOX_IMPORT.test(target))).toEqual([])
})

test('one file imports the sandbox: its rows of the catalogue at start, its work with the first call', () => {
  const entry = files.find(({ name }) => name === 'providers/sandbox.ts')
  const text = entry?.text.replaceAll(/^import type .*$/gm, '') ?? ''
  const [loaded, lazy] = [text.match(/from '[^']*\/packages\/[^']*'/g), text.match(/require\('[^']*'\)/g)]
  expect(loaded).toEqual(["from '../../packages/sandbox/src/models.ts'"])
  expect(lazy).toEqual(["require('../../packages/sandbox/src/sandbox.ts')"])
})

/** The files of the sandbox that run in a process which starts with this one. */
function loadedBy(first: string): string[] {
  const loaded = new Set<string>()
  const load = (name: string): void => {
    if (loaded.has(name)) return
    loaded.add(name)
    const text = sandbox.find((file) => file.name === name)?.text ?? ''
    for (const target of importsOf(name, text.replaceAll(/^import type .*$/gm, ''))) load(target)
  }
  load(SANDBOX + first)
  return [...loaded].map((name) => name.replace(SANDBOX, '')).sort()
}

test('the rows of the sandbox, which every start reads, load none of its work', () => {
  expect(loadedBy('models.ts')).toEqual(['models.ts', 'render/model-plan.ts', 'render/plan.ts'])
})

test('native code, whose faults end a process, draws in the process of the renderer only', () => {
  const drawing = loadedBy('render/renderer.ts').filter((name) => name.startsWith('render/') && !/plan/.test(name))
  expect(drawing).toContain('render/canvas.ts')
  expect(loadedBy('sandbox.ts').filter((name) => drawing.includes(name))).toEqual([])
})

test('only the listed modules use the Bun API', () => {
  const strays = [...files, ...packaged].filter(({ name, text }) => {
    const usesBun = /\bBun\.|from 'bun(:|')/.test(text.replaceAll(/^\s*(\*|\/\*|\/\/).*$/gm, ''))
    return usesBun && !BUN_MODULES.some((module) => name === module || name.startsWith(`${module}/`))
  })
  expect(strays.map(({ name }) => name)).toEqual([])
})

test('a package imports its own files and what its package.json names, and only one file of `src` a package', () => {
  const strays = packaged.flatMap(({ name, text }) => {
    const home = name.split('/')[0] ?? ''
    const { dependencies, peerDependencies } = JSON.parse(readFileSync(join(PACKAGES, home, 'package.json'), 'utf8'))
    const named = Object.keys({ ...dependencies, ...peerDependencies })
    return [...text.matchAll(/(?:from|import)\s*\(?\s*'([^'\n]+)'/g)].flatMap(([, target = '']) => {
      // The client runs in browsers too. What the sandbox imports of `src` has a rule of its own.
      if (home === 'sandbox' && /^node:|^[./]+\/src\//.test(target)) return []
      const isNamed = named.some((one) => `${target}/`.startsWith(`${one}/`))
      const isOwn = target.startsWith('.') && join(dirname(name), target).startsWith(`${home}/src/`)
      return isNamed || isOwn ? [] : [`${name}: ${target}`]
    })
  })
  expect(packaged.length).toBeGreaterThan(0)
  expect(strays).toEqual([])
  const users = files.filter(({ text }) => /'(@gatehouse\/|[./]+\/packages\/)/.test(text)).map(({ name }) => name)
  expect(users).toEqual(['providers/sandbox.ts'])
})

/** The folders of the console, the lowest first; the files beside them start it. */
const CONSOLE_LAYERS = ['lib', 'api', 'ui', 'shell', 'pages']
const consoleFiles = readAll(join(ROOT, 'console/src'), /\.tsx?$/)

test('the console imports its own files from a lower folder, its packages, and nothing of `src`', () => {
  const { dependencies } = JSON.parse(readFileSync(join(ROOT, 'console/package.json'), 'utf8'))
  const violations = consoleFiles.flatMap(({ name, text }) =>
    // Samples for clients are text.
    [...text.replaceAll(/`[^`]*`/g, '').matchAll(/(?<!['\w-])(?:from|import)\s*\(?\s*'([^'\n]+)'/g)].flatMap(
      ([, target = '']) => {
        if (!target.startsWith('.')) {
          const isNamed = Object.keys(dependencies).some((one) => `${target}/`.startsWith(`${one}/`))
          return isNamed ? [] : [`${name} imports ${target}: console/package.json does not name it`]
        }
        const path = join(dirname(name), target)
        const [folder = '', page] = name.split('/')
        const [other = '', otherPage] = path.split('/')
        const isStart = !name.includes('/')
        if (path.startsWith('..')) return [`${name} imports ${target}: outside of the console`]
        if (folder === 'pages' && other === 'pages' && name !== 'pages/pages.ts' && page !== otherPage)
          return [`${name} imports ${target}: a page imports no other page`]
        return isStart || CONSOLE_LAYERS.indexOf(other) <= CONSOLE_LAYERS.indexOf(folder)
          ? []
          : [`${name} imports ${target}: that folder is above`]
      },
    ),
  )
  expect(consoleFiles.length).toBeGreaterThan(20)
  expect(violations).toEqual([])
})

test('the console has no file too long, and sets no style but variables in its elements', () => {
  const written = consoleFiles.filter(({ name }) => name !== 'api/types.ts')
  expect(written.filter(({ text }) => text.split('\n').length > LINES_AT_MOST).map(({ name }) => name)).toEqual([])
  expect(written.filter(({ text }) => !/^\/\*\*/.test(text)).map(({ name }) => name)).toEqual([])
  expect(written.filter(({ text }) => /dangerouslySetInnerHTML|innerHTML/.test(text)).map(({ name }) => name)).toEqual(
    [],
  )
})

test(`no file is longer than ${LINES_AT_MOST} lines, and each opens with a sentence of what it does`, () => {
  const all = [...files, ...packaged]
  const long = all.filter(({ text }) => text.split('\n').length > LINES_AT_MOST)
  expect(long.map(({ name }) => name)).toEqual([])
  // "Writes the access log", not "What is written of requests".
  const opens = /^(#!.*\n)?\/\*\*(?!\s(\* )?What )/
  expect(all.filter(({ text }) => !opens.test(text)).map(({ name }) => name)).toEqual([])
})

/** Names that other files import from a file of `src`, by their path below the root. */
function importedNames(): Map<string, Set<string>> {
  const used = new Map<string, Set<string>>()
  const glob = new Bun.Glob('{bench,packages,scripts,src,test}/**/*.ts')
  for (const name of glob.scanSync(ROOT)) {
    if (name.includes('node_modules')) continue
    const text = readFileSync(join(ROOT, name), 'utf8')
    const use = (specifier: string, names: string) => {
      const target = join(dirname(name), specifier)
      const known = used.get(target) ?? new Set()
      used.set(target, known)
      for (const one of names.match(/\w+/g) ?? []) known.add(one)
    }
    for (const [, names = '', specifier = ''] of text.matchAll(
      /(?:import|export)\s+(?:type\s+)?\{([^}]*)\}\s*from\s*'(\.[^']+)'/g,
    ))
      use(specifier, names)
    // What is loaded lazily is used by its name somewhere in the file.
    for (const [, specifier = ''] of text.matchAll(/(?:import|require)\(\s*'(\.[^']+)'\s*\)/g)) use(specifier, text)
  }
  return used
}

test('every export of `src` and of the sandbox is imported by another file', () => {
  const used = importedNames()
  const unused = [...files, ...sandbox].flatMap(({ name, text }) =>
    [...text.matchAll(/^export (?:async )?(?:const|function\*?|class|type) (\w+)/gm)]
      .filter(([, exported = '']) => !used.get(join('src', name))?.has(exported))
      .map(([, exported]) => `${name}: ${exported}`),
  )
  expect(unused).toEqual([])
})

/** Phrases of earlier versions in messages. */
const RETIRED_PHRASES =
  /could not be had|in our words|in its words|is told |was told |whoever |nobody |spoken to|put into words|of which so many/

test('no message of `src` or the sandbox uses a retired phrase', () => {
  const found = [...files, ...sandbox].flatMap(({ name, text }) =>
    [...text.replaceAll(/\/\*[\s\S]*?\*\//g, '').matchAll(/'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`/g)]
      .filter(([message]) => RETIRED_PHRASES.test(message))
      .map(([message]) => `${name}: ${message}`),
  )
  expect(found).toEqual([])
})

/** Metaphors of earlier versions; docs/architecture.md and the manual use the field's terms instead. */
const RETIRED_WORDS =
  /^(teller|haste|hasten|crew|house|housed|stair|kin|journey|outlasts|hurried|unhurried|told|tell|tells|said|say|says|hear|hears|heard|spoken|speaks|begun|lanes?|rooms?|heed|whoever|nobody|spend|wanted|carried|asking)$/

test('no identifier of `src` or the sandbox uses a retired word', () => {
  const found = [...files, ...sandbox].flatMap(({ name, text }) => {
    const code = text
      .replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/gm, '')
      .replaceAll('ClickHouse', 'Clickhouse') // a name
    const words = [...code.matchAll(/[A-Za-z_]\w*/g)].flatMap(([identifier]) =>
      identifier.split(/_|(?<=[a-z0-9])(?=[A-Z])/).map((word) => [identifier, word.toLowerCase()] as const),
    )
    return words.filter(([, word]) => RETIRED_WORDS.test(word)).map(([identifier]) => `${name}: ${identifier}`)
  })
  expect([...new Set(found)]).toEqual([])
})
