/** THE HOT PATH: one chat call at one target, whole or streamed, passed through or translated. */
import { type Clock, unixSeconds } from '../kit/clock.ts'
import { randomAlphanumerics } from '../kit/secret.ts'
import type { Tokenizer } from '../kit/tokenizer.ts'
import type { CatalogueModel } from '../models/catalogue.ts'
import { applyChatLimits } from '../models/limits.ts'
import type { Call } from '../pipeline/call.ts'
import type { Family, StreamFamily } from '../pipeline/family.ts'
import type { ChatCall, ChatProvider, Target } from '../providers/provider.ts'
import type { ChatRequest } from '../spec/chat-request.ts'
import type { EndpointFamily } from '../spec/endpoint-family.ts'
import { GatewayError } from '../spec/error.ts'
import type { AnswerHead, AnswerWriter } from './dialects/dialect.ts'
import { type ChatMeter, createMeter } from './meter.ts'
import { assertAllowed, laneTo, relayStream, relayWhole, type Sent, targetsFor } from './relay.ts'
import { watchSecrets } from './secret-watch.ts'
import { type Teller, translated, type Whole } from './speech.ts'

/** A chat request as a client's protocol read it. */
export type ChatInput = {
  family: EndpointFamily
  request: ChatRequest
  /** How the request may pass to a provider of the same protocol. */
  sent?: Sent | undefined
  /** The id and time of the answer, or what stands before the random part of a new id. */
  answer: { id: string; created: number } | { id_prefix: string }
  writer(head: AnswerHead, request: ChatRequest, request_id: string): AnswerWriter
  /** The same error with the names and places that the client wrote. */
  errorForClient?: ((thrown: unknown, request: ChatRequest) => unknown) | undefined
}

/** A chat request that fits its model. */
export type ChatWork = Pick<ChatInput, 'sent' | 'errorForClient'> & {
  request: ChatRequest
  targets: Target[]
  teller: Teller
}

export type Chat = {
  whole: Family<ChatInput, ChatWork, Whole, ChatMeter>
  stream: StreamFamily<ChatInput, ChatWork, ChatMeter>
}

export function createChat({ tokenizer, clock }: { tokenizer: Tokenizer; clock: Clock }): Chat {
  function fit(model: CatalogueModel, input: ChatInput, { request_id, caller }: Call): ChatWork {
    const { sent, answer, errorForClient } = input
    const targets = targetsFor(model.targets, sent)
    assertAllowed({ request: input.request, sent, targets }, caller)
    const request = applyChatLimits(model, input.request)
    const head: AnswerHead =
      'id' in answer
        ? { id: answer.id, created: answer.created, model: model.id }
        : { id: `${answer.id_prefix}${randomAlphanumerics(24)}`, created: unixSeconds(clock), model: model.id }
    return { request, targets, sent, errorForClient, teller: { head, writer: input.writer(head, request, request_id) } }
  }

  const shared = {
    endpoint: ({ family }: ChatInput) => family,
    modelOf: ({ request }: ChatInput) => request.model,
    fit,
    meter: ({ request }: ChatWork): ChatMeter => createMeter({ request, tokenizer }),
    policy: 'until_answered' as const,
  }

  return {
    whole: {
      ...shared,
      execute: ({ request, targets, sent, teller }, { call, meter, attempt }) =>
        attempt(targets, async (target) => {
          const chatCall = callFor(target, request, call)
          const lane = laneTo(target, sent)
          if (lane && sent) return relayWhole({ target, lane, sent, chatCall, call, teller, meter })
          const answer = await chatOf(target).whole(chatCall, call.signal)
          meter.countWhole(answer)
          return { write: (usage) => teller.writer.whole(answer, usage) } satisfies Whole
        }),
    },
    stream: {
      ...shared,
      execute: ({ request, targets, sent, teller }, { call, meter, attempt }) =>
        attempt(targets, (target) => {
          const chatCall = callFor(target, request, call)
          const lane = laneTo(target, sent)
          const watched = watchSecrets(meter, target.provider)
          if (lane && sent) return relayStream({ target, lane, sent, chatCall, call, teller, meter: watched })
          return translated(chatOf(target).chunks(chatCall, call.signal), teller.writer, watched)
        }),
      errorForClient: (thrown, { request, errorForClient }) =>
        errorForClient ? errorForClient(thrown, request) : thrown,
      encodeError: (error, { teller }) => teller.writer.fail(error),
    },
  }
}

const callFor = ({ model }: Target, request: ChatRequest, { request_id }: Call): ChatCall => ({
  model,
  request,
  request_id,
})

function chatOf({ provider }: Target): ChatProvider {
  if (provider.chat) return provider.chat
  throw new GatewayError('no_available_channel', `The provider "${provider.id}" serves no chat models.`)
}
