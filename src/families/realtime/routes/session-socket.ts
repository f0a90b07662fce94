/**
 * One realtime session: relays the events of a client and of a provider, and makes each response a call that is admitted before
 * it begins and settled once when it has ended. Its buffers are bounded: who does not read loses the session.
 */
import { CLOSE, type SocketParts, type SocketPeer } from '../../../http/socket.ts'
import { isRecord, type JsonRecord, parseJson } from '../../../kit/json.ts'
import type { Log } from '../../../kit/log.ts'
import type { Target } from '../../../providers/provider.ts'
import type { RealtimeApi, RealtimeConnection } from '../../../providers/realtime.ts'
import { asGatewayError, GatewayError } from '../../../spec/error.ts'
import {
  connectToFirst,
  createRequestedTurns,
  createTurnMeter,
  createTurns,
  createWaitingEvents,
  type OpenTurn,
  type TurnParts,
  type TurnStart,
  tooOld,
} from '../realtime.ts'
import { eventsOf, MAX_OUTPUT_TOKENS, type RealtimeEvents } from '../realtime-events.ts'

export type SessionParts = Omit<TurnParts, 'connection_id' | 'start'> & { log: Log }

export type SessionStart = TurnStart & {
  /** As the client names it; undefined: its first event does. */
  model: string | undefined
  api: RealtimeApi
  /** Where the model is served, in the order in which they are tried. Throws GatewayError. */
  choose(model: string): [Target, ...Target[]]
  /** Sent to the provider before the first event of the client. */
  first: string | undefined
}

/** Of an event (OpenAI allows 15 MiB of audio), and of what waits for one side while it does not read or is not connected. */
const MAX_BYTES = 16 * 1024 * 1024
const IDLE_MILLISECONDS = 15 * 60_000
/** After the client has left: within this time the provider may still report what it has counted. */
const REPORT_MILLISECONDS = 2_000
/** Before the deadline of a stop: the last events and the close must still leave. */
const CLOSING_MILLISECONDS = 250
const MAX_OPEN_TURNS = 32
/** A close frame has room for 123 bytes. */
const MAX_REASON_CHARACTERS = 120

