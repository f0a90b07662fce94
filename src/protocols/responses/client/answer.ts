/** Builds a response object: its status, the echoed request, its items and its usage. */
import type { Usage } from '../../../spec/usage.ts'
import type { ChatRequest } from '../../shared/canonical.ts'
import type { ResponseHead } from '../../shared/protocol.ts'
import type { OutputItem } from './items.ts'
import { conversationId } from './request.ts'
import type { ResponsesRequest } from './schema.ts'

export type State = { status: string; completed_at?: number; incomplete_details?: object; error?: object | null }

type AnswerParts = { head: ResponseHead; clientRequest: ResponsesRequest; request: ChatRequest; isStored: boolean }

export type Answer = ReturnType<ReturnType<typeof answerOf>>

/** Returns a function that builds the response to one request in any status. */
export function answerOf({ head, clientRequest, request, isStored }: AnswerParts) {
  const echo = echoOf(clientRequest, request)
  return (state: State, output: OutputItem[], usage?: Usage) => ({
    id: head.id,
    object: 'response' as const,
    created_at: head.created,
    background: clientRequest.background ?? false,
    completed_at: null as number | null,
    error: null,
    incomplete_details: null as object | null,
    model: head.model,
    ...echo,
    store: isStored,
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

/**
 * The request fields that the response repeats. Where the open specification requires a number or a string, they are
 * never null.
 */
function echoOf(clientRequest: ResponsesRequest, request: ChatRequest) {
  const { effort = null, summary = null } = clientRequest.reasoning ?? {}
  return {
    access_programs: null,
    instructions: clientRequest.instructions ?? null,
    max_output_tokens: request.max_tokens ?? null,
    max_tool_calls: clientRequest.max_tool_calls ?? null,
    metadata: clientRequest.metadata ?? {},
    parallel_tool_calls: clientRequest.parallel_tool_calls ?? true,
    previous_response_id: clientRequest.previous_response_id ?? null,
    prompt_cache_key: clientRequest.prompt_cache_key ?? null,
    ...conversationIn(clientRequest),
    reasoning: { effort, summary },
    safety_identifier: clientRequest.safety_identifier ?? null,
    service_tier: clientRequest.service_tier ?? 'default',
    presence_penalty: request.presence_penalty ?? 0,
    frequency_penalty: request.frequency_penalty ?? 0,
    temperature: request.temperature ?? 1,
    text: { ...clientRequest.text, format: formatOf(clientRequest.text?.format) },
    tool_choice: clientRequest.tool_choice ?? 'auto',
    tools: (clientRequest.tools ?? []).map((tool) =>
      tool.type === 'function' ? { description: null, parameters: null, strict: null, ...tool } : tool,
    ),
    top_logprobs: clientRequest.top_logprobs ?? 0,
    top_p: request.top_p ?? 1,
    truncation: 'disabled',
    ...(clientRequest.user === undefined ? {} : { user: clientRequest.user }),
  }
}

/** The conversation as a response names it. */
export function conversationIn(request: Pick<ResponsesRequest, 'conversation'>): { conversation?: { id: string } } {
  const id = conversationId(request)
  return id === undefined ? {} : { conversation: { id } }
}

type Format = NonNullable<ResponsesRequest['text']>['format']

const formatOf = (format: Format = { type: 'text' }) =>
  format.type === 'json_schema' ? { description: null, strict: false, ...format } : format
