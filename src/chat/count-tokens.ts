/** How many tokens a prompt has, before it is sent: asked of the vendor where one can be, else estimated. */

import type { ServerSettings } from '../config/config.ts'
import { bodyLimits, readJson } from '../http/body.ts'
import type { Context, Operation, Route } from '../http/context.ts'
import type { Clock } from '../kit/clock.ts'
import { memberOf } from '../kit/json.ts'
import type { Tokenizer } from '../kit/tokenizer.ts'
import { modelHeaders } from '../models/lifecycle.ts'
import type { Call } from '../pipeline/call.ts'
import type { Execution, Family } from '../pipeline/family.ts'
import type { Pipeline } from '../pipeline/pipeline.ts'
import type { ChatRequest } from '../protocols/canonical.ts'
import type { ProtocolPassthrough } from '../protocols/protocol.ts'
import { estimateTokens } from '../protocols/token-estimate.ts'
import type { Target } from '../providers/provider.ts'
import type { EndpointFamily } from '../spec/endpoint-family.ts'
import { GatewayError, MODEL_REQUEST_ERRORS } from '../spec/error.ts'
import type { Dialect } from './dialects/dialect.ts'
import {
  assertAllowed,
  type PassthroughRequest,
  passthroughCall,
  passthroughFor,
  passthroughRequestFor,
  targetsFor,
} from './passthrough.ts'

/** The route of one dialect's question. */
export type CountApi = Pick<Dialect, 'writeError'> & {
  family: EndpointFamily
  path: string
  /** `errors` are those beside what every count may answer. */
  operation: Operation
  /** The request as for an answer, of which only the prompt is looked at. */
  parse(body: unknown, context: Context): ChatRequest | Promise<ChatRequest>
  /** How a question passes to a vendor of the same dialect; its outline is for one that only such a vendor understands. */
  passthrough?: ProtocolPassthrough
  write(tokens: number): unknown
}

export type CountParts = { pipeline: Pipeline; tokenizer: Tokenizer; settings: ServerSettings; clock: Clock }

export function countTokensRoute(api: CountApi, { pipeline, tokenizer, settings, clock }: CountParts): Route {
  const family = countingFamily(api.family, tokenizer)
  return {
    method: 'POST',
    path: api.path,
    operation: { ...api.operation, errors: [...MODEL_REQUEST_ERRORS, ...(api.operation.errors ?? [])] },
    ...(api.writeError ? { writeError: api.writeError } : {}),
    async handle(context) {
      const limits = bodyLimits(settings, clock, 'text')
      const body = await readJson(context.request, limits)
      pipeline.authorize(context, { family: api.family, model: context.params.model ?? memberOf(body, 'model') })
      const { send, ...chosen } = pipeline.prepare(family, context, await read(api, body, context))
      const headers = modelHeaders(chosen, clock)
      const { answer } = await send()
      return Response.json(api.write(answer), { headers })
    },
  }
}

type CountInput = { clientRequest: ChatRequest; passthroughRequest: PassthroughRequest | undefined }
type Question = { request: ChatRequest; passthroughRequest: PassthroughRequest | undefined; targets: Target[] }

/** A count is asked of the first target that can be asked, and estimated where none can or it fails. Nothing is charged. */
const countingFamily = (
  endpoint: EndpointFamily,
  tokenizer: Tokenizer,
): Family<CountInput, Question, number, undefined> => ({
  endpoint: () => endpoint,
  modelOf: ({ clientRequest }) => clientRequest.model,
  fit(model, { clientRequest, passthroughRequest }, { caller }) {
    const question = {
      request: { ...clientRequest, model: model.id },
      passthroughRequest,
      targets: targetsFor(model.targets, passthroughRequest),
    }
    assertAllowed(question, caller)
    return question
  },
  meter: () => undefined,
  policy: 'until_answered',
  async execute(question, execution) {
    return (await askProvider(question, execution)) ?? (await estimateTokens(question.request, tokenizer))
  },
})

/** The request translated, or its outline where only a provider of its own protocol understands it. */
async function read({ parse, passthrough, family }: CountApi, body: unknown, context: Context): Promise<CountInput> {
  const sentAs = (refusal?: GatewayError) =>
    passthroughRequestFor(passthrough, { family, body, request: context.request, refusal })
  try {
    return { clientRequest: await parse(body, context), passthroughRequest: sentAs() }
  } catch (thrown) {
    if (!(thrown instanceof GatewayError) || !passthrough?.minimalRequest) throw thrown
    const passthroughRequest = sentAs(thrown)
    if (!passthroughRequest) throw thrown
    return { clientRequest: passthrough.minimalRequest(body), passthroughRequest }
  }
}

/** How to ask this target; undefined where it cannot be asked. */
function counterOf(target: Target, { request, passthroughRequest }: Question, { request_id, signal, caller }: Call) {
  const call = { model: target.model, request, request_id }
  const passthrough = passthroughFor(target, passthroughRequest)
  if (passthrough?.count && passthroughRequest)
    return () => passthrough.count?.(passthroughCall(target, passthroughRequest, { call, caller }), signal)
  const { chat } = target.provider
  // An outline is not what the provider would read.
  return chat?.countTokens && !passthroughRequest?.refusal ? () => chat.countTokens?.(call, signal) : undefined
}

/** The count of the first target that can be asked; undefined where none can or it fails. */
async function askProvider(
  question: Question,
  { call, attempt }: Pick<Execution<undefined>, 'call' | 'attempt'>,
): Promise<number | undefined> {
  const target = question.targets.find((one) => counterOf(one, question, call))
  if (!target) return undefined
  try {
    return await attempt([target], async () => counterOf(target, question, call)?.())
  } catch (error) {
    // A client that asks only for a number is better served by an estimate than by a provider's failure.
    if (call.signal.aborted || !(error instanceof GatewayError)) throw error
    return undefined
  }
}
