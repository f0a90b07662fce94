/**
 * The fields of a messages request that reach no other model and no file in the operator's account. Source: the types of
 * `@anthropic-ai/sdk` 1.11.0, `resources/beta/messages/messages.d.ts`. Not on the list: `fallbacks`, the `advisor` tool
 * and `fallback` blocks, which name models; `container`, `file_id`, `container_upload`, `thread`,
 * `user_profile_id` and `workspace_id`, which name things in the operator's account; fields that change who pays.
 */
import { all, type ObjectShape, plain } from '../../kit/allow-list.ts'

const cache_control = plain('type', 'ttl')
const format: ObjectShape = { members: { type: 'value', schema: 'data' } }
const citations = plain(
  ...['type', 'enabled', 'cited_text', 'title', 'source', 'url', 'encrypted_index', 'file_id'],
  ...['document_index', 'document_title', 'search_result_index'],
  ...['start_char_index', 'end_char_index', 'start_page_number', 'end_page_number'],
  ...['start_block_index', 'end_block_index'],
)
const settings_of_a_tool = plain('enabled', 'defer_loading')
const by_name: ObjectShape = { others: settings_of_a_tool }

const tool: ObjectShape = {
  types: [
    ...['custom', 'mcp_toolset', 'bash_*', 'text_editor_*', 'computer_*', 'memory_*', 'browser_toolset_*'],
    ...['computer_toolset_*', 'code_execution_*', 'web_search_*', 'web_fetch_*', 'tool_search_tool_bm25'],
    ...['tool_search_tool_bm25_*', 'tool_search_tool_regex', 'tool_search_tool_regex_*'],
  ],
  members: {
    ...all('value', 'type', 'name', 'description', 'strict', 'defer_loading', 'allowed_callers', 'max_characters'),
    ...all('value', 'eager_input_streaming', 'display_width_px', 'display_height_px', 'display_number', 'enable_zoom'),
    ...all('value', 'allowed_domains', 'blocked_domains', 'max_uses', 'max_content_tokens', 'use_cache'),
    ...all('value', 'response_inclusion', 'mcp_server_name'),
    input_examples: 'data',
    cache_control,
    citations,
    user_location: plain('type', 'city', 'region', 'country', 'timezone'),
    configs: by_name,
    default_config: settings_of_a_tool,
  },
  by_type: {
    '': { input_schema: 'data' },
    custom: { input_schema: 'data' },
    mcp_toolset: { tools: () => listed },
  },
}
/** A tool of an MCP server, as the server describes it. */
const listed: ObjectShape = {
  members: { ...all('value', 'name', 'description'), input_schema: 'data' },
}

const tool_change: ObjectShape = {
  types: ['tool_definition', 'tool_reference', 'mcp_tool_reference', 'mcp_toolset_reference'],
  members: { ...all('value', 'type', 'name', 'server_name'), definition: tool },
}

const source: ObjectShape = {
  types: ['base64', 'url', 'text', 'content'],
  members: { ...all('value', 'type', 'media_type', 'data', 'url'), content: () => block },
}

const of_code = ['code_execution', 'bash_code_execution', 'text_editor_code_execution'].flatMap((name) => [
  `${name}_tool_result`,
  `${name}_result`,
  `${name}_tool_result_error`,
])

