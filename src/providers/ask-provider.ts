/** Whether a provider works: asks it for its list of models, which costs nothing, and explains a failure. */
import Type from 'typebox'
import type { Environment } from '../config/load/environment.ts'
import { KINDS, type KindRow, type ProviderKind } from '../config/schema/provider-kinds.ts'
import type { ProviderConfig } from '../config/schema/schema.ts'
import type { Clock } from '../kit/clock.ts'
import { GatewayError } from '../spec/error.ts'
import { orNull } from '../spec/fields.ts'
import { nameOfKey } from './keyed-targets.ts'
import type { DiscoveredModel, Provider } from './provider.ts'
import { presetOf, resolveProvider } from './settings.ts'

export const PROVIDER_REPORT = {
  provider: Type.String(),
  key: orNull(Type.String({ description: 'The name of the key it was asked with; null where it has only one.' })),
  kind: Type.String(),
  result: Type.Unsafe<'ok' | 'failed' | 'not asked'>(
    Type.String({ description: '`ok`, `failed`, or `not asked`: its API has no list of models.' }),
  ),
  models: orNull(Type.Integer({ description: 'How many models it lists that the gateway can serve.' })),
  milliseconds: orNull(Type.Integer()),
  upstream_status: orNull(Type.Integer()),
  message: Type.String({ description: 'What to change, where it failed.' }),
}
export type ProviderReport = Type.Static<Type.TObject<typeof PROVIDER_REPORT>>

/** Creates a provider as a gateway does. Throws an Error that names the setting and the valid values. */
export type CreateProvider = (id: string, config: ProviderConfig) => Provider

type AskParts = {
  environment: Environment
  create: CreateProvider
  clock: Clock
  /** Called with its list of models. */
  onModels?(models: DiscoveredModel[]): void
}

/** For one provider, further addresses included. A model list takes less than a second at all vendors. */
const DEADLINE_SECONDS = 10

/** `key`: the name of the one of its keys that `config` has; null where it has only one. */
type Asked = { id: string; key: string | null; config: ProviderConfig }

/** A provider as its calls are made: once with each of its keys. */
export const askedOf = (id: string, config: ProviderConfig): Asked[] =>
  config.keys?.map((one, index) => ({ id, key: nameOfKey(one, index), config: { ...config, key: one.key } })) ?? [
    { id, key: null, config },
  ]

/** Asks one provider for its list of models, which costs nothing, and explains a failure. */
export async function askProvider(asked: Asked, parts: AskParts): Promise<ProviderReport> {
  const { clock } = parts
  const provider = parts.create(asked.id, asked.config)
  const { id, kind } = provider
  const row = { provider: id, key: asked.key, kind, models: null, milliseconds: null, upstream_status: null }
  if (!provider.listModels) return { ...row, result: 'not asked', message: 'its API has no list of models' }
  const late = new AbortController()
  const cancel = clock.after(DEADLINE_SECONDS * 1000, () => late.abort())
  const started = clock.steady()
  try {
    const models = await provider.listModels(late.signal)
    parts.onModels?.(models)
    const { length } = models
    const message = length === 0 ? 'its list has no model that the gateway serves' : ''
    return {
      ...row,
      result: 'ok',
      models: length,
      milliseconds: Math.round(clock.steady() - started),
      upstream_status: 200,
      message,
    }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    const milliseconds = Math.round(clock.steady() - started)
    const upstream_status = error.detail.upstream_status ?? null
    if (late.signal.aborted) {
      return { ...row, result: 'failed', milliseconds, message: `no answer within ${DEADLINE_SECONDS} s` }
    }
    if (upstream_status === 404 && asked.config.base_url === undefined && asked.config.preset !== undefined) {
      return { ...row, result: 'not asked', milliseconds, upstream_status, message: 'its API has no list of models' }
    }
    const message = await explain({ error, asked, kind, signal: late.signal }, parts)
    return { ...row, result: 'failed', milliseconds, upstream_status, message }
  } finally {
    cancel()
  }
}

type Failure = { error: GatewayError; asked: Asked; kind: Provider['kind']; signal: AbortSignal }

