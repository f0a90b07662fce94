/** Checks a configuration file against its schema and describes every problem with its position. */
import { diagnose, diagnoseAll, type Problem } from '../../kit/diagnose.ts'
import { isRecord } from '../../kit/json.ts'
import { meantHint } from '../../kit/nearest.ts'
import type { ExpansionCheck, Path, YamlText } from '../load/read-yaml.ts'
import { FileConfig } from '../schema/schema.ts'
import { isMarked, schemasAt } from '../schema/schema-at.ts'
import { type ConfigProblem, placeName, type Report, type Violation, violationsOf } from './problem.ts'
import { checkSemantics } from './semantic-checks.ts'
import type { SemanticCheckParts } from './value-checks.ts'

/** Of a text that does not come from the host itself. Holds for one text: it remembers which variables the text takes. */
export type ProposalLimits = {
  expansionProblem: ExpansionCheck
  /** Checked beside the rest of the configuration. Members that failed the schema are undefined. */
  check(file: FileConfig, report: Report): void
}

type CheckParts = Omit<SemanticCheckParts, 'config'> & {
  /** The name used in messages. */
  file: string
  yaml: YamlText
  limits?: ProposalLimits | undefined
}

/** Enough to fix a file in one pass; a thoroughly broken file is not listed line by line. */
const MAX_PROBLEMS = 100

/** The file's configuration and its problems, in the order of the file. */
export function checkFile({ file, yaml, limits, ...rest }: CheckParts): {
  config: FileConfig
  problems: ConfigProblem[]
} {
  const withoutEmpty = withoutEmptySections(yaml.value ?? {})
  const readable = yaml.troubles.some(({ path }) => path.length === 0) ? {} : readNumbers(withoutEmpty, yaml)
  const faults = diagnoseAll(FileConfig, readable, MAX_PROBLEMS)
  const troubles = yaml.troubles.slice(0, MAX_PROBLEMS)
  const unread = troubles.map(({ path }) => path)
  // Faulty values become undefined, so that their siblings are still checked and `in` still sees the key.
  const config = [...faults.map(faultyPath), ...unread].reduce(
    (value, path) => replaceAt(value, path, undefined),
    readable,
  )
  const schema = faults
    .filter(({ path }) => !unread.some((other) => isSame(other, path)))
    .map((fault) => toViolation(fault, yaml))
  const semantic = violationsOf((report) => {
    if (!isRecord(config)) return
    limits?.check(config as FileConfig, report)
    checkSemantics({ config: config as FileConfig, ...rest }, report)
  }).map((violation) => ({ ...violation, message: yaml.withoutSecrets(violation.message) }))
  const placed = [...schema, ...semantic.slice(0, MAX_PROBLEMS)].map(({ path, part, message }) => ({
    ...yaml.placeOf(path, part),
    path,
    message,
  }))
  const problems = [...troubles, ...placed]
    .sort((a, b) => a.line - b.line || a.column - b.column)
    .map(({ path, ...where }) => ({ file, ...where, path: placeName(path) }))
  return { config: config as FileConfig, problems }
}

const isSame = (one: Path, other: Path): boolean => JSON.stringify(one) === JSON.stringify(other)

/** A section whose lines are all commented out counts as absent; a provider or model without settings gets defaults. */
function withoutEmptySections(value: unknown): unknown {
  if (!isRecord(value)) return value
  const sections = Object.entries(value).filter(([, section]) => section !== null)
  // Made of entries: an assignment to `__proto__` would make no key.
  return Object.fromEntries(
    sections.map(([name, section]) => {
      const isTable = (name === 'providers' || name === 'models') && isRecord(section)
      return [name, isTable ? mapValues(section, (entry) => (entry === null ? {} : entry)) : section]
    }),
  )
}

const mapValues = (value: Record<string, unknown>, change: (entry: unknown) => unknown): Record<string, unknown> =>
  Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, change(entry)]))

