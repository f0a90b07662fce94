/** The schema of a Responses request: the fields that the gateway reads, and their allowed values. */
import Type from 'typebox'
import { pick } from '../../../kit/pick.ts'
import { ChatRequest } from '../../../spec/chat-request.ts'
import { optional, orNull, titled, typed } from '../../../spec/fields.ts'
import { McpApprovalRequestItem, McpApprovalResponseItem, McpCallItem, McpFields } from './mcp-schema.ts'

const bounds = ChatRequest.properties

const name = Type.String({ minLength: 1 })
const optionalText = optional(Type.String())
const optionalName = optional(name)
const record = Type.Record(Type.String(), Type.Unknown())

const InputPart = Type.Union([
  typed('input_text', { text: Type.String() }),
  typed('input_image', { image_url: optionalName, file_id: optionalText, detail: optionalText }),
  typed('input_file', {
    file_data: optionalName,
    file_id: optionalName,
    file_url: optionalName,
    filename: optionalText,
  }),
  typed('input_audio', { input_audio: Type.Object({ data: Type.String(), format: Type.String() }) }),
  typed('output_text', { text: Type.String() }),
  typed('refusal', { refusal: Type.String() }),
])
export type InputPart = Type.Static<typeof InputPart>

/** A function of the client, or, by its `type`, a tool of the vendor. */
const ToolFields = {
  type: Type.String(),
  name: optionalName,
  description: optionalText,
  parameters: optional(record),
  strict: optional(Type.Boolean()),
  format: optional(
    Type.Object({ type: Type.Enum(['text', 'grammar']), syntax: optionalText, definition: optionalText }),
  ),
  search_context_size: optionalText,
  user_location: optional(record),
  filters: optional(record),
  external_web_access: optional(Type.Boolean({ description: 'For `web_search`: whether pages may be fetched.' })),
  execution: optional(Type.String({ description: 'Of `tool_search`: who searches, `server` or `client`.' })),
}
const ClientTool = Type.Object({
  ...ToolFields,
  ...McpFields,
  tools: optional(
    Type.Array(Type.Object(ToolFields), { description: 'For a `namespace`: its functions and custom tools.' }),
  ),
})
export type ClientTool = Type.Static<typeof ClientTool>

const id = optionalText
const call = { id, call_id: name, name, namespace: optionalText }
const callOutput = { id, call_id: name, output: Type.Union([Type.String(), Type.Array(InputPart)]) }
const reasoningTexts = optional(Type.Array(Type.Object({ text: Type.String() })))

const MessageItem = Type.Object({
  type: optional(Type.Literal('message')),
  id,
  role: Type.Enum(['user', 'assistant', 'system', 'developer']),
  content: Type.Union([Type.String(), Type.Array(InputPart)]),
})
const CallItem = typed('function_call', { ...call, arguments: Type.String() })
const CallOutputItem = typed('function_call_output', callOutput)
const CustomCallItem = typed('custom_tool_call', { ...call, input: Type.String() })
const CustomCallOutputItem = typed('custom_tool_call_output', callOutput)
const ImageCallItem = typed('image_generation_call', {
  id,
  result: optionalText,
  output_format: optional(Type.String({ pattern: '^[a-z.+-]{1,20}$' })), // becomes part of a media type
})
const ReasoningItem = typed('reasoning', {
  id,
  summary: reasoningTexts,
  content: reasoningTexts,
  encrypted_content: optionalText,
})
const ReferenceItem = Type.Object({ type: optional(Type.Literal('item_reference')), id: name })

const TextFormat = Type.Union([
  typed('text', {}),
  typed('json_object', {}),
  typed('json_schema', { name, schema: record, description: optionalText, strict: optional(Type.Boolean()) }),
])

/** A message of another agent of the same client, as its model wrote it. */
const AgentMessageItem = typed('agent_message', {
  id,
  content: Type.Array(
    Type.Union([
      typed('input_text', { text: Type.String() }),
      typed('encrypted_content', { encrypted_content: Type.String() }),
    ]),
  ),
})
/** Settings that apply from this item on, in place of those of the request. */
const ConfigurationUpdateItem = typed('configuration_update', {
  id,
  reasoning: optional(Type.Object({ effort: bounds.reasoning_effort })),
  text: optional(Type.Object({ format: optional(TextFormat) })),
})
/** Tools that are available from this item on, in addition to `tools`. */
const AdditionalToolsItem = typed('additional_tools', { id, tools: Type.Array(ClientTool) })
/** The client's search for further tools. A search by the vendor has no `call_id`. */
const ToolSearchCallItem = typed('tool_search_call', {
  id,
  call_id: optionalName,
  arguments: optional(Type.Unknown()),
})
const ToolSearchOutputItem = typed('tool_search_output', {
  id,
  call_id: optionalName,
  tools: Type.Array(ClientTool),
})

