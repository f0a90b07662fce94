/** The settings of one provider: the operator's configuration on top of its preset, with every default filled in. */
import { NAMED_FAMILIES } from '../config/schema/model-names.ts'
import type { Quirks } from '../config/schema/quirks.ts'
import type { ProviderConfig, Timeouts } from '../config/schema/schema.ts'
import type { Clock } from '../kit/clock.ts'
import type { JsonRecord } from '../kit/json.ts'
import type { Log } from '../kit/log.ts'
import type { EndpointFamily } from '../spec/endpoint-family.ts'
import type { Media } from './media.ts'
import { PRESETS, type Preset } from './presets.ts'
import type { InputTypeNames } from './text-api.ts'
import type { Transport } from './upstream/transport.ts'

export type ProviderSettings = {
  /** Without a trailing slash and without credentials. */
  base_url: string
  /** Sent with every request, names in lower case; holds the key. */
  headers: Record<string, string>
  request_defaults: Record<string, unknown>
  /** Body fields; a name that starts with `messages.` is a member of each message. */
  fields: { allow: string[]; drop: string[]; rename: Record<string, string> }
  quirks: Required<Quirks>
  timeouts: Required<Timeouts>
  /** Globs over the provider's model names: which of those it lists are chat models; and the other families it lists. */
  chat_models: { include: string[]; exclude: string[]; others?: EndpointFamily[] }
  /** The provider's names of the input types; undefined: it has no such field. */
  input_types?: InputTypeNames
}

/** A body by the operator's rules: without fields that have no value or are dropped, and with the provider's names. */
export function withFieldRules(
  body: JsonRecord,
  { drop = [], rename = {} }: { drop?: readonly string[]; rename?: Record<string, string> },
): JsonRecord {
  const sent = Object.entries(body).filter(([name, value]) => value !== undefined && !drop.includes(name))
  return Object.fromEntries(sent.map(([name, value]) => [Object.hasOwn(rename, name) ? rename[name] : name, value]))
}

type Environment = Record<string, string | undefined>

const DEFAULT_QUIRKS: Required<Quirks> = {
  stream_usage: true,
  developer_role: false,
  tools: true,
  custom_tools: false,
  json_schema: true,
  multiple_choices: true,
  embedding_base64: false,
  embedding_tokens: true,
  // OpenAI's limit.
  embedding_inputs: 2048,
  embedding_call_tokens: Number.MAX_SAFE_INTEGER,
  rerank: false,
  image_stream: false,
  image_response_format: 'b64_json',
  passthrough: true,
}

/** Model names of any provider that are not for chat. */
export const NOT_CHAT = ['*embed*', '*whisper*', '*dall-e*', '*tts*', '*rerank*', '*moderation*', '*transcribe*']

/**
 * Merges the provider's configuration with its preset. The operator's settings win; lists and records are merged.
 * Throws an Error that names the provider and the valid values.
 */
export function resolveProvider(id: string, config: ProviderConfig, environment: Environment = {}): ProviderConfig {
  const preset = presetOf(id, config)
  if (!preset) return config
  const key = config.key ?? firstOf(environment, preset.key_env)
  return {
    ...config,
    base_url: config.base_url ?? preset.base_url,
    ...(key === undefined ? {} : { key }),
    headers: { ...preset.headers, ...config.headers },
    fields: {
      allow: [...(preset.fields?.allow ?? []), ...(config.fields?.allow ?? [])],
      // What the operator allows is no longer dropped.
      drop: [
        ...(preset.fields?.drop ?? []).filter((field) => !config.fields?.allow?.includes(field)),
        ...(config.fields?.drop ?? []),
      ],
      rename: { ...preset.fields?.rename, ...config.fields?.rename },
    },
    quirks: { ...preset.quirks, ...config.quirks },
  }
}

export type SettingsParts = {
  /** The operator's name of the provider. */
  id: string
  config: ProviderConfig
  /** The timeouts of the whole gateway; the provider's own override them. */
  timeouts: Required<Timeouts>
  /** Where a preset's key comes from when the configuration gives none. */
  environment?: Environment
}

/** What an adapter of a kind is created with. */
export type AdapterParts = SettingsParts & {
  transport: Transport
  clock: Clock
  log: Log
  /** Fetches media by their URL, for providers that accept only bytes. */
  media?: Media
}

