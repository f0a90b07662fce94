/** How many tokens a prompt has, before it is sent: asked of the vendor where one can be, else estimated. */
import type { ServerSettings } from '../config/config.ts'
import { bodyLimits, readJson } from '../http/body.ts'
import type { Context, Operation, Route } from '../http/context.ts'
import type { Clock } from '../kit/clock.ts'
import { memberOf } from '../kit/json.ts'
import { createSample } from '../kit/sample.ts'
import type { Tokenizer } from '../kit/tokenizer.ts'
import { modelHeaders } from '../models/lifecycle.ts'
import type { Call } from '../pipeline/call.ts'
import type { Execution, Family } from '../pipeline/family.ts'
import type { Pipeline } from '../pipeline/pipeline.ts'
import type { Target } from '../providers/provider.ts'
import type { ChatRequest } from '../spec/chat-request.ts'
import type { EndpointFamily } from '../spec/endpoint-family.ts'
import { GatewayError, MODEL_REQUEST_ERRORS } from '../spec/error.ts'
import type { ContentPart } from '../spec/message.ts'
import type { Dialect, ProtocolPassthrough } from './dialects/dialect.ts'
import {
  assertAllowed,
  type PassthroughRequest,
  passthroughCall,
  passthroughFor,
  passthroughRequestFor,
  targetsFor,
} from './passthrough.ts'

/** A picture of a megapixel, by the vendors' rules of thumb (a pixel in 750; 85 and 170 a tile). */
const IMAGE_TOKENS = 1300
/** A page of a PDF: its words, and its picture. */
const PAGE_TOKENS = 2000
/** What a page takes in a file, pictures among them. */
const PAGE_BYTES = 60_000
/** Ten tokens a second, of sound that takes 16 KB a second. */
const AUDIO_BYTES_A_TOKEN = 1600
/** The marks around each message and each tool. */
const MESSAGE_TOKENS = 4
const TOOL_TOKENS = 8

/** The tokenizer's count of all words, and rules of thumb for the rest. */
export async function estimateTokens(request: ChatRequest, tokenizer: Tokenizer): Promise<number> {
  const sample = createSample()
  const rest = walk(request, (text) => sample.add(`${text}\n`))
  return rest + (await sample.tokens(tokenizer))
}

/** The same without waiting for a tokenizer: a token is about four bytes. */
export function roughTokens(request: ChatRequest): number {
  let bytes = 0
  const rest = walk(request, (text) => {
    bytes += Buffer.byteLength(text)
  })
  return rest + Math.ceil(bytes / 4)
}

/** Hands out every text of the prompt; what else there is in it is the result, in tokens. */
function walk(request: ChatRequest, say: (text: string) => void): number {
  let tokens = 0
  for (const { content, reasoning_content, tool_calls = [] } of request.messages) {
    tokens += MESSAGE_TOKENS
    for (const part of Array.isArray(content) ? content : [content ?? '']) {
      const text = textOf(part)
      if (text === undefined) tokens += mediaTokens(part as ContentPart)
      else say(text)
    }
    if (reasoning_content) say(reasoning_content)
    for (const call of tool_calls) say(`${call.function.name} ${call.function.arguments}`)
  }
  for (const tool of request.tools ?? request.functions ?? []) {
    tokens += TOOL_TOKENS
    say(JSON.stringify(tool))
  }
  if (request.response_format?.type === 'json_schema') say(JSON.stringify(request.response_format.json_schema))
  return tokens
}

function textOf(part: string | ContentPart): string | undefined {
  if (typeof part === 'string') return part
  if (part.type === 'text') return part.text
  return part.type === 'refusal' ? part.refusal : undefined
}

function mediaTokens(part: ContentPart): number {
  if (part.type === 'image_url') return IMAGE_TOKENS
  if (part.type === 'input_audio') return Math.ceil((part.input_audio.data.length * 3) / 4 / AUDIO_BYTES_A_TOKEN)
  const bytes = part.type === 'file' ? ((part.file.file_data?.length ?? 0) * 3) / 4 : 0
  return Math.max(1, Math.round(bytes / PAGE_BYTES)) * PAGE_TOKENS
}

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
      const { answer: send, ...chosen } = pipeline.start(family, context, await read(api, body, context))
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
