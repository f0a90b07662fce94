/** The schema of a Messages request: the fields that the gateway reads, and their allowed values. */
import Type from 'typebox'
import { ChatRequest } from '../../../spec/chat-request.ts'
import { optional, orNull, titled } from '../../../spec/fields.ts'

const bounds = ChatRequest.properties

const TextBlock = Type.Object({ type: Type.Literal('text'), text: Type.String() })

const ImageSource = Type.Union([
  Type.Object({ type: Type.Literal('base64'), media_type: Type.String(), data: Type.String({ minLength: 1 }) }),
  Type.Object({ type: Type.Literal('url'), url: Type.String({ minLength: 1 }) }),
  Type.Object({ type: Type.Literal('file'), file_id: Type.String({ minLength: 1 }) }),
])
const ImageBlock = Type.Object({ type: Type.Literal('image'), source: ImageSource })

const DocumentSource = Type.Union([
  Type.Object({ type: Type.Literal('base64'), media_type: Type.String(), data: Type.String({ minLength: 1 }) }),
  Type.Object({ type: Type.Literal('text'), media_type: optional(Type.String()), data: Type.String() }),
  Type.Object({ type: Type.Literal('url'), url: Type.String({ minLength: 1 }) }),
  Type.Object({ type: Type.Literal('file'), file_id: Type.String({ minLength: 1 }) }),
  Type.Object({
    type: Type.Literal('content'),
    content: Type.Union([Type.String(), Type.Array(Type.Union([TextBlock, ImageBlock]))]),
  }),
])
const DocumentBlock = Type.Object({
  type: Type.Literal('document'),
  source: DocumentSource,
  title: optional(Type.String()),
  context: optional(Type.String()),
})
const SearchResultBlock = Type.Object({
  type: Type.Literal('search_result'),
  source: Type.String(),
  title: Type.String(),
  content: Type.Array(TextBlock),
})

const ToolResultBlock = Type.Object({
  type: Type.Literal('tool_result'),
  tool_use_id: Type.String({ minLength: 1 }),
  content: optional(
    Type.Union([Type.String(), Type.Array(Type.Union([TextBlock, ImageBlock, DocumentBlock, SearchResultBlock]))]),
  ),
  is_error: optional(Type.Boolean()),
})
const ToolUseBlock = Type.Object({
  type: Type.Literal('tool_use'),
  id: Type.String({ minLength: 1 }),
  name: Type.String({ minLength: 1 }),
  input: optional(Type.Unknown()),
})
const ThinkingBlock = Type.Object({
  type: Type.Literal('thinking'),
  thinking: Type.String(),
  signature: optional(Type.String()),
})
const RedactedThinkingBlock = Type.Object({ type: Type.Literal('redacted_thinking'), data: Type.String() })
/** A summary by the vendor of a history that it compacted. */
const CompactionBlock = Type.Object({ type: Type.Literal('compaction'), content: optional(Type.String()) })

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
  name: optional(Type.String({ minLength: 1 })),
  description: optional(Type.String()),
  input_schema: optional(Type.Record(Type.String(), Type.Unknown())),
  strict: optional(Type.Boolean()),
  user_location: optional(Type.Record(Type.String(), Type.Unknown())),
  allowed_domains: optional(Type.Array(Type.String())),
  blocked_domains: optional(Type.Array(Type.String())),
})
export type ClientTool = Type.Static<typeof ClientTool>

const parallel = { disable_parallel_tool_use: optional(Type.Boolean()) }
const ClientToolChoice = Type.Union([
  Type.Object({ type: Type.Literal('auto'), ...parallel }),
  Type.Object({ type: Type.Literal('any'), ...parallel }),
  Type.Object({ type: Type.Literal('tool'), name: Type.String({ minLength: 1 }), ...parallel }),
  Type.Object({ type: Type.Literal('none') }),
])

const ClientThinking = Type.Union([
  Type.Object({ type: Type.Literal('enabled'), budget_tokens: Type.Integer({ minimum: 1 }) }),
  Type.Object({ type: Type.Literal('disabled') }),
  Type.Object({ type: Type.Literal('adaptive') }),
  Type.Object({ type: Type.Literal('between_tools') }),
])

const OutputFormat = Type.Object({
  type: Type.Literal('json_schema'),
  schema: Type.Record(Type.String(), Type.Unknown()),
})
const EFFORTS = ['low', 'medium', 'high', 'xhigh', 'max'] as const

const members = {
  model: bounds.model,
  messages: Type.Array(ClientMessage, { minItems: 1 }),
  system: optional(Type.Union([Type.String(), Type.Array(TextBlock)])),
  stream: bounds.stream,
  temperature: bounds.temperature,
  top_p: bounds.top_p,
  top_k: optional(Type.Integer({ minimum: 0, description: 'Sample from this many most likely tokens only.' })),
  stop_sequences: optional(Type.Array(Type.String({ minLength: 1 }))),
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
  content: Type.Array(Type.Record(Type.String(), Type.Unknown()), {
    description: 'Blocks: text, thinking, redacted_thinking, tool_use.',
  }),
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
