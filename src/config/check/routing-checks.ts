/** Checks the keys of a provider, and that a key is left for each target. */
import { matchesGlob } from '../../kit/glob.ts'
import { meantHint } from '../../kit/nearest.ts'
import type { Path } from '../load/read-yaml.ts'
import type { FileConfig, ModelConfig, ProviderConfig } from '../schema/schema.ts'

type KeyProblem = { path: Path; part: 'key' | 'value'; message: string }

/** A header value: anything else could not be sent. */
const SENDABLE = /^[\x21-\x7e]+$/
const UNSENDABLE = 'contains a space, a line break or a character outside ASCII (not shown); it cannot be sent'

/** Members that failed the schema are undefined and skipped. */
export function checkKeys(id: string, { key, key_file, keys }: ProviderConfig): KeyProblem[] {
  const path = ['providers', id]
  const out: KeyProblem[] = []
  const report = (at: Path, message: string, part: KeyProblem['part'] = 'value') =>
    void out.push({ path: at, part, message })
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
  return out
}

const placeOfKey = (key_file: string | undefined): string => (key_file === undefined ? 'key' : 'key_file')

/** A target whose provider has no key for its model could never be called. */
export function checkTargetKeys({ providers = {}, models = {} }: FileConfig): KeyProblem[] {
  return Object.entries(models).flatMap(([id, model]) =>
    (model?.targets ?? []).flatMap((target, index): KeyProblem[] => {
      const keys = target === undefined ? undefined : providers[target.provider]?.keys
      const isServed =
        !keys || keys.some(({ models }) => !models || models.some((one) => matchesGlob(one, target.model)))
      if (isServed) return []
      const message = `found "${target.model}", which no key of providers.${target.provider} may call: add it to the \`models\` of one`
      return [{ path: ['models', id, 'targets', index, 'model'], part: 'value', message }]
    }),
  )
}

/** A range that no request can have would make a target useless. */
export function checkConditions({ models = {} }: FileConfig): KeyProblem[] {
  return Object.entries(models).flatMap(([id, model]) =>
    (model?.targets ?? []).flatMap((target, index): KeyProblem[] => {
      const { min_input_tokens: least, max_input_tokens: most } = target?.when ?? {}
      if (least === undefined || most === undefined || least <= most) return []
      const path = ['models', id, 'targets', index, 'when', 'min_input_tokens']
      const message = `found ${least}, must be at most the max_input_tokens of ${most}`
      return [{ path, part: 'value', message }]
    }),
  )
}

type FallbackParts = {
  models: ReadonlyMap<string, ModelConfig>
  /** Whether an id that is not in `models` may exist elsewhere. */
  mayExist(id: string): boolean
}

export function checkFallbacks({ models, mayExist }: FallbackParts): KeyProblem[] {
  return [...models].flatMap(([id, { fallbacks = [] }]) => {
    const lists: [Path, readonly string[] | undefined][] = Array.isArray(fallbacks)
      ? [[[], fallbacks]]
      : Object.entries(fallbacks).map(([reason, list]) => [[reason], list])
    return lists.flatMap(([at, list]) =>
      (list ?? []).flatMap((name, index): KeyProblem[] => {
        if (name === undefined) return []
        const path = ['models', id, 'fallbacks', ...at, index]
        if (name === id) return [{ path, part: 'value', message: 'is the model itself; name another one' }]
        return unknownModel(name, path, { models, mayExist })
      }),
    )
  })
}

/** The models that semantic caches embed with. */
/** Models that other models and guards call: for embeddings, or to be asked. */
export function checkCalledModels({
  guards = {},
  ...parts
}: FallbackParts & { guards: FileConfig['guards'] | undefined }): KeyProblem[] {
  const embedding = [...parts.models].map(([id, { cache }]) => ({
    name: cache?.semantic?.embedding_model,
    path: ['models', id, 'cache', 'semantic', 'embedding_model'],
  }))
  const asked = Object.entries(guards).map(([id, guard]) => ({ name: guard?.model, path: ['guards', id, 'model'] }))
  return [...embedding, ...asked].flatMap(({ name, path }) =>
    name === undefined ? [] : unknownModel(name, path, parts),
  )
}

function unknownModel(name: string, path: Path, { models, mayExist }: FallbackParts): KeyProblem[] {
  if (models.has(name) || mayExist(name)) return []
  const hint = meantHint(name, [...models.keys()])
  return [{ path, part: 'value', message: `found "${name}", must be the full id of a model${hint}` }]
}
