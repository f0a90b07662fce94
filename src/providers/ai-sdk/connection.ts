/** How one family of a vendor is reached through its package: key, base URL, headers, and a fetch over our transport. */
import { KINDS, type KindRow, type ProviderKind } from '../../config/schema/provider-kinds.ts'
import type { Timeouts } from '../../config/schema/schema.ts'
import { createGuardedFetch } from '../../kit/guarded-fetch.ts'
import { createMedia, type Media } from '../media.ts'
import { type AdapterParts, firstOf, settingsOf } from '../settings.ts'
import { createTransportFetch, type PackageFetch, type Wire } from '../upstream/transport-fetch.ts'
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

export type Connection<Row, Model> = Omit<AdapterParts, 'media'> & {
  vendor: Served<Row>
  media: Media
  /** Empty where the vendor needs no configured key. */
  key: string
  /** Where requests are sent, without a trailing slash. */
  targetUrl: string
  /** Configured headers, names in lower case. They win over those of the package. */
  headers: Record<string, string>
  timeouts: Required<Timeouts>
  /** A fetch for one call of a package's method, and what it sees of the vendor. */
  fetchFor(call: Call): Promise<{ fetch: PackageFetch; wire: Wire }>
  /** The package's model; its requests go through `fetch`. */
  model(name: string, fetch: PackageFetch): Promise<Model>
  /** A URL below the package's base URL as one below the target, or undefined where the key may not be sent. */
  route(url: string): string | undefined
  /** A URL of the vendor as the configured `base_url` has it. */
  reroute(url: string): string
  /** The same as the package knows it: stored in this form, it follows a later change of `base_url`. */
  unroute(url: string): string
}

/** Throws an Error that names the provider and says what would be right. */
export function connect<Row, Model>(
  parts: AdapterParts & { kind: ProviderKind },
  row: AiSdkVendor,
  family: Row & Family<unknown, Model>,
): Connection<Row, Model> {
  const { id, config, transport, kind } = parts
  const { chat, embeddings, images, rerank, speech, transcription, video, others, ...common } = row
  const vendor: Served<Row> = { namespace: kind, ...common, ...family, kind }
  const { baseUrl } = vendor
  const { key: configuredKey, preset: _, ...rest } = config
  const key = keyOf(parts, row)
  const base_url = config.base_url === undefined ? baseUrl : (vendor.adaptBaseUrl?.(config.base_url) ?? config.base_url)
  const settings = settingsOf({ id, config: { ...rest, base_url }, timeouts: parts.timeouts })
  const { base_url: targetUrl, headers, timeouts } = settings

  function route(url: string): string | undefined {
    const target = rebase(url, baseUrl, targetUrl)
    return mayReceiveKey(target, targetUrl, vendor) ? target : undefined
  }

  return {
    ...parts,
    vendor,
    media: parts.media ?? createMedia({ guardedFetch: createGuardedFetch({ clock: parts.clock }) }),
    key,
    targetUrl,
    headers,
    timeouts,
    route,
    reroute: (url) => rebase(url, baseUrl, targetUrl),
    unroute: (url) => rebase(url, targetUrl, baseUrl),
    async fetchFor({ model, signal, request_id, orders = false, beforeSend, queries, stream = false }) {
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
    async model(name, fetch) {
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
  if (!/^[\x21-\x7e]*$/.test(key)) {
    // a header value: anything else could not be sent
    throw new Error(`providers.${id}.key holds a space, a line break or a character outside ASCII`)
  }
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
