/** Passthrough: where client and provider use the same protocol, the provider's response passes as bytes. */
import type { ClientRequest } from '../../calls/endpoint.ts'
import type { ResponseStream, Try, Unread } from '../../calls/family.ts'
import { isRecord } from '../../kit/json.ts'
import type { ChatChunk, ChatRequest } from '../../protocols/shared/canonical.ts'
import { bytesOf } from '../../protocols/shared/passthrough/events.ts'
import type { PassthroughStep, PassthroughStream, ProtocolPassthrough } from '../../protocols/shared/protocol.ts'
import { allowedHeaders, assertBody, assertOptions } from '../../providers/allowed/allowed.ts'
import type {
  ChatCall,
  PassthroughCall,
  PassthroughProvider,
  PassthroughResponse,
  Target,
} from '../../providers/provider.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Caller } from '../../spec/token.ts'
import type { Usage } from '../../spec/usage.ts'
import type { ChatMeter } from './meter.ts'
import { awaitFirstPart, type ResponseContext, ResponseParts, translated, type Whole } from './translate.ts'

/** A header value that may be sent to a provider: names, dates and lists of them. */
const HEADER_VALUE = /^[\w.,; =:/+-]{1,1000}$/

const NO_HEADERS: Record<string, string> = Object.freeze({})

type Body = Readonly<Record<string, unknown>>

/** A client's request to a protocol with passthrough. What is sent is made once a target has the same protocol. */
export class PassthroughRequest {
  readonly passthrough: ProtocolPassthrough
  readonly family: string
  readonly clientBody: Body
  /** Why the request cannot be translated: only a provider of the same protocol accepts it. */
  readonly refusal: GatewayError | undefined
  readonly #client: Pick<ClientRequest, 'header'>
  /** Null: it must be translated. */
  #body: Body | null | undefined
  #headers: Record<string, string> | undefined

  constructor(
    passthrough: ProtocolPassthrough,
    family: string,
    body: Body,
    request: Pick<ClientRequest, 'header'>,
    refusal: GatewayError | undefined,
  ) {
    this.passthrough = passthrough
    this.family = family
    this.clientBody = body
    this.refusal = refusal
    this.#client = request
  }

  /** Whether it may pass; otherwise it must be translated. */
  get mayPass(): boolean {
    this.#body ??= this.passthrough.body(this.clientBody) ?? null
    return this.#body !== null
  }

