/** Passthrough: where client and provider use the same protocol, the provider's response passes as bytes. */

import type { Call } from '../pipeline/call.ts'
import type { ClientRequest } from '../pipeline/endpoint.ts'
import type { ResponseStream } from '../pipeline/family.ts'
import type { ChatChunk, ChatRequest } from '../protocols/canonical.ts'
import type { PassthroughStep, PassthroughStream, ProtocolPassthrough } from '../protocols/protocol.ts'
import { allowedHeaders, assertBody, assertOptions, rulesFor } from '../providers/allowed/allowed.ts'
import type {
  ChatCall,
  PassthroughCall,
  PassthroughProvider,
  PassthroughResponse,
  Target,
} from '../providers/provider.ts'
import { GatewayError } from '../spec/error.ts'
import type { Caller } from '../spec/token.ts'
import type { Usage } from '../spec/usage.ts'
import type { ChatMeter } from './meter.ts'
import { awaitFirstPart, type ResponseContext, ResponseParts, translated, type Whole } from './translate.ts'

/** A client's request that may pass without translation. */
export type PassthroughRequest = {
  family: string
  passthrough: ProtocolPassthrough
  /** As the provider may receive it, except for the model. */
  body: Readonly<Record<string, unknown>>
  headers: Record<string, string>
  /** Why the request cannot be translated: only a provider of the same protocol accepts it. */
  refusal?: GatewayError | undefined
}

/** A header value that may be sent to a provider: names, dates and lists of them. */
const HEADER_VALUE = /^[\w.,; =:/+-]{1,1000}$/

type PassthroughSource = {
  family: string
  body: unknown
  request: Pick<ClientRequest, 'header'>
  refusal: GatewayError | undefined
}

/** Undefined if the protocol has no passthrough, or this body must be translated. */
export function passthroughRequestFor(
  passthrough: ProtocolPassthrough | undefined,
  source: PassthroughSource,
): PassthroughRequest | undefined {
  if (!passthrough || typeof source.body !== 'object' || source.body === null) return undefined
  const body = passthrough.body(source.body as Record<string, unknown>)
  if (!body) return undefined
  const headers: Record<string, string> = {}
  for (const name of passthrough.headers) {
    const value = source.request.header(name)
    if (value !== null && HEADER_VALUE.test(value)) headers[name] = value
  }
  return { family: source.family, passthrough, body, headers, refusal: source.refusal }
}

/** How to send this request to that target without translation; undefined if it must be translated. */
export function passthroughFor(
  { provider: { passthrough, otherPassthroughs } }: Target,
  passthroughRequest: PassthroughRequest | undefined,
): PassthroughProvider | undefined {
  if (!passthroughRequest) return undefined
  const { family } = passthroughRequest
  if (passthrough?.dialect === family) return passthrough
  if (otherPassthroughs) for (const other of otherPassthroughs) if (other.dialect === family) return other
  return undefined
}

/** The targets that accept the request. Throws its `refusal` if none does. */
export function targetsFor(targets: Target[], passthroughRequest: PassthroughRequest | undefined): Target[] {
  return passthroughRequest?.refusal ? targetsWithout(passthroughRequest, passthroughRequest.refusal, targets) : targets
}

function targetsWithout(passthroughRequest: PassthroughRequest, refusal: GatewayError, targets: Target[]): Target[] {
  const able = targets.filter((target) => passthroughFor(target, passthroughRequest))
  if (able.length === 0) throw refusal
  return able
}

type Sendable = { request: ChatRequest; passthroughRequest: PassthroughRequest | undefined; targets: Target[] }

/** Throws for a field that the caller may not send to one of the targets; before anything is sent. */
export function assertAllowed({ request, passthroughRequest, targets }: Sendable, caller: Caller): void {
  for (const target of targets) {
    const { provider } = target
    if (!rulesFor(provider, caller)) continue
    const passthrough = passthroughFor(target, passthroughRequest)
    if (passthrough && passthroughRequest && passthrough.dialect !== 'chatcompat') {
      assertBody(passthroughRequest.body, passthrough.dialect, provider, caller)
      continue
    }
    assertBody(request, 'chatcompat', provider, caller)
    assertOptions(request.provider_options, provider, caller)
  }
}

type Recipient = { provider: Target['provider']; caller: Caller }

/** The client's request as it is sent to this provider. */
export function passthroughCall(call: ChatCall, { body, headers }: PassthroughRequest, to: Recipient): PassthroughCall {
  return { ...call, body, headers: allowedHeaders(headers, to.provider, to.caller) }
}

