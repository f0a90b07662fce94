/** The relay lane: where client and vendor speak the same dialect, what the vendor says passes as bytes. */

import type { Call } from '../pipeline/call.ts'
import type { ResponseStream } from '../pipeline/family.ts'
import { allowedHeaders, assertBody, assertOptions } from '../providers/allowed/allowed.ts'
import type { ChatCall, RelayAnswer, RelayCall, RelayProvider, Target } from '../providers/provider.ts'
import type { ChatChunk } from '../spec/chat-completion.ts'
import type { ChatRequest } from '../spec/chat-request.ts'
import { GatewayError } from '../spec/error.ts'
import type { Caller } from '../spec/token.ts'
import type { Usage } from '../spec/usage.ts'
import type { DialectRelay, RelayStep, RelayStream } from './dialects/dialect.ts'
import type { ChatMeter } from './meter.ts'
import { begun, type Teller, translated, type Whole } from './speech.ts'

/** What a client sent, where its dialect has a relay lane. */
export type Sent = {
  family: string
  relay: DialectRelay
  /** As the vendor may have it, but for the model. */
  body: Readonly<Record<string, unknown>>
  headers: Record<string, string>
  /** Why the request could not be put into the house's words: only a vendor of the same dialect can take it. */
  refusal?: GatewayError
}

/** A header's value that a vendor may be sent: names, dates and lists of them. */
const HEADER_VALUE = /^[\w.,; =:/+-]{1,1000}$/

/** undefined where the dialect has no such lane, or this body cannot take it. */
export function sentBy(
  relay: DialectRelay | undefined,
  {
    family,
    body,
    request,
    refusal,
  }: { family: string; body: unknown; request: Request; refusal: GatewayError | undefined },
): Sent | undefined {
  if (!relay || typeof body !== 'object' || body === null) return undefined
  const relayed = relay.body(body as Record<string, unknown>)
  if (!relayed) return undefined
  const headers: Record<string, string> = {}
  for (const name of relay.headers) {
    const value = request.headers.get(name)
    if (value !== null && HEADER_VALUE.test(value)) headers[name] = value
  }
  return { family, relay, body: relayed, headers, ...(refusal ? { refusal } : {}) }
}

/** How to send this request to that target as it is; undefined where it must be translated. */
export function laneTo({ provider }: Target, sent: Sent | undefined): RelayProvider | undefined {
  return sent && provider.relay?.dialect === sent.family ? provider.relay : undefined
}

/** The targets that can take the request. Throws its refusal where none can. */
export function targetsFor(targets: Target[], sent: Sent | undefined): Target[] {
  if (!sent?.refusal) return targets
  const able = targets.filter((target) => laneTo(target, sent))
  if (able.length === 0) throw sent.refusal
  return able
}

/** Throws for what of a request the caller may not send to one of the targets; before anything is sent. */
export function assertAllowed(
  { request, sent, targets }: { request: ChatRequest; sent: Sent | undefined; targets: Target[] },
  caller: Caller,
): void {
  for (const target of targets) {
    const { provider } = target
    const lane = laneTo(target, sent)
    if (lane && sent && lane.dialect !== 'chatcompat') {
      assertBody(sent.body, lane.dialect, provider, caller)
      continue
    }
    assertBody(request, 'chatcompat', provider, caller)
    assertOptions(request.provider_options, provider, caller)
  }
}

/** The client's request as this target gets it. */
export const passthroughCall = (
  { provider }: Target,
  { body, headers }: Sent,
  { call, caller }: { call: ChatCall; caller: Caller },
): RelayCall => ({ ...call, body, headers: allowedHeaders(headers, provider, caller) })

type Relaying = {
  target: Target
  lane: RelayProvider
  sent: Sent
  call: Call
  chatCall: ChatCall
  teller: Teller
  meter: ChatMeter
}

const sendTo = ({ target, lane, sent, call: { caller, signal }, chatCall }: Relaying, stream: boolean) =>
  lane.send(passthroughCall(target, sent, { call: chatCall, caller }), stream, signal)

export async function relayWhole(relaying: Relaying): Promise<Whole> {
  const { sent, chatCall, teller, meter } = relaying
  const answer = await sendTo(relaying, false)
  if (!isBytes(answer)) throw new GatewayError('internal_error', 'A whole answer came in chunks.')
  const read = sent.relay.whole(await answer.text(), { ...teller, request: chatCall.request, faults: answer.faults })
  meter.countWhole(read.answer)
  return read
}

/** Resolves with the first part. */
export async function relayStream(relaying: Relaying): Promise<ResponseStream<Usage>> {
  const { sent, chatCall, teller, meter } = relaying
  const answer = await sendTo(relaying, true)
  if (!isBytes(answer)) return await translated(answer, teller.writer, meter)
  const stream = sent.relay.stream({ ...teller, request: chatCall.request, faults: answer.faults })
  const { tellsUsage, end } = stream
  const { keep } = teller.writer
  return await begun(passing(answer, stream, meter), { tellsUsage, end, ...(keep ? { keep } : {}) })
}

const isBytes = (answer: RelayAnswer | AsyncIterable<ChatChunk[]>): answer is RelayAnswer => 'faults' in answer

/**
 * What the client gets, one piece a read of the vendor's bytes. Once the answer is complete, a connection that breaks or
 * goes silent is an end like another.
 */
async function* passing(answer: RelayAnswer, stream: RelayStream, meter: ChatMeter): AsyncGenerator<Uint8Array> {
  let isClosed = false
  let isComplete = false
  try {
    while (!isClosed) {
      let bytes: Uint8Array | undefined
      try {
        bytes = await answer.read()
      } catch (error) {
        if (!isLost(error) || !stream.isFinished()) throw error
      }
      const step = bytes ? stream.push(bytes) : stream.close()
      const told = tell(step, meter)
      if (told) yield told
      if (step.failure) throw step.failure
      if (bytes && step.isDone) {
        const last = stream.close()
        const end = tell(last, meter)
        if (end) yield end
        if (last.failure) throw last.failure
      }
      isClosed = !bytes || step.isDone
    }
    isComplete = true
  } finally {
    if (isComplete) answer.release()
    else answer.drop()
  }
}

function tell({ events, heard }: RelayStep, meter: ChatMeter): Uint8Array | undefined {
  for (const one of heard) {
    if (typeof one === 'string') meter.countRaw(one)
    else meter.count([one])
  }
  return events === '' ? undefined : Buffer.from(events, 'latin1')
}

const isLost = (error: unknown): boolean =>
  error instanceof GatewayError && (error.code === 'upstream_cut' || error.code === 'upstream_timeout')
