/** Checks the aliases of a configuration file: `alias_of`, and keys of `models` that are patterns. */
import { globSpecificity, globsOverlap } from '../../kit/glob.ts'
import { meantHint } from '../../kit/nearest.ts'
import type { ModelConfig } from '../schema/schema.ts'
import type { Report } from './problem.ts'

type AliasParts = {
  /** The models and aliases of the file. */
  all: ReadonlyMap<string, ModelConfig>
  /** The models of the file and the sandbox, without aliases. */
  models: ReadonlyMap<string, ModelConfig>
  /** Whether an id that is not in `models` may exist elsewhere. */
  mayExist(id: string): boolean
}

/** Members that failed the schema are undefined and skipped. */
export function checkAliases({ all, models, mayExist }: AliasParts, report: Report): void {
  for (const [key, config] of all) {
    const path = ['models', key]
    if (!('alias_of' in config)) {
      if (key.includes('*')) report(path, 'is a pattern, and needs `alias_of` with the id of a model', 'key')
      continue
    }
    const { alias_of, ...surplus } = config
    for (const name of Object.keys(surplus))
      report([...path, name], `cannot stand beside \`alias_of\`; set it at the model "${alias_of}"`, 'key')
    if (alias_of === undefined || models.has(alias_of)) continue
    if (all.get(alias_of)?.alias_of === undefined && mayExist(alias_of)) continue
    report([...path, 'alias_of'], unknownTarget(alias_of, { all, models }))
  }
  checkCollisions(all, report)
}

function unknownTarget(name: string, { all, models }: Pick<AliasParts, 'all' | 'models'>): string {
  const leadsTo = all.get(name)?.alias_of
  if (leadsTo !== undefined)
    return `found "${name}", which is an alias itself; name the model it leads to: "${leadsTo}"`
  return `found "${name}", must be the full id of a model${meantHint(name, [...models.keys()])}`
}

/** Two patterns that match a common id, of which none is more specific, and that lead to different models. */
function checkCollisions(all: ReadonlyMap<string, ModelConfig>, report: Report): void {
  const patterns = [...all].filter(([key, { alias_of }]) => key.includes('*') && alias_of !== undefined)
  for (const [index, [key, { alias_of }]] of patterns.entries()) {
    const rival = patterns
      .slice(0, index)
      .find(
        ([other, config]) =>
          config.alias_of !== alias_of && globSpecificity(other) === globSpecificity(key) && globsOverlap(other, key),
      )
    if (!rival) continue
    const message = `matches the same ids as "${rival[0]}", and neither is more specific; make the prefix of one longer`
    report(['models', key], message, 'key')
  }
}
