/** Sends requests to paths of a provider that no family has: with its key, its headers and its limits of time. */
import type { Abortable } from '../../kit/abortable.ts'
import { GatewayError } from '../../spec/error.ts'
import type { AdapterParts, ProviderSettings } from '../settings.ts'
import type { UpstreamRequest, UpstreamResponse } from './upstream-request.ts'

export type DirectAddress = Pick<ProviderSettings, 'base_url' | 'headers' | 'timeouts'>

export type DirectCall = {
  method: UpstreamRequest['method']
  /** Below the base URL, percent-encoded, with its slash. */
  path: string
  /** With its question mark; empty: none. */
  query: string
  /** The client's headers that may be forwarded, names in lower case. */
  headers: Record<string, string>
  /** Undefined: it has none. */
  body: ReadableStream<Uint8Array> | undefined
  request_id: string
}

export type DirectProvider = {
  /** Returns the response, whatever its status; redirects are not followed. Throws GatewayError. */
  send(call: DirectCall, signal: Abortable): Promise<UpstreamResponse>
}

export function directTo(
  { id, transport }: Pick<AdapterParts, 'id' | 'transport'>,
  { base_url, headers, timeouts }: DirectAddress,
): DirectProvider {
  return {
    send(call, signal) {
      const url = base_url + call.path + call.query
      // What the checks before this let pass must be the address that is called.
      const { origin, pathname } = new URL(url)
      const base = new URL(base_url)
      if (origin !== base.origin || pathname !== base.pathname.replace(/\/$/, '') + call.path) {
        return Promise.reject(new GatewayError('invalid_value', 'The path is not one below that of the provider.'))
      }
      const own = { 'accept-encoding': 'identity', 'user-agent': 'gatehouse', 'x-request-id': call.request_id }
      const request: UpstreamRequest = {
        provider: id,
        timeouts,
        url,
        method: call.method,
        headers: { ...call.headers, ...own, ...headers },
        signal,
        stream: true,
      }
      if (call.body) request.body = call.body
      return transport.send(request)
    },
  }
}
