/** The request of a conversation in each API of chat: made from the one of chat completions. */
import { type Body, type ContentPart, withoutUndefined } from './chat-body.ts'

export const DIALECTS = [
  { value: 'chatcompat', label: 'Chat completions' },
  { value: 'responses', label: 'Responses' },
  { value: 'messages', label: 'Messages' },
  { value: 'contentgen', label: 'Generate content' },
] as const
export type Dialect = (typeof DIALECTS)[number]['value']

type ChatCall = { id: string; function: { name: string; arguments: string } }
type Message = { role: string; content: string | ContentPart[] | null; tool_calls?: ChatCall[]; tool_call_id?: string }
type Tool = { function?: { name: string; description?: string; parameters?: object } }
type ChatBody = {
  model: string
  messages: Message[]
  max_tokens?: number
  temperature?: number
  top_p?: number
  seed?: number
  stop?: string[]
  reasoning_effort?: string
  response_format?: { type: string; json_schema?: { name: string; schema: object } }
  tools?: Tool[]
}

/** The path and the body that a client sends. */
export function inDialect(dialect: Dialect, body: Body): { path: string; body: Body } {
  const chat = body as unknown as ChatBody
  if (dialect === 'responses') return { path: '/v1/responses', body: responses(chat) }
  if (dialect === 'messages') return { path: '/v1/messages', body: messages(chat) }
  if (dialect === 'contentgen') return { path: `/v1beta/models/${chat.model}:generateContent`, body: contentgen(chat) }
  return { path: '/v1/chat/completions', body }
}

const systemOf = ({ messages }: ChatBody): string | undefined =>
  messages.flatMap(({ role, content }) => (role === 'system' && typeof content === 'string' ? [content] : []))[0]

const turnsOf = ({ messages }: ChatBody): Message[] => messages.filter(({ role }) => role !== 'system')

const partsOf = (content: Message['content']): ContentPart[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? [])

const functionsOf = ({ tools }: ChatBody) => tools?.flatMap(({ function: one }) => (one ? [one] : []))

const urlOf = ({ image_url, file }: ContentPart): string =>
  String(
    (image_url as { url?: string } | undefined)?.url ?? (file as { file_data?: string } | undefined)?.file_data ?? '',
  )

/** The media type and the base64 text of a data URL. */
function dataOf(part: ContentPart): { type: string; data: string } {
  const [, type = '', data = ''] = /^data:([^;,]*)[^,]*,(.*)$/s.exec(urlOf(part)) ?? []
  return { type, data }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text || '{}')
  } catch {
    return {}
  }
}

function responses(chat: ChatBody): Body {
  const { model, max_tokens, temperature, top_p, reasoning_effort, response_format } = chat
  const input = turnsOf(chat).flatMap(({ role, content, tool_calls = [], tool_call_id }): object[] => {
    if (role === 'tool') return [{ type: 'function_call_output', call_id: tool_call_id, output: content }]
    const calls = tool_calls.map(({ id, function: { name, arguments: given } }) => ({
      type: 'function_call',
      call_id: id,
      name,
      arguments: given,
    }))
    if (content === null) return calls
    const isText = typeof content === 'string'
    return [{ role, content: isText ? content : content.map(responsesPart) }, ...calls]
  })
  const format = response_format && { format: { type: response_format.type, ...response_format.json_schema } }
  return withoutUndefined({
    model,
    instructions: systemOf(chat),
    input,
    max_output_tokens: max_tokens,
    temperature,
    top_p,
    reasoning: reasoning_effort && { effort: reasoning_effort },
    text: format,
    tools: functionsOf(chat)?.map((one) => ({ type: 'function', ...one })),
  })
}

function responsesPart(part: ContentPart): object {
  if (part.type === 'text') return { type: 'input_text', text: part.text }
  if (part.type === 'image_url') return { type: 'input_image', image_url: urlOf(part) }
  return { type: 'input_file', ...(part.file as object) }
}

const MESSAGES_MAX_TOKENS = 4_096

function messages(chat: ChatBody): Body {
  const { model, max_tokens, temperature, top_p, stop } = chat
  const turns = turnsOf(chat).map(({ role, content, tool_calls = [], tool_call_id }) => {
    if (role === 'tool') return { role: 'user', content: [{ type: 'tool_result', tool_use_id: tool_call_id, content }] }
    if (typeof content === 'string' && tool_calls.length === 0) return { role, content }
    const uses = tool_calls.map(({ id, function: { name, arguments: given } }) => ({
      type: 'tool_use',
      id,
      name,
      input: parsed(given),
    }))
    return { role, content: [...partsOf(content).map(messagesPart), ...uses] }
  })
  return withoutUndefined({
    model,
    max_tokens: max_tokens ?? MESSAGES_MAX_TOKENS,
    system: systemOf(chat),
    messages: turns,
    temperature,
    top_p,
    stop_sequences: stop,
    tools: functionsOf(chat)?.map(({ name, description, parameters }) =>
      withoutUndefined({ name, description, input_schema: parameters ?? { type: 'object' } }),
    ),
  })
}

function messagesPart(part: ContentPart): object {
  if (part.type === 'text') return part
  const { type, data } = dataOf(part)
  const source = { type: 'base64', media_type: type, data }
  return { type: part.type === 'image_url' ? 'image' : 'document', source }
}

function contentgen(chat: ChatBody): Body {
  const { max_tokens, temperature, top_p, seed, stop, response_format } = chat
  const system = systemOf(chat)
  const names = new Map(
    chat.messages.flatMap(({ tool_calls = [] }) => tool_calls.map(({ id, function: { name } }) => [id, name])),
  )
  const contents = turnsOf(chat).map(({ role, content, tool_calls = [], tool_call_id = '' }) => {
    if (role === 'tool') {
      const response = { name: names.get(tool_call_id), response: { result: content } }
      return { role: 'user', parts: [{ functionResponse: response }] }
    }
    const calls = tool_calls.map(({ function: { name, arguments: given } }) => ({
      functionCall: { name, args: parsed(given) },
    }))
    return { role: role === 'assistant' ? 'model' : 'user', parts: [...partsOf(content).map(contentgenPart), ...calls] }
  })
  const config = withoutUndefined({
    maxOutputTokens: max_tokens,
    temperature,
    topP: top_p,
    seed,
    stopSequences: stop,
    responseMimeType: response_format && 'application/json',
    responseJsonSchema: response_format?.json_schema?.schema,
  })
  const functions = functionsOf(chat)?.map(({ name, description, parameters }) =>
    withoutUndefined({ name, description, parametersJsonSchema: parameters }),
  )
  return withoutUndefined({
    systemInstruction: system === undefined ? undefined : { parts: [{ text: system }] },
    contents,
    tools: functions && [{ functionDeclarations: functions }],
    generationConfig: Object.keys(config).length > 0 ? config : undefined,
  })
}

function contentgenPart(part: ContentPart): object {
  if (part.type === 'text') return { text: part.text }
  const { type, data } = dataOf(part)
  return { inlineData: { mimeType: type, data } }
}
