/** A chat-completions provider, as most of them behave: usage in the last chunk, and `[DONE]` at the end. */
import { type Line, linesOf, type ReceivedRequest, type ScriptedResponse } from '../model-script.ts'
import type { JsonSchema, Picture, Result } from '../types.ts'
import { unknownFieldIn, type Wire } from './wire-vendor.ts'

type Part = { type: string; text?: string; image_url?: { url: string } }
type Message = {
  role: string
  content?: string | Part[] | null
  tool_call_id?: string
  tool_calls?: { id: string; function: { name: string; arguments: string } }[]
}
type Body = {
  messages: Message[]
  tools?: { function: { name: string; description?: string; parameters: JsonSchema } }[]
  tool_choice?: string | { function?: { name: string } }
  response_format?: { type: string; json_schema?: { schema: JsonSchema } }
  reasoning_effort?: string
  thinking_enabled?: boolean
  max_tokens?: number
  max_completion_tokens?: number
  stop?: string | string[]
}

const textOf = ({ content }: Message): string =>
  typeof content === 'string' ? content : (content ?? []).flatMap(({ text }) => text ?? []).join('\n')

function picturesOf({ content }: Message): Picture[] {
  return (Array.isArray(content) ? content : []).flatMap(({ image_url }) => {
    const [, media_type = '', data = ''] = /^data:([^;]+);base64,(.*)$/.exec(image_url?.url ?? '') ?? []
    return image_url ? [{ media_type, data }] : []
  })
}

type Called = NonNullable<Message['tool_calls']>[number]

function lineOf(message: Message, calls: Called[]): Line[] {
  const { role, tool_call_id, tool_calls = [] } = message
  const text = textOf(message)
  if (role === 'user') return [{ role, text, pictures: picturesOf(message).map(({ data }) => data) }]
  if (role === 'tool') {
    const name = calls.find(({ id }) => id === tool_call_id)?.function.name ?? ''
    return [{ role: 'results', results: [{ name, text }] }]
  }
  if (role !== 'assistant') return []
  const generated = tool_calls.map(({ function: { name, arguments: scripted } }) => ({
    name,
    args: JSON.parse(scripted),
  }))
  return [{ role, text, calls: generated }]
}

const MESSAGE = ['role', 'content', 'name', 'refusal', 'tool_calls', 'tool_call_id', 'reasoning_content', 'annotations']
const CALL = ['id', 'type', 'function']

/** What strict providers refuse. */
function refusalOf({ messages }: Body): string | undefined {
  for (const [at, message] of messages.entries()) {
    const unknownField = unknownFieldIn(message, MESSAGE)
    if (unknownField) return `messages.${at}.${unknownField}: Extra inputs are not permitted`
    const { role, content, tool_calls = [] } = message
    const strange = tool_calls.map((call) => unknownFieldIn(call, CALL)).find(Boolean)
    if (strange) return `messages.${at}.tool_calls.${strange}: Extra inputs are not permitted`
    if (role === 'tool' && typeof content !== 'string') return `messages.${at}.content: Input should be a valid string`
    const answered = messages.slice(at + 1, at + 1 + tool_calls.length).map(({ tool_call_id }) => tool_call_id)
    if (tool_calls.some(({ id }) => !answered.includes(id)))
      return "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
  }
  return undefined
}

