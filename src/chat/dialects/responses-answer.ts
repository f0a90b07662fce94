/** A response as a whole: its state, what it repeats of the request, its items and what it used. */
import type { ChatRequest } from '../../spec/chat-request.ts'
import type { Usage } from '../../spec/usage.ts'
import type { AnswerHead } from './dialect.ts'
import type { OutputItem } from './responses-items.ts'
import type { ResponsesRequest } from './responses-schema.ts'

export type State = { status: string; completed_at?: number; incomplete_details?: object; error?: object | null }

type AnswerParts = { head: AnswerHead; asked: ResponsesRequest; request: ChatRequest; isKept: boolean }

export type Answer = ReturnType<ReturnType<typeof answerOf>>

/** Makes the response of one request, in whatever state it is. */
export function answerOf({ head, asked, request, isKept }: AnswerParts) {
  const echo = echoOf(asked, request)
  return (state: State, output: OutputItem[], usage?: Usage) => ({
    id: head.id,
    object: 'response' as const,
    created_at: head.created,
    background: asked.background ?? false,
    completed_at: null as number | null,
    error: null,
    incomplete_details: null as object | null,
    model: head.model,
    ...echo,
    store: isKept,
    output,
    usage: usage ? usageOf(usage) : null,
    ...state,
  })
}

export function usageOf(usage: Usage) {
  const { cached_tokens, cache_write_tokens = 0 } = usage.prompt_tokens_details
  const { reasoning_tokens } = usage.completion_tokens_details
  return {
    input_tokens: usage.input_tokens,
    input_tokens_details: { cached_tokens, cache_write_tokens },
    output_tokens: usage.output_tokens,
    output_tokens_details: { reasoning_tokens },
    total_tokens: usage.total_tokens,
  }
}

/** What was asked for, as the answer repeats it: where the open specification wants a number or a word, never null. */
function echoOf(asked: ResponsesRequest, request: ChatRequest) {
  const { effort = null, summary = null } = asked.reasoning ?? {}
  return {
    access_programs: null,
    instructions: asked.instructions ?? null,
    max_output_tokens: request.max_tokens ?? null,
    max_tool_calls: asked.max_tool_calls ?? null,
    metadata: asked.metadata ?? {},
    parallel_tool_calls: asked.parallel_tool_calls ?? true,
    previous_response_id: asked.previous_response_id ?? null,
    prompt_cache_key: asked.prompt_cache_key ?? null,
    reasoning: { effort, summary },
    safety_identifier: asked.safety_identifier ?? null,
    service_tier: asked.service_tier ?? 'default',
    presence_penalty: request.presence_penalty ?? 0,
    frequency_penalty: request.frequency_penalty ?? 0,
    temperature: request.temperature ?? 1,
    text: { ...asked.text, format: formatOf(asked.text?.format) },
    tool_choice: asked.tool_choice ?? 'auto',
    tools: (asked.tools ?? []).map((tool) =>
      tool.type === 'function' ? { description: null, parameters: null, strict: null, ...tool } : tool,
    ),
    top_logprobs: asked.top_logprobs ?? 0,
    top_p: request.top_p ?? 1,
    truncation: 'disabled',
    ...(asked.user === undefined ? {} : { user: asked.user }),
  }
}

type Format = NonNullable<ResponsesRequest['text']>['format']

const formatOf = (format: Format = { type: 'text' }) =>
  format.type === 'json_schema' ? { description: null, strict: false, ...format } : format
