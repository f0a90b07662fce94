/** One provider of this kind as it is spoken to: address, headers with the key, and what differs from the vendor's models. */

import type { ModelRule } from '../../protocols/contentgen/upstream/model-rules.ts'
import type { ContentgenOptions } from '../../protocols/contentgen/upstream/request.ts'
import { type ProviderSettings, readOptions, resolveProvider, type SettingsParts, settingsOf } from '../settings.ts'

export type ContentgenSettings = Omit<ProviderSettings, 'quirks'> &
  ContentgenOptions & {
    /** Responses to clients of the same protocol pass through. */
    passthrough: boolean
  }

const KEY_HEADER = 'x-goog-api-key'

const OPTIONS = ['auth', 'thinking'] as const
const AUTH = [KEY_HEADER, 'bearer']
const THINKING = ['none', 'budget', 'level'] as const

/** Throws an Error that names the provider and says what would be right. */
export function contentgenSettings(parts: SettingsParts): ContentgenSettings {
  const { id, environment } = parts
  // Without an address it is the vendor itself that is meant.
  const config = parts.config.preset || parts.config.base_url ? parts.config : { ...parts.config, preset: 'gemini' }
  const { quirks, ...settings } = settingsOf({ ...parts, config })
  const { key } = resolveProvider(id, config, environment)
  const { auth, rule } = optionsOf({ ...parts, config })
  const { authorization, ...headers } = settings.headers
  // A key goes where the vendor looks for it, unless the operator wrote that header.
  const isOurs = key !== undefined && authorization === `Bearer ${key}`
  if (isOurs && auth === KEY_HEADER) headers[KEY_HEADER] ??= key
  else if (authorization !== undefined) headers.authorization = authorization
  const base_url = addressOf(settings.base_url)
  return {
    ...settings,
    base_url,
    headers,
    rule,
    passthrough: quirks.passthrough,
    cloud: /\baiplatform\.googleapis\.com$/.test(new URL(base_url).hostname),
  }
}

/** The vendor's OpenAI-shaped interface lies below this one; an address without a path lacks its version. */
function addressOf(base_url: string): string {
  const address = base_url.replace(/\/openai$/, '')
  return new URL(address).pathname === '/' ? `${address}/v1beta` : address
}

function optionsOf(parts: SettingsParts) {
  const { options, wrong } = readOptions(parts, 'contentgen-compat', OPTIONS)
  const { auth = KEY_HEADER, thinking } = options
  if (typeof auth !== 'string' || !AUTH.includes(auth)) throw wrong('auth', AUTH.join(' or '))
  const rule: Partial<ModelRule> = {}
  if (thinking !== undefined) {
    const known = THINKING.find((one) => one === thinking)
    if (!known) throw wrong('thinking', `one of ${THINKING.join(', ')}`)
    rule.thinking = known
  }
  return { auth, rule }
}