/** Environment values are text; where the schema takes no such text but a number or a boolean, they are converted. */
function readNumbers(value: unknown, yaml: YamlText, path: Path = []): unknown {
  if (typeof value === 'string') return yaml.sourceAt(path) === undefined ? value : numberAt(path, value)
  if (Array.isArray(value)) return value.map((item, index) => readNumbers(item, yaml, [...path, index]))
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, readNumbers(member, yaml, [...path, name])]),
  )
}

function numberAt(path: Path, text: string): unknown {
  const read = /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : ({ true: true, false: false } as const)[text]
  if (read === undefined) return text
  const schemas = schemasAt(path)
  if (schemas.some((schema) => diagnose(schema, text) === undefined)) return text
  const types = typeof read === 'boolean' ? ['boolean'] : ['integer', 'number']
  return schemas.some(({ type = '' }) => types.includes(type)) ? read : text
}

function replaceAt(value: unknown, [step, ...rest]: Path, to: unknown): unknown {
  if (step === undefined) return to
  if (Array.isArray(value)) return value.map((item, index) => (index === step ? replaceAt(item, rest, to) : item))
  if (!isRecord(value) || !Object.hasOwn(value, step)) return value
  return { ...value, [step]: replaceAt(value[step], rest, to) }
}

/** The path to remove so that the rest can still be checked: the object that lacks a member, else the value itself. */
const faultyPath = ({ kind, path }: Problem): Path => (kind === 'missing' ? path.slice(0, -1) : path)

function toViolation({ path, kind, expected, found }: Problem, yaml: YamlText): Violation {
  if (kind === 'missing') return { path, part: 'value', message: 'is missing, but required' }
  if (kind === 'unknown') return { path, part: 'key', message: unknownKey(String(path.at(-1)), keysAt(path)) }
  const source = yaml.sourceAt(path)
  const shown = isSecret(path) ? `${typeName(found)} (not shown)` : describeFound(source ?? found)
  return {
    path,
    part: 'value',
    message: `found ${shown}, must be ${describeExpected(expected)}${timeHint(expected, found)}`,
  }
}

/** Where a secret stands, and settings that may contain one. */
const isSecret = (path: Path): boolean => {
  const [section, part, name] = path
  const mayContainOne =
    (section === 'providers' && (name === 'headers' || name === 'options')) || (section === 'outputs' && part === 's3')
  return mayContainOne || isMarked('secret', path)
}

function unknownKey(name: string, allowed: string[]): string {
  return `unknown key "${name}"${meantHint(name, allowed)} (allowed: ${allowed.join(', ')})`
}

/** The keys allowed in the object that contains `path`. */
const keysAt = (path: Path): string[] =>
  schemasAt(path.slice(0, -1)).flatMap(({ properties = {} }) => Object.keys(properties))

const typeName = (value: unknown): string =>
  value === null || value === undefined
    ? 'nothing'
    : Array.isArray(value)
      ? 'a list'
      : typeof value === 'object'
        ? 'a mapping'
        : `a ${typeof value}`

function describeFound(value: unknown): string {
  if (typeof value === 'string') {
    const short = value.length <= 60 ? value : `${value.slice(0, 57)}...`
    return `${JSON.stringify(short)} (string)`
  }
  if (typeof value === 'number' || typeof value === 'boolean') return `${value} (${typeof value})`
  return Array.isArray(value) && value.length === 0 ? 'an empty list' : typeName(value)
}

/** YAML's terms for arrays and objects. */
const YAML_TERMS: Record<string, string> = {
  'an array': 'a list',
  'an object': 'a mapping',
  'a boolean': 'true or false',
}

const ADDRESS = 'text like ^https?://'

const describeExpected = (expected: string): string =>
  expected === ADDRESS
    ? 'an http or https address, such as https://example.com'
    : expected.replaceAll(/an array|an object|a boolean/g, (term) => YAML_TERMS[term] ?? term)

/** Times are unix seconds; for a date, the message includes its number. */
function timeHint(expected: string, found: unknown): string {
  if (expected !== 'an integer' || typeof found !== 'string' || !/^\d{4}-\d{2}-\d{2}/.test(found)) return ''
  const seconds = Math.floor(Date.parse(found) / 1000)
  return Number.isNaN(seconds) ? '' : ` (unix seconds: ${found} is ${seconds})`
}
