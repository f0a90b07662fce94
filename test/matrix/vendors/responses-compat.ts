/** A Responses provider that stores nothing: reasoning must come back encrypted, and calls before their results. */
import { type Line, linesOf, type ReceivedRequest, type ScriptedResponse } from '../model-script.ts'
import type { JsonSchema, Picture, Result } from '../types.ts'
import { sse, unknownFieldIn, type Wire } from './wire-vendor.ts'

type Part = { type: string; text?: string; image_url?: string }
type Item = {
  type?: string
  role?: string
  content?: string | Part[]
  call_id?: string
  name?: string
  arguments?: string
  output?: string | Part[]
  encrypted_content?: string
}
type Body = {
  input: string | Item[]
  instructions?: string
  tools?: { type: string; name: string; description?: string; parameters: JsonSchema }[]
  tool_choice?: string | { type: string; name?: string }
  text?: { format?: { type: string; schema?: JsonSchema } }
  reasoning?: { effort?: string; summary?: string }
  include?: string[]
  max_output_tokens?: number
  temperature?: number
}

const ENCRYPTED = 'gAAAAABo_of_the_matrix'

const textOf = (content: string | Part[] | undefined): string =>
  typeof content === 'string' ? content : (content ?? []).flatMap(({ text }) => text ?? []).join('\n')

const isThinking = ({ reasoning }: Body) => (reasoning?.effort ?? 'none') !== 'none'

function lineOf(
  { type, role, content, call_id, name = '', arguments: scripted = '', output }: Item,
  items: Item[],
): Line[] {
  if (type === 'function_call') return [{ role: 'assistant', text: '', calls: [{ name, args: JSON.parse(scripted) }] }]
  if (type === 'function_call_output') {
    const call = items.find((one) => one.type === 'function_call' && one.call_id === call_id)
    return [{ role: 'results', results: [{ name: call?.name ?? '', text: textOf(output) }] }]
  }
  if (role === 'assistant') return [{ role, text: textOf(content), calls: [] }]
  if (role !== 'user') return []
  return [{ role, text: textOf(content), pictures: picturesOf(content).map(({ data }) => data) }]
}

const FIELDS = [
  ...['model', 'input', 'instructions', 'tools', 'tool_choice', 'parallel_tool_calls', 'text', 'reasoning', 'include'],
  ...['max_output_tokens', 'temperature', 'top_p', 'store', 'stream', 'metadata', 'user', 'prompt_cache_key'],
]

/** What the original vendor refuses. */
function refusalOf(body: Body, items: Item[]): string | undefined {
  const unknownField = unknownFieldIn(body, FIELDS)
  if (unknownField) return `Unknown parameter: '${unknownField}'.`
  if ((body.max_output_tokens ?? 16) < 16) return "Invalid 'max_output_tokens': integer below minimum value."
  if (isThinking(body) && body.temperature !== undefined) return "Unsupported parameter: 'temperature'."
  for (const [at, item] of items.entries()) {
    if (item.type === 'function_call_output') {
      const isKnown = items.slice(0, at).some((one) => one.type === 'function_call' && one.call_id === item.call_id)
      if (!isKnown) return `No tool call found for function call output with call_id ${item.call_id}.`
    }
    if (item.type === 'reasoning' && item.encrypted_content !== ENCRYPTED)
      return 'The encrypted content for a reasoning item could not be verified.'
  }
  return undefined
}

function picturesOf(content: Item['content']): Picture[] {
  return (Array.isArray(content) ? content : []).flatMap(({ image_url }) => {
    const [, media_type = '', data = ''] = /^data:([^;]+);base64,(.*)$/.exec(image_url ?? '') ?? []
    return image_url ? [{ media_type, data }] : []
  })
}

