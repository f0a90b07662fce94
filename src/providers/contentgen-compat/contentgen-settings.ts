/** The settings of one contentgen provider: address, headers with the key, and overrides of its models' rules. */
import type { ModelRule } from '../../protocols/contentgen/upstream/model-rules.ts'
import { readOptions, resolveProvider, type SettingsParts, settingsOf } from '../settings.ts'

export type ContentgenSettings = ReturnType<typeof contentgenSettings>

const KEY_HEADER = 'x-goog-api-key'

const OPTIONS = ['auth', 'thinking'] as const
const AUTH = [KEY_HEADER, 'bearer']
const THINKING = ['none', 'budget', 'level'] as const

/** Throws an Error that names the provider and the accepted values. */
export function contentgenSettings(parts: SettingsParts) {
  const { id, environment } = parts
  // Without a base URL it is the vendor itself.
  const config = parts.config.preset || parts.config.base_url ? parts.config : { ...parts.config, preset: 'gemini' }
  const { quirks, ...settings } = settingsOf({ ...parts, config })
  const { key } = resolveProvider(id, config, environment)
  const { auth, rule } = optionsOf({ ...parts, config })
  const { authorization, ...headers } = settings.headers
  // The key goes into the header that the vendor expects, unless the operator set that header.
  const isOurs = key !== undefined && authorization === `Bearer ${key}`
  if (isOurs && auth === KEY_HEADER) headers[KEY_HEADER] ??= key
  else if (authorization !== undefined) headers.authorization = authorization
  const base_url = toBaseUrl(settings.base_url)
  return {
    ...settings,
    base_url,
    headers,
    rule,
    /** Whether responses to clients of the same protocol pass through. */
    passthrough: quirks.passthrough,
    cloud: /\baiplatform\.googleapis\.com$/.test(new URL(base_url).hostname),
  }
}

/** The vendor's OpenAI-compatible API is below this one; a base URL without a path lacks the version. */
function toBaseUrl(base_url: string): string {
  const address = base_url.replace(/\/openai$/, '')
  return new URL(address).pathname === '/' ? `${address}/v1beta` : address
}

function optionsOf(parts: SettingsParts) {
  const { oneOf } = readOptions(parts, 'contentgen-compat', OPTIONS)
  const auth = oneOf('auth', AUTH) ?? KEY_HEADER
  const thinking = oneOf('thinking', THINKING)
  const rule: Partial<ModelRule> = thinking === undefined ? {} : { thinking }
  return { auth, rule }
}
