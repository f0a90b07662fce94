/** Encodes responses, whole and as numbered events. */
import { type Clock, unixSeconds } from '../../../kit/clock.ts'
import { inOneLine } from '../../../kit/sse.ts'
import type { FinishReason } from '../../../spec/chat-completion.ts'
import type { Usage } from '../../../spec/usage.ts'
import type { ChatChunk, ChatRequest } from '../../shared/canonical.ts'
import type { ResponseEncoder, ResponseHead } from '../../shared/protocol.ts'
import { type Answer, answerOf, type State } from './answer.ts'
import { createCompactionStream } from './compaction.ts'
import { errorFields, failureOf } from './error.ts'
import { ITEM_KINDS, type ItemEventParts, itemId, type OutputItem, type StoreResponse, visibleItem } from './items.ts'
import type { McpItems, McpNeeds } from './mcp-items.ts'
import type { PassthroughState } from './passthrough-items.ts'
import type { ResponsesRequest } from './schema.ts'
import { createItemStream } from './stream.ts'
import type { ToolNames } from './tool-names.ts'

type EncoderParts = {
  head: ResponseHead
  /** The client's request, which the response repeats. */
  clientRequest: ResponsesRequest
  /** The request after limits and defaults of the model. */
  request: ChatRequest
  /** The providers' names of the tools. */
  names: ToolNames
  isCompaction?: boolean
  /** Called with the response at its end. */
  store: StoreResponse | undefined
  /** Whether the client can find the response later. Default: whether there is `store`. */
  isStored?: boolean
  clock: Clock
  /** For a response that started elsewhere: the number of its next event, and whether it got beyond its creation. */
  resumed?: { number: number; hasStarted: boolean }
  /** Which tools of MCP servers the gateway calls itself. Absent: none. */
  needs?: McpNeeds
  /** What passed without this encoder. */
  passthroughState?: Readonly<PassthroughState>
}

export type ResponsesEncoder = ResponseEncoder & {
  /** The queued response, and its first two events. */
  queued(): { response: Answer; events: string }
  /** The response before its first output. */
  started(): Answer
  /** The response at its end, or after its failure. */
  final(): Answer | undefined
  /** Its first events, unless they were encoded. */
  begin(): string
  /** The response as its client sees it. */
  visible(response: Answer): Answer
  /** Absent for a compaction. */
  rounds?: { items: readonly OutputItem[]; mcp: McpItems; next(): void }
}

