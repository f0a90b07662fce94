/** Lists what a changed configuration removes from the one in force. */
import type { Config } from '../config.ts'

/** A declared project that leaves the file stays; a token is revoked. */
const TABLES = ['providers', 'models', 'api_tokens', 'admin_tokens'] as const

/** Sections that would become empty, as in a file that was truncated at the right line. */
export const emptiedSections = (before: Config, after: Config): string[] =>
  TABLES.filter((name) => Object.keys(before[name]).length > 0 && Object.keys(after[name]).length === 0)

/** Whether a provider, model or token in force would be removed, or discovery would be turned off. */
export const removesSome = (before: Config, after: Config): boolean =>
  (before.discover && !after.discover) ||
  TABLES.some((name) => Object.keys(before[name]).some((key) => !Object.hasOwn(after[name], key)))
