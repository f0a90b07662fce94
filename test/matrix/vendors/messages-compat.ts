/** A Messages provider with the refusals of the original: wrong turns, unanswered calls, missing thoughts. */
import { type Line, linesOf, type ReceivedRequest, type ScriptedResponse } from '../model-script.ts'
import type { JsonSchema, Picture, Result } from '../types.ts'
import { sse, unknownFieldIn, type Wire } from './wire-vendor.ts'

type Block = {
  type: string
  text?: string
  source?: { type: string; media_type: string; data: string }
  id?: string
  name?: string
  input?: unknown
  tool_use_id?: string
  content?: string | Block[]
  is_error?: boolean
  thinking?: string
  signature?: string
}
type Message = { role: string; content: string | Block[] }
type Body = {
  max_tokens?: number
  system?: string | Block[]
  messages: Message[]
  tools?: { name: string; description?: string; input_schema: JsonSchema }[]
  tool_choice?: { type: string; name?: string }
  thinking?: { type: string; budget_tokens?: number }
  output_config?: { format?: { type: string; schema: JsonSchema } }
  stop_sequences?: string[]
}

const SIGNATURE = 'RXFRQkNnSVlBaElNMWdiY0RhOUdKd1pBMmIzaA=='

const blocksOf = (content: Message['content'] | undefined): Block[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? [])
const textOf = (blocks: Block[]): string => blocks.flatMap(({ text }) => (text === undefined ? [] : [text])).join('\n')
const picturesOf = (blocks: Block[]): Picture[] => blocks.flatMap(({ source }) => (source ? [source] : []))

function lines({ role, content }: Message, uses: Block[]): Line[] {
  const blocks = blocksOf(content)
  const textBlocks = blocks.filter(({ type }) => type === 'text' || type === 'image')
  if (role === 'assistant') {
    const calls = blocks.filter(({ type }) => type === 'tool_use').map(({ name = '', input: args }) => ({ name, args }))
    return [{ role, text: textOf(textBlocks), calls }]
  }
  const results = blocks
    .filter(({ type }) => type === 'tool_result')
    .map(({ tool_use_id, content: systemText }) => ({
      name: uses.find(({ id }) => id === tool_use_id)?.name ?? '',
      text: textOf(blocksOf(systemText)),
    }))
  const scripted: Line = {
    role: 'user',
    text: textOf(textBlocks),
    pictures: picturesOf(textBlocks).map(({ data }) => data),
  }
  return [{ role: 'results', results }, ...(textBlocks.length > 0 ? [scripted] : [])]
}

const FIELDS = [
  ...['model', 'max_tokens', 'messages', 'system', 'tools', 'tool_choice', 'thinking', 'output_config', 'stream'],
  ...['stop_sequences', 'temperature', 'top_p', 'top_k', 'metadata', 'service_tier', 'context_management'],
]

/** What the original vendor refuses. */
function refusalOf(body: Body): string | undefined {
  const { max_tokens, messages, thinking, tool_choice } = body
  const unknownField = unknownFieldIn(body, FIELDS)
  if (unknownField) return `${unknownField}: Extra inputs are not permitted`
  if (!max_tokens) return 'max_tokens: Field required'
  if (messages[0]?.role !== 'user') return 'messages: first message must use the "user" role'
  if (thinking?.type === 'enabled' && (thinking.budget_tokens ?? 0) >= max_tokens)
    return '`max_tokens` must be greater than `thinking.budget_tokens`'
  if (thinking && thinking.type !== 'disabled' && ['any', 'tool'].includes(tool_choice?.type ?? ''))
    return 'Thinking may not be enabled when tool_choice forces tool use.'
  for (const [at, { role, content }] of messages.entries()) {
    const uses = blocksOf(content).filter(({ type }) => type === 'tool_use')
    if (role !== 'assistant' || uses.length === 0) continue
    const answered = blocksOf(messages[at + 1]?.content).map(({ tool_use_id }) => tool_use_id)
    if (uses.some(({ id }) => !answered.includes(id)))
      return `messages.${at}: tool_use ids were found without tool_result blocks immediately after`
    const first = blocksOf(content)[0]
    if (thinking?.type === 'enabled' && first?.type !== 'thinking')
      return `messages.${at}.content.0.type: Expected \`thinking\`, but found \`${first?.type}\``
    if (first?.type === 'thinking' && first.signature !== SIGNATURE)
      return `messages.${at}.content.0: Invalid \`signature\` in \`thinking\` block`
  }
  return undefined
}

