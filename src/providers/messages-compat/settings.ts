/** One messages-shaped provider as it is spoken to: address, headers with the key, and what differs from the vendor's models. */

import type { ModelRule } from '../../protocols/messages/upstream/model-rules.ts'
import type { MessagesOptions } from '../../protocols/messages/upstream/request.ts'
import { type ProviderSettings, readOptions, resolveProvider, type SettingsParts, settingsOf } from '../settings.ts'

export type MessagesSettings = Omit<ProviderSettings, 'quirks'> &
  MessagesOptions & {
    /** Responses to clients of the same protocol pass through. */
    passthrough: boolean
  }

/** Of the vendor's versions, the one that all its models and all its imitators know. */
const DEFAULT_VERSION = '2023-06-01'
/** From this one on the vendor takes no temperature, top_p and top_k, whatever the model. */
const WITHOUT_SAMPLING = '2026-10-21'

const OPTIONS = ['version', 'auth', 'sampling', 'thinking'] as const
const AUTH = ['x-api-key', 'bearer']
const THINKING = ['none', 'budget', 'adaptive', 'either'] as const

/** Throws an Error that names the provider and says what would be right. */
export function messagesSettings(parts: SettingsParts): MessagesSettings {
  const { id, config, environment } = parts
  const { quirks, ...settings } = settingsOf(parts)
  const { key } = resolveProvider(id, config, environment)
  const options = optionsOf(parts)
  const headers: Record<string, string> = { 'anthropic-version': options.version, ...settings.headers }
  // A key goes where the vendor looks for it, unless the operator wrote that header.
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
    base_url: settings.base_url.replace(/\/v1$/, ''),
    headers,
    rule,
    passthrough: quirks.passthrough,
  } // paths are appended with it
}

function optionsOf(parts: SettingsParts) {
  const { options, wrong } = readOptions(parts, 'messages-compat', OPTIONS)
  const { version = DEFAULT_VERSION, auth = 'x-api-key', sampling, thinking } = options
  if (typeof version !== 'string' || !/^\d{4}-\d{2}-\d{2}$/.test(version))
    throw wrong('version', 'a date such as 2023-06-01') // YYYY-MM-DD
  if (typeof auth !== 'string' || !AUTH.includes(auth)) throw wrong('auth', AUTH.join(' or '))
  const rule: Partial<ModelRule> = {}
  if (sampling !== undefined) {
    if (typeof sampling !== 'boolean') throw wrong('sampling', 'true or false')
    rule.sampling = sampling
  }
  if (thinking !== undefined) {
    const known = THINKING.find((one) => one === thinking)
    if (!known) throw wrong('thinking', `one of ${THINKING.join(', ')}`)
    rule.thinking = known
  }
  return { version, auth, rule }
}
