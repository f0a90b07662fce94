/** Warns of settings of a provider that are valid and still likely to be a mistake. */
import type { ModelConfig, ProviderConfig } from '../config/schema/schema.ts'
import { presetModels } from './preset-models.ts'
import type { Provider } from './provider.ts'
import { presetOf, resolveProvider } from './settings.ts'
import { looksLikeWord } from './upstream/secret-forms.ts'

/** `event` names it in the log. */
export type ProviderWarning = { event: string; message: string }

type Environment = Record<string, string | undefined>

export function keyWarnings(id: string, config: ProviderConfig, environment: Environment): ProviderWarning[] {
  const key = config.keys?.[0]?.key ?? resolveProvider(id, config, environment).key
  const word = config.keys?.findIndex((one) => looksLikeWord(one.key)) ?? -1
  if (word !== -1 || (key && looksLikeWord(key))) {
    const where = word === -1 ? 'key' : `keys[${word}].key`
    const message = `providers.${id}.${where} looks like an ordinary word: the gateway removes a provider's key from its responses, and so would remove this word from generated text`
    return [{ event: 'unsafe provider key', message }]
  }
  const variables = presetOf(id, config)?.key_env ?? []
  if (key || variables.length === 0 || mayNeedNoKey(config)) return []
  const remedy = `write key, or set ${variables.join(' or ')}`
  const message = `providers.${id} has no key, so its API refuses every request: ${remedy}`
  return [{ event: 'provider without a key', message }]
}

/** An address of the operator's own may be of a proxy that adds the key, and a header may carry it. */
const mayNeedNoKey = ({ base_url, headers = {} }: ProviderConfig): boolean =>
  base_url !== undefined || Object.keys(headers).some((name) => /auth|key|token/i.test(name))

/** The providers that serve a model: as its target, or by the first part of its id. */
export function servingProviders(models: Readonly<Record<string, ModelConfig>>): Set<string> {
  const serving = new Set<string>()
  for (const [id, { targets, alias_of }] of Object.entries(models)) {
    for (const { provider } of targets ?? []) serving.add(provider)
    if (!targets && alias_of === undefined) serving.add(id.slice(0, Math.max(0, id.indexOf('/'))))
  }
  return serving
}

/** For a provider of the file: none if a model names it, or if its models may become known by discovery. */
export function unusedWarnings(
  { id, listModels }: Provider,
  { discover, preset = '', passthrough_paths }: ProviderConfig,
  serving: ReadonlySet<string>,
): ProviderWarning[] {
  if (serving.has(id) || passthrough_paths) return []
  const isListed = listModels !== undefined || Object.keys(presetModels(preset)).length > 0
  if (discover && isListed) return []
  const message = `providers.${id} serves no model: write ${isListed ? 'discover: true, or ' : ''}a model with a target of ${id}`
  return [{ event: 'provider without models', message }]
}

/** For a provider whose list was read and named no model that the gateway serves. */
export function emptyListWarning({ id }: Provider): ProviderWarning {
  const reason = 'its list has none that the gateway serves'
  const message = `providers.${id} serves no model: ${reason}; write a model with a target of ${id}`
  return { event: 'provider without models', message }
}
