/** Checks the aliases of a configuration file: `alias_of`, and keys of `models` that are patterns. */
import { globSpecificity, globsOverlap } from '../../kit/glob.ts'
import { meantHint } from '../../kit/nearest.ts'
import type { Path } from '../load/read-yaml.ts'
import type { ModelConfig } from '../schema/schema.ts'

type AliasProblem = { path: Path; part: 'key' | 'value'; message: string }

type AliasParts = {
  /** The models and aliases of the file. */
  all: ReadonlyMap<string, ModelConfig>
  /** The models of the file and the sandbox, without aliases. */
  models: ReadonlyMap<string, ModelConfig>
  /** Whether an id that is not in `models` may exist elsewhere. */
  mayExist(id: string): boolean
}

/** Members that failed the schema are undefined and skipped. */
export function checkAliases({ all, models, mayExist }: AliasParts): AliasProblem[] {
  const out: AliasProblem[] = []
  for (const [key, config] of all) {
    const path = ['models', key]
    if (!('alias_of' in config)) {
      if (!key.includes('*')) continue
      out.push({ path, part: 'key', message: `is a pattern, and needs \`alias_of\` with the id of a model` })
      continue
    }
    const surplus = Object.keys(config).filter((name) => name !== 'alias_of')
    for (const name of surplus) {
      const message = `cannot stand beside \`alias_of\`; set it at the model "${config.alias_of}"`
      out.push({ path: [...path, name], part: 'key', message })
    }
    const { alias_of } = config
    if (alias_of === undefined || models.has(alias_of)) continue
    if (all.get(alias_of)?.alias_of === undefined && mayExist(alias_of)) continue
    out.push({ path: [...path, 'alias_of'], part: 'value', message: unknownTarget(alias_of, { all, models }) })
  }
  return [...out, ...collisions(all)]
}

function unknownTarget(name: string, { all, models }: Pick<AliasParts, 'all' | 'models'>): string {
  const leadsTo = all.get(name)?.alias_of
  if (leadsTo !== undefined)
    return `found "${name}", which is an alias itself; name the model it leads to: "${leadsTo}"`
  return `found "${name}", must be the full id of a model${meantHint(name, [...models.keys()])}`
}

/** Two patterns that match a common id, of which none is more specific, and that lead to different models. */
function collisions(all: ReadonlyMap<string, ModelConfig>): AliasProblem[] {
  const patterns = [...all].filter(([key, { alias_of }]) => key.includes('*') && alias_of !== undefined)
  return patterns.flatMap(([key, { alias_of }], index) => {
    const rival = patterns
      .slice(0, index)
      .find(
        ([other, config]) =>
          config.alias_of !== alias_of && globSpecificity(other) === globSpecificity(key) && globsOverlap(other, key),
      )
    if (!rival) return []
    const message = `matches the same ids as "${rival[0]}", and neither is more specific; make the prefix of one longer`
    return [{ path: ['models', key], part: 'key', message }]
  })
}
