/** Chat with the `ai` package; the same code for all its providers. */
import { expect } from 'bun:test'
import { APICallError, type LanguageModel, type LanguageModelUsage, type ModelMessage, type ToolSet } from 'ai'
import type { ChatInput, Client, Fault, Reply, Turn, Watch } from '../types.ts'
import { AI_7, type AiMajor, type AiParams, type Step } from './ai-majors.ts'

type ProviderOptions = NonNullable<AiParams['providerOptions']>

export type AiProvider = {
  model(id: string): LanguageModel
  /** The options that make this provider's models think and return their thoughts. */
  thinking: ProviderOptions
}

export function ai({ model, thinking }: AiProvider, major: AiMajor = AI_7): Client {
  const { generateText, streamText, sdk } = major
  const paramsOf = (chatInput: ChatInput) => ({
    ...settingsOf(chatInput, sdk),
    model: model(chatInput.model),
    ...(chatInput.is_thinking ? { providerOptions: thinking } : {}),
  })
  return {
    async whole(chatInput) {
      const { finalStep, responseMessages: messages } = await generateText(paramsOf(chatInput))
      return replyOf({ step: finalStep, messages })
    },
    stream: (chatInput, watch) => read(streamText, paramsOf(chatInput), watch),
    async collected(chatInput) {
      const running = streamText({ ...paramsOf(chatInput), onError: () => {} })
      return replyOf({ step: await running.finalStep, messages: await running.responseMessages })
    },
    async parsed(chatInput) {
      const { schema = {}, ...plain } = chatInput
      const output = sdk.Output.object({ schema: sdk.jsonSchema(schema) })
      return (await generateText({ ...paramsOf(plain), output })).output
    },
    fault: aiFault,
  }
}

/** All majors mark their errors in the same way. */
export function aiFault(error: unknown): Fault {
  if (!APICallError.isInstance(error)) return { status: undefined, message: String(error), is_own_class: false }
  return { status: error.statusCode, message: error.message, is_own_class: true }
}

function settingsOf(chatInput: ChatInput, { Output, jsonSchema, tool }: AiMajor['sdk']) {
  const { system, turns, tools = [], tool_choice, schema, max_tokens, stop, temperature } = chatInput
  const messages: ModelMessage[] = turns.flatMap(messagesOf)
  const set: ToolSet = Object.fromEntries(
    tools.map(({ name, description, parameters }) => [
      name,
      tool({ description, inputSchema: jsonSchema(parameters) }),
    ]),
  )
  return {
    messages,
    maxRetries: 0,
    ...(system ? { instructions: system } : {}),
    ...(tools.length > 0 ? { tools: set } : {}),
    ...(tool_choice ? { toolChoice: tool_choice } : {}),
    ...(schema ? { output: Output.object({ schema: jsonSchema(schema) }) } : {}),
    ...(max_tokens === undefined ? {} : { maxOutputTokens: max_tokens }),
    ...(stop === undefined ? {} : { stopSequences: [stop] }),
    ...(temperature === undefined ? {} : { temperature }),
  }
}

function messagesOf(turn: Turn): ModelMessage[] {
  if (turn.role === 'assistant') return turn.reply.own as ModelMessage[]
  if (turn.role === 'results') {
    const content = turn.results.map(({ id, name, text, is_error }) => ({
      type: 'tool-result' as const,
      toolCallId: id,
      toolName: name,
      output: is_error ? { type: 'error-text' as const, value: text } : { type: 'text' as const, value: text },
    }))
    return [{ role: 'tool', content }]
  }
  if (!turn.picture) return [{ role: 'user', content: turn.text }]
  const { media_type, data } = turn.picture
  return [
    {
      role: 'user',
      content: [
        { type: 'text', text: turn.text },
        { type: 'file', mediaType: media_type, data },
      ],
    },
  ]
}

const FINISH: Record<string, Reply['finish']> = { stop: 'stop', length: 'length', 'tool-calls': 'tool_calls' }

function replyOf({ step, messages }: { step: Step; messages: ModelMessage[] }): Reply {
  // Its members are getters, which a copy loses.
  const { text, reasoningText, toolCalls, finishReason, usage, response } = step
  return {
    text,
    ...(reasoningText === undefined ? {} : { reasoning: reasoningText }),
    calls: toolCalls.map(({ toolCallId, toolName, input }) => ({ id: toolCallId, name: toolName, args: input })),
    finish: FINISH[finishReason] ?? 'other',
    usage: usageOf(usage),
    model: response.modelId,
    own: messages,
  }
}

function usageOf({
  inputTokens,
  outputTokens,
  inputTokenDetails,
  outputTokenDetails,
}: LanguageModelUsage): Reply['usage'] {
  if (inputTokens === undefined || outputTokens === undefined) return undefined
  const cached = inputTokenDetails.cacheReadTokens
  const reasoning = outputTokenDetails.reasoningTokens
  return {
    input: inputTokens,
    output: outputTokens,
    ...(cached === undefined ? {} : { cached }),
    ...(reasoning === undefined ? {} : { reasoning }),
  }
}

/** Part by part, as a user interface reads it. */
async function read(
  streamText: AiMajor['streamText'],
  params: AiParams,
  { signal, onText }: Watch = {},
): Promise<Reply> {
  const running = streamText({ ...params, onError: () => {}, ...(signal ? { abortSignal: signal } : {}) })
  let text = ''
  let reasoning = ''
  for await (const part of running.stream) {
    // Older majors have the data of an error event here.
    if (part.type === 'error') throw part.error instanceof Error ? part.error : new Error(JSON.stringify(part.error))
    if (part.type === 'abort') throw new DOMException('The stream was left.', 'AbortError')
    if (part.type === 'reasoning-delta') reasoning += part.text
    if (part.type !== 'text-delta') continue
    text += part.text
    onText?.(part.text)
  }
  const reply = replyOf({ step: await running.finalStep, messages: await running.responseMessages })
  expect([reply.text, reply.reasoning ?? '']).toEqual([text, reasoning])
  return reply
}
