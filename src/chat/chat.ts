/** THE HOT PATH: one chat request, from words to what its client is told. */
import type { Context } from '../http/context.ts'
import type { Catalogue, CatalogueModel, Chosen, Target } from '../models/catalogue.ts'
import { applyChatLimits } from '../models/limits.ts'
import { firstToAnswer } from '../models/targets.ts'
import type { ChatCall, ChatProvider } from '../providers/provider.ts'
import type { ChatRequest } from '../spec/chat-request.ts'
import type { EndpointFamily } from '../spec/endpoint-family.ts'
import { GatewayError } from '../spec/error.ts'
import type { Meter } from './meter.ts'
import { assertAllowed, laneTo, relayStream, relayWhole, type Sent, targetsFor } from './relay.ts'
import { watchSecrets } from './secret-watch.ts'
import { type Speech, type Teller, translated, type Whole } from './speech.ts'

/** A request on its way: the model chosen for it, who may answer, and what measures it. */
export type Asked = Chosen & { request: ChatRequest; targets: Target[]; sent: Sent | undefined; meter: Meter }

export type Chat = {
  /** Chooses the model and fits the request to it; throws what stands in the way, before anything is sent. */
  ask(asking: { request: ChatRequest; family: EndpointFamily; sent?: Sent | undefined }, context: Context): Asked
  whole(asked: Asked, teller: Teller, context: Context): Promise<Whole>
  /** Resolves once the upstream has said something; rejects with its refusal. */
  stream(asked: Asked, teller: Teller, context: Context): Promise<Speech>
}

type ChatParts = {
  catalogue: Catalogue
  startMeter(model: CatalogueModel, request: ChatRequest, context: Context): Meter
}

export function createChat({ catalogue, startMeter }: ChatParts): Chat {
  return {
    ask({ request, family, sent }, context) {
      const { model, requested } = catalogue.require(request.model, family, context.caller)
      context.note.model = model.id
      const targets = targetsFor(model.targets, sent)
      assertAllowed({ request, sent, targets }, context.caller)
      const asked = applyChatLimits(model, request)
      return { model, requested, request: asked, targets, sent, meter: startMeter(model, asked, context) }
    },

    async whole({ targets, request, sent, meter }, teller, context) {
      const { target, answer } = await firstToAnswer(targets, context.signal, async (target) => {
        const call = callFor(target, request, context)
        const lane = laneTo(target, sent)
        if (lane && sent) return await relayWhole({ target, lane, sent, call, teller, meter, context })
        const answer = await chatOf(target).whole(call, context.signal)
        meter.countWhole(answer)
        return { write: (usage) => teller.writer.whole(answer, usage) } satisfies Whole
      })
      context.note.target = nameOf(target)
      return answer
    },

    async stream({ targets, request, sent, meter }, teller, context) {
      const { target, answer } = await firstToAnswer(targets, context.signal, (target) => {
        const call = callFor(target, request, context)
        const lane = laneTo(target, sent)
        const watched = watchSecrets(meter, target.provider)
        if (lane && sent) return relayStream({ target, lane, sent, call, teller, meter: watched, context })
        return translated(chatOf(target).chunks(call, context.signal), teller.writer, watched)
      })
      context.note.target = nameOf(target)
      return answer
    },
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