/** What the operator should change. */
async function explain({ error, asked, kind, signal }: Failure, parts: AskParts): Promise<string> {
  const { code, detail, message } = error
  const status = detail.upstream_status
  const { base_url } = asked.config
  if (code === 'upstream_auth') return `${status}: ${keyAdvice(asked, kind, parts.environment)}`
  if (code === 'no_available_channel') return `${status}: the account at the provider is out of credit`
  if (code === 'rate_limit_exceeded') return `${status}: the provider limits requests now; ask again later`
  if (code === 'upstream_unreachable') return `${connectionAdvice(message)}; check base_url and the network`
  if (status !== undefined && status >= 300 && status < 400) {
    return `${status}: base_url redirects, which is not followed; write the final address`
  }
  if (status !== undefined && status >= 500) return `${status}: the provider reports an error of its own`
  const what = status === 404 ? '404: there is no list of models' : `${status ?? 'no status'}: ${shape(message)}`
  if (base_url === undefined) return what
  const right = await addressWithList({ base_url, asked, kind, signal }, parts)
  if (right !== undefined) return `${what} at ${base_url}, but one at ${right}: write base_url: ${right}`
  const usual = kind === 'contentgen-compat' ? '/v1beta' : '/v1'
  return `${what} at ${base_url}; base_url usually ends with ${usual}`
}

/** The error's sentence without its subject. */
const shape = (message: string): string => message.replace(/^The upstream "[^"]*" /, '').replace(/\.$/, '')

function connectionAdvice(message: string): string {
  const code = /\(([A-Za-z_]+)\)/.exec(message)?.[1] ?? ''
  if (/^(ECONNREFUSED|ConnectionRefused|FailedToOpenSocket)$/.test(code)) return 'nothing listens at its address'
  if (/^(ENOTFOUND|EAI_)/.test(code)) return 'its host name is not known'
  if (/TLS|SSL|CERT|UNABLE_TO|SELF_SIGNED|HOSTNAME|DEPTH_ZERO|EPROTO/.test(code)) {
    return `its certificate or its TLS was not accepted (${code})`
  }
  return shape(message).replace(/^No/, 'no')
}

/** Names where the key came from, never the key. */
function keyAdvice({ id, key, config }: Asked, kind: string, environment: Environment): string {
  const row: KindRow = KINDS[kind as ProviderKind]
  const variables = [...(presetOf(id, config)?.key_env ?? []), ...(row.environment ?? [])]
  const variable = variables.find((name) => environment[name])
  if (key !== null) return `the provider refuses the key "${key}" of providers.${id}.keys`
  const setting = config.key_file === undefined ? 'key' : 'key_file'
  if (config.key) return `the provider refuses the key in providers.${id}.${setting}`
  if (resolveProvider(id, config, environment).key || variable) return `the provider refuses the key in ${variable}`
  const [first] = variables
  return `the provider wants a key: write providers.${id}.key${first === undefined ? '' : `, or set ${first}`}`
}

type WrongAddress = { base_url: string; asked: Asked; kind: string; signal: AbortSignal }

/** The first of the addresses that are often meant which answers with a list of models. */
async function addressWithList({ base_url, asked, kind, signal }: WrongAddress, { create }: AskParts) {
  const lists = await Promise.all(
    likelyAddresses(base_url, kind).map(async (address) => {
      const { listModels } = create(asked.id, { ...asked.config, base_url: address })
      return listModels?.(signal).then(
        () => address,
        (error: unknown) => {
          // A refused key proves the address as well as a list does.
          if (error instanceof GatewayError) return error.code === 'upstream_auth' ? address : undefined
          throw error
        },
      )
    }),
  )
  return lists.find((address) => address !== undefined)
}

/** An endpoint in place of the base, and a version that is missing or too much. */
function likelyAddresses(base_url: string, kind: string): string[] {
  const whole = base_url.replace(/\/+$/, '')
  const base = whole.replace(/\/(chat\/completions|completions|embeddings|messages|models|responses)$/, '')
  const version = kind === 'contentgen-compat' ? '/v1beta' : '/v1'
  const other = /\/v\d+[a-z]*$/.test(base) ? base.replace(/\/[^/]*$/, '') : `${base}${version}`
  return [...new Set([base, other])].filter((address) => address !== whole)
}
