/** THE HOT PATH: one chat request, from words to chunks. */
import type { Context } from '../http/context.ts'
import type { Catalogue, CatalogueModel, Chosen, Target } from '../models/catalogue.ts'
import { applyChatLimits } from '../models/limits.ts'
import { firstToAnswer } from '../models/targets.ts'
import type { ChatCall, ChatProvider } from '../providers/provider.ts'
import type { ChatChunk, ChatCompletion } from '../spec/chat-completion.ts'
import type { ChatRequest } from '../spec/chat-request.ts'
import type { EndpointFamily } from '../spec/endpoint-family.ts'
import { GatewayError } from '../spec/error.ts'
import type { Meter } from './meter.ts'

/** A request on its way: the model chosen for it, and what measures it. */
export type Asked = Chosen & { request: ChatRequest; meter: Meter }

export type Chat = {
  /** Chooses the model and fits the request to it; throws what stands in the way, before anything is sent. */
  ask(request: ChatRequest, family: EndpointFamily, context: Context): Asked
  whole(asked: Asked, context: Context): Promise<ChatCompletion>
  /** Resolves once the upstream has said something; rejects with its refusal. */
  chunks(asked: Asked, context: Context): Promise<AsyncIterable<ChatChunk[]>>
}

type ChatParts = {
  catalogue: Catalogue
  startMeter(model: CatalogueModel, request: ChatRequest, context: Context): Meter
}

export function createChat({ catalogue, startMeter }: ChatParts): Chat {
  return {
    ask(request, family, context) {
      const { model, requested } = catalogue.require(request.model, family, context.caller)
      context.note.model = model.id
      const asked = applyChatLimits(model, request)
      return { model, requested, request: asked, meter: startMeter(model, asked, context) }
    },

    async whole({ model, request, meter }, context) {
      const { target, answer } = await firstToAnswer(model.targets, context.signal, (target) =>
        chatOf(target).whole(callFor(target, request, context), context.signal),
      )
      context.note.target = nameOf(target)
      meter.countWhole(answer)
      return answer
    },

    async chunks({ model, request, meter }, context) {
      const { target, answer } = await firstToAnswer(model.targets, context.signal, (target) =>
        peek(chatOf(target).chunks(callFor(target, request, context), context.signal)),
      )
      context.note.target = nameOf(target)
      return counted(answer, meter)
    },
  }
}

/** Waits for the first item, so that a refusal still is one: nothing has been promised to the client yet. */
async function peek<T>(items: AsyncIterable<T>): Promise<AsyncIterable<T>> {
  const iterator = items[Symbol.asyncIterator]()
  let first: IteratorResult<T> | undefined = await iterator.next()
  return {
    [Symbol.asyncIterator]: () => ({
      next() {
        if (!first) return iterator.next()
        const item = first
        first = undefined
        return Promise.resolve(item)
      },
      return: () => iterator.return?.() ?? Promise.resolve({ done: true, value: undefined }),
    }),
  }
}

async function* counted(batches: AsyncIterable<ChatChunk[]>, meter: Meter): AsyncIterable<ChatChunk[]> {
  for await (const batch of batches) {
    meter.count(batch)
    yield batch
  }
}

const callFor = ({ model }: Target, request: ChatRequest, { request_id }: Context): ChatCall => ({
  model,
  request,
  request_id,
})

const nameOf = ({ provider, model }: Target) => `${provider.id}/${model}`

function chatOf({ provider }: Target): ChatProvider {
  if (provider.chat) return provider.chat
  throw new GatewayError('no_available_channel', `The provider "${provider.id}" serves no chat models.`)
}
