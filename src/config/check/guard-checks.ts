/** Checks guards: names, patterns, and the settings that belong to each kind. */
import { nearest } from '../../kit/nearest.ts'
import { parsePattern } from '../../kit/patterns/automaton.ts'
import type { Path } from '../load/read-yaml.ts'
import type { GuardConfig } from '../schema/guard-schema.ts'
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
  action: ['patterns'],
  replacement: ['patterns'],
  restore: ['redact'],
}

/** Members that failed the schema are undefined and skipped. */
export function guardProblems(
  { guards = {}, models = {} }: FileConfig,
  patternProblem: (pattern: string) => string | undefined,
): GuardProblem[] {
  const names = Object.keys(guards)
  const own = Object.entries(guards).flatMap(([name, guard]) => [
    ...nameProblems(name),
    ...(guard
      ? [...kindProblems(name, guard), ...sourceProblems(name, guard), ...globProblems(name, guard, patternProblem)]
      : []),
  ])
  const named = Object.entries(models).flatMap(([id, model]) =>
    unknownGuards(model?.guards, names).map(({ index, message }) => value(['models', id, 'guards', index], message)),
  )
  return [...own, ...named]
}

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
  const hasRules = 'patterns' in guard || 'words' in guard || 'sets' in guard
  if (kind !== 'patterns' || hasRules) return foreign
  const message = 'needs `patterns`, `words` or `sets`: without them nothing can match'
  return [...foreign, { path: ['guards', name], part: 'key', message }]
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