export function createSession(
  { clock, log, ...parts }: SessionParts,
  { connection_id, onClosed }: Pick<SocketParts, 'connection_id' | 'onClosed'>,
  start: SessionStart,
) {
  const { api, choose } = start
  const events = eventsOf(api)
  let { model } = start
  const turns = createTurns({ ...parts, clock, connection_id, start })
  let peer: SocketPeer | undefined
  let [isOpen, isConnecting] = [true, false]
  let target: Target | undefined
  let connection: RealtimeConnection | undefined
  const waiting = createWaitingEvents({
    isConnected: () => connection !== undefined,
    max_bytes: MAX_BYTES,
    onTooMany: () => close(CLOSE.policy, 'Too much was sent before it could be passed on.'),
  })
  let [earlier_tokens, max_output_tokens] = [0, MAX_OUTPUT_TOKENS]
  const requested = createRequestedTurns()
  const running = new Map<string, OpenTurn>()
  const openTurns = () => requested.size() + running.size
  const control = new AbortController()
  let activeAt = clock.steady()
  let cancelIdle = clock.after(IDLE_MILLISECONDS, checkIdle)
  let [cancelStop, cancelReport] = [() => {}, () => {}]
  let stopping: GatewayError | undefined
  const is_limited = start.caller.is_limited === true
  const names = () => ({ model: model ?? '', upstream_model: target?.model ?? '', is_limited })

  function send(text: string): void {
    if (!isOpen) return
    peer?.send(text)
    if ((peer?.buffered() ?? 0) > MAX_BYTES) close(CLOSE.policy, 'The client reads too slowly.')
  }

  /** An API without an event for errors cannot go on after one. */
  function sendError(error: GatewayError, event_id?: unknown): void {
    const text = events.error(error, event_id)
    if (text === undefined) close(CLOSE.policy, `${error.code}: ${error.message}`)
    else send(text)
  }

  /** An error that ends the session: as an event where the API has one, then as the reason of the close. */
  function end(error: GatewayError, code: number): void {
    if (!isOpen) return
    const text = events.error(error)
    if (text !== undefined) send(text)
    close(code, `${error.code}: ${error.message}`)
  }

  function close(code: number, reason: string): void {
    if (isOpen) peer?.close(code, reason.slice(0, MAX_REASON_CHARACTERS))
    over()
  }

  /** The client is gone; responses that are open may still be reported. */
  function over(): void {
    if (!isOpen) return
    isOpen = false
    cancelIdle()
    cancelStop()
    onClosed()
    waiting.clear()
    for (const id of running.keys()) cancelResponse(id)
    if (openTurns() === 0) disconnect()
    else cancelReport = clock.after(REPORT_MILLISECONDS, disconnect)
  }

  function cancelResponse(id: string): void {
    const cancel = events.cancel(id)
    if (cancel !== undefined) connection?.send(cancel)
  }

  function disconnect(): void {
    cancelReport()
    control.abort(new GatewayError('client_closed_request', 'The client has left.', { has_left: true }))
    connection?.close()
    connection = undefined
    endTurns(new GatewayError('client_closed_request', 'The session has ended.'))
  }

  /** What was delivered is charged as far as it is known; a response of which nothing was is not. */
  function endTurns(error: GatewayError): void {
    for (const turn of [...requested.clear(), ...running.values()]) {
      if (turn.meter.hasDelivered?.()) turn.finish()
      else turn.fail(error)
    }
    running.clear()
  }

  function checkIdle(): void {
    const left = activeAt + IDLE_MILLISECONDS - clock.steady()
    if (left > 0) cancelIdle = clock.after(left, checkIdle)
    else close(CLOSE.normal, 'The session was idle for 15 minutes.')
  }

  async function connect(): Promise<void> {
    isConnecting = true
    try {
      const opened = await connectToFirst(
        choose(model ?? ''),
        (candidate) => {
          target = candidate
          return { api, request_id: connection_id, listener: { message: receive, closed: providerClosed } }
        },
        control.signal,
      )
      if (!isOpen) return opened.close()
      connection = opened
      if (start.first !== undefined) {
        const first = events.ofClient(parseJson(start.first) as JsonRecord, start.first, names())
        max_output_tokens = first.max_output_tokens ?? max_output_tokens
        opened.send(first.text)
      }
      void waiting.drain()
    } catch (thrown) {
      const error = asGatewayError(thrown, { log, request_id: connection_id })
      end(error, target || error.status >= 500 ? CLOSE.internal : CLOSE.policy)
    } finally {
      isConnecting = false
    }
  }

  function providerClosed(code: number, reason: string): void {
    connection = undefined
    const error = new GatewayError('upstream_cut', `The upstream closed the session (${code}). ${reason}`.trim())
    endTurns(error)
    if (!isOpen) disconnect()
    else if (code === CLOSE.normal || code === CLOSE.goingAway) close(code, reason)
    else end(error, CLOSE.internal)
  }

  function forward(text: string): void {
    connection?.send(text)
    if ((connection?.buffered() ?? 0) > MAX_BYTES)
      end(new GatewayError('upstream_timeout', 'The upstream reads too slowly.'), CLOSE.internal)
  }

  const beginTurn = (kind: 'admitted' | 'refused', meter = createTurnMeter(), most = max_output_tokens): OpenTurn =>
    turns.begin(kind, {
      model: model ?? '',
      target: target as Target,
      meter,
      earlier_tokens,
      max_output_tokens: most,
    })

  type Asked = ReturnType<RealtimeEvents['ofClient']>
  async function request({ text, event_id: own, max_output_tokens: most }: Asked, event_id: unknown): Promise<void> {
    if (openTurns() >= MAX_OPEN_TURNS) {
      return sendError(
        new GatewayError('rate_limit_exceeded', `A session has at most ${MAX_OPEN_TURNS} open responses.`),
        event_id,
      )
    }
    const turn = beginTurn('admitted', undefined, most)
    try {
      await turn.admitted
    } catch (thrown) {
      return refused(thrown, event_id)
    }
    if (!isOpen) return turn.finish()
    requested.add(turn, own)
    forward(text)
  }

  /** Without a budget, a valid token or its model there is nothing more to do in this session. */
  function refused(thrown: unknown, event_id?: unknown): void {
    const error = asGatewayError(thrown, { log, request_id: connection_id })
    if (error.code === 'rate_limit_exceeded' || error.status >= 500) sendError(error, event_id)
    else end(error, CLOSE.policy)
  }

  /** The provider has begun a response by itself: where it is refused, it is stopped, and what it has used is recorded. */
  function adopt(id: string): OpenTurn {
    const turn = beginTurn('admitted')
    turn.admitted.catch((thrown) => {
      const replaced = beginTurn('refused', turn.meter)
      if (running.get(id) === turn) running.set(id, replaced)
      else replaced.finish()
      cancelResponse(id)
      refused(thrown)
    })
    return turn
  }

  /** An event of the provider. */
  function receive(text: string): void {
    activeAt = clock.steady()
    const event = parseJson(text)
    if (!isRecord(event)) return // no event of either API
    const read = events.ofProvider(event, text, names())
    const { id, begins, delivers, ends, refuses } = read
    if (refuses) requested.refuse(refuses)
    if (target) turns.addTranscription(read, { model: model ?? '', target })
    if (id !== undefined) {
      if (begins && !running.has(id)) {
        running.set(id, requested.next() ?? adopt(id))
        if (!isOpen) cancelResponse(id)
      }
      const turn = running.get(id)
      if (delivers) turn?.meter.delivered(delivers)
      if (ends && turn) {
        turn.meter.reported(ends.units)
        earlier_tokens = ends.units?.input_tokens ?? earlier_tokens
        turn.finish()
        running.delete(id)
      }
    }
    send(read.text)
    if (openTurns() > 0) return
    if (!isOpen) disconnect()
    else if (stopping) end(stopping, CLOSE.goingAway)
  }

  function accept(data: string): void {
    const event = parseJson(data)
    if (!isRecord(event)) throw new GatewayError('invalid_type', 'An event must be a JSON object.')
    if (model === undefined) {
      const setup = isRecord(event.setup) ? event.setup : undefined
      if (typeof setup?.model !== 'string') {
        throw new GatewayError('missing_required_parameter', 'The first event must be "setup" with a "model".', {
          param: 'setup.model',
        })
      }
      model = setup.model.replace(/^models\//, '')
    }
    if (!connection && !isConnecting) void connect()
    if (!isOpen) return
    waiting.add(data.length, () => {
      try {
        const read = events.ofClient(event, data, names())
        if (read.begins) return request(read, event.event_id)
        max_output_tokens = read.max_output_tokens ?? max_output_tokens
        forward(read.text)
      } catch (thrown) {
        sendError(asGatewayError(thrown, { log, request_id: connection_id }), event.event_id)
      }
    })
  }

  return {
    open(opened: SocketPeer) {
      peer = opened
      if (model !== undefined) void connect()
    },
    message(data: string | Uint8Array) {
      if (!isOpen) return
      activeAt = clock.steady()
      if (data.length > MAX_BYTES) return close(CLOSE.tooBig, `An event may have at most ${MAX_BYTES} bytes.`)
      try {
        accept(typeof data === 'string' ? data : new TextDecoder().decode(data))
      } catch (thrown) {
        const error = asGatewayError(thrown, { log, request_id: connection_id })
        if (model === undefined) end(error, CLOSE.policy)
        else sendError(error)
      }
    },
    drained() {},
    closed: over,
    /** It may end by itself for half of the time, then it ends after its open response, at the latest at the deadline. */
    stop(error: GatewayError, deadline_ms = 0) {
      if (error.code !== 'shutting_down') return end(tooOld(), CLOSE.normal)
      const half = Math.max(0, deadline_ms - CLOSING_MILLISECONDS) / 2
      cancelStop = clock.after(half, () => {
        stopping = error
        if (openTurns() === 0) end(error, CLOSE.goingAway)
        else cancelStop = clock.after(half, () => end(error, CLOSE.goingAway))
      })
    },
  }
}
