/** The schemas of contentgen requests, with names in camelCase, and of responses. */
import Type from 'typebox'
import { ChatRequest } from '../../../spec/chat-request.ts'
import { optional, titled } from '../../../spec/fields.ts'

const bounds = ChatRequest.properties
const JsonObject = Type.Record(Type.String(), Type.Unknown())
export type JsonObject = Type.Static<typeof JsonObject>

const Blob = Type.Object({
  mimeType: Type.String({ minLength: 1 }),
  data: Type.String({ description: 'Base64.' }),
  displayName: optional(Type.String()),
})
export type Blob = Type.Static<typeof Blob>

const FileData = Type.Object({
  fileUri: Type.String({ minLength: 1 }),
  mimeType: optional(Type.String()),
  displayName: optional(Type.String()),
})
export type FileData = Type.Static<typeof FileData>

/** The kinds of parts; each part is one of them. Unknown kinds are specific to a vendor and are ignored. */
export const PART_KINDS = [
  'text',
  'inlineData',
  'fileData',
  'functionCall',
  'functionResponse',
  'executableCode',
  'codeExecutionResult',
] as const

const Part = titled('ContentgenPart', {
  text: optional(Type.String()),
  thought: optional(Type.Boolean()),
  thoughtSignature: optional(Type.String()),
  inlineData: optional(Blob),
  fileData: optional(FileData),
  functionCall: optional(
    Type.Object({ name: Type.String({ minLength: 1 }), id: optional(Type.String()), args: optional(JsonObject) }),
  ),
  functionResponse: optional(
    Type.Object({
      name: Type.String({ minLength: 1 }),
      id: optional(Type.String()),
      response: optional(JsonObject),
      parts: optional(Type.Array(Type.Object({ inlineData: optional(Blob), fileData: optional(FileData) }))),
    }),
  ),
  executableCode: optional(Type.Object({ code: Type.String(), language: optional(Type.String()) })),
  codeExecutionResult: optional(Type.Object({ output: optional(Type.String()), outcome: optional(Type.String()) })),
  videoMetadata: optional(JsonObject),
})
export type Part = Type.Static<typeof Part>

const Content = titled('ContentgenContent', {
  role: optional(Type.Enum(['user', 'model', 'function', 'tool'], { description: 'Default: `user`.' })),
  parts: optional(Type.Array(Part)),
})
export type Content = Type.Static<typeof Content>

const FunctionDeclaration = Type.Object({
  name: Type.String({ minLength: 1 }),
  description: optional(Type.String()),
  parameters: optional(JsonObject),
  parametersJsonSchema: optional(JsonObject),
})
export type FunctionDeclaration = Type.Static<typeof FunctionDeclaration>

const Tool = Type.Object({
  functionDeclarations: optional(Type.Array(FunctionDeclaration)),
  googleSearch: optional(Type.Object({ excludeDomains: optional(Type.Array(Type.String())) })),
  googleSearchRetrieval: optional(JsonObject),
})
export type Tool = Type.Static<typeof Tool>

const ToolConfig = Type.Object({
  functionCallingConfig: optional(
    Type.Object({
      mode: optional(Type.Enum(['MODE_UNSPECIFIED', 'AUTO', 'ANY', 'NONE', 'VALIDATED'])),
      allowedFunctionNames: optional(Type.Array(Type.String())),
    }),
  ),
  retrievalConfig: optional(JsonObject),
})

export const GenerationConfig = titled('ContentgenGenerationConfig', {
  temperature: bounds.temperature,
  topP: bounds.top_p,
  topK: bounds.top_k,
  maxOutputTokens: bounds.max_tokens,
  stopSequences: optional(Type.Array(Type.String(), { maxItems: 5 })),
  candidateCount: bounds.n,
  seed: bounds.seed,
  presencePenalty: bounds.presence_penalty,
  frequencyPenalty: bounds.frequency_penalty,
  responseLogprobs: bounds.logprobs,
  logprobs: bounds.top_logprobs,
  responseMimeType: optional(Type.String()),
  responseSchema: optional(JsonObject),
  responseJsonSchema: optional(JsonObject),
  responseModalities: optional(Type.Array(Type.String())),
  thinkingConfig: optional(
    Type.Object({
      includeThoughts: optional(Type.Boolean()),
      thinkingBudget: bounds.reasoning_budget,
      thinkingLevel: optional(Type.String()),
    }),
  ),
})
export type GenerationConfig = Type.Static<typeof GenerationConfig>

const prompt = {
  contents: Type.Array(Content, { minItems: 1 }),
  systemInstruction: optional(
    Type.Object({ parts: Content.properties.parts }, { description: 'Its role is ignored.' }),
  ),
  tools: optional(Type.Array(Tool)),
  toolConfig: optional(ToolConfig),
  generationConfig: optional(GenerationConfig),
}

export const ContentgenRequest = titled('GenerateContentRequest', {
  ...prompt,
  serviceTier: optional(Type.String()),
  safetySettings: optional(Type.Array(JsonObject)),
  labels: optional(Type.Record(Type.String(), Type.String())),
})
export type ContentgenRequest = Type.Static<typeof ContentgenRequest>

/** A token-count request holds contents or a whole request. */
export const CountTokensRequest = titled('CountTokensRequest', {
  contents: optional(prompt.contents),
  systemInstruction: prompt.systemInstruction,
  tools: prompt.tools,
  generateContentRequest: optional(ContentgenRequest),
})

const count = Type.Integer({ minimum: 0 })

export const ContentgenAnswer = titled('GenerateContentResponse', {
  candidates: optional(
    Type.Array(
      Type.Object({
        index: count,
        content: Type.Object({ role: Type.Literal('model'), parts: Type.Array(JsonObject) }),
        finishReason: optional(Type.String({ description: 'Such as `STOP`, `MAX_TOKENS`, `SAFETY`.' })),
        finishMessage: optional(Type.String()),
        groundingMetadata: optional(JsonObject),
        logprobsResult: optional(JsonObject),
      }),
    ),
  ),
  promptFeedback: optional(Type.Object({ blockReason: Type.String(), blockReasonMessage: optional(Type.String()) })),
  usageMetadata: optional(
    Type.Object({
      promptTokenCount: count,
      candidatesTokenCount: count,
      totalTokenCount: count,
      thoughtsTokenCount: optional(count),
      cachedContentTokenCount: optional(count),
    }),
  ),
  modelVersion: Type.String(),
  responseId: Type.String(),
})
