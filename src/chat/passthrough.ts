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
import { awaitFirstPart, type ResponseContext, translated, type Whole } from './translate.ts'

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
  return passthrough?.dialect === family ? passthrough : otherPassthroughs?.find(({ dialect }) => dialect === family)
}

/** The targets that accept the request. Throws its `refusal` if none does. */
export function targetsFor(targets: Target[], passthroughRequest: PassthroughRequest | undefined): Target[] {
  if (!passthroughRequest?.refusal) return targets
  const able = targets.filter((target) => passthroughFor(target, passthroughRequest))
  if (able.length === 0) throw passthroughRequest.refusal
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
  call: Call
  signal: AbortSignal
  chatCall: ChatCall
  responseContext: ResponseContext
  meter: ChatMeter
}

function send({ passthrough, passthroughRequest, chatCall, target, call, signal }: PassingThrough, stream: boolean) {
  const { caller } = call
  const sent = passthroughCall(chatCall, passthroughRequest, { provider: target.provider, caller })
  return passthrough.send(sent, stream, signal)
}

export async function passThroughWhole(relaying: PassingThrough): Promise<Whole> {
  const { passthroughRequest, chatCall, responseContext, meter } = relaying
  const answer = await send(relaying, false)
  if (!isBytes(answer)) throw new GatewayError('internal_error', 'A whole answer came in chunks.')
  const { body, faults } = answer
  const { head, writer } = responseContext
  const parts = { head, writer, request: chatCall.request, faults }
  const read = passthroughRequest.passthrough.whole(await body.text(), parts)
  meter.countWhole(read.answer)
  return read
}

/** Resolves when the first part has arrived. */
export async function passThroughStream(relaying: PassingThrough): Promise<ResponseStream<Usage>> {
  const { passthroughRequest, chatCall, responseContext, meter } = relaying
  const answer = await send(relaying, true)
  if (!isBytes(answer)) return await translated(answer, responseContext.writer, meter)
  const { body, faults } = answer
  const stream = passthroughRequest.passthrough.stream({ ...responseContext, request: chatCall.request, faults })
  const { includesUsage, end } = stream
  const { fail, store } = responseContext.writer
  return await awaitFirstPart(passing(body, stream, meter), { includesUsage, end, fail, ...(store ? { store } : {}) })
}

const isBytes = (answer: PassthroughResponse | AsyncIterable<ChatChunk[]>): answer is PassthroughResponse =>
  'faults' in answer

/**
 * The bytes for the client, one item for each read of the provider's bytes. Once the response is complete, a connection
 * that breaks or times out is a normal end.
 */
async function* passing(
  body: PassthroughResponse['body'],
  stream: PassthroughStream,
  meter: ChatMeter,
): AsyncGenerator<Uint8Array> {
  let isClosed = false
  let isComplete = false
  try {
    while (!isClosed) {
      let bytes: Uint8Array | undefined
      try {
        bytes = await body.read()
      } catch (error) {
        if (!isLost(error) || !stream.isFinished()) throw error
      }
      const step = bytes ? stream.push(bytes) : stream.close()
      const encoded = encodeStep(step, meter)
      if (encoded) yield encoded
      if (step.failure) throw step.failure
      if (bytes && step.isDone) {
        const last = stream.close()
        const end = encodeStep(last, meter)
        if (end) yield end
        if (last.failure) throw last.failure
      }
      isClosed = !bytes || step.isDone
    }
    isComplete = true
  } finally {
    if (isComplete) body.release()
    else body.drop()
  }
}

function encodeStep({ events, received }: PassthroughStep, meter: ChatMeter): Uint8Array | undefined {
  for (const one of received) {
    if (typeof one === 'string') meter.countRaw(one)
    else meter.count([one])
  }
  return events === '' ? undefined : Buffer.from(events, 'latin1')
}

const isLost = (error: unknown): boolean =>
  error instanceof GatewayError && (error.code === 'upstream_cut' || error.code === 'upstream_timeout')
