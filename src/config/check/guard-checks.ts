/** Checks guards: names, patterns, and the settings that belong to each kind. */
import { nearest } from '../../kit/nearest.ts'
import { parsePattern } from '../../kit/patterns/automaton.ts'
import { compileSchema } from '../../kit/schema-check.ts'
import type { Path } from '../load/read-yaml.ts'
import { type GuardConfig, LANGUAGES } from '../schema/guard-schema.ts'
import type { FileConfig } from '../schema/schema.ts'

type GuardProblem = { path: Path; part: 'key' | 'value'; message: string }

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

/** Settings of some kinds only. */
const KINDS_OF: Partial<Record<keyof GuardConfig, readonly GuardConfig['kind'][]>> = {
  patterns: ['patterns', 'redact'],
  words: ['patterns', 'redact'],
  case_sensitive: ['patterns', 'redact'],
  sets: ['patterns', 'redact'],
  allow: ['patterns', 'redact'],
  action: ['patterns', 'webhook'],
  replacement: ['patterns'],
  restore: ['redact'],
  max_characters: ['limits'],
  languages: ['limits'],
  link_hosts: ['limits'],
  schema: ['schema'],
  repair: ['schema'],
  model: ['moderation', 'classifier'],
  categories: ['moderation', 'classifier', 'webhook'],
  threshold: ['moderation', 'classifier', 'webhook'],
  format: ['webhook'],
  key: ['webhook'],
  aws: ['webhook'],
  project: ['webhook'],
  language: ['webhook'],
  severity: ['webhook'],
  instructions: ['classifier'],
  unsafe: ['classifier'],
  url: ['webhook'],
  secret: ['webhook'],
  on_error: ['moderation', 'classifier', 'webhook'],
  timeout_ms: ['moderation', 'classifier', 'webhook', 'schema'],
}

/** Settings of a webhook that belong to some formats only; undefined: to that of the gateway. */
const FORMATS_OF: Partial<Record<keyof GuardConfig, readonly GuardConfig['format'][]>> = {
  action: ['presidio'],
  categories: ['presidio', 'azure_text'],
  threshold: ['presidio'],
  key: ['presidio', 'azure_text', 'azure_shields', 'bedrock', 'lakera'],
  aws: ['bedrock'],
  project: ['lakera'],
  language: ['presidio'],
  severity: ['azure_text'],
  secret: [undefined],
}

/** Members that failed the schema are undefined and skipped. */
export function guardProblems(
  { guards = {}, models = {}, projects = {}, api_tokens = {} }: FileConfig,
  patternProblem: (pattern: string) => string | undefined,
): GuardProblem[] {
  const names = Object.keys(guards)
  const own = Object.entries(guards).flatMap(([name, guard]) => [
    ...nameProblems(name),
    ...(guard
      ? [
          ...kindProblems(name, guard),
          ...sourceProblems(name, guard),
          ...languageProblems(name, guard),
          ...globProblems(name, guard, patternProblem),
        ]
      : []),
  ])
  const named = Object.entries({ models, projects, api_tokens }).flatMap(([section, holders]) =>
    Object.entries(holders).flatMap(([id, holder]) =>
      unknownGuards(holder?.guards, names).map(({ index, message }) => value([section, id, 'guards', index], message)),
    ),
  )
  return [...own, ...named]
}

/** Of Standard Webhooks. */
export const WEBHOOK_SECRET = /^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/

const value = (path: Path, message: string): GuardProblem => ({ path, part: 'value', message })

/** Names in a list that no guard has. */
function unknownGuards(
  list: readonly string[] | undefined,
  names: readonly string[],
): { index: number; message: string }[] {
  return (list ?? []).flatMap((name, index) => {
    if (name === undefined || names.includes(name)) return []
    const suggestion = nearest(name, [...names])
    const hint = suggestion === undefined ? '' : ` (did you mean "${suggestion}"?)`
    const known = names.length === 0 ? 'there are none' : `known: ${names.join(', ')}`
    return [{ index, message: `found ${JSON.stringify(name)}, which is not a guard${hint}; ${known}` }]
  })
}

function nameProblems(name: string): GuardProblem[] {
  if (NAME.test(name)) return []
  const message = `found ${JSON.stringify(name)}, must be 1 to 64 letters, digits, ".", "_" and "-"`
  return [{ path: ['guards', name], part: 'key', message }]
}

