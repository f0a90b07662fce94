/**
 * The Responses API over a WebSocket, as OpenAI documents it
 * (https://developers.openai.com/api/docs/guides/websocket-mode): each `response.create` is handled like a
 * `POST /v1/responses` with `stream: true`, and each event of its stream is one message.
 */
import type { ServerSettings } from '../../../config/config.ts'
import { parseMessage } from '../../../http/body.ts'
import { CLOSE, type SocketParts, type SocketPeer, type SocketProtocol } from '../../../http/socket.ts'
import type { Clock } from '../../../kit/clock.ts'
import { isRecord, type JsonRecord } from '../../../kit/json.ts'
import type { Log } from '../../../kit/log.ts'
import { createSseParser } from '../../../kit/sse.ts'
import { asGatewayError, errorBody, GatewayError, invalidValue } from '../../../spec/error.ts'
import { createSocketConversations } from './socket-conversations.ts'
import { createStreamQueues } from './stream-queues.ts'

type Parts = { settings: Pick<ServerSettings, 'max_body_bytes'>; clock: Clock; log: Log }

/** A `response.create`: its stream, and the body of the request. */
type Create = { stream_id: string | undefined; body: JsonRecord; bytes: number; isWarmUp: boolean }

/** Above this number of bytes the gateway stops reading from the provider until the client has read them. */
const BUFFERED_BYTES = 64 * 1024
/** A client that reads nothing for this long counts as gone, as for a stream over HTTP. */
const STALLED_MILLISECONDS = 120_000
const UNREAD = 'The client sends messages, and reads no answers.'
const STREAM_ID = /^[\w.-]{1,256}$/

export const responsesSocket =
  (parts: Parts): SocketProtocol =>
  (connection) =>
    createConnection(parts, connection)

