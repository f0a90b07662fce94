/** Chat completions with the `openai` package; the same code for both majors. */
import type OpenAI from 'openai'
import type { ChatInput, Client, Fault, Reply, Tool, Turn, Watch } from '../types.ts'

type Sdk = typeof OpenAI
type Message = OpenAI.ChatCompletionMessage & { reasoning_content?: string }

/** `Sdk` is the class of the major version, which identifies its errors. */
export function openaiChat(Sdk: Sdk, { origin, token }: { origin: string; token: string }): Client {
  const client = new Sdk({ baseURL: `${origin}/v1`, apiKey: token, maxRetries: 0, logLevel: 'off' })
  const { completions } = client.chat
  return {
    whole: async (chatInput) => replyOf(await completions.create(paramsOf(chatInput))),
    stream: (chatInput, watch) => read(client, chatInput, watch),
    collected: async (chatInput) =>
      replyOf(await completions.stream({ ...paramsOf(chatInput), ...WITH_USAGE }).finalChatCompletion()),
    async parsed(chatInput) {
      const { choices } = await completions.parse(paramsOf(chatInput))
      return choices[0]?.message.parsed
    },
    list: () => openaiModels(client),
    retrieve: async (model) => (await client.models.retrieve(model)).id,
    fault: (error, status) => openaiFault(Sdk, error, status),
  }
}

const WITH_USAGE = { stream: true as const, stream_options: { include_usage: true } }

export async function openaiModels(client: OpenAI): Promise<string[]> {
  const ids: string[] = []
  for await (const { id } of client.models.list()) ids.push(id)
  return ids
}

export function openaiFault(Sdk: Sdk, error: unknown, status: number): Fault {
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

const toolOf = ({ name, description, parameters }: Tool) => ({
  type: 'function' as const,
  function: { name, description, parameters },
})

function paramsOf(chatInput: ChatInput): OpenAI.ChatCompletionCreateParamsNonStreaming {
  const { model, system, turns, tools, tool_choice, schema, is_thinking, max_tokens, stop, temperature } = chatInput
  return {
    model,
    messages: [...(system ? [{ role: 'system' as const, content: system }] : []), ...turns.flatMap(messagesOf)],
    ...(tools ? { tools: tools.map(toolOf) } : {}),
    ...(tool_choice ? { tool_choice } : {}),
    ...(schema
      ? { response_format: { type: 'json_schema', json_schema: { name: 'place', strict: true, schema } } }
      : {}),
    ...(is_thinking ? { reasoning_effort: 'high' } : {}),
    ...(max_tokens === undefined ? {} : { max_completion_tokens: max_tokens }),
    ...(stop === undefined ? {} : { stop }),
    ...(temperature === undefined ? {} : { temperature }),
  }
}

function messagesOf(turn: Turn): OpenAI.ChatCompletionMessageParam[] {
  if (turn.role === 'assistant') return [turn.reply.own as OpenAI.ChatCompletionMessageParam]
  if (turn.role === 'results') {
    return turn.results.map(({ id, text }) => ({ role: 'tool', tool_call_id: id, content: text }))
  }
  if (!turn.picture) return [{ role: 'user', content: turn.text }]
  const url = `data:${turn.picture.media_type};base64,${turn.picture.data}`
  return [
    {
      role: 'user',
      content: [
        { type: 'text', text: turn.text },
        { type: 'image_url', image_url: { url } },
      ],
    },
  ]
}

const FINISH: Record<string, Reply['finish']> = { stop: 'stop', length: 'length', tool_calls: 'tool_calls' }

function replyOf({ model, choices, usage }: OpenAI.ChatCompletion): Reply {
  const choice = choices[0]
  if (!choice) throw new Error('There is no choice.')
  const message: Message = choice.message
  const { reasoning_content: reasoning, tool_calls = [] } = message
  return {
    text: message.content ?? '',
    ...(reasoning === undefined ? {} : { reasoning }),
    calls: tool_calls.flatMap((call) =>
      call.type === 'function'
        ? [{ id: call.id, name: call.function.name, args: JSON.parse(call.function.arguments) }]
        : [],
    ),
    finish: FINISH[choice.finish_reason] ?? 'other',
    usage: usageOf(usage),
    model,
    own: message,
  }
}

function usageOf(usage: OpenAI.CompletionUsage | null | undefined): Reply['usage'] {
  if (!usage) return undefined
  const { prompt_tokens: input, completion_tokens: output, total_tokens } = usage
  if (total_tokens !== input + output) throw new Error(`The total ${total_tokens} is not ${input} and ${output}.`)
  const { prompt_tokens_details: read, completion_tokens_details: made } = usage
  return { input, output, cached: read?.cached_tokens ?? 0, reasoning: made?.reasoning_tokens ?? 0 }
}

type Delta = OpenAI.ChatCompletionChunk.Choice.Delta & { reasoning_content?: string }

/** Chunk by chunk, as a program reads them that shows text as it arrives. */
async function read(client: OpenAI, chatInput: ChatInput, { signal, onText }: Watch = {}): Promise<Reply> {
  const running = await client.chat.completions.create(
    { ...paramsOf(chatInput), ...WITH_USAGE },
    { signal: signal ?? null },
  )
  const calls: { id: string; name: string; text: string }[] = []
  const reply: Reply = { text: '', calls: [], finish: 'other', usage: undefined, own: undefined }
  for await (const { choices, usage, model } of running) {
    reply.model = model
    if (usage) reply.usage = usageOf(usage)
    const choice = choices[0]
    if (!choice) continue
    const { content, reasoning_content, tool_calls = [] }: Delta = choice.delta
    if (reasoning_content) reply.reasoning = `${reply.reasoning ?? ''}${reasoning_content}`
    for (const { index, id = '', function: called } of tool_calls) {
      calls[index] ??= { id, name: called?.name ?? '', text: '' }
      calls[index].text += called?.arguments ?? ''
    }
    if (choice.finish_reason) reply.finish = FINISH[choice.finish_reason] ?? 'other'
    if (!content) continue
    reply.text += content
    onText?.(content)
  }
  reply.calls = calls.map(({ id, name, text }) => ({ id, name, args: JSON.parse(text) }))
  reply.own = {
    role: 'assistant',
    content: reply.text || null,
    ...(reply.reasoning ? { reasoning_content: reply.reasoning } : {}),
    ...(calls.length > 0
      ? {
          tool_calls: calls.map(({ id, name, text }) => ({
            id,
            type: 'function',
            function: { name, arguments: text },
          })),
        }
      : {}),
  }
  return reply
}
