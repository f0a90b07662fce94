/** Encodes Messages responses, whole and as named events. */
import { isRecord, type JsonRecord, parseExactJson } from '../../../kit/json.ts'
import { inOneLine } from '../../../kit/sse.ts'
import type { FinishReason } from '../../../spec/chat-completion.ts'
import type { Usage } from '../../../spec/usage.ts'
import type { AnswerMessage, ChatChunk, ChatRequest, Reasoning } from '../../shared/canonical.ts'
import type { ResponseEncoder, ResponseHead } from '../../shared/protocol.ts'
import { roughTokens } from '../../shared/token-estimate.ts'
import { encodeMessagesError } from './error.ts'
import { encodeSignature } from './signature.ts'
import { citationOf, createBlockStream, event, newId } from './stream.ts'

export function createMessagesEncoder(head: ResponseHead, request: ChatRequest, request_id: string): ResponseEncoder {
  const blocks = createBlockStream()
  let hasStarted = false
  let refusal = ''
  let finish: FinishReason | null = null
  let stopSequence: string | null = null
  let isPaused = false

  function startMessage(counts: object): string {
    hasStarted = true
    const message = {
      ...headOf(head),
      content: [],
      ...stopOf({ finish: null, stop_sequence: null, refusal: '' }),
      usage: counts,
    }
    return event('message_start', { message }) + event('ping', {})
  }

  function encode(batch: ChatChunk[]): string {
    let events = ''
    if (!hasStarted && batch.length > 0) events += startMessage(countsAtStart(batch, request))
    for (const { choices } of batch) {
      for (const choice of choices) {
        if (choice.index !== 0) continue
        events += blocks.take(choice.delta)
        refusal += choice.delta.refusal ?? ''
        if (choice.is_paused) isPaused = true
        if (choice.stop_sequence) stopSequence = choice.stop_sequence
        if (!choice.finish_reason) continue
        finish = choice.finish_reason
        // Sent now, so that a client can run its tools. The token counts may arrive later.
        events += blocks.end()
      }
    }
    return inOneLine(events)
  }

  return {
    whole(answer, usage) {
      const [choice] = answer.choices
      const message = choice?.message
      return {
        ...headOf(head),
        content: message ? contentOf(message) : [],
        ...stopOf({
          finish: choice?.finish_reason ?? 'stop',
          stop_sequence: choice?.stop_sequence ?? null,
          isPaused: choice?.is_paused,
          refusal: message?.refusal ?? '',
        }),
        usage: usageOf(usage),
      }
    },
    encode,
    includesUsage: true,
    end(usage) {
      const start = hasStarted ? '' : startMessage(usageOf(usage))
      const delta = {
        container: null,
        ...stopOf({ finish: finish ?? 'stop', stop_sequence: stopSequence, isPaused, refusal }),
      }
      const events = blocks.end() + event('message_delta', { delta, usage: usageOf(usage) }) + event('message_stop', {})
      return inOneLine(start + events)
    },
    fail(error) {
      const { type: _, ...members } = encodeMessagesError(error, request_id)
      return inOneLine(event('error', members))
    },
  }
}

const headOf = ({ id, model }: ResponseHead) => ({
  id,
  type: 'message',
  role: 'assistant',
  model,
  container: null,
  diagnostics: null,
})

/** Finish reason -> stop reason of the API. */
const STOP_REASONS: Record<FinishReason, string> = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
  content_filter: 'refusal',
}

type Stop = {
  finish: FinishReason | null
  stop_sequence: string | null
  isPaused?: boolean | undefined
  refusal: string
}

function stopOf({ finish, stop_sequence, isPaused, refusal }: Stop) {
  const isStop = finish === 'stop'
  const byStop = stop_sequence !== null ? 'stop_sequence' : isPaused ? 'pause_turn' : STOP_REASONS.stop
  const byReason = isStop ? byStop : finish && STOP_REASONS[finish]
  const stop_reason = refusal === '' ? byReason : 'refusal'
  const isRefusal = stop_reason === 'refusal'
  return {
    stop_reason,
    stop_sequence: stop_reason === 'stop_sequence' ? stop_sequence : null,
    stop_details: isRefusal ? { type: 'refusal', category: null, explanation: refusal === '' ? null : refusal } : null,
  }
}

/** Input tokens exclude cached tokens, which are reported separately. */
export function usageOf(usage: Usage | undefined) {
  const details = usage?.prompt_tokens_details
  const cacheRead = details?.cached_tokens ?? 0
  const cacheWrite = details?.cache_write_tokens ?? 0
  return {
    input_tokens: Math.max(0, (usage?.input_tokens ?? 0) - cacheRead - cacheWrite),
    cache_creation_input_tokens: cacheWrite,
    cache_read_input_tokens: cacheRead,
    cache_creation:
      details?.cache_write_1h_tokens === undefined ? null : cacheCreation(cacheWrite, details.cache_write_1h_tokens),
    output_tokens: usage?.output_tokens ?? 0,
    output_tokens_details: { thinking_tokens: usage?.completion_tokens_details.reasoning_tokens ?? 0 },
    server_tool_use: null,
    service_tier: null,
    inference_geo: null,
    speed: null,
  }
}

const cacheCreation = (written: number, ephemeral_1h_input_tokens: number) => ({
  ephemeral_5m_input_tokens: Math.max(0, written - ephemeral_1h_input_tokens),
  ephemeral_1h_input_tokens,
})

/** The usage reported so far, or else a rough estimate: clients keep the first number they receive. */
function countsAtStart(batch: ChatChunk[], request: ChatRequest) {
  const reported = batch.find(({ usage }) => usage && usage.input_tokens > 0)?.usage
  const counts = usageOf(reported ?? undefined)
  return reported ? counts : { ...counts, input_tokens: roughTokens(request) }
}

/** The blocks of a whole response: reasoning, then text, then calls. */
function contentOf(message: AnswerMessage): object[] {
  const { content, refusal, reasoning_content, reasoning_details, tool_calls = [], annotations = [] } = message
  const pieces = reasoning_details ?? (reasoning_content ? [{ text: reasoning_content }] : [])
  const blocks: object[] = pieces.flatMap(({ text, opaque }: Reasoning): object[] => {
    if (text !== undefined)
      return [
        {
          type: 'thinking',
          thinking: text,
          signature: encodeSignature({ opaque }),
        },
      ]
    return opaque ? [{ type: 'redacted_thinking', data: encodeSignature({ opaque }) }] : []
  })
  const text = `${content ?? ''}${refusal ?? ''}`
  if (text !== '' || annotations.length > 0) {
    const citations = annotations.map((annotation) => citationOf(annotation, text))
    blocks.push({ type: 'text', text, ...(citations.length > 0 ? { citations } : {}) })
  }
  for (const { id = newId(), function: called, opaque } of tool_calls) {
    if (opaque)
      blocks.push({
        type: 'thinking',
        thinking: '',
        signature: encodeSignature({ opaque, owner: id }),
      })
    blocks.push({
      type: 'tool_use',
      id,
      name: called.name ?? '',
      input: inputOf(called.arguments),
      caller: { type: 'direct' },
    })
  }
  return blocks
}

/**
 * Arguments that are no JSON object, as a small model may produce them, in the form that the API's documentation
 * gives: https://platform.claude.com/docs/en/agents-and-tools/tool-use/fine-grained-tool-streaming
 */
function inputOf(text: string): JsonRecord {
  if (text.trim() === '') return {}
  const value = parseExactJson(text)
  return isRecord(value) ? value : { INVALID_JSON: text }
}