/** A part of a message; tool results contain such parts. */
const block: ObjectShape = {
  types: [
    ...['text', 'image', 'document', 'search_result', 'thinking', 'redacted_thinking', 'tool_use', 'tool_result'],
    ...['server_tool_use', 'web_search_tool_result', 'web_search_result', 'web_search_tool_result_error'],
    ...['web_fetch_tool_result', 'web_fetch_result', 'web_fetch_tool_result_error', ...of_code],
    ...['encrypted_code_execution_result', 'text_editor_code_execution_view_result'],
    ...['text_editor_code_execution_create_result', 'text_editor_code_execution_str_replace_result'],
    ...['tool_search_tool_result', 'tool_search_tool_search_result', 'tool_search_tool_result_error'],
    ...['tool_reference', 'mcp_tool_use', 'mcp_tool_result', 'mcp_tool_listing', 'compaction'],
    ...['tool_addition', 'tool_removal', 'browser_state'],
  ],
  members: {
    ...all('value', 'type', 'text', 'title', 'context', 'thinking', 'signature', 'data', 'id', 'name', 'tool_use_id'),
    ...all('value', 'is_error', 'toolset_name', 'server_name', 'mcp_server_name', 'tool_name', 'url', 'page_age'),
    ...all('value', 'encrypted_content', 'encrypted_stdout', 'retrieved_at', 'return_code', 'stdout', 'stderr'),
    ...all('value', 'error_code', 'error_message', 'file_type', 'num_lines', 'start_line', 'total_lines'),
    ...all('value', 'is_file_update', 'lines', 'new_lines', 'new_start', 'old_lines', 'old_start'),
    cache_control,
    citations,
    /** For an image or a document; for a search result it is a text. */
    source,
    input: 'data',
    caller: plain('type', 'tool_id'),
    content: () => block,
    tool: tool_change,
    tools: listed,
    tool_changes: () => block,
    tool_references: () => block,
    tabs: 'data',
    state_changes: 'data',
  },
}

const thinking: ObjectShape = {
  members: {
    ...all('value', 'type', 'budget_tokens', 'display'),
    block_binding: plain('prefix_mismatch_behavior'),
  },
}
const output_config: ObjectShape = {
  members: { effort: 'value', format, task_budget: plain('type', 'total', 'remaining') },
}
const edit: ObjectShape = {
  members: {
    ...all('value', 'type', 'clear_tool_inputs', 'exclude_tools', 'instructions', 'pause_after_compaction'),
    keep: plain('type', 'value'),
    trigger: plain('type', 'value'),
    clear_at_least: plain('type', 'value'),
  },
}

export const MESSAGES: ObjectShape = {
  members: {
    ...all('value', 'model', 'max_tokens', 'stream', 'stop_sequences', 'temperature', 'top_k', 'top_p'),
    ...all('value', 'service_tier', 'speed', 'inference_geo'),
    messages: {
      members: { ...all('value', 'role', 'clear_at'), content: block, output_config: plain('effort') },
    },
    system: block,
    tools: tool,
    tool_choice: plain('type', 'name', 'disable_parallel_tool_use'),
    metadata: plain('user_id'),
    thinking,
    output_config,
    output_format: format,
    cache_control,
    compaction: plain('type', 'instructions'),
    /** Only compares the caches of two prompts. */
    diagnostics: plain('previous_message_id'),
    context_management: { members: { edits: edit } },
    mcp_servers: {
      members: {
        ...all('value', 'type', 'url', 'name', 'authorization_token'),
        tool_configuration: plain('enabled', 'allowed_tools'),
      },
    },
  },
}

/** What `anthropic-beta` may name, without the date. Source: `AnthropicBeta` of the same package, and coding agents. */
export const BETAS = [
  ...['advanced-tool-use', 'cache-diagnosis', 'claude-code', 'code-execution', 'compact', 'computer-use'],
  ...['context-1m', 'context-management', 'dev-full-thinking', 'effort', 'extended-cache-ttl', 'fast-mode'],
  ...['fine-grained-tool-streaming', 'inline-tools', 'interleaved-thinking', 'mcp-client', 'adaptive-thinking'],
  ...['oauth', 'mid-conversation-output-config', 'mid-conversation-system-clear-at', 'mid-conversation-tool-changes'],
  ...['model-context-window-exceeded', 'output-128k', 'output-300k', 'pdfs', 'prompt-caching'],
  ...['prompt-caching-scope', 'structured-outputs', 'task-budgets', 'thinking-binding-controls'],
  ...['thinking-display-updates', 'thinking-token-count', 'token-counting', 'token-efficient-tools'],
  ...['tool-examples', 'tool-search-tool', 'web-fetch', 'web-search', 'redact-thinking'],
]
