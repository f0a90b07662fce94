/** A package's fetch that reads each response of the vendor before the package does. */
import { asRecord, type JsonRecord, parseJson } from '../../../kit/json.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { ImageUsage } from '../../../spec/image-request.ts'
import type { GeneratedImage } from '../../provider.ts'
import { neverSent } from '../../upstream/transport-failure.ts'
import { asFetch, type PackageFetch, type Wire } from '../../upstream/transport-fetch.ts'
import type { Connection } from '../connection.ts'
import type { ImageErrors } from './image-errors.ts'
import type { ImageFamily, ImageModel } from './image-family.ts'

type ObserverParts = {
  fetch: PackageFetch
  wire: Wire
  connection: Connection<ImageFamily, ImageModel>
  errors: ImageErrors
  model: string
}

export type Generated = { images: GeneratedImage[]; usage?: ImageUsage }

/** Good for one call of the package's method. */
export function observedFetch({ fetch, wire, connection, errors, model }: ObserverParts) {
  const { vendor, targetUrl, unroute } = connection
  let generated: Generated | undefined
  let error: GatewayError | undefined
  /** The response with which the order was accepted. */
  let receipt: JsonRecord | undefined
  let failedQueries = 0

  /** With the vendor's URLs as the package knows them: it follows no others. */
  function unrouted(text: string): string {
    if (targetUrl === vendor.baseUrl || !text.includes(new URL(targetUrl).host)) return text
    return JSON.stringify(JSON.parse(text, (_, value) => (typeof value === 'string' ? unroute(value) : value)))
  }

  /** One exchange with the vendor; throws an error that ends the call. */
  async function exchange(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    const response = await fetch(input, init)
    const { response: received } = wire
    if (!received) return response
    const payload = parseJson(received.text)
    const isFile = received.headers.get('content-type')?.startsWith('image/') === true
    const failure = errors.inResponse({ ...received, payload }, { model, isAccepted: receipt !== undefined })
    if (failure) throw failure
    // A package would accept any bytes as an image.
    if (!isFile && payload === undefined) throw errors.unreadable(undefined, received.status)
    receipt ??= asRecord(payload)
    const { images = [], usage } = vendor.read?.(payload, received.status) ?? {}
    if (images.length > 0) generated = { images, ...(usage ? { usage } : {}) }
    if (isFile) return response
    return new Response(unrouted(received.text), { status: response.status, headers: response.headers })
  }

  async function send(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    // The package would fetch the image itself: it is fetched later, under the guard that applies to all URLs.
    if (generated) return new Response(null, { status: 204 })
    try {
      const response = await exchange(input, init)
      failedQueries = 0
      return response
    } catch (thrown) {
      // The order is charged by now: a vendor that is unavailable or limits requests is queried again.
      if (receipt && vendor.pendingResponse && isTransient(thrown) && ++failedQueries <= MAX_FAILED_QUERIES) {
        return Response.json(JSON.parse(unrouted(JSON.stringify(vendor.pendingResponse(receipt)))))
      }
      if (thrown instanceof GatewayError && !wire.failure) error = thrown
      throw thrown
    }
  }

  return {
    fetch: asFetch(send),
    generated: () => generated,
    errorFor(thrown: unknown): GatewayError {
      if (error) return error
      if (wire.failure) {
        return wire.orderSent ? withoutAcceptance(wire.failure, receipt !== undefined) : neverSent(wire.failure)
      }
      if (thrown instanceof GatewayError) return wire.orderSent ? thrown : neverSent(thrown)
      return wire.response ? errors.unreadable(thrown, wire.response.status) : errors.unsent(thrown)
    },
  }
}

/** In a row. */
const MAX_FAILED_QUERIES = 5

/** Only errors of the query itself: a failure of the work has a `fail_code`. */
const isTransient = (thrown: unknown): boolean =>
  thrown instanceof GatewayError &&
  (thrown.status === 429 || thrown.status >= 500) &&
  thrown.code !== 'internal_error' &&
  thrown.detail.fail_code === undefined

/** That a query could not be sent does not mean that the order was not accepted. */
function withoutAcceptance(error: GatewayError, isAccepted: boolean): GatewayError {
  if (!isAccepted) return error
  const { accepted: _, ...detail } = error.detail
  return new GatewayError(error.code, error.message, detail)
}
