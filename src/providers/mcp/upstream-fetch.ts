/** The `fetch` of an MCP client: over the gateway's transport, to the address of its server only, with bounded messages. */
import type { McpServerConfig } from '../../config/schema/mcp-schema.ts'
import type { Timeouts } from '../../config/schema/schema.ts'
import type { Clock } from '../../kit/clock.ts'
import { memberOf, parseJson } from '../../kit/json.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Transport } from '../upstream/transport.ts'
import { asFetch, createTransportFetch, type PackageFetch } from '../upstream/transport-fetch.ts'
import { type AccessToken, createAccessToken } from './access-token.ts'

type FetchParts = {
  /** Of a person; undefined: as the server is configured. */
  token?: AccessToken | undefined
  name: string
  config: McpServerConfig
  transport: Transport
  limits: UpstreamLimits
  clock: Clock
  /** The events of a request have ended, by what has failed; its result may be missing. */
  onStreamEnd(request_id: unknown, thrown: unknown): void
  /** The stream on which a server of HTTP+SSE answers has ended: no request that is open gets a result. */
  onAnswersEnd(): void
}

/** The limits of a server, defaults filled in. */
export type UpstreamLimits = { connect_ms: number; call_ms: number; max_bytes: number }

export const limitsOf = ({
  connect_seconds = 15,
  call_seconds = 120,
  max_result_bytes = 4_194_304,
}: McpServerConfig) => ({
  connect_ms: connect_seconds * 1000,
  call_ms: call_seconds * 1000,
  max_bytes: max_result_bytes,
})

/** A stream of notifications may be silent for long; it is opened again when it has ended. */
const STREAM_IDLE_SECONDS = 3_600
/** How many messages of the greatest size one response may have: progress, and the result. */
const MESSAGES_OF_ONE_RESPONSE = 4

export function createUpstreamFetch({
  name,
  config,
  token: own_token,
  transport,
  limits,
  clock,
  onStreamEnd,
  onAnswersEnd,
}: FetchParts): PackageFetch {
  const origin = URL.parse(config.url ?? config.sse ?? config.openapi?.base_url ?? '')?.origin
  const own: Record<string, string> = {
    ...config.headers,
    ...(config.key === undefined ? {} : { authorization: `Bearer ${config.key}` }),
  }
  const seconds = limits.call_ms / 1000
  const timeouts: Required<Timeouts> = {
    connect_seconds: limits.connect_ms / 1000,
    first_byte_seconds: seconds,
    idle_seconds: seconds,
    total_seconds: seconds,
  }

  const { oauth } = config
  const token = own_token ?? (oauth && createAccessToken({ name, oauth, transport, timeouts, clock }))

  async function send(input: string | URL | Request, init: RequestInit): Promise<Response> {
    const bearer = await token?.current()
    const isStream = (init.method ?? 'GET') === 'GET' && !config.openapi
    const { fetch } = createTransportFetch({
      provider: name,
      transport,
      timeouts: isStream ? { ...timeouts, idle_seconds: STREAM_IDLE_SECONDS } : timeouts,
      signal: init.signal ?? NEVER,
      isOrder: false,
      stream: !config.openapi,
      max_bytes: limits.max_bytes,
      route: ({ url, headers }) =>
        URL.parse(url)?.origin === origin
          ? { url, headers: { ...headers, ...own, ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }) } }
          : undefined,
    })
    const response = await fetch(input, init)
    if (response.status === 401 && bearer !== undefined) token?.drop(bearer)
    if (config.openapi || !response.body || !response.headers.get('content-type')?.startsWith('text/event-stream'))
      return response
    const total = isStream ? Number.POSITIVE_INFINITY : MESSAGES_OF_ONE_RESPONSE * limits.max_bytes
    const request_id = isStream ? undefined : memberOf(parseJson(String(init.body)), 'id')
    const onEnd = (thrown?: unknown) => {
      if (request_id !== undefined) onStreamEnd(request_id, thrown)
      else if (config.sse !== undefined) onAnswersEnd()
    }
    const body = boundedEvents(response.body, { name, most: limits.max_bytes, total, onEnd })
    return new Response(body, { status: response.status, headers: response.headers })
  }

  return asFetch(async (input, init = {}) => {
    const response = await send(input, init)
    // The server may have refused a token before its time; it has executed nothing.
    return response.status === 401 && token ? await send(input, init) : response
  })
}

const NEVER = new AbortController().signal
const LINE_FEED = 10
const HAS_ID = /(^|\n)id:/

type Bounds = {
  name: string
  /** Bytes of one event. */
  most: number
  /** Bytes of all. */
  total: number
  /** Called once, unless the SDK can resume the stream: then its events have ids. */
  onEnd(thrown?: unknown): void
}

function boundedEvents(
  body: ReadableStream<Uint8Array>,
  { name, most, total, onEnd }: Bounds,
): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  let size = 0
  let all = 0
  let isResumable = false
  const ended = (thrown?: unknown) => void (isResumable || onEnd(thrown))

  function assertBounded(chunk: Uint8Array): void {
    all += chunk.length
    // Events end with an empty line: the bytes since the last one belong to one event.
    const end = chunk.lastIndexOf(LINE_FEED)
    const isEnd = end > 0 && chunk[end - 1] === LINE_FEED
    const longest = Math.max(size + (end === -1 ? chunk.length : end), chunk.length)
    size = isEnd ? chunk.length - end - 1 : size + chunk.length
    if (longest <= most && size <= most && all <= total) return
    throw new GatewayError(
      'bad_upstream_response',
      `The MCP server "${name}" sent more than ${most} bytes in one message (max_result_bytes).`,
    )
  }

  return new ReadableStream(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (done) {
            controller.close()
            ended()
            return
          }
          assertBounded(value)
          isResumable ||= HAS_ID.test(Buffer.from(value).toString('latin1'))
          controller.enqueue(value)
        } catch (thrown) {
          reader.cancel().catch(() => {})
          controller.error(thrown)
          ended(thrown)
        }
      },
      async cancel(reason) {
        await reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}
