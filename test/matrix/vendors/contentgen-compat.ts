/** A contentgen provider: calls arrive whole, every finish is `STOP`, thoughts are signed. */
import { type Line, linesOf, type ReceivedRequest, type ScriptedResponse } from '../model-script.ts'
import type { JsonSchema, Picture, Result } from '../types.ts'
import { unknownFieldIn, type Wire } from './wire-vendor.ts'

type Part = {
  text?: string
  thought?: boolean
  thoughtSignature?: string
  inlineData?: { mimeType: string; data: string }
  functionCall?: { id?: string; name: string; args: unknown }
  functionResponse?: { id?: string; name: string; response: Record<string, unknown> }
}
type Content = { role?: string; parts: Part[] }
/** Older clients send a schema of the API's own kind, which differs from JSON Schema in little that matters here. */
type Declaration = {
  name: string
  description?: string
  parametersJsonSchema?: JsonSchema
  parameters?: JsonSchema
}
type Body = {
  contents: Content[]
  systemInstruction?: { parts: Part[] }
  tools?: { functionDeclarations?: Declaration[] }[]
  toolConfig?: { functionCallingConfig?: { mode?: string; allowedFunctionNames?: string[] } }
  generationConfig?: {
    maxOutputTokens?: number
    stopSequences?: string[]
    responseMimeType?: string
    responseJsonSchema?: JsonSchema
    responseSchema?: JsonSchema
    thinkingConfig?: { includeThoughts?: boolean; thinkingLevel?: string; thinkingBudget?: number }
  }
}

const SIGNATURES = ['bWF0cml4IHNpZ25hdHVyZQ==', 'skip_thought_signature_validator']

const textOf = (parts: Part[] = []) => parts.flatMap(({ text, thought }) => (text && !thought ? [text] : [])).join('\n')

const resultsOf = (parts: Part[]): Result[] =>
  parts.flatMap(({ functionResponse }) => {
    if (!functionResponse) return []
    const { id = '', name, response } = functionResponse
    const text = String(response.output ?? response.result ?? response.error ?? JSON.stringify(response))
    return [{ id, name, text, is_error: response.error !== undefined }]
  })

function lines({ role, parts }: Content): Line[] {
  if (role === 'model') {
    const calls = parts.flatMap(({ functionCall }) =>
      functionCall ? [{ name: functionCall.name, args: functionCall.args }] : [],
    )
    return [{ role: 'assistant', text: textOf(parts), calls }]
  }
  const textBlocks = parts.filter(({ functionResponse }) => !functionResponse)
  const pictures = textBlocks.flatMap(({ inlineData }) => inlineData?.data ?? [])
  return [
    { role: 'results', results: resultsOf(parts).map(({ name, text }) => ({ name, text })) },
    ...(textBlocks.length > 0 ? [{ role: 'user' as const, text: textOf(textBlocks), pictures }] : []),
  ]
}

const FIELDS = ['contents', 'systemInstruction', 'tools', 'toolConfig', 'generationConfig', 'safetySettings']
const CONFIG = [
  ...['temperature', 'topP', 'topK', 'candidateCount', 'maxOutputTokens', 'stopSequences', 'seed', 'thinkingConfig'],
  ...['responseMimeType', 'responseJsonSchema', 'responseSchema'],
]

/** What the original vendor refuses. */
function refusalOf(body: Body): string | undefined {
  const { contents, generationConfig = {} } = body
  const unknownField = unknownFieldIn(body, FIELDS) ?? unknownFieldIn(generationConfig, CONFIG)
  if (unknownField) return `Invalid JSON payload received. Unknown name "${unknownField}": Cannot find field.`
  if (contents.length === 0) return 'contents is not specified'
  for (const [at, { role, parts }] of contents.entries()) {
    if (role !== 'user' && role !== 'model') return 'Please use a valid role: user, model.'
    const calls = parts.filter(({ functionCall }) => functionCall)
    if (calls.length === 0) continue
    if (!SIGNATURES.includes(calls[0]?.thoughtSignature ?? ''))
      return `Function call is missing a thought_signature in functionCall parts. contents.${at}`
    const answers = (contents[at + 1]?.parts ?? []).filter(({ functionResponse }) => functionResponse)
    if (answers.length !== calls.length)
      return 'Please ensure that the number of function response parts is equal to the number of function call parts'
  }
  return undefined
}

