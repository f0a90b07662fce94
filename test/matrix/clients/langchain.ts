/** `@langchain/openai` on chat completions. */
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
import type { Ask, Client, Row, Told, Turn, Watch } from '../words.ts'
import { openaiFault } from './openai-chat.ts'

type Gateway = { origin: string; token: string }

export const langchain: Row = {
  name: '`@langchain/openai`, chat',
  dialect: 'chatcompat',
  lacks: ['stop_sequence'],
  connect: langchainClient,
}

function langchainClient(gateway: Gateway): Client {
  return {
    whole: async (ask) => toldOf(await bound(gateway, ask).invoke(messagesOf(ask))),
    stream: (ask, watch) => read(gateway, ask, watch),
    async parsed({ schema = {}, ...ask }) {
      const structured = chat(gateway, ask).withStructuredOutput(schema, { method: 'jsonSchema', name: 'place' })
      return structured.invoke(messagesOf(ask))
    },
    // Its errors are those of the package beneath it.
    fault: (error, status) => openaiFault(OpenAI, error, status),
  }
}

function chat({ origin, token }: Gateway, { model, is_thinking, max_tokens, stop, temperature }: Ask): ChatOpenAI {
  return new ChatOpenAI({
    model,
    apiKey: token,
    configuration: { baseURL: `${origin}/v1`, logLevel: 'off' },
    maxRetries: 0,
    ...(max_tokens === undefined ? {} : { maxTokens: max_tokens }),
    ...(stop === undefined ? {} : { stop: [stop] }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(is_thinking ? { modelKwargs: { reasoning_effort: 'high' } } : {}),
  })
}

function bound(gateway: Gateway, ask: Ask) {
  const tools = (ask.tools ?? []).map((one) => ({ type: 'function' as const, function: one }))
  return chat(gateway, ask).withConfig({
    ...(tools.length > 0 ? { tools } : {}),
    ...(ask.tool_choice ? { tool_choice: ask.tool_choice } : {}),
    ...(ask.schema
      ? { response_format: { type: 'json_schema', json_schema: { name: 'place', strict: true, schema: ask.schema } } }
      : {}),
  })
}

const messagesOf = ({ system, turns }: Ask): BaseMessage[] => [
  ...(system ? [new SystemMessage(system)] : []),
  ...turns.flatMap(ofTurn),
]

function ofTurn(turn: Turn): BaseMessage[] {
  if (turn.role === 'assistant') return [turn.told.own as AIMessage]
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

const FINISH: Record<string, Told['finish']> = { stop: 'stop', length: 'length', tool_calls: 'tool_calls' }

function toldOf(message: AIMessage | AIMessageChunk): Told {
  // Its own types lose these under this project's strictness.
  const usage = message.usage_metadata as UsageMetadata | undefined
  const metadata = message.response_metadata as { finish_reason?: string; model_name?: string }
  const { reasoning_content: reasoning } = message.additional_kwargs as { reasoning_content?: string }
  return {
    text: message.text,
    ...(reasoning === undefined ? {} : { reasoning }),
    calls: (message.tool_calls ?? []).map(({ id = '', name, args }) => ({ id, name, args })),
    finish: FINISH[metadata.finish_reason ?? ''] ?? 'other',
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

async function read(gateway: Gateway, ask: Ask, { signal, onText }: Watch = {}): Promise<Told> {
  let all: AIMessageChunk | undefined
  const running = await bound(gateway, ask).stream(messagesOf(ask), signal ? { signal } : {})
  for await (const piece of running) {
    all = all ? all.concat(piece) : piece
    if (piece.text) onText?.(piece.text)
  }
  return toldOf(all ?? new AIMessageChunk(''))
}
