/** Adds what an import has found to `gatehouse.yaml`; what the file has already stays as it is. */
import { existsSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { ConfigError, type ConfigProblem } from '../../config/check/problem.ts'
import { type Change, editYaml, type Tree } from '../../config/edit/edit-yaml.ts'
import { readEnvironment } from '../../config/load/environment.ts'
import { DEFAULT_FILE, loadConfig, readUtf8File } from '../../config/load/load.ts'
import { parseYamlPlainly } from '../../config/load/read-yaml.ts'
import { checkProviders, providerFactory } from '../../gateway/check-providers.ts'
import { knownVendors } from '../../gateway/known-vendors.ts'
import { isRecord } from '../../kit/json.ts'
import type { Arguments } from '../arguments.ts'
import { replaceFile } from '../commands/models-import-file.ts'
import type { Terminal } from '../terminal.ts'
import { type Draft, own } from './imported.ts'

const NEW_FILE = `# Created by \`gatehouse import\`. All settings: docs/manual/reference/settings.md
`

type FilePlan = {
  path: string
  before: string | undefined
  text: string
  /** The places that the file has already, with other settings. */
  kept: string[]
  /** What is to be done before the gateway starts with this file. */
  problems: string[]
}

export type PresentFile = {
  path: string
  text: string | undefined
  tree: unknown
  flags: { config?: string }
}

/** The configuration file as it is before the import. */
export function presentFile(given: Arguments, { cwd, environment }: Terminal): PresentFile {
  const named = given.text('config')
  const flags = named === undefined ? {} : { config: named }
  const path = resolve(cwd, readEnvironment({ environment, cwd, flags }).config ?? DEFAULT_FILE)
  const text = readUtf8File(path)
  return { path, text, tree: parseYamlPlainly(text ?? '').value, flags }
}

/** Leaves out what is not valid here, and reports it. Throws an Error where the file would be invalid without it; nothing is written. */
export function planFile(draft: Draft, present: PresentFile, terminal: Terminal): FilePlan {
  for (;;) {
    try {
      return planWhole(draft, present, terminal)
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      if (error.problems.filter((problem) => leaveOut(draft, problem)).length === 0)
        throw new Error(`With this import ${present.path} would be invalid, so nothing was changed:\n${error.message}`)
    }
  }
}

/** A step of `models."acme/v1.5".targets[0]`. */
const STEP = /"((?:[^"\\]|\\.)*)"|([^.[\]"]+)/g

/** Whether there was something to leave out. */
function leaveOut(draft: Draft, { path, message }: ConfigProblem): boolean {
  const steps = [...path.matchAll(STEP)].map(([step, quoted]) =>
    quoted === undefined ? step : String(JSON.parse(step)),
  )
  const [first, ...rest] = steps
  const isLeftOut =
    first === 'providers' || first === 'models' ? removeAt(draft[first], rest) : removeAt(draft.settings, steps)
  if (!isLeftOut) return false
  const why = `value not accepted: ${message}`
  const line = draft.lines.find(({ to }) => to === path)
  if (line) Object.assign(line, { outcome: 'dropped', to: undefined, why })
  else draft.dropped(path, why)
  return true
}

/** Removes the innermost part of this path that is there. */
function removeAt(place: unknown, [step, ...rest]: string[]): boolean {
  if (step === undefined) return false
  const isList = Array.isArray(place)
  const value =
    place instanceof Map ? place.get(step) : isList || isRecord(place) ? own(place as Tree, step) : undefined
  if (value === undefined) return false
  if (removeAt(value, rest)) return true
  if (place instanceof Map) return place.delete(step)
  if (isList) place.splice(Number(step), 1)
  else delete (place as Tree)[step]
  return true
}

