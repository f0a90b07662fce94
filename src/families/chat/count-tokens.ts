/** Counts the tokens of a prompt: by the provider where it has such an endpoint, otherwise by an estimate. */
import type { Call } from '../../calls/call.ts'
import type { ClientRequest, ErrorFormat, JsonEndpoint } from '../../calls/endpoint.ts'
import type { Execution, Family } from '../../calls/family.ts'
import type { Tokenizer } from '../../kit/tokenizer.ts'
import type { ChatRequest } from '../../protocols/shared/canonical.ts'
import type { ProtocolPassthrough } from '../../protocols/shared/protocol.ts'
import { estimateTokens } from '../../protocols/shared/token-estimate.ts'
import type { Target } from '../../providers/provider.ts'
import type { EndpointFamily } from '../../spec/endpoint-family.ts'
import { GatewayError } from '../../spec/error.ts'
import { MODEL_REQUEST_ERRORS } from '../../spec/error-lists.ts'
import type { Operation } from '../../spec/operation.ts'
import type { FileInputs } from '../files/file-inputs.ts'
import type { MapFiles } from '../files/file-references.ts'
import { chatFacts } from './facts.ts'
import { guardedRequest } from './guarded.ts'
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
  /** Where a body names files of the gateway. */
  files?: MapFiles
  /** How the request passes to a provider of the same protocol; `minimalRequest` is for one that only such a provider understands. */
  passthrough?: ProtocolPassthrough
  encode(tokens: number): unknown
}

export function countTokensEndpoint(
  api: CountApi,
  { tokenizer, fileInputs }: CountParts,
): JsonEndpoint<CountInput, CountWork, number, undefined> {
  const { family, path, operation, encodeError, errorStatus, errorSchema, encode } = api
  return {
    path,
    operation: { ...operation, errors: [...MODEL_REQUEST_ERRORS, ...(operation.errors ?? [])] },
    ...(encodeError ? { encodeError } : {}),
    ...(errorStatus ? { errorStatus } : {}),
    ...(errorSchema ? { errorSchema } : {}),
    family: countingFamily(family, tokenizer),
    endpoint: family,
    decode: async (body, request) =>
      read(api, api.files ? await fileInputs.resolved(body, api.files, request) : body, request),
    encode: ({ answer }) => encode(answer),
  }
}

type CountParts = { tokenizer: Tokenizer; fileInputs: FileInputs }

type CountInput = { clientRequest: ChatRequest; passthroughRequest: PassthroughRequest | undefined }
type CountWork = { request: ChatRequest; passthroughRequest: PassthroughRequest | undefined; targets: Target[] }

/** The first target that can count does so; if none can, or it fails, the count is estimated. Nothing is charged. */
const countingFamily = (
  endpoint: EndpointFamily,
  tokenizer: Tokenizer,
): Family<CountInput, CountWork, number, undefined> => ({
  endpoint: () => endpoint,
  modelOf: ({ clientRequest }) => clientRequest.model,
  fit(model, { clientRequest, passthroughRequest: given }, { caller, guards }) {
    // Guards read texts, so nothing passes without translation.
    if (guards && given?.refusal) throw given.refusal
    const passthroughRequest = guards ? undefined : given
    const work = {
      request: { ...clientRequest, model: model.id },
      passthroughRequest,
      targets: targetsFor(model.targets, passthroughRequest),
    }
    assertAllowed(work, work.targets, caller)
    return work
  },
  meter: () => undefined,
  guarded: {
    input(work) {
      const { request, texts } = guardedRequest(work.request)
      work.request = request
      return texts
    },
  },
  policy: 'until_answered',
  facts: ({ request }) => chatFacts([request]),
  // A provider may count badly and generate well.
  is_observed: false,
  async execute(work, execution) {
    return (await countAtProvider(work, execution)) ?? (await estimateTokens(work.request, tokenizer))
  },
})

/** The translated request, or a minimal one where only a provider of the same protocol understands it. */
async function read(
  { parse, passthrough, family }: CountApi,
  body: unknown,
  request: ClientRequest,
): Promise<CountInput> {
  const passthroughOf = (refusal?: GatewayError) => passthroughRequestFor(passthrough, family, body, request, refusal)
  try {
    return { clientRequest: await parse(body, request), passthroughRequest: passthroughOf() }
  } catch (thrown) {
    if (!(thrown instanceof GatewayError) || !passthrough?.minimalRequest) throw thrown
    const passthroughRequest = passthroughOf(thrown)
    if (!passthroughRequest) throw thrown
    return { clientRequest: passthrough.minimalRequest(body), passthroughRequest }
  }
}

/** The call that counts at this target; undefined if it cannot count. */
function counterOf(target: Target, { request, passthroughRequest }: CountWork, { request_id, signal, caller }: Call) {
  const { provider, model } = target
  const call = { model, request, request_id }
  const passthrough = passthroughFor(target, passthroughRequest)
  if (passthrough?.count && passthroughRequest)
    return () => passthrough.count?.(passthroughCall(call, passthroughRequest, { provider, caller }), signal)
  const { chat } = provider
  // A minimal request is not what the provider would read.
  return chat?.countTokens && !passthroughRequest?.refusal ? () => chat.countTokens?.(call, signal) : undefined
}

/** The count of the first target that can count; undefined if none can or it fails. */
async function countAtProvider(
  work: CountWork,
  { call, attempt }: Pick<Execution<undefined>, 'call' | 'attempt'>,
): Promise<number | undefined> {
  const target = work.targets.find((one) => counterOf(one, work, call))
  if (!target) return undefined
  try {
    return await attempt([target], async () => counterOf(target, work, call)?.())
  } catch (error) {
    // For a client that only requests a number an estimate is more useful than a provider's error.
    if (call.signal.aborted || !(error instanceof GatewayError)) throw error
    return undefined
  }
}
