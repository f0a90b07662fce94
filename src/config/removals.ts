/** What a changed configuration would take away from the one in force. */
import type { Config } from './config.ts'

const TABLES = ['providers', 'models'] as const

/** Sections of which nothing would be left: a file that was cut at the right line looks like that. */
export const emptiedSections = (before: Config, after: Config): string[] =>
  TABLES.filter((name) => Object.keys(before[name]).length > 0 && Object.keys(after[name]).length === 0)

/** Whether a provider or model in force would go, or the search for providers would end. */
export const removesSome = (before: Config, after: Config): boolean =>
  (before.discover && !after.discover) ||
  TABLES.some((name) => Object.keys(before[name]).some((key) => !Object.hasOwn(after[name], key)))
