/** The one law of the house: import from a lower floor, or from your own room; never a neighbour, never from above. */

import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

const ROOT = join(import.meta.dir, '..')
const SOURCE = join(ROOT, 'src')
/** Published on their own: they run where their users run them, and know nothing of the house. */
const PACKAGES = join(ROOT, 'packages')

/** The floors from the ground up; rooms on one floor are strangers. What is not listed is the stair: it may see all. */
const FLOORS = [
  ['spec', 'kit'],
  ['config'],
  ['providers', 'store', 'outputs', 'http', 'jobs'],
  ['models', 'tokens', 'routing'],
  ['pipeline'],
  ['chat', 'tasks', 'embeddings', 'rerank', 'images', 'manual', 'admin'],
]
const STAIR = ['main.ts', 'gateway.ts', 'access-log.ts', 'supply.ts', 'routes.ts', 'openapi.ts', 'listen.ts', 'cli']

/** Where the runtime's own words may stand: everywhere else speaks web standards. */
const BUN_ROOMS = ['main.ts', 'listen.ts', 'cli', 'kit', 'store/engines', 'outputs']
const LINES_AT_MOST = 320

const readAll = (directory: string, wanted: RegExp) =>
  readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter((name) => wanted.test(name) && !name.endsWith('.test.ts'))
    .map((name) => ({ name, text: readFileSync(join(directory, name), 'utf8') }))

const files = readAll(SOURCE, /\.ts$/)
const packaged = readAll(PACKAGES, /^[^/]+\/src\/.*\.ts$/)

const roomOf = (name: string) => name.split('/')[0] ?? name
const floorOf = (room: string) => FLOORS.findIndex((rooms) => rooms.includes(room))

/** The files of ours that a file imports, as paths below src. */
function importsOf(name: string, text: string): string[] {
  const found = text.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)
  return [...found].map((match) => relative(SOURCE, join(SOURCE, dirname(name), match[1] ?? '')))
}

function trouble(name: string, target: string): string | undefined {
  const room = roomOf(name)
  const other = roomOf(target)
  if (room === other || STAIR.includes(room) || target.startsWith('..')) return undefined
  if (STAIR.includes(other)) return `${name} imports ${target}: no room imports the stair`
  if (floorOf(other) === floorOf(room)) return `${name} imports ${target}: rooms on one floor are strangers`
  if (floorOf(other) > floorOf(room)) return `${name} imports ${target}: that room is on a higher floor`
  return undefined
}

test('every file stands in a room that the house knows', () => {
  const strays = files.filter(({ name }) => floorOf(roomOf(name)) === -1 && !STAIR.includes(roomOf(name)))
  expect(strays.map(({ name }) => name)).toEqual([])
})

test('imports go down, or stay in their room', () => {
  const broken = files.flatMap(({ name, text }) => importsOf(name, text).map((target) => trouble(name, target)))
  expect(broken.filter(Boolean)).toEqual([])
})

test('no file imports itself by a detour', () => {
  const graph = new Map(files.map(({ name, text }) => [name, importsOf(name, text)]))
  const circles: string[] = []
  const visit = (name: string, path: string[]): void => {
    const at = path.indexOf(name)
    if (at !== -1) return void circles.push([...path.slice(at), name].join(' -> '))
    if (done.has(name)) return
    for (const next of graph.get(name) ?? []) visit(next, [...path, name])
    done.add(name)
  }
  const done = new Set<string>()
  for (const name of graph.keys()) visit(name, [])
  expect(circles).toEqual([])
})

test("the runtime's own words stand only where they may", () => {
  const strays = [...files, ...packaged].filter(({ name, text }) => {
    const speaks = /\bBun\.|from 'bun(:|')/.test(text.replaceAll(/^\s*(\*|\/\*|\/\/).*$/gm, ''))
    return speaks && !BUN_ROOMS.some((room) => name === room || name.startsWith(`${room}/`))
  })
  expect(strays.map(({ name }) => name)).toEqual([])
})

test('a package imports its own files and what its package.json names, and the house imports no package', () => {
  const strays = packaged.flatMap(({ name, text }) => {
    const home = name.split('/')[0] ?? ''
    const { dependencies, peerDependencies } = JSON.parse(readFileSync(join(PACKAGES, home, 'package.json'), 'utf8'))
    const named = Object.keys({ ...dependencies, ...peerDependencies })
    return [...text.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].flatMap(([, target = '']) => {
      if (!target.startsWith('.'))
        return named.some((one) => `${target}/`.startsWith(`${one}/`)) ? [] : [`${name}: ${target}`]
      return join(dirname(name), target).startsWith(`${home}/src/`) ? [] : [`${name}: ${target}`]
    })
  })
  expect(packaged.length).toBeGreaterThan(0)
  expect(strays).toEqual([])
  expect(files.filter(({ text }) => /'(@gatehouse\/|[./]+\/packages\/)/.test(text)).map(({ name }) => name)).toEqual([])
})

test(`no file is longer than ${LINES_AT_MOST} lines, and each opens with a sentence`, () => {
  const all = [...files, ...packaged]
  const long = all.filter(({ text }) => text.split('\n').length > LINES_AT_MOST)
  expect(long.map(({ name }) => name)).toEqual([])
  expect(all.filter(({ text }) => !/^(#!.*\n)?\/\*\*/.test(text)).map(({ name }) => name)).toEqual([])
})