function decode(body: Body): ReceivedRequest | string {
  const refusal = refusalOf(body)
  if (refusal) return refusal
  const { contents, systemInstruction, tools = [], toolConfig, generationConfig: config = {} } = body
  const isQuestion = ({ role, parts }: Content) => role === 'user' && parts.some((part) => !part.functionResponse)
  const at = contents.findLastIndex(isQuestion)
  const last = contents[at]?.parts ?? []
  const results = contents.slice(at + 1).flatMap(({ parts }) => resultsOf(parts))
  const { mode, allowedFunctionNames: allowed = [] } = toolConfig?.functionCallingConfig ?? {}
  const pictures: Picture[] = last.flatMap(({ inlineData }) =>
    inlineData ? [{ media_type: inlineData.mimeType, data: inlineData.data }] : [],
  )
  return {
    system: textOf(systemInstruction?.parts),
    question: textOf(last),
    pictures,
    results,
    turns: contents.length,
    history: linesOf(contents.flatMap(lines)),
    tools: tools.flatMap(({ functionDeclarations = [] }) =>
      functionDeclarations.map(({ name, description = '', parameters = {}, parametersJsonSchema = parameters }) => ({
        name,
        description,
        parameters: parametersJsonSchema,
      })),
    ),
    demanded: mode === 'ANY' ? (allowed[0] ?? true) : undefined,
    schema: config.responseJsonSchema ?? config.responseSchema,
    is_thinking: config.thinkingConfig?.includeThoughts === true,
    max_tokens: config.maxOutputTokens,
    stops: config.stopSequences ?? [],
  }
}

const usageOf = ({ usage: { input, cached, output, reasoning } }: ScriptedResponse) => ({
  promptTokenCount: input,
  cachedContentTokenCount: cached,
  candidatesTokenCount: output - reasoning,
  ...(reasoning > 0 ? { thoughtsTokenCount: reasoning } : {}),
  totalTokenCount: input + output,
  promptTokensDetails: [{ modality: 'TEXT', tokenCount: input }],
})

const callsOf = ({ calls }: ScriptedResponse): Part[] =>
  calls.map(({ id, name, pieces }, at) => ({
    functionCall: { id, name, args: JSON.parse(pieces.join('')) },
    // Of parallel calls only the first is signed.
    ...(at === 0 ? { thoughtSignature: SIGNATURES[0] } : {}),
  }))

const answerOf = (
  parts: Part[],
  scripted: ScriptedResponse,
  { model, finish }: { model: string; finish: boolean },
) => ({
  candidates: [
    {
      content: { parts, role: 'model' },
      ...(finish ? { finishReason: scripted.finish === 'length' ? 'MAX_TOKENS' : 'STOP' } : {}),
      index: 0,
    },
  ],
  usageMetadata: usageOf(scripted),
  modelVersion: model,
  responseId: 'cmVzcG9uc2U',
})

function whole(scripted: ScriptedResponse, model: string): unknown {
  const parts = [
    ...(scripted.reasoning.length > 0 ? [{ text: scripted.reasoning.join(''), thought: true }] : []),
    ...(scripted.text.length > 0 ? [{ text: scripted.text.join('') }] : []),
    ...callsOf(scripted),
  ]
  return answerOf(parts, scripted, { model, finish: true })
}

function events(scripted: ScriptedResponse, model: string): object[] {
  const parts: Part[] = [
    ...scripted.reasoning.map((text) => ({ text, thought: true })),
    ...scripted.text.map((text) => ({ text })),
    ...callsOf(scripted),
  ]
  return [
    ...parts.map((part) => answerOf([part], scripted, { model, finish: false })),
    answerOf([{ text: '' }], scripted, { model, finish: true }),
  ]
}

const STATUSES: Record<number, string> = { 400: 'INVALID_ARGUMENT', 401: 'UNAUTHENTICATED', 429: 'RESOURCE_EXHAUSTED' }
const failure = (code: number, message: string) => ({ error: { code, message, status: STATUSES[code] ?? 'INTERNAL' } })

export const contentgenWire: Wire = {
  decode: (body) => decode(body as Body),
  isStreamed: (_, path) => path.endsWith(':streamGenerateContent'),
  whole,
  events,
  isDone: false,
  failure,
  failed: () => failure(500, 'failed in mid-stream'),
  model: (_, path) => /models\/([^:]+):/.exec(path)?.[1] ?? '',
  models: {
    models: [{ name: 'models/gemini-3.5-flash', displayName: 'V', supportedGenerationMethods: ['generateContent'] }],
  },
  counts: { matches: (path) => path.endsWith(':countTokens'), answer: { totalTokens: 40 } },
}
