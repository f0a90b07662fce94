/** Messages with the `@anthropic-ai/sdk` package; the same code for both majors. */
import type Anthropic from '@anthropic-ai/sdk'
import type { ChatInput, Client, Fault, Reply, Turn, Watch } from '../types.ts'

type Sdk = typeof Anthropic

/** `Sdk` is the class of the major version, which identifies its errors. */
export function anthropic(Sdk: Sdk, { origin, token }: { origin: string; token: string }): Client {
  const client = new Sdk({ baseURL: origin, apiKey: token, maxRetries: 0, logLevel: 'off' })
  const { messages } = client
  return {
    whole: async (chatInput) => replyOf(await messages.create(paramsOf(chatInput))),
    stream: (chatInput, watch) => read(client, chatInput, watch),
    collected: async (chatInput) => replyOf(await messages.stream(paramsOf(chatInput)).finalMessage()),
    parsed: async (chatInput) => (await messages.parse(paramsOf(chatInput))).parsed_output,
    async count(chatInput) {
      const { max_tokens: _, ...itemCount } = paramsOf(chatInput)
      return (await messages.countTokens(itemCount)).input_tokens
    },
    async list() {
      const ids: string[] = []
      for await (const { id } of client.models.list()) ids.push(id)
      return ids
    },
    retrieve: async (model) => (await client.models.retrieve(model)).id,
    fault: (error, status) => faultOf(Sdk, error, status),
  }
}

function faultOf(Sdk: Sdk, error: unknown, status: number): Fault {
  const classes: Record<number, new (...parts: never[]) => Error> = {
    400: Sdk.BadRequestError,
    401: Sdk.AuthenticationError,
    404: Sdk.NotFoundError,
    429: Sdk.RateLimitError,
  }
  const own = classes[status] ?? Sdk.APIError
  if (!(error instanceof Sdk.APIError)) return { status: undefined, message: String(error), is_own_class: false }
  return { status: error.status, message: error.message, is_own_class: error instanceof own }
}

/** The API has no default. */
const MAX_TOKENS = 1000

function paramsOf(chatInput: ChatInput): Anthropic.MessageCreateParamsNonStreaming {
  const { model, system, turns, tools, tool_choice, schema, is_thinking, max_tokens = MAX_TOKENS, stop } = chatInput
  const reply = {
    model,
    max_tokens,
    messages: turns.map(messageOf),
    ...(system ? { system: [{ type: 'text' as const, text: system }] } : {}),
    ...(tools
      ? {
          tools: tools.map(({ parameters, ...tool }) => ({
            ...tool,
            input_schema: { type: 'object' as const, ...parameters },
          })),
        }
      : {}),
    ...(tool_choice ? { tool_choice: { type: 'any' as const } } : {}),
    ...(schema ? { output_config: { format: { type: 'json_schema' as const, schema } } } : {}),
    ...(is_thinking ? { thinking: { type: 'enabled' as const, budget_tokens: 1024 } } : {}),
    ...(stop === undefined ? {} : { stop_sequences: [stop] }),
  }
  // The newer major has no such field. The test sends it anyway, because a program may.
  return chatInput.temperature === undefined ? reply : Object.assign(reply, { temperature: chatInput.temperature })
}

function messageOf(turn: Turn): Anthropic.MessageParam {
  if (turn.role === 'assistant') return { role: 'assistant', content: turn.reply.own as Anthropic.ContentBlock[] }
  if (turn.role === 'results') {
    const content = turn.results.map(({ id, text, is_error = false }) => ({
      type: 'tool_result' as const,
      tool_use_id: id,
      content: text,
      is_error,
    }))
    return { role: 'user', content }
  }
  if (!turn.picture) return { role: 'user', content: turn.text }
  const source = { type: 'base64' as const, media_type: 'image/png' as const, data: turn.picture.data }
  return {
    role: 'user',
    content: [
      { type: 'text', text: turn.text },
      { type: 'image', source },
    ],
  }
}

const FINISH: Record<string, Reply['finish']> = {
  end_turn: 'stop',
  max_tokens: 'length',
  tool_use: 'tool_calls',
  stop_sequence: 'stop_sequence',
}

function replyOf({ model, content, stop_reason, usage }: Anthropic.Message): Reply {
  const texts = content.flatMap((block) => (block.type === 'text' ? [block.text] : []))
  const thoughts = content.flatMap((block) => (block.type === 'thinking' ? [block.thinking] : []))
  const calls = content.flatMap((block) =>
    block.type === 'tool_use' ? [{ id: block.id, name: block.name, args: block.input }] : [],
  )
  const cached = usage.cache_read_input_tokens ?? 0
  const written = usage.cache_creation_input_tokens ?? 0
  return {
    text: texts.join(''),
    ...(thoughts.length > 0 ? { reasoning: thoughts.join('') } : {}),
    calls,
    finish: FINISH[stop_reason ?? ''] ?? 'other',
    usage: { input: usage.input_tokens + cached + written, output: usage.output_tokens, cached },
    model,
    own: content,
  }
}

/** Event by event. The pieces are joined here, in the order of their arrival. */
async function read(client: Anthropic, chatInput: ChatInput, { signal, onText }: Watch = {}): Promise<Reply> {
  const running = await client.messages.create({ ...paramsOf(chatInput), stream: true }, { signal: signal ?? null })
  let message: Anthropic.Message | undefined
  const inputs = new Map<number, string>()
  for await (const event of running) {
    if (event.type === 'message_start') message = structuredClone(event.message)
    if (!message) throw new Error('The first event is not message_start.')
    if (event.type === 'content_block_start') message.content.push(structuredClone(event.content_block))
    if (event.type === 'message_delta') {
      message.stop_reason = event.delta.stop_reason
      // Counts are cumulative, so the last one is correct.
      const counts = Object.entries(event.usage).filter(([, count]) => count !== null)
      Object.assign(message.usage, Object.fromEntries(counts))
    }
    if (event.type !== 'content_block_delta') continue
    const { index, delta } = event
    const block = message.content[index]
    if (delta.type === 'text_delta' && block?.type === 'text') {
      block.text += delta.text
      onText?.(delta.text)
    } else if (delta.type === 'thinking_delta' && block?.type === 'thinking') block.thinking += delta.thinking
    else if (delta.type === 'signature_delta' && block?.type === 'thinking') block.signature = delta.signature
    else if (delta.type === 'input_json_delta') inputs.set(index, `${inputs.get(index) ?? ''}${delta.partial_json}`)
  }
  if (!message) throw new Error('There was no event.')
  for (const [index, text] of inputs) {
    const block = message.content[index]
    if (block?.type === 'tool_use') block.input = JSON.parse(text || '{}')
  }
  return replyOf(message)
}
