/** The schema of a Messages request: the fields that the gateway reads, and their allowed values. */
import Type from 'typebox'
import { ChatRequest } from '../../../spec/chat-request.ts'
import { optional, orNull, titled, typed } from '../../../spec/fields.ts'

const bounds = ChatRequest.properties
const name = Type.String({ minLength: 1 })
const record = Type.Record(Type.String(), Type.Unknown())

const TextBlock = typed('text', { text: Type.String() })

const ImageSource = Type.Union([
  typed('base64', { media_type: Type.String(), data: name }),
  typed('url', { url: name }),
  typed('file', { file_id: name }),
])
const ImageBlock = typed('image', { source: ImageSource })

const DocumentSource = Type.Union([
  typed('base64', { media_type: Type.String(), data: name }),
  typed('text', { media_type: optional(Type.String()), data: Type.String() }),
  typed('url', { url: name }),
  typed('file', { file_id: name }),
  typed('content', { content: Type.Union([Type.String(), Type.Array(Type.Union([TextBlock, ImageBlock]))]) }),
])
const DocumentBlock = typed('document', {
  source: DocumentSource,
  title: optional(Type.String()),
  context: optional(Type.String()),
})
const SearchResultBlock = typed('search_result', {
  source: Type.String(),
  title: Type.String(),
  content: Type.Array(TextBlock),
})

const ToolResultBlock = typed('tool_result', {
  tool_use_id: name,
  content: optional(
    Type.Union([Type.String(), Type.Array(Type.Union([TextBlock, ImageBlock, DocumentBlock, SearchResultBlock]))]),
  ),
  is_error: optional(Type.Boolean()),
})
const ToolUseBlock = typed('tool_use', { id: name, name, input: optional(Type.Unknown()) })
const ThinkingBlock = typed('thinking', { thinking: Type.String(), signature: optional(Type.String()) })
const RedactedThinkingBlock = typed('redacted_thinking', { data: Type.String() })
/** A summary by the vendor of a history that it compacted. */
const CompactionBlock = typed('compaction', { content: optional(Type.String()) })

/** Blocks that document the vendor's own tools. The text that follows holds their results. */
const SERVER_BLOCKS = [
  'server_tool_use',
  'web_search_tool_result',
  'web_fetch_tool_result',
  'code_execution_tool_result',
  'bash_code_execution_tool_result',
  'text_editor_code_execution_tool_result',
  'tool_search_tool_result',
  'advisor_tool_result',
  'mcp_tool_use',
  'mcp_tool_result',
  'fallback',
] as const
const ServerBlock = Type.Object({ type: Type.Enum([...SERVER_BLOCKS]) })

const UserBlock = Type.Union([TextBlock, ImageBlock, DocumentBlock, SearchResultBlock, ToolResultBlock])
const AssistantBlock = Type.Union([
  TextBlock,
  ThinkingBlock,
  RedactedThinkingBlock,
  ToolUseBlock,
  CompactionBlock,
  ServerBlock,
])
export type UserBlock = Type.Static<typeof UserBlock>
export type AssistantBlock = Type.Static<typeof AssistantBlock>

const ClientMessage = Type.Union([
  Type.Object({ role: Type.Literal('user'), content: Type.Union([Type.String(), Type.Array(UserBlock)]) }),
  Type.Object({ role: Type.Literal('assistant'), content: Type.Union([Type.String(), Type.Array(AssistantBlock)]) }),
  Type.Object({ role: Type.Literal('system'), content: Type.Union([Type.String(), Type.Array(TextBlock)]) }),
])
export type ClientMessage = Type.Static<typeof ClientMessage>

/** A tool of the client, or, by its `type`, a tool of the vendor. */
const ClientTool = Type.Object({
  type: optional(Type.String()),
  name: optional(name),
  description: optional(Type.String()),
  input_schema: optional(record),
  strict: optional(Type.Boolean()),
  user_location: optional(record),
  allowed_domains: optional(Type.Array(Type.String())),
  blocked_domains: optional(Type.Array(Type.String())),
})
export type ClientTool = Type.Static<typeof ClientTool>

