/** A package's fetch under watch: each of the vendor's answers is heard before the package makes something of it. */

import { isRecord, type JsonRecord, parseJson } from '../../../kit/json.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { ImageUsage } from '../../../spec/image-request.ts'
import type { GeneratedImage } from '../../provider.ts'
import { neverSent } from '../../upstream/transport-failure.ts'
import { asFetch, type PackageFetch, type Wire } from '../../upstream/transport-fetch.ts'
import { type Account, moved } from '../account.ts'
import type { ImageFaults } from './fault.ts'
import type { ImageVendor } from './vendor.ts'

type WatchParts = {
  fetch: PackageFetch
  wire: Wire
  vendor: ImageVendor
  account: Account
  faults: ImageFaults
  model: string
}

type Watch = {
  fetch: PackageFetch
  /** What the vendor has said that it made, once it has. */
  made(): { images: GeneratedImage[]; usage?: ImageUsage } | undefined
  /** Why it came to nothing, whatever the package threw. */
  fault(thrown: unknown): GatewayError
}

/** Of one call of the package's method. */
export function watched({ fetch, wire, vendor, account, faults, model }: WatchParts): Watch {
  let made: { images: GeneratedImage[]; usage?: ImageUsage } | undefined
  let fault: GatewayError | undefined
  /** The order was answered well, with this: from here on it is under way. */
  let receipt: JsonRecord | undefined
  /** Questions in a row that came to nothing. */
  let unanswered = 0

  /** Addresses of the vendor's own making as the package knows them: it judges them by its own idea of the vendor. */
  function atHome(text: string): string {
    if (account.base_url === vendor.home || !text.includes(new URL(account.base_url).host)) return text
    return JSON.stringify(
      JSON.parse(text, (_, value) => (typeof value === 'string' ? moved(value, account.base_url, vendor.home) : value)),
    )
  }

  /** One exchange with the vendor; throws what it says that ends the matter. */
  async function exchange(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    const response = await fetch(input, init)
    const { response: answer } = wire
    if (!answer) return response
    const payload = parseJson(answer.text)
    const isFile = answer.headers.get('content-type')?.startsWith('image/') === true
    const error = faults.heard({ ...answer, payload }, { model, isTaken: receipt !== undefined })
    if (error) throw error
    // A package would take any bytes for an image.
    if (!isFile && payload === undefined) throw faults.notUnderstood(answer.status)
    receipt ??= isRecord(payload) ? payload : {}
    const { images = [], usage } = vendor.read?.(payload, answer.status) ?? {}
    if (images.length > 0) made = { images, ...(usage ? { usage } : {}) }
    if (isFile) return response
    return new Response(atHome(answer.text), { status: response.status, headers: response.headers })
  }

  async function send(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    // The package would fetch the image by itself: it is fetched later, under the guard that all addresses are.
    if (made) return new Response(null, { status: 204 })
    try {
      const response = await exchange(input, init)
      unanswered = 0
      return response
    } catch (thrown) {
      // Paid for by now: a vendor that is away for a moment, or has enough of questions, is asked again.
      if (receipt && vendor.waits && mayPass(thrown) && ++unanswered <= MOST_UNANSWERED) {
        return Response.json(JSON.parse(atHome(JSON.stringify(vendor.waits(receipt)))))
      }
      if (thrown instanceof GatewayError && !wire.failure) fault = thrown
      throw thrown
    }
  }

  return {
    fetch: asFetch(send),
    made: () => made,
    fault(thrown) {
      if (fault) return fault
      if (wire.failure) return wire.orderSent ? unsettled(wire.failure, receipt !== undefined) : neverSent(wire.failure)
      if (thrown instanceof GatewayError) return wire.orderSent ? thrown : neverSent(thrown)
      return wire.response ? faults.notUnderstood(wire.response.status, thrown) : faults.unsent(thrown)
    },
  }
}

const MOST_UNANSWERED = 5

/** Only what is about the question: that the work has failed has a code of its own. */
const mayPass = (thrown: unknown): boolean =>
  thrown instanceof GatewayError &&
  (thrown.status === 429 || thrown.status >= 500) &&
  thrown.code !== 'internal_error' &&
  thrown.detail.fail_code === undefined

/** A question that could not be sent says nothing of the order. */
function unsettled(error: GatewayError, isTaken: boolean): GatewayError {
  if (!isTaken) return error
  const { accepted: _, ...detail } = error.detail
  return new GatewayError(error.code, error.message, detail)
}
