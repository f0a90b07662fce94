/** Chat with `@langchain/openai`, on chat completions and on responses. */
import {
  type AIMessage,
  AIMessageChunk,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
  type UsageMetadata,
} from '@langchain/core/messages'
import { ChatOpenAI } from '@langchain/openai'
import OpenAI from 'openai'
import type { ChatInput, Client, Reply, Turn, Watch } from '../types.ts'
import { openaiFault } from './openai-chat.ts'

type Gateway = { origin: string; token: string; useResponsesApi?: true }

export function langchain(gateway: Gateway): Client {
  return {
    whole: async (chatInput) => replyOf(await bound(gateway, chatInput).invoke(messagesOf(chatInput))),
    stream: (chatInput, watch) => read(gateway, chatInput, watch),
    async parsed({ schema = {}, ...chatInput }) {
      const structured = chat(gateway, chatInput).withStructuredOutput(schema, { method: 'jsonSchema', name: 'place' })
      return structured.invoke(messagesOf(chatInput))
    },
    // It throws the errors of the package that it uses.
    fault: (error, status) => openaiFault(OpenAI, error, status),
  }
}

/** Its own field for reasoning is sent only to models that it knows by name. */
const THINKING = { reasoning: { effort: 'high', summary: 'auto' } }

function chat(
  { origin, token, useResponsesApi }: Gateway,
  { model, is_thinking, max_tokens, stop, temperature }: ChatInput,
): ChatOpenAI {
  return new ChatOpenAI({
    model,
    apiKey: token,
    configuration: { baseURL: `${origin}/v1`, logLevel: 'off' },
    maxRetries: 0,
    ...(useResponsesApi ? { useResponsesApi } : {}),
    ...(max_tokens === undefined ? {} : { maxTokens: max_tokens }),
    ...(stop === undefined ? {} : { stop: [stop] }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(is_thinking ? { modelKwargs: useResponsesApi ? THINKING : { reasoning_effort: 'high' } } : {}),
  })
}

function bound(gateway: Gateway, chatInput: ChatInput) {
  const tools = (chatInput.tools ?? []).map((one) => ({ type: 'function' as const, function: one }))
  return chat(gateway, chatInput).withConfig({
    ...(tools.length > 0 ? { tools } : {}),
    ...(chatInput.tool_choice ? { tool_choice: chatInput.tool_choice } : {}),
    ...(chatInput.schema
      ? {
          response_format: {
            type: 'json_schema',
            json_schema: { name: 'place', strict: true, schema: chatInput.schema },
          },
        }
      : {}),
  })
}

const messagesOf = ({ system, turns }: ChatInput): BaseMessage[] => [
  ...(system ? [new SystemMessage(system)] : []),
  ...turns.flatMap(ofTurn),
]

function ofTurn(turn: Turn): BaseMessage[] {
  if (turn.role === 'assistant') return [turn.reply.own as AIMessage]
  if (turn.role === 'results') {
    return turn.results.map(({ id, text }) => new ToolMessage({ content: text, tool_call_id: id }))
  }
  if (!turn.picture) return [new HumanMessage(turn.text)]
  const url = `data:${turn.picture.media_type};base64,${turn.picture.data}`
  return [
    new HumanMessage({
      content: [
        { type: 'text', text: turn.text },
        { type: 'image_url', image_url: { url } },
      ],
    }),
  ]
}

/** Its own type does not declare these members. */
type Metadata = {
  finish_reason?: string
  model_name?: string
  status?: string
  incomplete_details?: { reason: string } | null
}
type Thoughts = { reasoning_content?: string; reasoning?: { summary?: { text: string }[] } }

const FINISH: Record<string, Reply['finish']> = { stop: 'stop', length: 'length', tool_calls: 'tool_calls' }

/** On responses it reports a status, and the reason for an incomplete response. */
function finishOf({ finish_reason, status, incomplete_details }: Metadata, calls: number): Reply['finish'] {
  if (finish_reason !== undefined) return FINISH[finish_reason] ?? 'other'
  if (status === 'incomplete') return incomplete_details?.reason === 'max_output_tokens' ? 'length' : 'other'
  if (status !== 'completed') return 'other'
  return calls > 0 ? 'tool_calls' : 'stop'
}

function replyOf(message: AIMessage | AIMessageChunk): Reply {
  const usage = message.usage_metadata as UsageMetadata | undefined
  const metadata = message.response_metadata as Metadata
  const thoughts = message.additional_kwargs as Thoughts
  const reasoning = thoughts.reasoning_content ?? thoughts.reasoning?.summary?.map(({ text }) => text).join('')
  const calls = (message.tool_calls ?? []).map(({ id = '', name, args }) => ({ id, name, args }))
  return {
    text: message.text,
    ...(reasoning === undefined ? {} : { reasoning }),
    calls,
    finish: finishOf(metadata, calls.length),
    usage: usage && {
      input: usage.input_tokens,
      output: usage.output_tokens,
      cached: usage.input_token_details?.cache_read ?? 0,
      reasoning: usage.output_token_details?.reasoning ?? 0,
    },
    ...(metadata.model_name === undefined ? {} : { model: metadata.model_name }),
    own: message,
  }
}

async function read(gateway: Gateway, chatInput: ChatInput, { signal, onText }: Watch = {}): Promise<Reply> {
  let all: AIMessageChunk | undefined
  const running = await bound(gateway, chatInput).stream(messagesOf(chatInput), signal ? { signal } : {})
  for await (const piece of running) {
    all = all ? all.concat(piece) : piece
    if (piece.text) onText?.(piece.text)
  }
  return replyOf(all ?? new AIMessageChunk(''))
}