function decode(body: Body): ReceivedRequest | string {
  const refusal = refusalOf(body)
  if (refusal) return refusal
  const { messages, tools = [], tool_choice, thinking } = body
  const uses = messages.flatMap(({ content }) => blocksOf(content)).filter(({ type }) => type === 'tool_use')
  const isQuestion = ({ role, content }: Message) =>
    role === 'user' && blocksOf(content).some(({ type }) => type !== 'tool_result')
  const at = messages.findLastIndex(isQuestion)
  const last = blocksOf(messages[at]?.content)
  const results: Result[] = messages.slice(at + 1).flatMap(({ content }) =>
    blocksOf(content).flatMap(({ type, tool_use_id, content: systemText, is_error = false }) => {
      const use = uses.find(({ id }) => id === tool_use_id)
      if (type !== 'tool_result' || !use?.id) return []
      return [{ id: use.id, name: use.name ?? '', text: textOf(blocksOf(systemText)), is_error }]
    }),
  )
  return {
    system: textOf(blocksOf(body.system)),
    question: textOf(last),
    pictures: picturesOf(last),
    results,
    turns: messages.length,
    history: linesOf(messages.flatMap((message) => lines(message, uses))),
    tools: tools.map(({ name, description = '', input_schema }) => ({ name, description, parameters: input_schema })),
    demanded: tool_choice?.name ?? (tool_choice?.type === 'any' || undefined),
    schema: body.output_config?.format?.schema,
    is_thinking: thinking !== undefined && thinking.type !== 'disabled',
    max_tokens: body.max_tokens,
    stops: body.stop_sequences ?? [],
  }
}

const FINISH = { stop: 'end_turn', stop_sequence: 'stop_sequence', length: 'max_tokens', tool_calls: 'tool_use' }

const usageOf = ({ usage: { input, cached, output, reasoning } }: ScriptedResponse) => ({
  input_tokens: input - cached,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: cached,
  output_tokens: output,
  output_tokens_details: { thinking_tokens: reasoning },
  service_tier: 'standard',
})

const head = (model: string) => ({ id: 'msg_v', type: 'message', role: 'assistant', model })

function whole(scripted: ScriptedResponse, model: string): unknown {
  const { reasoning, text, calls } = scripted
  const content = [
    ...(reasoning.length > 0 ? [{ type: 'thinking', thinking: reasoning.join(''), signature: SIGNATURE }] : []),
    ...(text.length > 0 ? [{ type: 'text', text: text.join('') }] : []),
    ...calls.map(({ id, name, pieces }) => ({ type: 'tool_use', id, name, input: JSON.parse(pieces.join('')) })),
  ]
  return {
    ...head(model),
    content,
    stop_reason: FINISH[scripted.finish],
    stop_sequence: scripted.stop ?? null,
    usage: usageOf(scripted),
  }
}

function events(scripted: ScriptedResponse, model: string): string[] {
  const systemText = (event: { type: string } & Record<string, unknown>) => sse(event.type, event)
  let index = -1
  const block = (content_block: object, deltas: object[]): string[] => {
    index++
    return [
      systemText({ type: 'content_block_start', index, content_block }),
      ...deltas.map((delta) => systemText({ type: 'content_block_delta', index, delta })),
      systemText({ type: 'content_block_stop', index }),
    ]
  }
  const thoughts = scripted.reasoning.map((thinking) => ({ type: 'thinking_delta', thinking }))
  const signed = { type: 'signature_delta', signature: SIGNATURE }
  return [
    systemText({
      type: 'message_start',
      message: {
        ...head(model),
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { ...usageOf(scripted), output_tokens: 1 },
      },
    }),
    systemText({ type: 'ping' }),
    ...(thoughts.length > 0 ? block({ type: 'thinking', thinking: '', signature: '' }, [...thoughts, signed]) : []),
    ...(scripted.text.length > 0
      ? block(
          { type: 'text', text: '' },
          scripted.text.map((text) => ({ type: 'text_delta', text })),
        )
      : []),
    ...scripted.calls.flatMap(({ id, name, pieces }) =>
      block(
        { type: 'tool_use', id, name, input: {} },
        ['', ...pieces].map((partial_json) => ({ type: 'input_json_delta', partial_json })),
      ),
    ),
    systemText({
      type: 'message_delta',
      delta: { stop_reason: FINISH[scripted.finish], stop_sequence: scripted.stop ?? null },
      usage: usageOf(scripted),
    }),
    systemText({ type: 'message_stop' }),
  ]
}

const TYPES: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
}
const failure = (status: number, message: string) => ({
  type: 'error',
  error: { type: TYPES[status] ?? 'api_error', message },
  request_id: 'req_v',
})

export const messagesWire: Wire = {
  decode: (body) => decode(body as Body),
  isStreamed: (body) => body.stream === true,
  whole,
  events,
  isDone: false,
  failure,
  failed: () => sse('error', failure(500, 'failed in mid-stream')),
  model: (body) => String(body.model),
  models: {
    data: [{ type: 'model', id: 'claude-sonnet-4-6', display_name: 'V', created_at: '2026-02-17T00:00:00Z' }],
    has_more: false,
    first_id: 'claude-sonnet-4-6',
    last_id: 'claude-sonnet-4-6',
  },
  counts: { matches: (path) => path.endsWith('/count_tokens'), answer: { input_tokens: 40 } },
}
