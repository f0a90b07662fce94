/** Collects what a reader finds in the configuration of another gateway, and what becomes of each of its members. */
import type { AccountSettings } from '../../accounts/settings.ts'
import type { Tree } from '../../config/edit/edit-yaml.ts'
import { asRecord, isRecord, memberOf, parseJson } from '../../kit/json.ts'
import { sha256 } from '../../kit/secret.ts'
import type { Tables } from './sql-dump.ts'

export const SOURCES = ['litellm', 'new-api', 'one-api', 'bifrost', 'portkey'] as const
export type SourceName = (typeof SOURCES)[number]

/** What becomes of one member of the source. `from`: its path there. `to`: its place here. Neither holds a secret. */
export type Line = { outcome: 'carried' | 'changed' | 'dropped'; from: string; to?: string; why?: string }

export type ImportedAccount = {
  /** Its id in the source, which a later import finds again. */
  external_id: string
  name: string
  settings: Partial<Omit<AccountSettings, 'name' | 'labels'>>
  labels?: Record<string, string>
  disabled: boolean
  /** What it has used so far of its budget, in the currency of the ledger. */
  used?: number | undefined
  /** When the source begins to count anew (unix seconds). */
  resets_at?: number | undefined
}
type ImportedToken = ImportedAccount & {
  /** SHA-256 of the key that clients send, in hex. */
  hash: string
  /** The `external_id` of its project. */
  project?: string
}

/** An environment variable that the configuration needs. `value`: what the source has in plain; it is never printed. */
type Variable = { name: string; from: string; value?: string }

type Imported = {
  source: SourceName
  /** The source, and which one of several. */
  origin: string
  /** Whether the source lets each of its tokens call, by `external_id`; undefined: it does not show all. */
  listed: Map<string, boolean> | undefined
  lines: Line[]
  variables: Variable[]
  /** Members of `gatehouse.yaml`. */
  providers: Map<string, Tree>
  models: Map<string, Tree>
  settings: Tree
  /** The ids of models that the file has already. */
  present_models: Set<string>
  /** The models of each group that accounts may name in their place. */
  groups: Map<string, Set<string>>
  projects: ImportedAccount[]
  tokens: ImportedToken[]
}

type SecretPlace = {
  path: string
  /** The variable where the source has the value in plain. */
  name: string
  /** The variable where the source names one. */
  variable?: string | undefined
}

export type Draft = Imported & {
  /** `why`: it is not the same here as there. */
  mapped(from: string, to: string, why?: string): void
  dropped(from: string, why: string): undefined
  /** The reference to write, `${NAME}`. */
  secret(value: string, place: SecretPlace): string
  /** The id of the provider with these settings; the same settings are one provider. */
  provider(name: string, tree: Tree): string
}

/** How the sources of a gateway are read. */
export type Reader = {
  /** The tables of its database; empty: it is not read. */
  tables: readonly string[]
  /** Those of them that each database has. */
  expected?: readonly string[]
  /** Absent: its settings are in its database. */
  readTree?(draft: Draft, tree: Record<string, unknown>): void
  readTables(draft: Draft, tables: Tables): void
}

/** More are a mistake, or an attack. */
const MOST_LINES = 4_000_000

/** `file`: what the configuration file has already. */
export function createDraft(source: SourceName, file?: unknown): Draft {
  const [present, models] = [recordOf(file, 'providers'), recordOf(file, 'models')]
  const draft: Imported = {
    source,
    origin: source,
    listed: new Map(),
    lines: [],
    variables: [],
    providers: new Map(),
    models: new Map(),
    settings: {},
    present_models: new Set(Object.keys(models)),
    groups: new Map(),
    projects: [],
    tokens: [],
  }
  const add = (line: Line) => {
    if (draft.lines.length >= MOST_LINES)
      throw new Error(`the source has more than ${MOST_LINES} members; import its teams with their keys in parts`)
    draft.lines.push(line)
  }
  const byText = new Map<string, string>()
  const byName = new Map<string, Variable>()
  return {
    ...draft,
    mapped: (from, to, why) =>
      add(why === undefined ? { outcome: 'carried', from, to } : { outcome: 'changed', from, to, why }),
    dropped: (from, why) => void add({ outcome: 'dropped', from, why }),
    secret(value, { path, name, variable }) {
      // Of the value: at each import the same, and never that of a variable which the source or the environment has.
      const chosen = variable ?? `${variableName(name)}_${fingerprint(value)}`
      if (!byName.has(chosen)) {
        const added = { name: chosen, from: path, ...(variable === undefined && { value }) }
        draft.variables.push(added)
        byName.set(chosen, added)
      }
      return `\${${chosen}}`
    },
    provider(name, tree) {
      const text = JSON.stringify([name, tree])
      const known = byText.get(text)
      if (known !== undefined) return known
      const base = slug(name)
      const isFree = (id: string) => !draft.providers.has(id) && (!own(present, id) || isSame(own(present, id), tree))
      let id = base
      for (let number = 2; !isFree(id); number++) id = `${base}-${number}`
      draft.providers.set(id, tree)
      byText.set(text, id)
      return id
    },
  }
}

const recordOf = (file: unknown, name: string) => asRecord(memberOf(file, name))

/** Names come from the source: `constructor` is no member of an object that has none. */
export const own = (record: Record<string, unknown>, name: string): unknown =>
  Object.hasOwn(record, name) ? record[name] : undefined

const fingerprint = (value: string): string => sha256(`gatehouse import variable ${value}`).slice(0, 6).toUpperCase()