export function createResponsesEncoder(parts: EncoderParts): ResponsesEncoder {
  const { head, clientRequest, request, names, store: keep, clock, resumed, passthroughState: passed } = parts
  const { isStored = keep !== undefined } = parts
  const includes_encrypted = clientRequest.include?.includes('reasoning.encrypted_content') ?? false
  const responseOf = answerOf({ head, clientRequest, request, isStored })
  let sequence = resumed?.number ?? 0
  let hasStarted = resumed?.hasStarted ?? false
  let finish: FinishReason | null = null
  /** The response as it is stored, with encrypted reasoning, whether the client requested it or not. */
  let made: Answer | undefined

  const event = (type: string, fields: string): string =>
    `event: ${type}\ndata: {"type":"${type}","sequence_number":${sequence++},${fields}}\n\n`
  const itemParts: ItemEventParts = {
    // Items of a stored response need the gateway's ids. Otherwise an item returns to its provider under the
    // provider's id.
    newId: (type, index, vendors) => (!isStored && vendors) || itemId(head.id, ITEM_KINDS[type], index),
    event,
    includes_encrypted,
  }
  const items = parts.isCompaction
    ? createCompactionStream(itemParts)
    : createItemStream({ ...itemParts, names, needs: parts.needs })

  const visible = (response: Answer): Answer =>
    includes_encrypted
      ? response
      : { ...response, output: response.output.map((item) => visibleItem(item, false) as OutputItem) }
  const responseEvent = (type: string, response: Answer): string =>
    event(type, `"response":${JSON.stringify(visible(response))}`)

  function start(): string {
    hasStarted = true
    const response = responseOf({ status: 'in_progress' }, [])
    // A queued response has sent `response.created` before.
    return (
      (resumed ? '' : responseEvent('response.created', response)) + responseEvent('response.in_progress', response)
    )
  }

  /** The final response, by the finish reason. */
  function finished(usage: Usage | undefined): Answer {
    const reason = finish === null ? undefined : INCOMPLETE[finish]
    const state: State =
      reason === undefined
        ? { status: 'completed', completed_at: unixSeconds(clock) }
        : { status: 'incomplete', incomplete_details: { reason } }
    made = responseOf(state, items.output, usage)
    return made
  }

  return {
    queued() {
      const response = responseOf({ status: 'queued' }, [])
      return {
        response,
        events: inOneLine(responseEvent('response.created', response) + responseEvent('response.queued', response)),
      }
    },
    begin: () => (hasStarted ? '' : start()),
    visible,
    ...(items.mcp ? { rounds: { items: items.output, mcp: items.mcp, next: items.nextRound } } : {}),
    started: () => responseOf({ status: 'in_progress' }, []),
    final: () => made,
    whole(answer, usage) {
      const [choice] = answer.choices
      finish = choice?.finish_reason ?? null
      if (choice) {
        const { message, logprobs } = choice
        const { content, refusal, annotations, tool_calls = [], images = [] } = message
        const { reasoning_content, reasoning_details } = message
        const thought = reasoning_details ? { reasoning_details } : { reasoning_content: reasoning_content ?? '' }
        items.take(thought)
        items.take({ content, refusal: refusal ?? null, annotations: annotations ?? [] }, logprobsOf(logprobs))
        items.take({ tool_calls: tool_calls.map((call, index) => ({ ...call, index })), images })
      }
      items.end(statusAt(finish))
      return visible(finished(usage))
    },
    encode(batch: ChatChunk[]) {
      let events = hasStarted || batch.length === 0 ? '' : start()
      for (const { choices } of batch) {
        for (const choice of choices) {
          if (choice.index !== 0) continue
          events += items.take(choice.delta, logprobsOf(choice.logprobs))
          if (!choice.finish_reason) continue
          finish = choice.finish_reason
          // Sent now, so that a client can run its tools. The token counts may arrive later.
          events += items.end(statusAt(finish))
        }
      }
      return inOneLine(events)
    },
    includesUsage: true,
    end(usage) {
      const events = (hasStarted ? '' : start()) + items.end(statusAt(finish))
      const response = finished(usage)
      return inOneLine(events + responseEvent(`response.${response.status}`, response))
    },
    fail(error) {
      const { code, message } = failureOf(error)
      if (passed?.hasStarted) {
        hasStarted = true
        sequence = passed.next_number
      }
      // Some clients stop at this event, others at the failed response.
      const events = (hasStarted ? '' : start()) + event('error', errorFields(error))
      const failed = { status: 'failed', error: { code, message } }
      const output = items.output.map((item) => (item.status === 'in_progress' ? { ...item, status: BROKEN } : item))
      made = responseOf(failed, output)
      if (passed?.hasStarted) made = { ...made, id: passed.id ?? head.id, output: passed.output }
      return inOneLine(events + responseEvent('response.failed', made))
    },
    ...(keep
      ? {
          async store() {
            const whole = passed?.final ?? made
            if (whole) await keep(whole)
          },
        }
      : {}),
  }
}

const BROKEN = 'incomplete' as const

/** Finish reason of an incomplete response -> reason of the API. */
const INCOMPLETE: { [finish in FinishReason]?: string } = {
  length: 'max_output_tokens',
  content_filter: 'content_filter',
}
const statusAt = (finish: FinishReason | null) =>
  finish !== null && INCOMPLETE[finish] !== undefined ? 'incomplete' : 'completed'

/** The log probabilities of a choice's tokens. */
function logprobsOf(logprobs: unknown): unknown[] | undefined {
  const content = (logprobs as { content?: unknown } | null | undefined)?.content
  return Array.isArray(content) ? content : undefined
}