function decode(body: Body): ReceivedRequest | string {
  const refusal = refusalOf(body)
  if (refusal) return refusal
  const { messages, tools = [], tool_choice, response_format, reasoning_effort, stop = [] } = body
  const at = messages.findLastIndex(({ role }) => role === 'user')
  const last = messages[at]
  if (!last) return 'there is no message of the user'
  const calls = messages.flatMap(({ tool_calls = [] }) => tool_calls)
  const results: Result[] = []
  for (const message of messages.slice(at)) {
    if (message.role !== 'tool') continue
    const call = calls.find(({ id }) => id === message.tool_call_id)
    if (!call) return `no call has the id ${message.tool_call_id}`
    results.push({ id: call.id, name: call.function.name, text: textOf(message) })
  }
  return {
    system: messages
      .filter(({ role }) => role === 'system' || role === 'developer')
      .map(textOf)
      .join('\n'),
    question: textOf(last),
    pictures: picturesOf(last),
    results,
    turns: messages.length,
    history: linesOf(messages.flatMap((message) => lineOf(message, calls))),
    tools: tools.map(({ function: { name, description = '', parameters } }) => ({ name, description, parameters })),
    demanded: typeof tool_choice === 'object' ? tool_choice.function?.name : tool_choice === 'required' || undefined,
    schema: response_format?.json_schema?.schema,
    is_thinking: body.thinking_enabled ?? (reasoning_effort ?? 'none') !== 'none',
    max_tokens: body.max_completion_tokens ?? body.max_tokens,
    stops: typeof stop === 'string' ? [stop] : stop,
  }
}

const FINISH = { stop: 'stop', stop_sequence: 'stop', length: 'length', tool_calls: 'tool_calls' }

const usageOf = ({ usage: { input, cached, output, reasoning } }: ScriptedResponse) => ({
  prompt_tokens: input,
  completion_tokens: output,
  total_tokens: input + output,
  prompt_tokens_details: { cached_tokens: cached, audio_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: reasoning, audio_tokens: 0 },
})

function whole(scripted: ScriptedResponse, model: string): unknown {
  const message = {
    role: 'assistant',
    content: scripted.calls.length > 0 && scripted.text.length === 0 ? null : scripted.text.join(''),
    refusal: null,
    ...(scripted.reasoning.length > 0 ? { reasoning_content: scripted.reasoning.join('') } : {}),
    ...(scripted.calls.length > 0
      ? {
          tool_calls: scripted.calls.map(({ id, name, pieces }) => ({
            id,
            type: 'function',
            function: { name, arguments: pieces.join('') },
          })),
        }
      : {}),
  }
  const choice = { index: 0, message, logprobs: null, finish_reason: FINISH[scripted.finish] }
  return { ...head(model), object: 'chat.completion', choices: [choice], usage: usageOf(scripted) }
}

const head = (model: string) => ({ id: 'chatcmpl-v', created: 1_780_000_000, model, system_fingerprint: 'fp_v' })

function events(scripted: ScriptedResponse, model: string): object[] {
  const chunk = (delta: object, finish_reason: string | null = null) => ({
    ...head(model),
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta, logprobs: null, finish_reason }],
    usage: null,
  })
  const call = (index: number, more: object) => chunk({ tool_calls: [{ index, ...more }] })
  return [
    chunk({ role: 'assistant', content: '', refusal: null }),
    ...scripted.reasoning.map((reasoning_content) => chunk({ reasoning_content })),
    ...scripted.text.map((content) => chunk({ content })),
    ...scripted.calls.flatMap(({ id, name, pieces }, index) => [
      call(index, { id, type: 'function', function: { name, arguments: '' } }),
      ...pieces.map((text) => call(index, { function: { arguments: text } })),
    ]),
    chunk({}, FINISH[scripted.finish]),
    { ...head(model), object: 'chat.completion.chunk', choices: [], usage: usageOf(scripted) },
  ]
}

const failure = (status: number, message: string) => ({
  error: { message, type: status < 500 ? 'invalid_request_error' : 'server_error', param: null, code: null },
})

export const chatcompatWire: Wire = {
  decode: (body) => decode(body as Body),
  isStreamed: (body) => body.stream === true,
  whole,
  events,
  isDone: true,
  failure,
  failed: () => failure(500, 'failed in mid-stream'),
  model: (body) => String(body.model),
  models: { object: 'list', data: [{ id: 'm', object: 'model', created: 1_780_000_000, owned_by: 'v' }] },
}