/** Whether calls go to the same place with one of the same keys: a model of the one may be called at the other. */
function isSame(one: unknown, other: Tree): boolean {
  if (!isRecord(one)) return false
  const isSamePlace = ['kind', 'preset', 'base_url'].every((name) => unescaped(one[name]) === unescaped(other[name]))
  const [keys, others] = [referencesIn(one), referencesIn(other)]
  return isSamePlace && (keys.length + others.length === 0 || keys.some((key) => others.includes(key)))
}

/** The file has `$${` for a `${` of the source. */
const unescaped = (value: unknown): unknown => (typeof value === 'string' ? value.replaceAll('$${', () => '${') : value)

/** The variables of its keys, options and headers. */
const referencesIn = ({ base_url: _, ...tree }: Record<string, unknown>): string[] =>
  JSON.stringify(tree).match(/\$\{[^}]+\}/g) ?? []

const slug = (name: string): string =>
  name
    .toLowerCase()
    .replaceAll(/[^a-z0-9.]+/g, '-')
    .replaceAll(/^[-.]+|[-.]+$/g, '')
    .slice(0, 60) || 'provider'

const variableName = (name: string): string =>
  name
    .toUpperCase()
    .replaceAll(/[^A-Z0-9]+/g, '_')
    .replaceAll(/^[_0-9]+|_+$/g, '') || 'SECRET'

/** The first ones; that there are more is reported. */
export function firstOf<T>(draft: Pick<Draft, 'dropped'>, list: readonly T[], most: number, path: string): T[] {
  if (list.length > most) draft.dropped(path, `it has ${list.length}, and only the first ${most} are carried`)
  return list.slice(0, most)
}

export type Members = {
  path: string
  at(name: string): string
  has(name: string): boolean
  /** The member, which is then read; null and an empty text are absent. */
  take(name: string): unknown
  text(name: string): string | undefined
  number(name: string): number | undefined
  flag(name: string): boolean
  list(name: string): string[]
  /** Whether there is something that `list` cannot read, so that its empty list means nothing. */
  isUnreadable(name: string): boolean
  record(name: string): Record<string, unknown> | undefined
  /** Reports every member that was not read. `reasons`: why known ones have no place here. */
  rest(reasons: Readonly<Record<string, string>>): void
}

const MAX_TEXT = 100_000

/** The members of a record, of which none is ignored silently. */
export function membersOf(draft: Pick<Draft, 'dropped'>, record: Record<string, unknown>, path: string): Members {
  const read = new Set<string>()
  const at = (name: string) => (path === '' ? name : `${path}.${name}`)
  const take = (name: string): unknown => {
    read.add(name)
    const value = own(record, name)
    return value === null || value === '' ? undefined : value
  }
  const wrong = (name: string, expected: string) => draft.dropped(at(name), `it must be ${expected}`)
  return {
    path,
    at,
    take,
    has: (name) => Object.hasOwn(record, name) && record[name] !== null && record[name] !== '',
    text(name) {
      const value = take(name)
      if (value === undefined) return undefined
      if (typeof value === 'string' && value.length <= MAX_TEXT) return value
      if (typeof value === 'number') return String(value)
      return void wrong(name, 'a text')
    },
    number(name) {
      const value = take(name)
      if (value === undefined) return undefined
      // 80_000 is a number in the YAML of Python.
      const number = typeof value === 'string' ? Number(value.replaceAll(/(?<=\d)_(?=\d)/g, '')) : value
      if (typeof number === 'number' && Number.isFinite(number) && number >= -1) return number
      return void wrong(name, 'a number')
    },
    flag(name) {
      const value = take(name)
      return value === true || value === 1 || (typeof value === 'string' && /^(true|t|1|yes)$/i.test(value.trim()))
    },
    isUnreadable(name) {
      const value = take(name)
      return value !== undefined && !Array.isArray(typeof value === 'string' ? listIn(value) : value)
    },
    list(name) {
      const value = take(name)
      const list = typeof value === 'string' ? listIn(value) : value
      if (value === undefined) return []
      if (Array.isArray(list)) return list.filter((one): one is string => typeof one === 'string' && one !== '')
      wrong(name, 'a list of texts')
      return []
    },
    record(name) {
      const value = take(name)
      if (value === undefined) return undefined
      const record = typeof value === 'string' ? parseJson(value) : value
      if (isRecord(record)) return record
      return void wrong(name, 'an object')
    },
    rest(reasons) {
      for (const [name, value] of Object.entries(record)) {
        if (read.has(name) || value === null || value === '' || isEmpty(value)) continue
        const why = Object.hasOwn(reasons, name) ? reasons[name] : undefined
        if (why !== undefined && (value === false || value === 'f')) continue
        if (why !== SILENT) draft.dropped(at(name), why ?? 'this import does not know it')
      }
    },
  }
}

/** Of members that say nothing: the time of a row, a counter of its own. */
export const SILENT = ''

const isEmpty = (value: unknown): boolean =>
  value === '{}' || value === '[]' || (typeof value === 'object' && value !== null && Object.keys(value).length === 0)

/** A list as databases have it: an array of PostgreSQL, JSON, or separated by commas. */
function listIn(text: string): unknown {
  if (text.startsWith('[')) return parseJson(text)
  if (!text.startsWith('{')) return text.split(',').map((one) => one.trim())
  return [...text.slice(1, -1).matchAll(/"((?:[^"\\]|\\.)*)"|([^,"]+)/g)].map(
    ([, quoted, plain = '']) => quoted?.replaceAll(/\\(.)/g, '$1') ?? plain,
  )
}

/** The same for the same account of the source at every import. */
export const stableId = (prefix: 'tok' | 'proj', origin: string, external_id: string): string =>
  `${prefix}_${sha256(`gatehouse import ${origin} ${prefix} ${external_id}`).slice(0, 16)}`