  /** As the provider may receive it, except for the model. */
  get body(): Body {
    if (!this.mayPass || !this.#body) throw new Error('A request that must be translated was to pass.')
    return this.#body
  }

  get headers(): Record<string, string> {
    if (this.#headers) return this.#headers
    let headers: Record<string, string> | undefined
    for (const name of this.passthrough.headers) {
      const value = this.#client.header(name)
      if (value === null || !HEADER_VALUE.test(value)) continue
      headers ??= {}
      headers[name] = value
    }
    this.#headers = headers ?? NO_HEADERS
    return this.#headers
  }
}

/** Undefined if the protocol has no passthrough, or if a request that only passthrough can send may not pass. */
export function passthroughRequestFor(
  passthrough: ProtocolPassthrough | undefined,
  family: string,
  body: unknown,
  client: Pick<ClientRequest, 'header'>,
  refusal: GatewayError | undefined,
): PassthroughRequest | undefined {
  if (!passthrough || !isRecord(body)) return undefined
  const request = new PassthroughRequest(passthrough, family, body, client, refusal)
  return refusal && !request.mayPass ? undefined : request
}

/** How to send this request to that target without translation; undefined if it must be translated. */
export function passthroughFor(
  { provider: { passthrough, otherPassthroughs } }: Target,
  passthroughRequest: PassthroughRequest | undefined,
): PassthroughProvider | undefined {
  if (!passthroughRequest) return undefined
  const { family } = passthroughRequest
  if (passthrough?.dialect === family) return passthroughRequest.mayPass ? passthrough : undefined
  if (otherPassthroughs)
    for (const other of otherPassthroughs)
      if (other.dialect === family) return passthroughRequest.mayPass ? other : undefined
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

type Sendable = { request: ChatRequest; passthroughRequest?: PassthroughRequest | undefined }

/** Whether what the caller sends to the provider is checked against lists: `providers/allowed/` knows which. */
const areListed = ({ passthroughRules }: Target['provider'], { is_limited }: Caller): boolean =>
  is_limited === true || passthroughRules?.applies_to === 'all_tokens'

/** Throws for a field that the caller may not send to one of the targets; before anything is sent. */
export function assertAllowed(
  { request, passthroughRequest }: Sendable,
  targets: readonly Target[],
  caller: Caller,
): void {
  for (const target of targets) {
    const { provider } = target
    if (!areListed(provider, caller)) continue
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

/** Where a request goes, and what ends it early. */
type Passing = {
  target: Target
  passthrough: PassthroughProvider
  passthroughRequest: PassthroughRequest
  tried: Pick<Try<ChatMeter>, 'call' | 'signal' | 'ending'>
}

function send(
  { provider, model }: Target,
  passthrough: PassthroughProvider,
  passthroughRequest: PassthroughRequest,
  tried: Passing['tried'],
  request: ChatRequest,
  stream: boolean,
) {
  const { request_id, caller } = tried.call
  const { body } = passthroughRequest
  let { headers } = passthroughRequest
  if (areListed(provider, caller)) headers = allowedHeaders(headers, provider, caller)
  return passthrough.send({ model, request, request_id, body, headers }, stream, tried.ending ?? tried.signal)
}

/** A request whose whole response may pass. */
type PassingWork = ResponseContext & {
  request: ChatRequest
  input: { passthroughRequest?: PassthroughRequest | undefined }
}

/** Undefined where the response of the target must be translated. `readWhole` reads what it resolves with. */
export function sendWhole(
  target: Target,
  { request, input: { passthroughRequest } }: PassingWork,
  tried: Passing['tried'],
): Promise<Unread> | undefined {
  const passthrough = passthroughFor(target, passthroughRequest)
  if (!passthrough || !passthroughRequest) return undefined
  return send(target, passthrough, passthroughRequest, tried, request, false) as Promise<Unread>
}

type Received = { target: Target; work: PassingWork; meter: ChatMeter }

/** A promise only where the body has not arrived as a whole. */
export function readWhole(received: Whole | Unread, parts: Received): Whole | Promise<Whole> {
  if ('encode' in received) return received
  if (!isBytes(received)) throw new GatewayError('internal_error', 'A whole answer came in chunks.')
  return received.received === undefined ? readLate(received, parts) : wholeOf(received.received, received, parts)
}

const readLate = async (received: Unread, parts: Received): Promise<Whole> =>
  wholeOf(await received.text(), received, parts)

function wholeOf(text: string, received: Unread, { target, work, meter }: Received): Whole {
  const { head, writer, request, input } = work
  const passthrough = passthroughFor(target, input.passthroughRequest)
  if (!passthrough || !input.passthroughRequest) throw new Error('A response passed that had to be translated.')
  const faults = passthrough.faultsOf(target.model, received)
  const whole = input.passthroughRequest.passthrough.whole(text, { head, writer, request, faults })
  meter.countWhole(whole)
  return whole
}

/** Resolves when the first part has arrived. */
export async function passThroughStream(
  passing: Passing,
  { request, responseContext, meter }: { request: ChatRequest; responseContext: ResponseContext; meter: ChatMeter },
): Promise<ResponseStream<Usage>> {
  const { target, passthrough, passthroughRequest, tried } = passing
  const body = await send(target, passthrough, passthroughRequest, tried, request, true)
  if (!isBytes(body)) return await translated(body, responseContext.writer, meter)
  const faults = passthrough.faultsOf(target.model, body)
  const { head, writer } = responseContext
  const stream = passthroughRequest.passthrough.stream({ head, writer, request, faults })
  const { fail, store } = writer
  return await awaitFirstPart(new PassedBytes(body, stream, meter), {
    includesUsage: stream.includesUsage,
    end: (usage) => stream.end(usage),
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
        if (events.length > 0) return { done: false, value: bytesOf(events) }
      }
      if (this.#failure) throw this.#failure
      return { done: true, value: undefined }
    } catch (thrown) {
      this.#drop()
      throw thrown
    }
  }

  /** The events that these bytes complete, without bytes the last ones. */
  #take(bytes: Uint8Array | undefined): string[] {
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
    return last ? [...step.events, ...last.events] : step.events
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