type PassingThrough = {
  target: Target
  passthrough: PassthroughProvider
  passthroughRequest: PassthroughRequest
  request: ChatRequest
  call: Call
  signal: AbortSignal
  responseContext: ResponseContext
  meter: ChatMeter
}

function send({ passthrough, passthroughRequest, request, target, call, signal }: PassingThrough, stream: boolean) {
  const { provider, model } = target
  const { request_id, caller } = call
  const { body } = passthroughRequest
  const headers = allowedHeaders(passthroughRequest.headers, provider, caller)
  return passthrough.send({ model, request, request_id, body, headers }, stream, signal)
}

export async function passThroughWhole(relaying: PassingThrough): Promise<Whole> {
  const { target, passthrough, passthroughRequest, request, responseContext, meter } = relaying
  const body = await send(relaying, false)
  if (!isBytes(body)) throw new GatewayError('internal_error', 'A whole answer came in chunks.')
  const faults = passthrough.faultsOf(target.model, body)
  const { head, writer } = responseContext
  const parts = { head, writer, request, faults }
  const whole = passthroughRequest.passthrough.whole(await body.text(), parts)
  meter.countWhole(whole)
  return whole
}

/** Resolves when the first part has arrived. */
export async function passThroughStream(relaying: PassingThrough): Promise<ResponseStream<Usage>> {
  const { target, passthrough, passthroughRequest, request, responseContext, meter } = relaying
  const body = await send(relaying, true)
  if (!isBytes(body)) return await translated(body, responseContext.writer, meter)
  const faults = passthrough.faultsOf(target.model, body)
  const stream = passthroughRequest.passthrough.stream({ ...responseContext, request, faults })
  const { includesUsage, end } = stream
  const { fail, store } = responseContext.writer
  return await awaitFirstPart(new PassedBytes(body, stream, meter), {
    includesUsage,
    end,
    fail,
    ...(store ? { store } : {}),
  })
}

const isBytes = (answer: PassthroughResponse | AsyncIterable<ChatChunk[]>): answer is PassthroughResponse =>
  'read' in answer

/**
 * The bytes for the client, one part for each read of the provider's bytes. Once the response is complete, a connection
 * that breaks or times out is a normal end.
 */
class PassedBytes extends ResponseParts {
  readonly #body: PassthroughResponse
  readonly #stream: PassthroughStream
  readonly #meter: ChatMeter
  #isOver = false
  #isReleased = false
  /** Follows the bytes that came before it. */
  #failure: GatewayError | undefined

  constructor(body: PassthroughResponse, stream: PassthroughStream, meter: ChatMeter) {
    super()
    this.#body = body
    this.#stream = stream
    this.#meter = meter
  }

  protected async read(): Promise<IteratorResult<Uint8Array>> {
    try {
      while (!this.#isOver) {
        let bytes: Uint8Array | undefined
        try {
          bytes = await this.#body.read()
        } catch (error) {
          if (!isLost(error) || !this.#stream.isFinished()) throw error
        }
        const events = this.#take(bytes)
        if (events !== '') return { done: false, value: Buffer.from(events, 'latin1') }
      }
      if (this.#failure) throw this.#failure
      return { done: true, value: undefined }
    } catch (thrown) {
      this.#drop()
      throw thrown
    }
  }

  /** The events that these bytes complete, without bytes the last ones. */
  #take(bytes: Uint8Array | undefined): string {
    const step = bytes ? this.#stream.push(bytes) : this.#stream.close()
    this.#count(step)
    const last = bytes && step.isDone && !step.failure ? this.#stream.close() : undefined
    if (last) this.#count(last)
    this.#failure = step.failure ?? last?.failure
    this.#isOver = !bytes || step.isDone || this.#failure !== undefined
    if (this.#isOver && !this.#failure) {
      this.#isReleased = true
      this.#body.release()
    }
    return last ? step.events + last.events : step.events
  }

  #count({ received }: PassthroughStep): void {
    for (const item of received) {
      if (typeof item === 'string') this.#meter.countRaw(item)
      else this.#meter.count([item])
    }
  }

  async return(): Promise<IteratorResult<Uint8Array>> {
    this.#drop()
    return { done: true, value: undefined }
  }

  #drop(): void {
    this.#isOver = true
    if (!this.#isReleased) this.#body.drop()
  }
}

const isLost = (error: unknown): boolean =>
  error instanceof GatewayError && (error.code === 'upstream_cut' || error.code === 'upstream_timeout')
