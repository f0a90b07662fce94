/** Checks guards: names, patterns, and the settings that belong to each kind. */
import { parsePattern } from '../../kit/patterns/automaton.ts'
import { compileSchema } from '../../kit/schema-check.ts'
import type { GuardConfig } from '../schema/guard-schema.ts'
import type { FileConfig } from '../schema/schema.ts'
import type { Report } from './problem.ts'

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
export function checkGuards(config: FileConfig, report: Report): void {
  for (const [name, guard] of Object.entries(config.guards ?? {})) {
    const path = ['guards', name]
    if (!NAME.test(name)) {
      report(path, `found ${JSON.stringify(name)}, must be 1 to 64 letters, digits, ".", "_" and "-"`, 'key')
    }
    if (guard?.kind !== undefined) checkKind(name, guard, report)
    for (const [index, source] of (guard?.patterns ?? []).entries()) {
      const why =
        source === undefined ? undefined : errorOf(() => parsePattern({ source, ignores_case: !guard.case_sensitive }))
      if (why !== undefined) report([...path, 'patterns', index], `is no regular expression in RE2 syntax: ${why}`)
    }
  }
}

function errorOf(work: () => unknown): string | undefined {
  try {
    work()
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

function checkKind(name: string, guard: GuardConfig, report: Report): void {
  const { kind, format, on = [], schema, key, aws, url, secret } = guard
  const path = ['guards', name]
  for (const [setting, kinds] of Object.entries(KINDS_OF)) {
    if (!(setting in guard) || kinds.includes(kind)) continue
    report([...path, setting], `is a setting of kind ${kinds.join(' and ')}, not of ${kind}`, 'key')
  }
  for (const [setting, formats] of Object.entries(kind === 'webhook' ? FORMATS_OF : {})) {
    if (!(setting in guard) || formats.includes(format)) continue
    const owner = formats[0] ? `the format ${formats.join(' and ')}` : 'a webhook without `format`'
    report([...path, setting], `is a setting of ${owner}`, 'key')
  }
  const { any_of, why } = NEEDED[kind] ?? { any_of: [], why: '' }
  if (any_of.length > 0 && !any_of.some((setting) => setting in guard)) {
    const list = any_of.map((setting) => `\`${setting}\``)
    const last = list.pop()
    report(path, `needs ${list.length > 0 ? `${list.join(', ')} or ` : ''}${last}: ${why}`, 'key')
    return
  }
  const input = kind === 'schema' ? on.indexOf('input') : -1
  if (input >= 0) report([...path, 'on', input], 'must be output: a schema describes answers')
  const problem = schema === undefined ? undefined : errorOf(() => compileSchema(schema))
  if (problem !== undefined) report([...path, 'schema'], `is no JSON Schema: ${problem}`, 'key')
  if (key !== undefined && aws !== undefined) report([...path, 'aws'], 'cannot be beside key; keep one of them')
  if (url !== undefined && !/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
    report([...path, 'url'], 'must be an address that begins with https:// or http://')
  const wrong = secret === undefined ? undefined : webhookSecretProblem(secret)
  if (wrong !== undefined) report([...path, 'secret'], wrong)
}

/** Of Standard Webhooks. The value is not repeated: it may be most of a secret. */
export const webhookSecretProblem = (text: string): string | undefined =>
  /^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/.test(text) ? undefined : 'must be whsec_ and 24 to 64 bytes in base64'

/** One of these settings. */
const NEEDED: Partial<Record<GuardConfig['kind'], { any_of: readonly (keyof GuardConfig)[]; why: string }>> = {
  patterns: { any_of: ['patterns', 'words', 'sets'], why: 'without them nothing can match' },
  limits: { any_of: ['max_characters', 'languages', 'link_hosts'], why: 'without them nothing is limited' },
  schema: { any_of: ['schema'], why: 'without it every answer fits' },
  moderation: { any_of: ['model'], why: 'without it nothing can be asked' },
  classifier: { any_of: ['model'], why: 'without it nothing can be asked' },
  webhook: { any_of: ['url'], why: 'without it nothing can be asked' },
}
