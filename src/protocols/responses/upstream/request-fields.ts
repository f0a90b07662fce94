/** How each field of a chat request is encoded. The manual's table is generated from these rows. */
import type { ChatRequest, ChatRequestField } from '../../shared/canonical.ts'
import { HAS_EFFECT } from '../../shared/field-rules.ts'
import { requestedSearch } from './tools.ts'

type FieldMapping =
  /** Sent under the vendor's name. `isUsed` is present if leaving the field out would change the meaning. */
  | { sent: string; isUsed?(request: ChatRequest): boolean }
  /** Left out: the vendor has no such field, and it only tunes or is for the gateway. */
  | { dropped: string }
  /** Refused by name if it has an effect. */
  | { refused: string; isUsed(request: ChatRequest): boolean }

export const FIELD_MAPPINGS: { [field in ChatRequestField]-?: FieldMapping } = {
  model: { sent: "`model`, as the provider's model name" },
  messages: { sent: '`input`, one item each' },
  stream: { sent: '`stream`' },
  stream_options: { sent: 'only `include_obfuscation`; usage is always returned' },
  usage: { sent: 'not sent: the gateway answers it' },
  max_tokens: { sent: '`max_output_tokens`, at least 16' },
  max_completion_tokens: { sent: '`max_output_tokens`, at least 16' },
  temperature: { sent: '`temperature`; left out for models that reason and refuse it' },
  top_p: { sent: '`top_p`; left out for models that reason and refuse it' },
  top_k: { dropped: 'it only tunes' },
  frequency_penalty: { dropped: 'it only tunes' },
  presence_penalty: { dropped: 'it only tunes' },
  repetition_penalty: { dropped: 'it only tunes' },
  logit_bias: { dropped: 'it only tunes' },
  seed: { dropped: 'it only tunes' },
  prediction: { dropped: 'it only tunes' },
  tools: {
    sent: '`tools`; strict only if the request says so; custom tools as functions with `quirks.custom_tools: false`',
    isUsed: HAS_EFFECT.tools,
  },
  tool_choice: { sent: '`tool_choice`', isUsed: HAS_EFFECT.tool_choice },
  parallel_tool_calls: { sent: '`parallel_tool_calls`' },
  response_format: { sent: '`text.format`', isUsed: HAS_EFFECT.response_format },
  verbosity: { sent: '`text.verbosity`' },
  reasoning_effort: {
    sent: '`reasoning.effort`, the closest that the model supports; left out for models that do not reason',
  },
  reasoning_budget: { sent: '`reasoning.effort`: the closest, for models that are known to reason' },
  thinking_enabled: { sent: '`reasoning.effort`: the lowest for `false`, for models that are known to reason' },
  reasoning_summary: { sent: '`reasoning.summary`' },
  logprobs: { sent: '`include` of `message.output_text.logprobs`', isUsed: HAS_EFFECT.logprobs },
  top_logprobs: { sent: '`top_logprobs`, with `logprobs`' },
  web_search: { sent: "the vendor's tool `web_search`", isUsed: (request) => requestedSearch(request) !== undefined },
  web_search_options: {
    sent: "the vendor's tool `web_search`",
    isUsed: (request) => requestedSearch(request) !== undefined,
  },
  user: { sent: '`user`' },
  safety_identifier: { sent: '`safety_identifier`' },
  metadata: { sent: '`metadata`' },
  service_tier: { sent: '`service_tier`' },
  prompt_cache_key: { sent: '`prompt_cache_key`' },
  prompt_cache_options: { sent: '`prompt_cache_options`' },
  store: { sent: '`store`; `false` by default' },
  provider_options: { sent: 'the members of `responses-compat`, unchanged' },
  n: { refused: 'must be 1', isUsed: HAS_EFFECT.n },
  stop: { refused: 'must be left out: the vendor has no stop sequences', isUsed: HAS_EFFECT.stop },
  audio: { refused: 'must be left out: the vendor generates no audio', isUsed: HAS_EFFECT.audio },
  modalities: { refused: 'must be ["text"]', isUsed: HAS_EFFECT.modalities },
  functions: { refused: 'is not supported by the vendor; use "tools"', isUsed: HAS_EFFECT.functions },
  function_call: { refused: 'is not supported by the vendor; use "tool_choice"', isUsed: HAS_EFFECT.function_call },
}
