/** The responses dialect, outwards: answers as the vendor's client libraries read them, whole and as numbered events. */
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import type { ChatChunk, FinishReason } from '../../spec/chat-completion.ts'
import type { ChatRequest } from '../../spec/chat-request.ts'
import type { JsonObject } from '../../spec/task.ts'
import type { Usage } from '../../spec/usage.ts'
import { itemId, type Keep } from '../responses-kept.ts'
import { inOneLine } from './chatcompat-writer.ts'
import type { AnswerHead, AnswerWriter } from './dialect.ts'
import { customNames } from './responses-custom.ts'
import { failureOf } from './responses-error.ts'
import { ITEM_KINDS, type OutputItem, shown } from './responses-items.ts'
import type { ResponsesRequest } from './responses-schema.ts'
import { createItemStream } from './responses-stream.ts'

type WriterParts = {
  head: AnswerHead
  /** What the client sent, which its answer repeats. */
  asked: ResponsesRequest
  /** The same as the model takes it. */
  request: ChatRequest
  /** Absent where the answer is not kept. */
  keep: Keep | undefined
  clock: Clock
}

export function createResponsesWriter({ head, asked, request, keep, clock }: WriterParts): AnswerWriter {
  const tells_encrypted = asked.include?.includes('reasoning.encrypted_content') ?? false
  const echo = echoOf(asked, request)
  let sequence = 0
  let hasBegun = false
  let finish: FinishReason | null = null
  /** The answer as it is kept: with what its vendor wants back, whether the client asked for that or not. */
  let made: ReturnType<typeof responseOf> | undefined

  const event = (type: string, fields: string): string =>
    `event: ${type}\ndata: {"type":"${type}","sequence_number":${sequence++},${fields}}\n\n`
  const items = createItemStream({
    // What is kept is found again by our ids; what is not goes back to its vendor under the vendor's own.
    newId: (type, index, vendors) => (keep === undefined && vendors) || itemId(head.id, ITEM_KINDS[type], index),
    event,
    tells_encrypted,
    customs: customNames(asked),
  })

  function responseOf(state: State, output: OutputItem[], usage?: Usage) {
    return {
      id: head.id,
      object: 'response' as const,
      created_at: head.created,
      background: false,
      completed_at: null as number | null,
      error: null,
      incomplete_details: null as object | null,
      model: head.model,
      ...echo,
      store: keep !== undefined,
      output,
      usage: usage ? usageOf(usage) : null,
      ...state,
    }
  }
  const shownOf = (response: ReturnType<typeof responseOf>) =>
    tells_encrypted ? response : { ...response, output: response.output.map((item) => shown(item, false)) }
  const tell = (type: string, response: ReturnType<typeof responseOf>): string =>
    event(type, `"response":${JSON.stringify(shownOf(response))}`)

  function begin(): string {
    hasBegun = true
    const response = responseOf({ status: 'in_progress' }, [])
    return tell('response.created', response) + tell('response.in_progress', response)
  }

  /** The answer at its end, by the vendor's last word. */
  function finished(usage: Usage | undefined): ReturnType<typeof responseOf> {
    const reason = finish === null ? undefined : INCOMPLETE[finish]
    const state: State =
      reason === undefined
        ? { status: 'completed', completed_at: unixSeconds(clock) }
        : { status: 'incomplete', incomplete_details: { reason } }
    made = responseOf(state, items.output, usage)
    return made
  }

  return {
    whole(answer, usage) {
      const [choice] = answer.choices
      finish = choice?.finish_reason ?? null
      if (choice) {
        const { message, logprobs } = choice
        const { content, refusal, annotations, tool_calls = [], images = [] } = message
        const { reasoning_content, reasoning_details } = message
        const thought = reasoning_details ? { reasoning_details } : { reasoning_content: reasoning_content ?? '' }
        items.take(thought)
        items.take({ content, refusal: refusal ?? null, annotations: annotations ?? [] }, oddsOf(logprobs))
        items.take({ tool_calls: tool_calls.map((call, index) => ({ ...call, index })), images })
      }
      items.end(statusAt(finish))
      return shownOf(finished(usage))
    },
    write(batch: ChatChunk[]) {
      let events = hasBegun || batch.length === 0 ? '' : begin()
      for (const { choices } of batch) {
        for (const choice of choices) {
          if (choice.index !== 0) continue
          events += items.take(choice.delta, oddsOf(choice.logprobs))
          if (!choice.finish_reason) continue
          finish = choice.finish_reason
          // A client can run its tools now; the count of tokens may take a while to come.
          events += items.end(statusAt(finish))
        }
      }
      return inOneLine(events)
    },
    tellsUsage: true,
    end(usage) {
      const events = (hasBegun ? '' : begin()) + items.end(statusAt(finish))
      const response = finished(usage)
      return inOneLine(events + tell(`response.${response.status}`, response))
    },
    fail(error) {
      const { code, message } = failureOf(error)
      const told = { code, message, param: error.detail.param ?? null }
      // Some clients stop at this event, by its own members or by those of its `error`; others at the failed response.
      const fields = JSON.stringify({ ...told, error: { type: error.type, ...told } }).slice(1, -1)
      const events = (hasBegun ? '' : begin()) + event('error', fields)
      const failed = { status: 'failed', error: { code, message } }
      const output = items.output.map((item) => (item.status === 'in_progress' ? { ...item, status: BROKEN } : item))
      return inOneLine(events + tell('response.failed', responseOf(failed, output)))
    },
    ...(keep
      ? {
          async keep() {
            if (made) await keep(made as unknown as JsonObject & { id: string; created_at: number })
          },
        }
      : {}),
  }
}

const BROKEN = 'incomplete' as const

type State = { status: string; completed_at?: number; incomplete_details?: object; error?: object | null }

/** Why an answer is not whole -> the dialect's word. */
const INCOMPLETE: { [finish in FinishReason]?: string } = {
  length: 'max_output_tokens',
  content_filter: 'content_filter',
}
const statusAt = (finish: FinishReason | null) =>
  finish !== null && INCOMPLETE[finish] !== undefined ? 'incomplete' : 'completed'

function usageOf(usage: Usage) {
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

/** The log probabilities of a choice's words. */
function oddsOf(logprobs: unknown): unknown[] | undefined {
  const content = (logprobs as { content?: unknown } | null | undefined)?.content
  return Array.isArray(content) ? content : undefined
}

/** What was asked for, as the answer repeats it. */
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
    service_tier: asked.service_tier ?? null,
    temperature: request.temperature ?? null,
    text: { format: { type: 'text' }, ...asked.text },
    tool_choice: asked.tool_choice ?? 'auto',
    tools: (asked.tools ?? []).map((tool) =>
      tool.type === 'function' ? { parameters: null, strict: null, ...tool } : tool,
    ),
    top_logprobs: asked.top_logprobs ?? 0,
    top_p: request.top_p ?? null,
    truncation: 'disabled',
    ...(asked.user === undefined ? {} : { user: asked.user }),
  }
}