function createConnection({ settings, clock, log }: Parts, { connection_id, call, onClosed }: SocketParts) {
  let peer: SocketPeer | undefined
  let isOpen = true
  /** Why the connection accepts no more requests. */
  let stopped: GatewayError | undefined
  let onDrained: (() => void) | undefined
  const control = new AbortController()
  const conversations = createSocketConversations({ max_bytes: () => settings.max_body_bytes })
  const queues = createStreamQueues({ max_bytes: () => settings.max_body_bytes, onIdle: endIfStopped })

  function close(code: number, reason: string): void {
    if (isOpen) peer?.close(code, reason)
  }

  function endIfStopped(): void {
    if (!stopped || !queues.isIdle()) return
    if (stopped.code === 'shutting_down') {
      close(CLOSE.goingAway, stopped.message)
    } else {
      sendError(stopped)
      close(CLOSE.normal, 'The connection has reached its maximum age.')
    }
  }

  function send(text: string, stream_id?: string): void {
    if (!isOpen) return
    // The data of an event is a JSON object.
    peer?.send(stream_id === undefined ? text : `{"stream_id":${JSON.stringify(stream_id)},${text.slice(1)}`)
  }

  function sendError(error: GatewayError, stream_id?: string): void {
    const body = errorBody(error)
    send(JSON.stringify({ type: 'error', status: error.status, ...body }), stream_id)
  }

  /** Resolves when the client has read what was sent; aborts all calls when it reads nothing for too long. */
  function drained(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const before = onDrained
    const cancel = clock.after(STALLED_MILLISECONDS, () => {
      control.abort()
      close(CLOSE.policy, 'The client read nothing for too long.')
    })
    onDrained = () => {
      cancel()
      before?.()
      resolve()
    }
    return promise
  }

  async function respond({ stream_id, body, bytes, isWarmUp }: Create): Promise<void> {
    const previous = body.previous_response_id
    const message = { body, bytes, isWarmUp, connection_id, conversations: conversations.of(stream_id) }
    const response = await call(message, control.signal)
    if (!response.ok) {
      conversations.remove(previous)
      send(JSON.stringify(await errorEvent(response)), stream_id)
      // The token was revoked: nothing more can be done with this connection.
      if (response.status === 401) close(CLOSE.policy, 'The token is not valid any more.')
      return
    }
    const parser = createSseParser(Number.POSITIVE_INFINITY)
    for await (const piece of response.body ?? []) {
      for (const { event, data } of parser.push(piece)) {
        if (event === 'response.failed') conversations.remove(previous)
        send(data, stream_id)
      }
      if (isOpen && (peer?.buffered() ?? 0) > BUFFERED_BYTES) await drained()
    }
  }

  async function run(create: Create): Promise<void> {
    if (!isOpen) return
    try {
      if (stopped) throw stopped
      await respond(create)
    } catch (thrown) {
      if (isOpen) sendError(asGatewayError(thrown, { log, request_id: connection_id }), create.stream_id)
    }
  }

  function receive(data: string | Uint8Array): void {
    const event = parseMessage(data, settings.max_body_bytes)
    if (!isRecord(event)) throw new GatewayError('invalid_type', 'A message must be a JSON object.')
    if (event.type === 'response.processed') return // an acknowledgement of Codex, which needs nothing
    if (event.type === 'response.steer') {
      send(JSON.stringify(steerFailed(event)))
      return
    }
    const { type, stream_id, generate, stream: _, ...body } = event
    const stream = streamOf(stream_id)
    try {
      if (type !== 'response.create') throw wrongType()
      assertCreate(generate, body)
      if (stopped) throw stopped
      const isWarmUp = generate === false
      const create = { stream_id: stream, isWarmUp, bytes: data.length, body: { ...body, stream: true } }
      queues.add(stream, data.length, () => run(create))
    } catch (thrown) {
      sendError(asGatewayError(thrown, { log, request_id: connection_id }), stream)
    }
  }

  return {
    open(opened: SocketPeer) {
      peer = opened
    },
    message(data: string | Uint8Array) {
      if (typeof data !== 'string') return close(CLOSE.unsupportedData, 'Messages must be text.')
      // Answers without a call wait for no one to read them.
      if ((peer?.buffered() ?? 0) > settings.max_body_bytes) return close(CLOSE.policy, UNREAD)
      try {
        receive(data)
      } catch (thrown) {
        sendError(asGatewayError(thrown, { log, request_id: connection_id }))
      }
    },
    drained() {
      const resume = onDrained
      onDrained = undefined
      resume?.()
    },
    closed() {
      isOpen = false
      onClosed()
      control.abort()
      this.drained()
      queues.clear()
    },
    stop(error: GatewayError) {
      stopped ??= error
      endIfStopped()
    },
  }
}

function streamOf(stream_id: unknown): string | undefined {
  if (stream_id === undefined || stream_id === null) return undefined
  if (typeof stream_id === 'string' && STREAM_ID.test(stream_id)) return stream_id
  throw new GatewayError(
    'invalid_stream_id',
    '"stream_id" must have 1 to 256 characters, and only letters, digits, "_", "-" and ".".',
    { param: 'stream_id' },
  )
}

function assertCreate(generate: unknown, { background }: JsonRecord): void {
  if (generate !== undefined && typeof generate !== 'boolean') {
    throw new GatewayError('invalid_type', '"generate" must be a boolean.', { param: 'generate' })
  }
  if (background === true) {
    throw new GatewayError(
      'unsupported_parameter',
      '"background" is not supported over a WebSocket: send an HTTP POST.',
      { param: 'background' },
    )
  }
}

const wrongType = () => invalidValue('type', 'The "type" of a message must be "response.create".')

/** The body of an error over HTTP as an event. */
async function errorEvent(response: Response): Promise<unknown> {
  const { error } = (await response.json()) as { error: JsonRecord }
  const retryAfter = response.headers.get('retry-after')
  const headers = retryAfter === null ? {} : { headers: { 'retry-after': retryAfter } }
  return { type: 'error', status: response.status, error: { ...error, ...headers } }
}

/** Input for a response that is being generated: no other vendor has that. */
const steerFailed = ({ previous_response_id, input }: JsonRecord) => ({
  type: 'response.steer.failed',
  sequence_number: 0,
  error: {
    type: 'invalid_request_error',
    code: 'steering_not_supported',
    message: 'A response cannot be steered here: send another "response.create" when it has ended.',
  },
  steer: { previous_response_id, input },
})
