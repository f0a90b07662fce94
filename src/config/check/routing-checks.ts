/** Checks the keys of a provider, and that a key is left for each target. */
import { matchesGlob } from '../../kit/glob.ts'
import { meantHint } from '../../kit/nearest.ts'
import type { Path } from '../load/read-yaml.ts'
import type { TargetConditions } from '../schema/routing-schema.ts'
import type { FileConfig, ModelConfig, ProviderConfig, TargetConfig } from '../schema/schema.ts'
import { placesOf } from './path-pattern.ts'
import type { Report } from './problem.ts'

/** A header value: anything else could not be sent. */
const SENDABLE = /^[\x21-\x7e]+$/
const UNSENDABLE = 'contains a space, a line break or a character outside ASCII (not shown); it cannot be sent'

/** Members that failed the schema are undefined and skipped. */
export function checkKeys(path: Path, { key, key_file, keys }: ProviderConfig, report: Report): void {
  if (key !== undefined && !SENDABLE.test(key)) report([...path, placeOfKey(key_file)], UNSENDABLE)
  if (key !== undefined && keys !== undefined) {
    report([...path, placeOfKey(key_file)], 'cannot stand beside `keys`; add it to the list', 'key')
  }
  const seen = new Map<string, number>()
  for (const [index, entry] of (keys ?? []).entries()) {
    if (entry === undefined) continue
    const at = [...path, 'keys', index]
    if (!('key' in entry || 'key_file' in entry)) report(at, 'must have `key` or `key_file`')
    if (entry.key !== undefined && !SENDABLE.test(entry.key)) report([...at, placeOfKey(entry.key_file)], UNSENDABLE)
    const name = entry.name ?? String(index + 1)
    const other = seen.get(name)
    if (other !== undefined) {
      const where = entry.name === undefined ? at : [...at, 'name']
      report(where, `has the name "${name}" like keys[${other}]; each key needs a name of its own`)
    }
    seen.set(name, index)
  }
}

const placeOfKey = (key_file: string | undefined): string => (key_file === undefined ? 'key' : 'key_file')

/** A target whose provider has no key for its model could never be called. */
export function checkTargetKeys(config: FileConfig, report: Report): void {
  for (const { path, value: target } of placesOf<TargetConfig>(config, 'models.*.targets.*')) {
    const { providers = {} } = config
    const keys = Object.hasOwn(providers, target.provider) ? providers[target.provider]?.keys : undefined
    const isServed =
      !keys || keys.some((key) => !key?.models || key.models.some((one) => matchesGlob(one, target.model)))
    if (isServed) continue
    const message = `found "${target.model}", which no key of providers.${target.provider} may call: add it to the \`models\` of one`
    report([...path, 'model'], message)
  }
}

/** A range that no request can have would make a target useless. */
export function checkConditions(config: FileConfig, report: Report): void {
  for (const { path, value } of placesOf<TargetConditions>(config, 'models.*.targets.*.when')) {
    const { min_input_tokens: least, max_input_tokens: most } = value
    if (least === undefined || most === undefined || least <= most) continue
    report([...path, 'min_input_tokens'], `found ${least}, must be at most the max_input_tokens of ${most}`)
  }
}

type ModelsParts = {
  models: ReadonlyMap<string, ModelConfig>
  /** Whether an id that is not in `models` may exist elsewhere. */
  mayExist(id: string): boolean
}

/** Models that others name as fallbacks, and those that other models and guards call: for embeddings, or to be asked. */
export function checkNamedModels({ guards }: FileConfig, { models, mayExist }: ModelsParts, report: Report): void {
  const checkName = (name: string | undefined, path: Path) => {
    if (name === undefined || models.has(name) || mayExist(name)) return
    report(path, `found "${name}", must be the full id of a model${meantHint(name, [...models.keys()])}`)
  }
  for (const [id, { fallbacks = [], cache }] of models) {
    const lists: [Path, readonly string[] | undefined][] = Array.isArray(fallbacks)
      ? [[[], fallbacks]]
      : Object.entries(fallbacks).map(([reason, list]) => [[reason], list])
    for (const [at, list] of lists)
      for (const [index, name] of (list ?? []).entries()) {
        const path = ['models', id, 'fallbacks', ...at, index]
        if (name === id) report(path, 'is the model itself; name another one')
        else checkName(name, path)
      }
    checkName(cache?.semantic?.embedding_model, ['models', id, 'cache', 'semantic', 'embedding_model'])
  }
  for (const [id, guard] of Object.entries(guards ?? {})) checkName(guard?.model, ['guards', id, 'model'])
}
