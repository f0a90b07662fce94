/**
 * The fields of a chat completion request that reach no other model and nothing in the operator's account. Sources: the
 * specification (2.2, 2.3), the types of `openai` 7.55.0 (`resources/chat/completions/completions.d.ts`), and fields that
 * compatible vendors return and clients send back. Not on the list: `file_id` and audio by its id. The gateway always
 * drops body fields that are not in the specification, unless the operator allows them.
 */
import { all, type ObjectShape, plain } from '../../kit/allow-list.ts'
import { FILE_URL } from './media-url.ts'

const cache_control = plain('type', 'ttl')
const breakpoint = plain('mode', 'ttl')
const opaque = plain('origin', 'value', 'id')
const image_url: ObjectShape = { members: { url: FILE_URL, detail: 'value' } }
const approximate = plain('type', 'city', 'country', 'region', 'timezone')
const user_location: ObjectShape = { members: { ...approximate.members, approximate } }

const part: ObjectShape = {
  members: {
    ...all('value', 'type', 'text', 'refusal'),
    image_url,
    input_audio: plain('data', 'format'),
    file: { members: { ...all('value', 'file_data', 'filename'), file_url: FILE_URL } },
    cache_control,
    prompt_cache_breakpoint: breakpoint,
  },
}

const functionCall: ObjectShape = { members: { ...all('value', 'name', 'description', 'arguments', 'strict') } }
const functionDeclaration: ObjectShape = { members: { ...functionCall.members, parameters: 'data' } }
/** Gemini's OpenAI-compatible API returns its thought signatures here. */
const extra_content: ObjectShape = { members: { google: plain('thought_signature', 'thought') } }

const message: ObjectShape = {
  members: {
    ...all('value', 'role', 'name', 'tool_call_id', 'reasoning_content', 'reasoning', 'refusal', 'is_error', 'prefix'),
    content: part,
    tool_calls: { members: { ...all('value', 'id', 'type', 'index'), function: functionCall, opaque, extra_content } },
    function_call: functionCall,
    reasoning_details: {
      members: { ...all('value', 'type', 'text', 'summary', 'data', 'signature', 'id', 'format', 'index'), opaque },
    },
    thinking_blocks: plain('type', 'thinking', 'signature', 'data'),
    images: { members: { ...all('value', 'type', 'index'), image_url, opaque } },
    annotations: {
      members: { type: 'value', url_citation: plain('url', 'title', 'start_index', 'end_index', 'content') },
    },
    audio: plain('data', 'transcript', 'expires_at', 'format'),
    cache_control,
    extra_content,
  },
}

export const CHAT_COMPLETIONS: ObjectShape = {
  members: {
    messages: message,
    tools: { members: { type: 'value', function: functionDeclaration, cache_control } },
    functions: functionDeclaration,
    tool_choice: {
      members: {
        type: 'value',
        function: plain('name'),
        allowed_tools: {
          members: { mode: 'value', tools: { members: { ...all('value', 'type', 'name'), function: plain('name') } } },
        },
      },
    },
    function_call: plain('name'),
    response_format: {
      members: {
        type: 'value',
        json_schema: { members: { ...all('value', 'name', 'description', 'strict'), schema: 'data' } },
      },
    },
    web_search: { members: { ...all('value', 'enable', 'search_context_size', 'max_results'), user_location } },
    web_search_options: { members: { search_context_size: 'value', user_location } },
    prediction: { members: { type: 'value', content: part } },
    audio: plain('voice', 'format'),
    metadata: { others: 'value' },
    logit_bias: { others: 'value' },
    prompt_cache_options: plain('mode', 'ttl'),
    stream_options: plain('include_usage', 'include_obfuscation'),
    /** `assertOptions` checks these. */
    provider_options: 'data',
  },
  others: 'data',
}