function decode(body: Body): ReceivedRequest | string {
  const items: Item[] = typeof body.input === 'string' ? [{ role: 'user', content: body.input }] : body.input
  const refusal = refusalOf(body, items)
  if (refusal) return refusal
  const at = items.findLastIndex(({ role }) => role === 'user')
  const results: Result[] = items.slice(at).flatMap(({ type, call_id = '', output }) => {
    const call = items.find((one) => one.type === 'function_call' && one.call_id === call_id)
    return type === 'function_call_output' ? [{ id: call_id, name: call?.name ?? '', text: textOf(output) }] : []
  })
  const systemText = items.filter(({ role }) => role === 'system' || role === 'developer')
  const { tool_choice: choice, text, tools = [], max_output_tokens: max_tokens } = body
  return {
    system: [body.instructions, ...systemText.map(({ content }) => textOf(content))].filter(Boolean).join('\n'),
    question: textOf(items[at]?.content),
    pictures: picturesOf(items[at]?.content),
    results,
    turns: items.length,
    history: linesOf(items.flatMap((item) => lineOf(item, items))),
    tools: tools.map(({ name, description = '', parameters }) => ({ name, description, parameters })),
    demanded: typeof choice === 'object' ? choice.name : choice === 'required' || undefined,
    schema: text?.format?.schema,
    is_thinking: isThinking(body),
    max_tokens,
    stops: [],
  }
}

/** An item, and the deltas that build it. */
type Generated = { item: Record<string, unknown> & { id: string; type: string }; events(at: number): Event[] }
type Event = { type: string } & Record<string, unknown>

function generatedFrom(scripted: ScriptedResponse, body: Body): Generated[] {
  const { reasoning, text, calls } = scripted
  const generated: Generated[] = []
  if (reasoning.length > 0) generated.push(thought(body.reasoning?.summary ? reasoning : [], body))
  if (text.length > 0) generated.push(textBlocks(text, scripted))
  return [...generated, ...calls.map(called)]
}

function thought(pieces: string[], { include = [] }: Body): Generated {
  const part = { type: 'summary_text', text: pieces.join('') }
  const encrypted = include.includes('reasoning.encrypted_content') ? { encrypted_content: ENCRYPTED } : {}
  const item = { id: 'rs_v', type: 'reasoning', summary: pieces.length > 0 ? [part] : [], ...encrypted }
  const events = (output_index: number): Event[] => {
    const place = { item_id: item.id, output_index, summary_index: 0 }
    if (pieces.length === 0) return []
    return [
      { type: 'response.reasoning_summary_part.added', ...place, part: { ...part, text: '' } },
      ...pieces.map((delta) => ({ type: 'response.reasoning_summary_text.delta', ...place, delta })),
      { type: 'response.reasoning_summary_text.done', ...place, text: part.text },
      { type: 'response.reasoning_summary_part.done', ...place, part },
    ]
  }
  return { item, events }
}

function textBlocks(pieces: string[], { finish }: ScriptedResponse): Generated {
  const part = { type: 'output_text', text: pieces.join(''), annotations: [], logprobs: [] }
  const status = finish === 'length' ? 'incomplete' : 'completed'
  const item = { id: 'msg_v', type: 'message', role: 'assistant', status, content: [part] }
  const events = (output_index: number): Event[] => {
    const place = { item_id: item.id, output_index, content_index: 0 }
    return [
      { type: 'response.content_part.added', ...place, part: { ...part, text: '' } },
      ...pieces.map((delta) => ({ type: 'response.output_text.delta', ...place, delta, logprobs: [] })),
      { type: 'response.output_text.done', ...place, text: part.text, logprobs: [] },
      { type: 'response.content_part.done', ...place, part },
    ]
  }
  return { item, events }
}

function called({ id, name, pieces }: ScriptedResponse['calls'][number]): Generated {
  const item = {
    id: `fc_${id}`,
    type: 'function_call',
    status: 'completed',
    call_id: id,
    name,
    arguments: pieces.join(''),
  }
  const events = (output_index: number): Event[] => {
    const place = { item_id: item.id, output_index }
    return [
      ...pieces.map((delta) => ({ type: 'response.function_call_arguments.delta', ...place, delta })),
      { type: 'response.function_call_arguments.done', ...place, name, arguments: item.arguments },
    ]
  }
  return { item, events }
}

