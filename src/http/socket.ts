/** WebSocket connections: how many may be open, how long, and how they end when the gateway stops. */
import type { Clock } from '../kit/clock.ts'
import type { ConversationCache } from '../protocols/responses/client/items.ts'
import { GatewayError } from '../spec/error.ts'
import { offeredProtocols } from './request-parts.ts'

/** The client's end of a connection. */
export type SocketPeer = {
  send(text: string): void
  /** Bytes that were sent and have not left yet. */
  buffered(): number
  close(code: number, reason: string): void
}

/** The gateway's end of a connection; the listener calls it. */
export type SocketHandler = {
  open(peer: SocketPeer): void
  message(data: string | Uint8Array): void
  /** The buffer of the connection is empty again. */
  drained(): void
  closed(): void
}

/** A message that is handled like a request. */
export type SocketMessage = {
  /** The parsed body of the request. */
  body: unknown
  bytes: number
  /** Only prepares the conversation: no model is called. */
  isWarmUp: boolean
  conversations: ConversationCache
  /** The id of the request that opened the connection. */
  connection_id: string
}

/** What a protocol over a WebSocket gets from the app. */
export type SocketParts = {
  connection_id: string
  /** Handles a message like an HTTP request of the same route: authenticated, limited, logged. */
  call(message: SocketMessage, signal: AbortSignal): Promise<Response>
  /** Called once, when the connection is closed. */
  onClosed(): void
}

/** A protocol's handler; `stop` ends the connection when its open responses have ended, at the latest at the deadline. */
export type SocketProtocol = (
  parts: SocketParts,
) => SocketHandler & { stop(error: GatewayError, deadline_ms?: number): void }

/** Close codes: RFC 6455, section 7.4.1. */
export const CLOSE = {
  normal: 1000,
  goingAway: 1001,
  unsupportedData: 1003,
  policy: 1008,
  tooBig: 1009,
  internal: 1011,
} as const

/** Each has its own queue and conversations in memory. An agent uses one or two. */
export const MAX_SOCKETS_PER_TOKEN = 64
const MAX_SOCKETS = 2_000
/** As at OpenAI: clients such as Codex know the error at the end, and connect again. */
export const MAX_SOCKET_MILLISECONDS = 3_600_000

type Sockets = {
  /** Opens a connection of this token. Throws `rate_limit_exceeded`. */
  open(protocol: SocketProtocol, parts: Omit<SocketParts, 'onClosed'> & { token_id: string }): SocketHandler
  count(): number
  /** Ends all connections, each when its open responses have ended. */
  stop(deadline_ms: number): void
}

export function createSockets({ clock }: { clock: Clock }): Sockets {
  const open = new Set<ReturnType<SocketProtocol>>()
  const byToken = new Map<string, number>()

  return {
    open(protocol, { token_id, ...parts }) {
      const own = byToken.get(token_id) ?? 0
      if (own >= MAX_SOCKETS_PER_TOKEN || open.size >= MAX_SOCKETS) throw tooMany(own)
      byToken.set(token_id, own + 1)
      const handler = protocol({
        ...parts,
        onClosed() {
          if (!open.delete(handler)) return
          cancel()
          const left = (byToken.get(token_id) ?? 1) - 1
          if (left === 0) byToken.delete(token_id)
          else byToken.set(token_id, left)
        },
      })
      open.add(handler)
      const cancel = clock.after(MAX_SOCKET_MILLISECONDS, () => handler.stop(expired()))
      return handler
    },
    count: () => open.size,
    stop(deadline_ms) {
      for (const one of open) one.stop(new GatewayError('shutting_down', 'The gateway is being stopped.'), deadline_ms)
    },
  }
}

const tooMany = (own: number) =>
  new GatewayError(
    'rate_limit_exceeded',
    own >= MAX_SOCKETS_PER_TOKEN
      ? `This token has ${MAX_SOCKETS_PER_TOKEN} WebSocket connections open: close some, or send an HTTP POST.`
      : 'The gateway has too many WebSocket connections open: try again later, or send an HTTP POST.',
    { retry_after: 10 },
  )

/** The wording of OpenAI, which programs may look for. */
const expired = () =>
  new GatewayError(
    'websocket_connection_limit_reached',
    'Responses websocket connection limit reached (60 minutes). Create a new websocket connection to continue.',
  )

type Upgraded = { request: Request; request_id: string }

/** Of the response that makes a connection a WebSocket: of the subprotocols, clients of one path offer a secret beside `realtime`. */
export const upgradeHeaders = ({ request, request_id }: Upgraded): Record<string, string> => ({
  'x-request-id': request_id,
  ...(offeredProtocols(request.headers).includes('realtime') ? { 'sec-websocket-protocol': 'realtime' } : {}),
})

/** The request that a message of a WebSocket is handled as: with the headers of the upgrade that concern the caller. */
export function messageRequest({ url, headers: given }: Request, method: string, signal: AbortSignal): Request {
  const headers = new Headers()
  for (const [name, value] of given) if (!OF_THE_CONNECTION.test(name)) headers.set(name, value)
  // Names the transport, which is not that of the provider's request.
  const beta = given
    .get('openai-beta')
    ?.split(',')
    .filter((one) => !/^ *responses_websockets=/.test(one))
    .join(',')
  if (beta) headers.set('openai-beta', beta)
  else headers.delete('openai-beta')
  return new Request(url, { method, headers, signal })
}
const OF_THE_CONNECTION =
  /^(connection|upgrade|sec-websocket-.*|content-.*|transfer-encoding|x-request-id|idempotency-key)$/
