/** The chat family, and the hot path: a call to a target, whole or streamed, passed through or translated. */
import type { Call } from '../../calls/call.ts'
import type { ByTarget, Family, ResponseStream, StreamFamily, Try } from '../../calls/family.ts'
import type { CallGuards } from '../../calls/guards/call-guards.ts'
import type { GuardedText } from '../../calls/guards/content.ts'
import type { Answered } from '../../calls/guards/guard.ts'
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import { randomAlphanumerics } from '../../kit/secret.ts'
import type { Tokenizer } from '../../kit/tokenizer.ts'
import type { CatalogueModel } from '../../models/catalogue.ts'
import { applyChatLimits } from '../../models/limits.ts'
import type { ChatRequest } from '../../protocols/shared/canonical.ts'
import type { Capture } from '../../protocols/shared/capture.ts'
import type { ResponseEncoder, ResponseHead } from '../../protocols/shared/protocol.ts'
import { leastTokens } from '../../protocols/shared/token-estimate.ts'
import type { ChatCall, ChatProvider, Target } from '../../providers/provider.ts'
import type { EndpointFamily } from '../../spec/endpoint-family.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Usage } from '../../spec/usage.ts'
import type { Framing } from '../shared/event-stream.ts'
import { affinityOf } from './affinity.ts'
import { COUNTED_BEFORE, checkedChunks } from './asked-stream.ts'
import { cacheableRequest, chatCodec, replayParts } from './cached.ts'
import { captured } from './captured.ts'
import { estimateChat } from './estimate.ts'
import { chatFacts } from './facts.ts'
import { guardedAnswer, guardedRequest } from './guarded.ts'
import { type ChatMeter, createMeter } from './meter.ts'
import {
  assertAllowed,
  type PassthroughRequest,
  passThroughStream,
  passthroughFor,
  readWhole,
  sendWhole,
  targetsFor,
} from './passthrough.ts'
import { type ResponseContext, translated, type Whole, watchSecrets } from './translate.ts'

/** A chat request, decoded from a client's protocol. */
export type ChatInput = {
  family: EndpointFamily
  request: ChatRequest
  /** How the request may pass to a provider of the same protocol. */
  passthroughRequest?: PassthroughRequest | undefined
  /** The body as the client sent it, for the response cache; absent: the response is not cached. */
  source?: unknown
  /** Of a stream that is not server-sent events. */
  framing?: Framing | undefined
  /** The length of the JSON body, where that contains all of the request. */
  body_bytes?: number | undefined
  /** The id and time of the response, or the prefix of a new id. */
  answer: { id: string; created: number } | { id_prefix: string }
  writer(head: ResponseHead, request: ChatRequest, request_id: string): ResponseEncoder
  /** The same error with the field names of the client's protocol. */
  errorForClient?: ((thrown: unknown, request: ChatRequest) => unknown) | undefined
  /** Called before the first target is; throws where the call must not proceed. */
  admit?: ((call: Call) => Promise<void>) | undefined
}

/** A chat request that fits its model, and the encoder of its response. */
export type ChatWork = ResponseContext & {
  input: ChatInput
  request: ChatRequest
  targets: Target[]
  request_id: string
  capture: Capture | undefined
  guards: CallGuards | undefined
  /** Set once a try has its encoder. */
  is_encoding?: true
}

export type Chat = {
  whole: Family<ChatInput, ChatWork, Whole, ChatMeter> & ByTarget<ChatWork, Whole, ChatMeter>
  stream: StreamFamily<ChatInput, ChatWork, ChatMeter> & ByTarget<ChatWork, ResponseStream<Usage>, ChatMeter>
}

