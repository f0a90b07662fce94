/** The configuration in use as a list of settings: the value of each, masked, and where it comes from. */
import { valueAt } from '../check/path-pattern.ts'
import { placeName } from '../check/problem.ts'
import type { Config } from '../config.ts'
import type { Environment, Flags } from '../load/environment.ts'
import { type Loaded, type LoadParts, loadWithSources } from '../load/load.ts'
import { isMarked } from '../schema/schema-at.ts'
import { MASKED, shownValue } from './masking.ts'

/** `line` is from 1. `name`: of a variable or a flag. */
type Origin =
  | { from: 'default' }
  | { from: 'file'; file: string; line: number }
  | { from: 'environment' | 'command line'; name: string }
  /** Of the file as it was when it was applied: it has changed since. */
  | { from: 'earlier file' }

export type Setting = {
  /** As in messages: `models."acme/v1.5".limits`. */
  path: string
  /** Masked where it may be a secret. */
  value: unknown
  source: Origin
}

/** A setting with its value, to be compared; never to be shown. */
type Leaf = { path: (string | number)[]; value: unknown }

/** What the environment or a flag sets, and its names. */
const OUTSIDE: Record<string, { variable: string; flag?: keyof Flags }> = {
  data_dir: { variable: 'GATEHOUSE_DATA_DIR', flag: 'data_dir' },
  store_url: { variable: 'GATEHOUSE_DATABASE_URL' },
  log_level: { variable: 'GATEHOUSE_LOG' },
  bootstrap_token: { variable: 'GATEHOUSE_BOOTSTRAP_TOKEN' },
  admin_token: { variable: 'GATEHOUSE_ADMIN_TOKEN' },
  contents_key: { variable: 'GATEHOUSE_CONTENTS_KEY' },
  contents_key_old: { variable: 'GATEHOUSE_CONTENTS_KEY_OLD' },
  discover: { variable: 'GATEHOUSE_DISCOVER' },
  'server.host': { variable: 'GATEHOUSE_HOST', flag: 'host' },
  'server.port': { variable: 'GATEHOUSE_PORT', flag: 'port' },
  file: { variable: 'GATEHOUSE_CONFIG', flag: 'config' },
}

/** Loads the configuration and lists its settings. Throws ConfigError. `running`: the configuration in force. */
export function effectiveSettings(parts: LoadParts, running?: Config): Setting[] {
  const loaded = loadWithSources(parts)
  const present = new Map(running ? leavesOf(loaded.config).map((leaf) => [keyOf(leaf), leaf.value]) : [])
  return leavesOf(running ?? loaded.config).map((leaf) => {
    const isPresent = running === undefined || isSame(present.get(keyOf(leaf)), leaf.value)
    return {
      path: placeName(leaf.path),
      value: isPresent
        ? shownValue(leaf.path, leaf.value, loaded.yaml?.sourceAt(leaf.path))
        : shownWithoutFile(leaf.path, leaf.value),
      source: isPresent ? originOf(leaf, loaded, parts) : { from: 'earlier file' },
    }
  })
}

/** Whether a variable was filled in is not known where the file has changed since: then it is hidden if it may have been. */
const shownWithoutFile = (path: Leaf['path'], value: unknown) =>
  typeof value === 'string' && isMarked('variable', path) ? MASKED : shownValue(path, value)

export type SettingChange = {
  path: string
  /** `value`: both values are masked where they may be secrets. */
  kind: 'added' | 'removed' | 'changed'
  before: unknown
  after: unknown
}

/** Without the text of a file, what it takes from the environment is masked like any other value. */
type Compared = Pick<Loaded, 'config'> & Partial<Pick<Loaded, 'yaml'>>

export function settingChanges(before: Compared, after: Compared): SettingChange[] {
  const [old, now] = [before, after].map(({ config }) => new Map(leavesOf(config).map((leaf) => [keyOf(leaf), leaf])))
  const changes: SettingChange[] = []
  for (const [key, leaf] of now ?? []) {
    const was = old?.get(key)
    if (was && isSame(was.value, leaf.value)) continue
    changes.push({
      path: placeName(leaf.path),
      kind: was ? 'changed' : 'added',
      before: was ? shownIn(before, was) : null,
      after: shownIn(after, leaf),
    })
  }
  for (const [key, leaf] of old ?? []) {
    if (now?.has(key)) continue
    changes.push({ path: placeName(leaf.path), kind: 'removed', before: shownIn(before, leaf), after: null })
  }
  return changes
}

const shownIn = ({ yaml }: Compared, { path, value }: Leaf) => shownValue(path, value, yaml?.sourceAt(path))

const keyOf = ({ path }: Leaf): string => JSON.stringify(path)
const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)

/** An empty list or mapping is a leaf. */
function leavesOf(value: unknown, path: (string | number)[] = []): Leaf[] {
  if (typeof value !== 'object' || value === null) return value === undefined ? [] : [{ path, value }]
  const members: [string | number, unknown][] = Array.isArray(value)
    ? value.map((item, index) => [index, item])
    : Object.entries(value)
  if (members.length === 0) return [{ path, value }]
  return members.flatMap(([name, member]) => leavesOf(member, [...path, name]))
}

function originOf({ path }: Leaf, { yaml, config }: Loaded, parts: LoadParts): Origin {
  const outside = OUTSIDE[path.join('.')]
  if (outside) {
    const { variable, flag } = outside
    if (flag !== undefined && parts.flags?.[flag] !== undefined) {
      return { from: 'command line', name: `--${flag.replaceAll('_', '-')}` }
    }
    if (isSet(parts.environment, variable)) return { from: 'environment', name: variable }
  }
  const isInFile = yaml !== undefined && valueAt(yaml.value, path) !== undefined
  if (config.file === undefined || !isInFile) return { from: 'default' }
  return { from: 'file', file: config.file, line: yaml.placeOf(path, 'key').line }
}

const isSet = (environment: Environment, name: string): boolean => (environment[name] ?? '') !== ''