const parallel = { disable_parallel_tool_use: optional(Type.Boolean()) }
const ClientToolChoice = Type.Union([
  typed('auto', { ...parallel }),
  typed('any', { ...parallel }),
  typed('tool', { name, ...parallel }),
  typed('none', {}),
])

const ClientThinking = Type.Union([
  typed('enabled', { budget_tokens: Type.Integer({ minimum: 1 }) }),
  typed('disabled', {}),
  typed('adaptive', {}),
  typed('between_tools', {}),
])

const OutputFormat = typed('json_schema', { schema: record })
const EFFORTS = ['low', 'medium', 'high', 'xhigh', 'max'] as const

const members = {
  model: bounds.model,
  messages: Type.Array(ClientMessage, { minItems: 1 }),
  system: optional(Type.Union([Type.String(), Type.Array(TextBlock)])),
  stream: bounds.stream,
  temperature: bounds.temperature,
  top_p: bounds.top_p,
  top_k: optional(Type.Integer({ minimum: 0, description: 'Sample from this many most likely tokens only.' })),
  stop_sequences: optional(Type.Array(name)),
  tools: optional(Type.Array(ClientTool)),
  tool_choice: optional(ClientToolChoice),
  thinking: optional(ClientThinking),
  output_config: optional(Type.Object({ effort: optional(Type.Enum([...EFFORTS])), format: optional(OutputFormat) })),
  output_format: optional(OutputFormat),
  metadata: optional(Type.Object({ user_id: optional(Type.String()) })),
  service_tier: optional(Type.String()),
  inference_geo: optional(Type.String()),
  mcp_servers: optional(Type.Array(Type.Unknown())),
  container: optional(Type.Unknown()),
  thread: optional(Type.Unknown()),
}

export const MessagesRequest = titled('MessagesRequest', {
  ...members,
  max_tokens: Type.Integer({ minimum: 1, description: 'The upper bound depends on the model.' }),
})
export type MessagesRequest = Type.Static<typeof MessagesRequest>

export const CountRequest = titled('MessagesCountRequest', {
  ...members,
  max_tokens: optional(Type.Integer({ minimum: 1 })),
})

const count = Type.Integer({ minimum: 0 })

const MessagesUsage = Type.Object({
  input_tokens: Type.Integer({ minimum: 0, description: 'Without tokens read from or written to the cache.' }),
  cache_creation_input_tokens: orNull(count),
  cache_read_input_tokens: orNull(count),
  output_tokens: count,
  output_tokens_details: orNull(Type.Object({ thinking_tokens: count })),
})

export const MessagesAnswer = titled('MessagesAnswer', {
  id: Type.String(),
  type: Type.Literal('message'),
  role: Type.Literal('assistant'),
  model: Type.String(),
  content: Type.Array(record, { description: 'Blocks: text, thinking, redacted_thinking, tool_use.' }),
  stop_reason: orNull(Type.Enum(['end_turn', 'max_tokens', 'stop_sequence', 'tool_use', 'pause_turn', 'refusal'])),
  stop_sequence: orNull(Type.String()),
  usage: MessagesUsage,
})

export const MessagesEvent = Type.Object(
  {
    type: Type.Enum([
      'message_start',
      'content_block_start',
      'content_block_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
      'ping',
      'error',
    ]),
  },
  { title: 'MessagesEvent', description: 'The name of each event is its `type`.' },
)

export const MessagesError = titled('MessagesError', {
  type: Type.Literal('error'),
  error: Type.Object({
    type: Type.String(),
    message: Type.String(),
    details: Type.Object({
      error_code: Type.String({ description: 'The error code.' }),
      param: optional(Type.String({ description: 'The field that caused the error.' })),
    }),
  }),
  request_id: orNull(Type.String()),
})