const usageOf = ({ usage: { input, cached, output, reasoning } }: ScriptedResponse) => ({
  input_tokens: input,
  input_tokens_details: { cached_tokens: cached, cache_write_tokens: 0 },
  output_tokens: output,
  output_tokens_details: { reasoning_tokens: reasoning },
  total_tokens: input + output,
})

const head = (body: Body, model: string) => ({
  id: 'resp_v',
  object: 'response',
  created_at: 1_780_000_000,
  background: false,
  error: null,
  incomplete_details: null as { reason: string } | null,
  instructions: body.instructions ?? null,
  metadata: {},
  model,
  output: [] as unknown[],
  parallel_tool_calls: true,
  previous_response_id: null,
  reasoning: { effort: 'none', summary: null, ...body.reasoning },
  store: false,
  temperature: 1,
  text: body.text ?? { format: { type: 'text' } },
  tool_choice: body.tool_choice ?? 'auto',
  tools: body.tools ?? [],
  top_p: 1,
  truncation: 'disabled',
  usage: null as unknown,
})

function whole(scripted: ScriptedResponse, model: string, requestBody: unknown) {
  const body = requestBody as Body
  const isCut = scripted.finish === 'length'
  return {
    ...head(body, model),
    status: isCut ? 'incomplete' : 'completed',
    ...(isCut ? { incomplete_details: { reason: 'max_output_tokens' } } : { completed_at: 1_780_000_001 }),
    output: generatedFrom(scripted, body).map(({ item }) => item),
    usage: usageOf(scripted),
  }
}

function events(scripted: ScriptedResponse, model: string, requestBody: unknown): string[] {
  const body = requestBody as Body
  const started = { ...head(body, model), status: 'in_progress' }
  const response = whole(scripted, model, body)
  const items = generatedFrom(scripted, body).flatMap(({ item, events: inner }, output_index): Event[] => {
    const { encrypted_content: _, ...bare } = item
    const empty = { ...bare, status: 'in_progress', ...EMPTY[item.type] }
    return [
      { type: 'response.output_item.added', output_index, item: empty },
      ...inner(output_index),
      { type: 'response.output_item.done', output_index, item },
    ]
  })
  const all: Event[] = [
    { type: 'response.created', response: started },
    { type: 'response.in_progress', response: started },
    ...items,
    { type: `response.${response.status}`, response },
  ]
  return all.map((event, sequence_number) => sse(event.type, { ...event, sequence_number }))
}

/** The empty members of an item at its start. */
const EMPTY: Record<string, object> = {
  reasoning: { summary: [] },
  message: { content: [] },
  function_call: { arguments: '' },
}

const failure = (status: number, message: string) => ({
  error: { message, type: status < 500 ? 'invalid_request_error' : 'server_error', param: null, code: null },
})

export const responsesWire: Wire = {
  decode: (body) => decode(body as Body),
  isStreamed: (body) => body.stream === true,
  whole,
  events,
  isDone: false,
  failure,
  failed: () =>
    sse('response.failed', {
      type: 'response.failed',
      sequence_number: 99,
      response: {
        id: 'resp_v',
        object: 'response',
        status: 'failed',
        error: { code: 'server_error', message: 'failed in mid-stream' },
        output: [],
      },
    }),
  model: (body) => String(body.model),
  models: { object: 'list', data: [{ id: 'gpt-5.1', object: 'model', created: 1_780_000_000, owned_by: 'v' }] },
  counts: {
    matches: (path) => path.endsWith('/input_tokens'),
    answer: { object: 'response.input_tokens', input_tokens: 40 },
  },
}
