/** A `fetch` over the house's transport, for packages that bring their own idea of a vendor's API but no manners. */
import type { Timeouts } from '../../config/schema.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Transport } from './transport.ts'
import { tooLarge } from './transport-failure.ts'
import type { UpstreamRequest, UpstreamResponse } from './transport-response.ts'

/** What one call of a package came to on the wire: what the package makes of it is worth less than this. */
export type Wire = {
  /** The last answer; its text once it was read whole, which a stream never is. */
  response?: { status: number; headers: Headers; text: string }
  /** Why the last request came to nothing; it keeps its meaning however the package wraps it. */
  failure?: GatewayError
  /** The body of a streamed answer came to its end. */
  isAtEnd?: boolean
  /** Whether an order was given to the transport. */
  orderSent: boolean
}

type Plain = { url: string; headers: Record<string, string> }

type TransportFetchParts = {
  /** The operator's name of the provider. */
  provider: string
  transport: Transport
  timeouts: Required<Timeouts>
  signal: AbortSignal
  /** True: the first request that is no GET costs money, and there must not be a second. */
  isOrder: boolean
  /** Addresses of questions that are no GET either: they cost nothing, and may be repeated. */
  repeatablePaths?: RegExp
  /** Hands a good answer on as it comes, with back-pressure; JSON, which is none that was asked for, is read whole. */
  stream?: boolean
  /** Where a request truly goes, and with what; undefined: nowhere, since its address is none of the vendor's. */
  route(request: Plain): Plain | undefined
}

/** A video in base64 within JSON: four clips of Veo in 1080p take about a hundred. */
const MAX_ANSWER_BYTES = 256 * 1024 * 1024
/** Names of one message, not of what it says: the text is decoded already. */
const HOP_HEADERS = ['content-encoding', 'content-length', 'transfer-encoding', 'connection']
/** To which the standard allows no body. */
const WITHOUT_BODY = [204, 205, 304]

export type PackageFetch = typeof globalThis.fetch

/** Good for one call of a package's method: it remembers what happened in `wire`. */
export function createTransportFetch(parts: TransportFetchParts): { fetch: PackageFetch; wire: Wire } {
  const { provider, transport, timeouts, signal, isOrder: orders, repeatablePaths: asks, route, stream = false } = parts
  const wire: Wire = { orderSent: false }

  async function send(input: string | URL | Request, init: RequestInit = {}): Promise<Response> {
    delete wire.failure
    delete wire.response
    delete wire.isAtEnd
    const method = methodOf(provider, init.method)
    const target = route({
      url: input instanceof Request ? input.url : String(input),
      headers: {
        ...Object.fromEntries(new Headers(init.headers)),
        'user-agent': 'gatehouse',
        'accept-encoding': 'identity',
      },
    })
    if (!target) {
      throw new GatewayError(
        'bad_upstream_response',
        `The upstream "${provider}" named an address that is none of its own. Its key was not sent there.`,
      )
    }
    const isOrder = orders && method !== 'GET' && !asks?.test(new URL(target.url).pathname)
    if (isOrder && wire.orderSent) {
      throw new GatewayError('internal_error', `An order for "${provider}" was about to be sent twice.`)
    }
    if (isOrder) wire.orderSent = true
    const answer = await transport.send({
      provider,
      ...target,
      method,
      ...bodyOf(init.body),
      ...(isOrder ? { order: true as const } : {}),
      signal,
      timeouts,
      stream,
    })
    const { status, headers } = answer
    const shown = new Headers(headers)
    for (const name of HOP_HEADERS) shown.delete(name)
    if (stream && status < 300 && !isJson(headers)) {
      wire.response = { status, headers, text: '' }
      return new Response(bodyFrom(answer, wire), { status, headers: shown })
    }
    if (status < 300 && /^image\//.test(headers.get('content-type') ?? '')) {
      wire.response = { status, headers, text: '' }
      return new Response(await bytesOf(provider, answer), { status, headers: shown })
    }
    const text = status < 300 ? await answer.text(MAX_ANSWER_BYTES) : await answer.excerpt()
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

/** A file as it is, which text would spoil. */
async function bytesOf(provider: string, answer: UpstreamResponse): Promise<Uint8Array<ArrayBuffer>> {
  const pieces: Uint8Array[] = []
  let size = 0
  for (let bytes = await answer.read(); bytes; bytes = await answer.read()) {
    size += bytes.length
    if (size > MAX_ANSWER_BYTES) {
      answer.drop()
      throw tooLarge(provider, MAX_ANSWER_BYTES)
    }
    pieces.push(bytes)
  }
  return new Uint8Array(Buffer.concat(pieces))
}

const isJson = (headers: Headers) => /^[^;]*\bjson\b/.test(headers.get('content-type') ?? '')

/** The body as it comes: nothing is read ahead of its reader, and one that goes away closes the connection. */
function bodyFrom(answer: UpstreamResponse, wire: Wire): ReadableStream<Uint8Array<ArrayBuffer>> {
  /** The package has left: that a read under way ends by it is no failure of the vendor's. */
  let isLeft = false
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          const bytes = await answer.read()
          if (bytes) controller.enqueue(new Uint8Array(bytes))
          else {
            wire.isAtEnd = true
            controller.close()
          }
        } catch (thrown) {
          if (thrown instanceof GatewayError && !isLeft) wire.failure = thrown
          throw thrown
        }
      },
      cancel() {
        isLeft = true
        answer.drop()
      },
    },
    { highWaterMark: 0 },
  )
}

/** The runtime's own type wants a member that no package calls. */
export const asFetch = (send: (input: string | URL | Request, init?: RequestInit) => Promise<Response>): PackageFetch =>
  Object.assign(send, { preconnect: () => {} })

function methodOf(provider: string, method = 'GET'): UpstreamRequest['method'] {
  if (method === 'GET' || method === 'POST' || method === 'PUT' || method === 'DELETE') return method
  throw new GatewayError('internal_error', `A request to "${provider}" had the method ${method}.`)
}

function bodyOf(body: RequestInit['body']): { body?: string | Uint8Array<ArrayBuffer> } {
  if (body === undefined || body === null) return {}
  if (typeof body === 'string') return { body }
  if (body instanceof Uint8Array) return { body: new Uint8Array(body) }
  throw new GatewayError('internal_error', 'A request had a body that is neither text nor bytes.')
}
