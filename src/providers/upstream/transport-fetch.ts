/** A `fetch` over the gateway's transport, for packages that know a provider's API but have no timeouts, limits or order safety. */
import type { Timeouts } from '../../config/schema/schema.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Transport } from './transport.ts'
import { tooLarge } from './transport-failure.ts'
import type { UpstreamRequest, UpstreamResponse } from './upstream-request.ts'

/** What one call of a package did on the wire; this counts more than what the package reports. */
export type Wire = {
  /** The last response; its text once it was read whole, which a stream never is. */
  response?: { status: number; headers: Headers; text: string }
  /** Why the last request failed, however the package wraps the error. */
  failure?: GatewayError
  /** The body of a streamed response was read to its end. */
  isAtEnd?: boolean
  orderSent: boolean
}

type Plain = { url: string; headers: Record<string, string> }

type TransportFetchParts = {
  /** The operator's name of the provider. */
  provider: string
  transport: Transport
  timeouts: Required<Timeouts>
  signal: AbortSignal
  /** True: the first request that is not a GET may cost money, and there must not be a second. */
  isOrder: boolean
  /** Awaited right before the order leaves. */
  beforeSend?: (() => Promise<void>) | undefined
  /** Paths of requests that are not GET and still cost nothing: they may be repeated. */
  repeatablePaths?: RegExp
  /** Passes a successful response on as it arrives, with back-pressure; a JSON body is not a stream and is read whole. */
  stream?: boolean
  /** Of a response that is read whole. Default 256 MiB. */
  max_bytes?: number
  /** The URL and headers that are really used; undefined: the request is rejected, since its URL is not one of the provider's. */
  route(request: Plain): Plain | undefined
}

/** A video in base64 within JSON: four clips of Veo in 1080p take about a hundred megabytes. */
const MAX_RESPONSE_BYTES = 256 * 1024 * 1024
/** Headers of one transfer, not of its content: the text is decoded already. */
const HOP_HEADERS = ['content-encoding', 'content-length', 'transfer-encoding', 'connection']
/** Statuses for which the standard allows no body. */
const WITHOUT_BODY = [204, 205, 304]

export type PackageFetch = typeof globalThis.fetch

/** For one call of a package's method: `wire` records what happened. */
export function createTransportFetch(parts: TransportFetchParts): { fetch: PackageFetch; wire: Wire } {
  const {
    provider,
    transport,
    timeouts,
    signal,
    isOrder: orders,
    beforeSend,
    repeatablePaths: repeatable,
    route,
    stream = false,
    max_bytes = MAX_RESPONSE_BYTES,
  } = parts
  const wire: Wire = { orderSent: false }

  async function send(input: string | URL | Request, init: RequestInit = {}): Promise<Response> {
    delete wire.failure
    delete wire.response
    delete wire.isAtEnd
    const method = methodOf(provider, init.method)
    const { type, ...content } = await contentOf(init.body)
    const target = route({
      url: input instanceof Request ? input.url : String(input),
      headers: {
        ...Object.fromEntries(new Headers(init.headers)),
        'user-agent': 'gatehouse',
        'accept-encoding': 'identity',
        ...(type === undefined ? {} : { 'content-type': type }),
      },
    })
    if (!target) {
      throw new GatewayError(
        'bad_upstream_response',
        `The upstream "${provider}" named a URL that is not its own. Its key was not sent there.`,
      )
    }
    const isOrder = orders && method !== 'GET' && !repeatable?.test(new URL(target.url).pathname)
    if (isOrder && wire.orderSent) {
      throw new GatewayError('internal_error', `The package tried to send an order for "${provider}" twice.`)
    }
    if (isOrder) wire.orderSent = true
    const response = await transport.send({
      provider,
      ...target,
      method,
      ...content,
      ...(isOrder ? { order: true as const, beforeSend } : {}),
      signal,
      timeouts,
      stream,
    })
    const { status, headers } = response
    const shown = new Headers(headers)
    for (const name of HOP_HEADERS) shown.delete(name)
    if (stream && status < 300 && !isJson(headers)) {
      wire.response = { status, headers, text: '' }
      return new Response(bodyFrom(response, wire), { status, headers: shown })
    }
    if (status < 300 && /^(image|audio)\//.test(headers.get('content-type') ?? '')) {
      wire.response = { status, headers, text: '' }
      return new Response(await bytesOf(provider, response), { status, headers: shown })
    }
    const text = status < 300 ? await response.text(max_bytes) : await response.excerpt()
    wire.response = { status, headers, text }
    return new Response(WITHOUT_BODY.includes(status) ? null : text, { status, headers: shown })
  }

  const fetch = async (input: string | URL | Request, init?: RequestInit) => {
    try {
      return await send(input, init)
    } catch (thrown) {
      if (thrown instanceof GatewayError) wire.failure = thrown
      throw thrown
    }
  }
  return { wire, fetch: asFetch(fetch) }
}

/** Reads a file as bytes, since decoding it as text would damage it. */
async function bytesOf(provider: string, response: UpstreamResponse): Promise<Uint8Array<ArrayBuffer>> {
  const pieces: Uint8Array[] = []
  let size = 0
  for (let bytes = await response.read(); bytes; bytes = await response.read()) {
    size += bytes.length
    if (size > MAX_RESPONSE_BYTES) {
      response.drop()
      throw tooLarge(provider, MAX_RESPONSE_BYTES)
    }
    pieces.push(bytes)
  }
  return new Uint8Array(Buffer.concat(pieces))
}

const isJson = (headers: Headers) => /^[^;]*\bjson\b/.test(headers.get('content-type') ?? '')

/** The body as it arrives: nothing is read ahead of the reader, and a reader that cancels closes the connection. */
function bodyFrom(response: UpstreamResponse, wire: Wire): ReadableStream<Uint8Array<ArrayBuffer>> {
  /** The package has canceled: a read that ends because of it is not a failure of the provider. */
  let isCanceled = false
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          const bytes = await response.read()
          if (bytes) controller.enqueue(new Uint8Array(bytes))
          else {
            wire.isAtEnd = true
            controller.close()
          }
        } catch (thrown) {
          if (thrown instanceof GatewayError && !isCanceled) wire.failure = thrown
          throw thrown
        }
      },
      cancel() {
        isCanceled = true
        response.drop()
      },
    },
    { highWaterMark: 0 },
  )
}

/** The runtime's own type has a member that no package calls. */
export const asFetch = (send: (input: string | URL | Request, init?: RequestInit) => Promise<Response>): PackageFetch =>
  Object.assign(send, { preconnect: () => {} })

function methodOf(provider: string, method = 'GET'): UpstreamRequest['method'] {
  if (method === 'GET' || method === 'POST' || method === 'PUT' || method === 'PATCH' || method === 'DELETE')
    return method
  throw new GatewayError('internal_error', `A request to "${provider}" had the method ${method}.`)
}

type Content = { body?: string | Uint8Array<ArrayBuffer>; type?: string }

/** A form has a boundary of its own, which its type names. */
async function contentOf(body: RequestInit['body']): Promise<Content> {
  if (body === undefined || body === null) return {}
  if (typeof body === 'string') return { body }
  if (body instanceof Uint8Array) return { body: new Uint8Array(body) }
  if (body instanceof FormData) {
    const form = new Response(body)
    return { type: form.headers.get('content-type') ?? '', body: await form.bytes() }
  }
  throw new GatewayError('internal_error', 'A request had a body that is neither text, bytes nor a form.')
}
