/** Aliases: ids, or glob patterns of ids, that lead to a model of the catalogue. */
import { globSpecificity, matchesGlob } from '../kit/glob.ts'

export type Alias = {
  /** As in the configuration: an id, or a pattern with `*`. */
  key: string
  /** The full id of the model that serves. */
  alias_of: string
}

type Aliases = {
  all: readonly Alias[]
  /** Those that are ids, which the model list shows. */
  literal: readonly Alias[]
  /** The alias that is this id. */
  exact(name: string): Alias | undefined
  /** The most specific pattern that matches; `*` is the last. */
  matching(name: string): Alias | undefined
}

const isPattern = (key: string): boolean => key.includes('*')

export function createAliases(aliases: readonly Alias[]): Aliases {
  const literal = aliases.filter(({ key }) => !isPattern(key))
  const byKey = new Map(literal.map((alias) => [alias.key, alias]))
  const patterns = aliases
    .filter(({ key }) => isPattern(key))
    .sort((a, b) => globSpecificity(b.key) - globSpecificity(a.key))
  return {
    all: aliases,
    literal,
    exact: (name) => byKey.get(name),
    matching: (name) => patterns.find(({ key }) => matchesGlob(key, name)),
  }
}