/** Returns all settings that an adapter needs, checked. Throws an Error that names the provider and the valid values. */
export function settingsOf({ id, config, timeouts, environment }: SettingsParts): ProviderSettings {
  const resolved = resolveProvider(id, config, environment)
  const preset = presetOf(id, config)
  const { address, authorization } = addressOf(id, resolved.base_url)
  const { key } = resolved
  if (key !== undefined) assertKey(id, key)
  const headers: Record<string, string> = {}
  if (key) headers.authorization = `Bearer ${key}`
  else if (authorization) headers.authorization = authorization
  for (const [name, value] of Object.entries(resolved.headers ?? {})) {
    if (!value.includes('{key}')) headers[name.toLowerCase()] = value
    else if (key) headers[name.toLowerCase()] = value.replaceAll('{key}', key)
  }
  const quirks = { ...DEFAULT_QUIRKS, ...resolved.quirks }
  return {
    base_url: address,
    headers,
    request_defaults: resolved.request_defaults ?? {},
    fields: {
      allow: resolved.fields?.allow ?? [],
      drop: resolved.fields?.drop ?? [],
      rename: resolved.fields?.rename ?? {},
    },
    quirks,
    timeouts: { ...timeouts, ...resolved.timeouts },
    chat_models: {
      include: preset?.chat_models?.include ?? ['*'],
      exclude: [...NOT_CHAT, ...(preset?.chat_models?.exclude ?? [])],
      others: NAMED_FAMILIES.filter(
        (family) =>
          !(family === 'rerank' && !quirks.rerank) && !(family === 'image-generation' && preset?.images === false),
      ),
    },
    ...(preset?.input_types ? { input_types: preset.input_types } : {}),
  }
}

/** Of Azure OpenAI: `base_url` is that of the resource, before the version of the API; `api_version` that of calls. */
export function azureSettings(parts: SettingsParts): ProviderSettings & { api_version: string } {
  const { config, environment = {} } = parts
  const { resourceName = environment.AZURE_RESOURCE_NAME, apiVersion = 'v1' } = config.options ?? {}
  const { key = environment.AZURE_API_KEY ?? environment.AZURE_OPENAI_API_KEY, preset: _, ...rest } = config
  const written = rest.base_url ?? `https://${resourceName}.openai.azure.com/openai`
  const settings = settingsOf({ ...parts, config: { ...rest, base_url: written.replace(/\/v1\/?$/, '') } })
  const headers = { ...(key === undefined ? {} : { 'api-key': key }), ...settings.headers }
  return { ...settings, headers, api_version: String(apiVersion) }
}

/** Reads a kind's own options. Throws for an unknown one, and for a value that one may not have. */
export function readOptions(
  { id, config }: Pick<SettingsParts, 'id' | 'config'>,
  kind: string,
  names: readonly string[],
) {
  const options: Record<string, unknown> = config.options ?? {}
  const unknown = Object.keys(options).find((name) => !names.includes(name))
  if (unknown !== undefined) {
    throw new Error(`providers.${id}.options has no "${unknown}" for the kind ${kind}; it has ${names.join(', ')}`)
  }
  const wrong = (name: string, right: string) => new Error(`providers.${id}.options.${name} must be ${right}`)
  return {
    options,
    wrong,
    oneOf<Value extends string>(name: string, values: readonly Value[]): Value | undefined {
      const value = values.find((one) => one === options[name])
      if (value !== undefined || options[name] === undefined) return value
      throw wrong(name, values.length === 2 ? values.join(' or ') : `one of ${values.join(', ')}`)
    },
    flag(name: string): boolean | undefined {
      const value = options[name]
      if (value === undefined || typeof value === 'boolean') return value
      throw wrong(name, 'true or false')
    },
  }
}

/** Throws for a key that a header cannot hold. */
export function assertKey(id: string, key: string): void {
  if (/^[\x21-\x7e]+$/.test(key)) return
  throw new Error(`providers.${id}.key holds a space, a line break or a character outside ASCII`)
}

export function presetOf(id: string, config: ProviderConfig): Preset | undefined {
  if (config.preset === undefined) return undefined
  const preset = Object.hasOwn(PRESETS, config.preset) ? PRESETS[config.preset] : undefined
  if (preset) return preset
  throw new Error(
    `providers.${id}.preset is "${config.preset}"; known are ${Object.keys(PRESETS).sort().join(', ')}. ` +
      'For any other OpenAI-shaped provider, leave preset out and set base_url.',
  )
}

/** Credentials in a URL become a header, so that the URL itself holds no secret. */
function addressOf(id: string, base_url: string | undefined) {
  if (base_url === undefined) throw new Error(`providers.${id} needs base_url, for example https://api.example.com/v1`)
  const url = URL.parse(base_url)
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    throw new Error(`providers.${id}.base_url must be an http or https address, for example https://api.example.com/v1`)
  }
  const user = decodeURIComponent(url.username)
  const password = decodeURIComponent(url.password)
  url.username = ''
  url.password = ''
  const query = url.search
  url.search = ''
  url.hash = ''
  if (query) throw new Error(`providers.${id}.base_url must not have a query; use headers for what the provider needs`)
  return {
    address: url.href.replace(/\/+$/, ''), // paths are appended with their own slash
    authorization: user || password ? `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}` : undefined,
  }
}

/** The value of the first of these variables that is set. */
export const firstOf = (environment: Environment, names: readonly string[]): string | undefined =>
  names.map((name) => environment[name]).find((value) => value)
