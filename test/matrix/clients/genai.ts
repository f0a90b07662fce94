/** Content generation with the `@google/genai` package; the same code for both majors. */
import {
  ApiError,
  type Content,
  FinishReason,
  FunctionCallingConfigMode,
  type GenerateContentParameters,
  type GenerateContentResponse,
  GoogleGenAI,
  type Part,
} from '@google/genai'
import type { ChatInput, Client, Fault, Reply, Turn, Watch } from '../types.ts'

/** The exports of a major's package that are used here. */
export type Package = { GoogleGenAI: typeof GoogleGenAI; ApiError: typeof ApiError }
export const GENAI_3: Package = { GoogleGenAI, ApiError }

export function genai(own: Package, { origin, token }: { origin: string; token: string }): Client {
  const { models, chats } = new own.GoogleGenAI({ apiKey: token, httpOptions: { baseUrl: origin } })
  const nameOf = (name: string | undefined) => (name ?? '').replace(/^models\//, '')
  return {
    whole: async (chatInput) => replyOf([await models.generateContent(paramsOf(chatInput))]),
    stream: async (chatInput, watch = {}) =>
      read(await models.generateContentStream(paramsOf(chatInput, watch)), watch),
    // The package stores a conversation itself, and adds a streamed response to it.
    async collected(chatInput) {
      const chat = chats.create({ model: chatInput.model })
      const reply = await read(await chat.sendMessageStream({ message: chatInput.turns.flatMap(partsOf) }), {})
      const parts = chat.getHistory().flatMap(({ role, parts: said = [] }) => (role === 'model' ? said : []))
      return { ...reply, text: parts.map(({ text = '' }) => text).join('') }
    },
    async count({ model, turns }) {
      return (await models.countTokens({ model, contents: turns.map(contentOf) })).totalTokens ?? 0
    },
    async list() {
      const ids: string[] = []
      for await (const { name } of await models.list()) ids.push(nameOf(name))
      return ids
    },
    retrieve: async (model) => nameOf((await models.get({ model })).name),
    fault(error): Fault {
      if (!(error instanceof own.ApiError)) return { status: undefined, message: String(error), is_own_class: false }
      return { status: error.status, message: error.message, is_own_class: true }
    },
  }
}

function paramsOf(chatInput: ChatInput, { signal }: Watch = {}): GenerateContentParameters {
  const {
    model,
    system,
    turns,
    tools = [],
    tool_choice,
    schema,
    is_thinking,
    max_tokens,
    stop,
    temperature,
  } = chatInput
  const functionDeclarations = tools.map(({ parameters, ...one }) => ({ ...one, parametersJsonSchema: parameters }))
  return {
    model,
    contents: turns.map(contentOf),
    config: {
      ...(system ? { systemInstruction: system } : {}),
      ...(tools.length > 0 ? { tools: [{ functionDeclarations }] } : {}),
      ...(tool_choice ? { toolConfig: { functionCallingConfig: { mode: FunctionCallingConfigMode.ANY } } } : {}),
      ...(schema ? { responseMimeType: 'application/json', responseJsonSchema: schema } : {}),
      ...(is_thinking ? { thinkingConfig: { includeThoughts: true, thinkingBudget: 1024 } } : {}),
      ...(max_tokens === undefined ? {} : { maxOutputTokens: max_tokens }),
      ...(stop === undefined ? {} : { stopSequences: [stop] }),
      ...(temperature === undefined ? {} : { temperature }),
      ...(signal ? { abortSignal: signal } : {}),
    },
  }
}

function contentOf(turn: Turn): Content {
  if (turn.role === 'assistant') return turn.reply.own as Content
  return { role: 'user', parts: partsOf(turn) }
}

function partsOf(turn: Turn): Part[] {
  if (turn.role === 'assistant') throw new Error('This is said by the user alone.')
  if (turn.role === 'results') {
    return turn.results.map(({ id, name, text }) => ({ functionResponse: { id, name, response: { output: text } } }))
  }
  if (!turn.picture) return [{ text: turn.text }]
  const { media_type, data } = turn.picture
  return [{ text: turn.text }, { inlineData: { mimeType: media_type, data } }]
}

/** The pieces of one response, one or several. */
function replyOf(pieces: GenerateContentResponse[]): Reply {
  const parts = pieces.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? [])
  const last = pieces.at(-1)
  const thoughts = parts.filter(({ thought }) => thought).map(({ text = '' }) => text)
  const calls = parts.flatMap(({ functionCall: call }) =>
    call ? [{ id: call.id ?? '', name: call.name ?? '', args: call.args }] : [],
  )
  const reason = pieces.map(({ candidates }) => candidates?.[0]?.finishReason).findLast(Boolean)
  return {
    text: parts
      .filter(({ thought }) => !thought)
      .map(({ text = '' }) => text)
      .join(''),
    ...(thoughts.length > 0 ? { reasoning: thoughts.join('') } : {}),
    calls,
    finish: finishOf(reason, calls.length),
    usage: usageOf(last?.usageMetadata),
    ...(last?.modelVersion === undefined ? {} : { model: last.modelVersion }),
    own: { role: 'model', parts },
  }
}

function finishOf(reason: FinishReason | undefined, calls: number): Reply['finish'] {
  if (reason === FinishReason.MAX_TOKENS) return 'length'
  if (reason !== FinishReason.STOP) return 'other'
  return calls > 0 ? 'tool_calls' : 'stop'
}

function usageOf(usage: GenerateContentResponse['usageMetadata']): Reply['usage'] {
  if (!usage) return undefined
  const { promptTokenCount: input = 0, candidatesTokenCount = 0, thoughtsTokenCount: reasoning = 0 } = usage
  const output = candidatesTokenCount + reasoning
  if (usage.totalTokenCount !== input + output) throw new Error(`The total ${usage.totalTokenCount} is not the sum.`)
  return { input, output, cached: usage.cachedContentTokenCount ?? 0, reasoning }
}

async function read(running: AsyncIterable<GenerateContentResponse>, { onText }: Watch): Promise<Reply> {
  const pieces: GenerateContentResponse[] = []
  for await (const piece of running) {
    pieces.push(piece)
    for (const { text, thought } of piece.candidates?.[0]?.content?.parts ?? []) if (text && !thought) onText?.(text)
  }
  return replyOf(pieces)
}
