/** Counts the tokens of a prompt: by the provider where it has such an endpoint, otherwise by an estimate. */
import type { Tokenizer } from '../kit/tokenizer.ts'
import type { Call } from '../pipeline/call.ts'
import type { ClientRequest, ErrorFormat, JsonEndpoint } from '../pipeline/endpoint.ts'
import type { Execution, Family } from '../pipeline/family.ts'
import type { ChatRequest } from '../protocols/canonical.ts'
import type { ProtocolPassthrough } from '../protocols/protocol.ts'
import { estimateTokens } from '../protocols/token-estimate.ts'
import type { Target } from '../providers/provider.ts'
import type { EndpointFamily } from '../spec/endpoint-family.ts'
import { GatewayError, MODEL_REQUEST_ERRORS } from '../spec/error.ts'
import type { Operation } from '../spec/operation.ts'
import {
  assertAllowed,
  type PassthroughRequest,
  passthroughCall,
  passthroughFor,
  passthroughRequestFor,
  targetsFor,
} from './passthrough.ts'

/** How a client API counts the tokens of a prompt. */
export type CountApi = ErrorFormat & {
  family: EndpointFamily
  path: string
  /** `errors` are those besides the errors of every count. */
  operation: Operation
  /** The request as for a response; only its prompt is used. */
  parse(body: unknown, request: ClientRequest): ChatRequest | Promise<ChatRequest>
  /** How the request passes to a provider of the same protocol; `minimalRequest` is for one that only such a provider understands. */
  passthrough?: ProtocolPassthrough
  encode(tokens: number): unknown
}

export function countTokensEndpoint(
  api: CountApi,
  tokenizer: Tokenizer,
): JsonEndpoint<CountInput, Question, number, undefined> {
  const { family, path, operation, encodeError, errorSchema, encode } = api
  return {
    path,
    operation: { ...operation, errors: [...MODEL_REQUEST_ERRORS, ...(operation.errors ?? [])] },
    ...(encodeError ? { encodeError } : {}),
    ...(errorSchema ? { errorSchema } : {}),
    family: countingFamily(family, tokenizer),
    endpoint: family,
    decode: (body, request) => read(api, body, request),
    encode: ({ answer }) => encode(answer),
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
async function read(
  { parse, passthrough, family }: CountApi,
  body: unknown,
  request: ClientRequest,
): Promise<CountInput> {
  const sentAs = (refusal?: GatewayError) => passthroughRequestFor(passthrough, { family, body, request, refusal })
  try {
    return { clientRequest: await parse(body, request), passthroughRequest: sentAs() }
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
