/** How one family of a vendor is reached through its package: key, base URL, headers, and a fetch over our transport. */
import { KINDS, type KindRow, type ProviderKind } from '../../config/schema/provider-kinds.ts'
import { createGuardedFetch } from '../../kit/guarded-fetch.ts'
import { createMedia } from '../media.ts'
import { type AdapterParts, assertKey, firstOf, settingsOf } from '../settings.ts'
import { createTransportFetch, type PackageFetch } from '../upstream/transport-fetch.ts'
import type { AiSdkVendor, Endpoint, Family } from './vendor-row.ts'

/** Packages read the process's environment for a key when they are given none. */
const UNUSED_KEY = 'gatehouse-has-no-key'

type Call = {
  model: string
  signal: AbortSignal
  request_id?: string
  /** The first request that is no GET costs money; a second one is refused. */
  orders?: boolean
  /** Awaited right before it is sent. */
  beforeSend?: (() => Promise<void>) | undefined
  /** Requests that cost nothing although they are no GET, by their path. */
  queries?: RegExp | undefined
  stream?: boolean
}

/** The row as the adapter of one family sees it: the family's own members win. */
type Served<Row> = Endpoint & { kind: ProviderKind; namespace: string } & Row

export type Connection<Row, Model> = ReturnType<typeof connect<Row, Model>>

/** Throws an Error that names the provider and says what would be right. */
export function connect<Row, Model>(
  parts: AdapterParts & { kind: ProviderKind },
  row: AiSdkVendor,
  family: Row & Family<unknown, Model>,
) {
  const { id, config, transport, kind } = parts
  const { chat, embeddings, images, rerank, speech, transcription, video, others, ...common } = row
  const vendor: Served<Row> = { namespace: kind, ...common, ...family, kind }
  const { baseUrl } = vendor
  const { key: configuredKey, preset: _, ...rest } = config
  const key = keyOf(parts, row)
  const base_url = config.base_url === undefined ? baseUrl : (vendor.adaptBaseUrl?.(config.base_url) ?? config.base_url)
  const settings = settingsOf({ id, config: { ...rest, base_url }, timeouts: parts.timeouts })
  const { base_url: targetUrl, headers, timeouts } = settings

  /** A URL below the package's base URL as one below the target, or undefined where the key may not be sent. */
  function route(url: string): string | undefined {
    const target = rebase(url, baseUrl, targetUrl)
    return mayReceiveKey(target, targetUrl, vendor) ? target : undefined
  }

  return {
    ...parts,
    vendor,
    media: parts.media ?? createMedia({ guardedFetch: createGuardedFetch({ clock: parts.clock }) }),
    /** Empty where the vendor needs no configured key. */
    key,
    /** Where requests are sent, without a trailing slash. */
    targetUrl,
    /** Configured headers, names in lower case. They win over those of the package. */
    headers,
    timeouts,
    route,
    /** A URL of the vendor as the configured `base_url` has it. */
    reroute: (url: string) => rebase(url, baseUrl, targetUrl),
    /** The same as the package knows it: stored in this form, it follows a later change of `base_url`. */
    unroute: (url: string) => rebase(url, targetUrl, baseUrl),
    /** A fetch for one call of a package's method, and what it sees of the vendor. */
    async fetchFor({ model, signal, request_id, orders = false, beforeSend, queries, stream = false }: Call) {
      const authorization = await vendor.authorize?.(signal)
      return createTransportFetch({
        provider: id,
        transport,
        timeouts,
        signal,
        isOrder: orders,
        beforeSend,
        stream,
        ...(queries ? { repeatablePaths: queries } : {}),
        route(request) {
          const rewritten = vendor.rewrite?.(request, model) ?? request
          const url = route(rewritten.url)
          if (url === undefined) return undefined
          const own = request_id === undefined ? {} : { 'x-request-id': request_id }
          return { url, headers: { ...withoutUnusedKey(rewritten.headers), ...own, ...headers, ...authorization } }
        },
      })
    },
    /** The package's model; its requests go through `fetch`. */
    async model(name: string, fetch: PackageFetch): Promise<Model> {
      return family.factory(await row.load({ key: key || UNUSED_KEY, fetch, baseUrl }))(name)
    },
  }
}

function keyOf(
  { id, kind, config, environment = {} }: AdapterParts & { kind: ProviderKind },
  row: AiSdkVendor,
): string {
  const { environment: variables = [] }: KindRow = KINDS[kind]
  const names = row.keyVariables ?? variables
  const key = config.key ?? row.key ?? firstOf(environment, names) ?? ''
  // Behind a configured address, another program may add the key.
  if (key === '' && !row.needsNoKey && config.base_url === undefined) {
    throw new Error(`providers.${id} needs a key: write key, or set ${names.join(' or ')}`)
  }
  if (key !== '') assertKey(id, key)
  return key
}

export const withoutUnusedKey = (headers: Record<string, string>) =>
  Object.fromEntries(Object.entries(headers).filter(([, value]) => !value.includes(UNUSED_KEY)))

/** A URL below `from` as the same below `to`; any other unchanged. */
function rebase(url: string, from: string, to: string): string {
  const next = url[from.length]
  const isBelow = url.startsWith(from) && (next === undefined || next === '/' || next === '?')
  return isBelow ? to + url.slice(from.length) : url
}

function mayReceiveKey(url: string, targetUrl: string, { hosts }: Pick<Endpoint, 'hosts'>): boolean {
  const parsed = URL.parse(url)
  if (!parsed) return false
  return (
    parsed.origin === new URL(targetUrl).origin ||
    (parsed.protocol === 'https:' && hosts?.test(parsed.hostname) === true)
  )
}