function planWhole(draft: Draft, present: PresentFile, terminal: Terminal): FilePlan {
  const { cwd } = terminal
  const { path, text: before, tree: root, flags } = present
  const changes: Change[] = []
  const kept: string[] = []
  const names = new Set(draft.variables.map((one) => one.name))
  const add = (place: string[], given: unknown) => {
    const tree = withoutReferences(given, names)
    const found = place.reduce<unknown>((value, name) => (isRecord(value) ? own(value, name) : undefined), root)
    if (found === undefined) changes.push(changeOf(place, tree))
    else if (!isDeepStrictEqual(found, tree)) kept.push(place.join('.'))
  }
  for (const [name, value] of Object.entries(draft.settings)) add([name], value)
  for (const [id, tree] of draft.providers) add(['providers', id], tree)
  for (const [id, tree] of draft.models) add(['models', id], tree)
  const result = editYaml(before ?? NEW_FILE, changes)
  for (const { change, why } of result.refused) kept.push(`${change.path.join('.')} (${why})`)
  const text = changes.length === 0 ? (before ?? '') : result.text
  if (text === (before ?? '')) return { path, before, text, kept, problems: [] }
  // Variables that are not set yet are no problem of the file.
  const environment = { ...valuesFor(draft, text), ...terminal.environment }
  const load = { environment, cwd, flags, vendors: knownVendors(environment), readFile: () => text }
  const config = loadConfig(load)
  const { problems } = checkProviders(config, environment, providerFactory(config, environment))
  return { path, before, text, kept, problems }
}

/** Only what this import has made is a reference: a `${NAME}` or `${file:path}` in a text of the source would send a secret of this machine. */
function withoutReferences(value: unknown, names: ReadonlySet<string>): unknown {
  if (typeof value === 'string') {
    // A path may follow the variable with an address.
    const [made = '', name = ''] = /^\$\{(\w+)\}/.exec(value) ?? []
    const kept = names.has(name) ? made : ''
    return kept + value.slice(kept.length).replaceAll('${', () => '$${')
  }
  if (Array.isArray(value)) return value.map((one) => withoutReferences(one, names))
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, withoutReferences(one, names)]))
}

function changeOf(place: string[], tree: unknown): Change {
  const name = place.at(-1) ?? ''
  if (isRecord(tree)) return { path: place, tree: tree as Tree }
  return { path: place.slice(0, -1), tree: { [name]: tree } as Tree }
}

/** What a variable may be, by its name: an address, or a key. */
function valuesFor({ variables }: Draft, text: string): Record<string, string> {
  const names = [...text.matchAll(/\$\{([A-Za-z_]\w*)\}/g)].map(([, name = '']) => name)
  const known = new Map(variables.map(({ name, value }) => [name, value]))
  const placeholder = (name: string) =>
    known.get(name) ?? (/(URL|BASE|ENDPOINT|HOST)/.test(name) ? 'http://127.0.0.1:9' : 'to-be-set-by-the-operator')
  return Object.fromEntries(names.map((name) => [name, placeholder(name)]))
}

export function writeFile({ path, before, text }: FilePlan): boolean {
  if (text === '' || text === before) return false
  replaceFile({ path, before, text })
  return true
}

/** The secrets that the source has in plain, as an environment file that only its owner can read. */
export function writeSecrets(draft: Draft, name: string, cwd: string): number {
  const path = resolve(cwd, name)
  if (existsSync(path)) throw new Error(`--secrets: ${name} is there already; nothing was written`)
  const plain = draft.variables.filter(({ value }) => value !== undefined)
  const lines = plain.map(({ name, from, value = '' }) => {
    const text = oneLine(value)
    // Not every reader of such files ends a value at its quote: a line of it would set another variable.
    if (text === undefined) return `# ${name}: the value of ${from.replaceAll(CONTROL, ' ')} has several lines\n`
    return `${name}="${text.replaceAll(/[\\"]/g, '\\$&')}"\n`
  })
  writeFileSync(path, lines.join(''), { mode: 0o600, flag: 'wx' })
  return plain.length
}

const CONTROL = /\p{Cc}/gu

/** JSON, such as the credentials of a service account, is the same in one line. Undefined: it has several. */
function oneLine(value: string): string | undefined {
  if (!/[\r\n\0]/.test(value)) return value
  try {
    return JSON.stringify(JSON.parse(value))
  } catch {
    return undefined
  }
}