/** Calls of the vendor's own tools. The text that follows holds their results, so they are ignored. */
export const IGNORED_ITEMS = ['web_search_call', 'file_search_call', 'code_interpreter_call', 'mcp_list_tools'] as const
const OwnToolItem = Type.Object({ type: Type.Enum([...IGNORED_ITEMS]) })

const SummaryItem = Type.Object({
  type: Type.Enum(['compaction', 'compaction_summary']),
  id,
  encrypted_content: Type.String(),
})
/** Asks for a summary in place of an answer; the last item. */
const CompactionTriggerItem = typed('compaction_trigger', { id })

export const InputItem = Type.Union([
  MessageItem,
  CallItem,
  CallOutputItem,
  CustomCallItem,
  CustomCallOutputItem,
  ImageCallItem,
  ReasoningItem,
  ReferenceItem,
  AgentMessageItem,
  ConfigurationUpdateItem,
  AdditionalToolsItem,
  ToolSearchCallItem,
  ToolSearchOutputItem,
  SummaryItem,
  CompactionTriggerItem,
  McpCallItem,
  McpApprovalRequestItem,
  McpApprovalResponseItem,
  OwnToolItem,
])
export type InputItem = Type.Static<typeof InputItem>
/** The types of those that are not ignored. */
export const ITEM_TYPES = InputItem.anyOf
  .filter((item) => item !== OwnToolItem)
  .flatMap(({ properties: { type } }): string[] => ('const' in type ? [type.const] : type.enum))

const ClientToolChoice = Type.Union([
  Type.Enum(['none', 'auto', 'required']),
  Type.Object({
    type: Type.String(),
    name: optionalText,
    namespace: optionalText,
    server_label: optionalText,
    mode: optional(Type.Enum(['auto', 'required'])),
    tools: optional(Type.Array(record)),
  }),
])

export const ResponsesRequest = titled('ResponsesRequest', {
  model: bounds.model,
  input: optional(Type.Union([Type.String(), Type.Array(InputItem)])),
  instructions: optionalText,
  previous_response_id: optional(Type.String({ minLength: 1, description: 'The response to continue from.' })),
  store: optional(
    Type.Boolean({
      description: 'Whether the response is stored. By default it is, unless the operator says otherwise.',
    }),
  ),
  stream: bounds.stream,
  max_output_tokens: optional(Type.Integer({ minimum: 1, description: 'The upper bound depends on the model.' })),
  ...pick(bounds, 'temperature', 'top_p', 'presence_penalty', 'frequency_penalty'),
  tools: optional(Type.Array(ClientTool)),
  tool_choice: optional(ClientToolChoice),
  parallel_tool_calls: bounds.parallel_tool_calls,
  text: optional(Type.Object({ format: optional(TextFormat), verbosity: optionalText })),
  reasoning: optional(
    Type.Object({
      effort: bounds.reasoning_effort,
      summary: bounds.reasoning_summary,
      generate_summary: bounds.reasoning_summary,
    }),
  ),
  include: optional(
    Type.Array(Type.String(), { description: '`reasoning.encrypted_content`, `message.output_text.logprobs`.' }),
  ),
  top_logprobs: bounds.top_logprobs,
  truncation: optional(Type.Enum(['auto', 'disabled'])),
  ...pick(bounds, 'metadata', 'user', 'safety_identifier', 'service_tier', 'prompt_cache_key'),
  max_tool_calls: optional(Type.Integer()),
  background: optional(
    Type.Boolean({ description: 'Return at once and generate the response in the background. Fetch it by its id.' }),
  ),
  conversation: optional(
    Type.Union([name, Type.Object({ id: name })], {
      description: 'The conversation to continue; input and output are appended to it.',
    }),
  ),
  prompt: optional(Type.Unknown()),
  moderation: optional(Type.Unknown()),
})
export type ResponsesRequest = Type.Static<typeof ResponsesRequest>

const count = Type.Integer({ minimum: 0 })

export const ResponsesAnswer = titled('ResponsesAnswer', {
  id: Type.String(),
  object: Type.Literal('response'),
  created_at: Type.Integer(),
  completed_at: orNull(Type.Integer()),
  status: Type.Enum(['queued', 'in_progress', 'completed', 'incomplete', 'failed', 'cancelled']),
  error: orNull(Type.Object({ code: Type.String(), message: Type.String() })),
  incomplete_details: orNull(Type.Object({ reason: Type.Enum(['max_output_tokens', 'content_filter']) })),
  model: Type.String(),
  output: Type.Array(record, { description: 'Items: message, function_call, reasoning.' }),
  usage: orNull(
    Type.Object({
      input_tokens: count,
      input_tokens_details: Type.Object({ cached_tokens: count, cache_write_tokens: count }),
      output_tokens: count,
      output_tokens_details: Type.Object({ reasoning_tokens: count }),
      total_tokens: count,
    }),
  ),
})

export const ResponsesEvent = Type.Object(
  { type: Type.String(), sequence_number: Type.Integer({ minimum: 0 }) },
  { title: 'ResponsesEvent', description: 'The name of each event is its `type`.' },
)