export function createChat({ tokenizer, clock }: { tokenizer: Tokenizer; clock: Clock }): Chat {
  function fit(model: CatalogueModel, given: ChatInput, { request_id, caller, capture, guards }: Call): ChatWork {
    const input = guards ? translatedInput(given) : given
    const { passthroughRequest, answer } = input
    const targets = targetsFor(model.targets, passthroughRequest)
    assertAllowed(input, targets, caller)
    const request = applyChatLimits(model, input.request)
    if (capture && capture.max_characters > 0) capture.request = request
    const head: ResponseHead =
      'id' in answer
        ? { id: answer.id, created: answer.created, model: model.id }
        : { id: `${answer.id_prefix}${randomAlphanumerics(24)}`, created: unixSeconds(clock), model: model.id }
    const writer = input.writer(head, request, request_id)
    return { input, request, targets, head, writer, request_id, capture, guards }
  }

  const shared = {
    endpoint: ({ family }: ChatInput) => family,
    modelOf: ({ request }: ChatInput) => request.model,
    fit,
    meter({ request, capture }: ChatWork): ChatMeter {
      const meter = createMeter(request, tokenizer)
      return capture ? captured(meter, capture) : meter
    },
    asksForCost: ({ request }: ChatWork) => request.usage?.include === true,
    policy: 'until_answered' as const,
    leastTokens: ({ request }: ChatWork) => leastTokens(request),
    estimate: (work: ChatWork, model: CatalogueModel) => estimateChat([work.request], model, work.input),
    facts: ({ request }: ChatWork) => chatFacts([request]),
    affinity: ({ request }: ChatWork, { caller }: Call, sticky: 'conversation' | 'prefix') =>
      affinityOf(request, caller.token_id, sticky),
    cacheable: cacheableRequest,
    targets: ({ targets }: ChatWork) => targets,
    guarded: { input: guardedTexts },
    beforeSend: ({ input: { admit } }: ChatWork, call: Call) => admit?.(call),
  }

  return {
    whole: {
      ...shared,
      codec: chatCodec,
      send: (target, work, tried) => sendWhole(target, work, tried) ?? translateWhole(target, work, tried),
      read: readWhole,
    },
    stream: {
      ...shared,
      send(target, work, tried) {
        const { call, meter } = tried
        const { request, input } = work
        const { passthroughRequest } = input
        // Each try has an encoder of its own, since one that is open or has failed may have begun to encode.
        const responseContext = work.is_encoding ? contextOf(work) : work
        work.is_encoding = true
        const passthrough = passthroughFor(target, passthroughRequest)
        const watched = watchSecrets(meter, target.provider)
        if (passthrough && passthroughRequest)
          return passThroughStream(
            { target, passthrough, passthroughRequest, tried },
            { request, responseContext, meter: watched },
          )
        const chunks = chatOf(target).chunks(callFor(target, request, call), tried.signal)
        const { guards } = work
        if (!guards?.readsChat) return translated(chunks, responseContext.writer, watched)
        return translated(
          checkedChunks(chunks, guards, { meter: watched, clock, answered: answeredBy(work) }),
          responseContext.writer,
          COUNTED_BEFORE,
        )
      },
      errorForClient: (thrown, { request, input: { errorForClient } }) =>
        errorForClient ? errorForClient(thrown, request) : thrown,
      encodeError: (error, { writer }) => writer.fail(error),
      replay: replayParts,
    },
  }
}

async function translateWhole(target: Target, work: ChatWork, { call, signal, meter }: Try<ChatMeter>): Promise<Whole> {
  const { request, writer, guards } = work
  const answer = await chatOf(target).complete(callFor(target, request, call), signal)
  meter.countWhole(answer)
  const given = guards?.readsChat ? await guardedAnswer(guards, answer, answeredBy(work)) : answer
  return { encode: (usage) => writer.whole(given, usage) }
}

/** As it may be sent once more. */
const answeredBy = ({ input: { family }, request, head: { model } }: ChatWork): Answered => ({
  family,
  request: { ...request, model },
})

/** Guards read texts, so nothing passes without translation. Throws where only a provider of the same protocol takes it. */
function translatedInput({ passthroughRequest, ...input }: ChatInput): ChatInput {
  if (passthroughRequest?.refusal) throw passthroughRequest.refusal
  return input
}

function guardedTexts(work: ChatWork): GuardedText[] {
  if (work.guards?.readsAnswer && work.request.modalities?.includes('audio')) {
    const message =
      'Guards check the answers of this model, and they cannot check audio: "modalities" must be ["text"].'
    throw new GatewayError('unsupported_value', message, { param: 'modalities' })
  }
  const { request, texts } = guardedRequest(work.request)
  work.request = request
  if (work.capture?.request) work.capture.request = request
  return texts
}

function contextOf({ head, input, request, request_id }: ChatWork): ResponseContext {
  return { head, writer: input.writer(head, request, request_id) }
}

function callFor({ model }: Target, request: ChatRequest, { request_id }: Call): ChatCall {
  return { model, request, request_id }
}

function chatOf({ provider }: Target): ChatProvider {
  if (provider.chat) return provider.chat
  throw new GatewayError('no_available_channel', `The provider "${provider.id}" serves no chat models.`)
}
