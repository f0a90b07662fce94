/**
 * The fields of a responses request that reach no other model and nothing in the operator's account. Source: the types of
 * `openai` 7.55.0, `resources/responses/responses.d.ts`. Not on the list: `moderation` and the tool `image_generation`, which use
 * other models; `prompt`, `conversation`, `file_search` (vector stores), `file_id`, containers by their id, connectors and
 * tunnels, skills, and references to stored items, which name things in the operator's account.
 */
import { all, type ObjectShape, plain } from '../../kit/allow-list.ts'

const values: ObjectShape = { others: 'value' }
const breakpoint = plain('mode', 'ttl')
const caller = plain('type', 'caller_id')
const format: ObjectShape = { members: { ...all('value', 'type', 'name', 'description', 'strict'), schema: 'data' } }
const text: ObjectShape = { members: { verbosity: 'value', format } }
const reasoning = plain('effort', 'summary', 'generate_summary', 'context', 'mode')
const location = plain('type', 'city', 'country', 'region', 'timezone')
const network_policy = plain('type', 'allowed_domains')
const filter = plain('read_only', 'tool_names')

/** A sandbox created for the request; one referenced by id belongs to the operator. */
const own_container: ObjectShape = {
  types: ['auto', 'container_auto', 'local'],
  members: { ...all('value', 'type', 'memory_limit'), network_policy },
  only_objects: true,
}

const tool: ObjectShape = {
  types: [
    ...['function', 'custom', 'namespace', 'mcp', 'web_search', 'web_search_*', 'web_search_preview'],
    ...['web_search_preview_*', 'code_interpreter', 'programmatic_tool_calling', 'local_shell', 'shell'],
    ...['apply_patch', 'computer', 'computer_use_preview', 'tool_search'],
  ],
  members: {
    ...all('value', 'type', 'name', 'description', 'strict', 'async', 'defer_loading', 'allowed_callers'),
    ...all('value', 'search_context_size', 'external_web_access', 'search_content_types', 'execution'),
    ...all('value', 'display_width', 'display_height'),
    ...all('value', 'server_label', 'server_url', 'server_description', 'authorization'),
    filters: plain('allowed_domains', 'blocked_domains'),
    user_location: location,
    headers: values,
    allowed_tools: filter,
    require_approval: { members: { always: filter, never: filter } },
  },
  by_type: {
    function: all('data', 'parameters', 'output_schema'),
    tool_search: { parameters: 'data' },
    custom: { format: plain('type', 'syntax', 'definition') },
    namespace: { tools: () => tool },
    code_interpreter: { container: own_container },
    shell: { environment: own_container },
    computer_use_preview: { environment: 'value' },
  },
}
const annotation = plain(
  ...['type', 'url', 'title', 'start_index', 'end_index', 'index', 'filename', 'file_id', 'container_id'],
)
const part: ObjectShape = {
  types: [
    ...['input_text', 'input_image', 'input_file', 'input_audio', 'output_text', 'refusal', 'summary_text'],
    ...['reasoning_text', 'text', 'computer_screenshot', 'encrypted_content'],
  ],
  members: {
    ...all('value', 'type', 'text', 'refusal', 'detail', 'image_url', 'file_data', 'file_url', 'filename'),
    ...all('value', 'encrypted_content'),
    annotations: annotation,
    logprobs: 'data',
    prompt_cache_breakpoint: breakpoint,
    input_audio: plain('data', 'format'),
    ...all('value', 'stdout', 'stderr'),
    outcome: plain('type', 'exit_code'),
  },
}

const item: ObjectShape = {
  types: [
    ...['message', 'reasoning', 'function_call', 'function_call_output', 'custom_tool_call'],
    ...['custom_tool_call_output', 'web_search_call', 'computer_call', 'computer_call_output'],
    ...['code_interpreter_call', 'local_shell_call', 'local_shell_call_output', 'shell_call', 'shell_call_output'],
    ...['apply_patch_call', 'apply_patch_call_output', 'mcp_list_tools', 'mcp_call', 'mcp_approval_request'],
    ...['mcp_approval_response', 'tool_search_call', 'tool_search_output', 'additional_tools'],
    ...['configuration_update', 'compaction', 'compaction_summary', 'compaction_trigger', 'program'],
    ...['program_output', 'agent_message'],
  ],
  members: {
    ...all('value', 'type', 'id', 'role', 'status', 'phase', 'end_turn', 'name', 'namespace', 'call_id', 'async'),
    ...all('value', 'input', 'encrypted_content', 'execution', 'code', 'fingerprint', 'result', 'reason', 'error'),
    ...all('value', 'server_label', 'approval_request_id', 'approve', 'max_output_length'),
    ...all('data', 'arguments', 'operation', 'annotations'),
    /** Sent by Codex 0.169.0: sender and recipient of a message, and its metadata. */
    ...all('value', 'author', 'recipient'),
    ...all('data', 'internal_chat_message_metadata_passthrough'),
    content: part,
    summary: part,
    output: part,
    caller,
    tools: () => item_tool,
    reasoning,
    text,
    action: 'data',
    actions: 'data',
    outputs: plain('type', 'logs', 'url'),
    pending_safety_checks: plain('id', 'code', 'message'),
    acknowledged_safety_checks: plain('id', 'code', 'message'),
  },
}
/** A tool added during the conversation, or one of an MCP server as the server describes it. */
const item_tool: ObjectShape = {
  ...tool,
  members: { ...tool.members, ...all('data', 'input_schema', 'annotations') },
}

export const RESPONSES: ObjectShape = {
  members: {
    ...all('value', 'model', 'instructions', 'max_output_tokens', 'max_tool_calls', 'include', 'stream', 'store'),
    ...all('value', 'temperature', 'top_p', 'top_logprobs', 'presence_penalty', 'frequency_penalty', 'user'),
    ...all('value', 'parallel_tool_calls', 'prompt_cache_key', 'prompt_cache_retention', 'safety_identifier'),
    ...all('value', 'service_tier', 'truncation', 'n'),
    input: item,
    tools: tool,
    tool_choice: {
      members: {
        ...all('value', 'type', 'name', 'namespace', 'mode', 'server_label'),
        tools: plain('type', 'name', 'namespace', 'server_label'),
      },
    },
    text,
    reasoning,
    metadata: values,
    client_metadata: values,
    stream_options: plain('include_obfuscation'),
    prompt_cache_options: plain('mode', 'ttl'),
    context_management: plain('type', 'compact_threshold'),
    image: plain('context_compression'),
  },
}
