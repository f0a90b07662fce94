/** The settings of one Messages provider: address, headers with the key, and overrides of its models' rules. */
import type { ModelRule } from '../../protocols/messages/upstream/model-rules.ts'
import { readOptions, resolveProvider, type SettingsParts, settingsOf } from '../settings.ts'

export type MessagesSettings = ReturnType<typeof messagesSettings>

/** The API version that all models of the vendor and all compatible vendors support. */
const DEFAULT_VERSION = '2023-06-01'
/** From this version on, the vendor rejects temperature, top_p and top_k for every model. */
const WITHOUT_SAMPLING = '2026-10-21'

const OPTIONS = ['version', 'auth', 'sampling', 'thinking'] as const
const AUTH = ['x-api-key', 'bearer']
const THINKING = ['none', 'budget', 'adaptive', 'either'] as const

/** Throws an Error that names the provider and the accepted values. */
export function messagesSettings(parts: SettingsParts) {
  const { id, config, environment } = parts
  const { quirks, ...settings } = settingsOf(parts)
  const { key } = resolveProvider(id, config, environment)
  const options = optionsOf(parts)
  const headers: Record<string, string> = { 'anthropic-version': options.version, ...settings.headers }
  // The key goes into the header that the vendor expects, unless the operator set that header.
  const isOurs = key !== undefined && headers.authorization === `Bearer ${key}`
  if (isOurs && options.auth === 'x-api-key') {
    delete headers.authorization
    headers['x-api-key'] ??= key
  }
  const version = headers['anthropic-version'] ?? DEFAULT_VERSION
  const rule: Partial<ModelRule> = { ...options.rule }
  if (version >= WITHOUT_SAMPLING) rule.sampling = false
  if (config.quirks?.json_schema === false) rule.json_schema = false
  return {
    ...settings,
    base_url: settings.base_url.replace(/\/v1$/, ''), // the paths start with /v1
    headers,
    rule,
    /** Whether responses to clients of the same protocol pass through. */
    passthrough: quirks.passthrough,
  }
}

function optionsOf(parts: SettingsParts) {
  const { options, wrong, oneOf, flag } = readOptions(parts, 'messages-compat', OPTIONS)
  const { version = DEFAULT_VERSION } = options
  if (typeof version !== 'string' || !/^\d{4}-\d{2}-\d{2}$/.test(version))
    throw wrong('version', 'a date such as 2023-06-01') // YYYY-MM-DD
  const auth = oneOf('auth', AUTH) ?? 'x-api-key'
  const sampling = flag('sampling')
  const thinking = oneOf('thinking', THINKING)
  const rule: Partial<ModelRule> = { ...(sampling !== undefined && { sampling }), ...(thinking && { thinking }) }
  return { version, auth, rule }
}
