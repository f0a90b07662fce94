/** Fetches an image that its provider stores, through the guard for addresses that others supply. */
import { AddressRefused, type GuardedFetch } from '../../kit/guarded-fetch.ts'
import { readAll } from '../../kit/read-all.ts'
import type { Target } from '../../providers/provider.ts'
import { GatewayError } from '../../spec/error.ts'

type FetchParts = {
  guardedFetch: GuardedFetch
  /** The configured address rules of a provider. */
  providerSettings(id: string): { private_addresses?: boolean | undefined; base_url?: string | undefined } | undefined
  /** The limit of one image. Default 64 MiB, like the limits of providers. */
  max_bytes?: number
}

const MAX_BYTES = 64 * 1024 * 1024

export function createImageFetch({ guardedFetch, providerSettings, max_bytes = MAX_BYTES }: FetchParts) {
  return async (url: string, { provider }: Target, signal: AbortSignal): Promise<Uint8Array> => {
    const fault = (what: string, cause?: unknown) =>
      new GatewayError('bad_upstream_response', `The image of the upstream "${provider.id}" ${what}.`, { cause })
    const settings = providerSettings(provider.id)
    const own = settings?.base_url === undefined ? [] : [new URL(settings.base_url).origin]
    try {
      const { status, headers, body } = await guardedFetch({
        url,
        headers: { accept: 'image/*', ...provider.images?.outputHeaders?.(url) },
        private_origins: settings?.private_addresses ? 'any' : own,
        signal,
      })
      if (status !== 200) {
        await body.cancel()
        throw fault(`could not be fetched: HTTP ${status}`)
      }
      const coding = headers.get('content-encoding')
      if (coding && coding !== 'identity') {
        await body.cancel()
        throw fault(`was compressed (${coding.slice(0, 40)}), although the request did not accept that`)
      }
      return await readAll(body, () => fault(`is larger than the ${max_bytes} bytes allowed`), max_bytes)
    } catch (thrown) {
      signal.throwIfAborted()
      if (thrown instanceof GatewayError) throw thrown
      const why = thrown instanceof AddressRefused ? 'is at an address that is not public' : 'could not be fetched'
      throw fault(why, thrown)
    }
  }
}