function kindProblems(name: string, guard: GuardConfig): GuardProblem[] {
  const { kind } = guard
  if (kind === undefined) return []
  const foreign = Object.entries(KINDS_OF).flatMap(([setting, kinds]): GuardProblem[] => {
    if (!(setting in guard) || kinds.includes(kind)) return []
    const message = `is a setting of kind ${kinds.join(' and ')}, not of ${kind}`
    return [{ path: ['guards', name, setting], part: 'key', message }]
  })
  const ofFormat = Object.entries(kind === 'webhook' ? FORMATS_OF : {}).flatMap(
    ([setting, formats]): GuardProblem[] => {
      if (!(setting in guard) || formats.includes(guard.format)) return []
      const message = `is a setting of ${formats[0] ? `the format ${formats.join(' and ')}` : 'a webhook without `format`'}`
      return [{ path: ['guards', name, setting], part: 'key', message }]
    },
  )
  const { any_of, why } = NEEDED[kind] ?? { any_of: [], why: '' }
  if (any_of.length === 0 || any_of.some((setting) => setting in guard))
    return [...foreign, ...ofFormat, ...valueProblems(name, guard)]
  const list = any_of.map((setting) => `\`${setting}\``)
  const last = list.pop()
  const message = `needs ${list.length > 0 ? `${list.join(', ')} or ` : ''}${last}: ${why}`
  return [...foreign, { path: ['guards', name], part: 'key', message }]
}

/** One of these settings. */
const NEEDED: Partial<Record<GuardConfig['kind'], { any_of: readonly (keyof GuardConfig)[]; why: string }>> = {
  patterns: { any_of: ['patterns', 'words', 'sets'], why: 'without them nothing can match' },
  limits: { any_of: ['max_characters', 'languages', 'link_hosts'], why: 'without them nothing is limited' },
  schema: { any_of: ['schema'], why: 'without it every answer fits' },
  moderation: { any_of: ['model'], why: 'without it nothing can be asked' },
  classifier: { any_of: ['model'], why: 'without it nothing can be asked' },
  webhook: { any_of: ['url'], why: 'without it nothing can be asked' },
}

function valueProblems(name: string, { kind, on, schema, url, secret, key, aws }: GuardConfig): GuardProblem[] {
  const protocol = url === undefined ? 'https:' : URL.parse(url)?.protocol
  const input = kind === 'schema' ? (on ?? []).indexOf('input') : -1
  return [
    ...(input < 0 ? [] : [value(['guards', name, 'on', input], 'must be output: a schema describes answers')]),
    ...(schema === undefined ? [] : schemaProblems(name, schema)),
    ...(key === undefined || aws === undefined
      ? []
      : [value(['guards', name, 'aws'], 'cannot be beside key; keep one of them')]),
    ...(protocol === 'https:' || protocol === 'http:'
      ? []
      : [value(['guards', name, 'url'], 'must be an address that begins with https:// or http://')]),
    ...(secret === undefined || WEBHOOK_SECRET.test(secret)
      ? []
      : [value(['guards', name, 'secret'], 'must be whsec_ and 24 to 64 bytes in base64')]),
  ]
}

function schemaProblems(name: string, schema: unknown): GuardProblem[] {
  try {
    compileSchema(schema)
    return []
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return [{ path: ['guards', name, 'schema'], part: 'key', message: `is no JSON Schema: ${why}` }]
  }
}

function sourceProblems(name: string, { patterns, case_sensitive }: GuardConfig): GuardProblem[] {
  return (patterns ?? []).flatMap((source, index) => {
    if (source === undefined) return []
    try {
      parsePattern({ source, ignores_case: !case_sensitive })
      return []
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      return [value(['guards', name, 'patterns', index], `is no regular expression in RE2 syntax: ${why}`)]
    }
  })
}

function languageProblems(name: string, { languages = [] }: GuardConfig): GuardProblem[] {
  const known: readonly string[] = LANGUAGES
  return languages.flatMap((one, index) => {
    if (one === undefined || known.includes(one)) return []
    const message = `found ${JSON.stringify(one)}, which is no known language; known: ${known.join(', ')}`
    return [value(['guards', name, 'languages', index], message)]
  })
}

function globProblems(
  name: string,
  { when }: GuardConfig,
  patternProblem: (pattern: string) => string | undefined,
): GuardProblem[] {
  return (when?.models ?? []).flatMap((pattern, index) => {
    const problem = pattern === undefined ? undefined : patternProblem(pattern)
    return problem === undefined ? [] : [value(['guards', name, 'when', 'models', index], problem)]
  })
}
