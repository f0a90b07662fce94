/** Decodes the events of a Responses stream to chunks. Unknown items and events are ignored. */
import { asRecord, isRecord, type JsonRecord, memberOf } from '../../../kit/json.ts'
import type { FinishReason } from '../../../spec/chat-completion.ts'
import type { ChatChunk, Delta } from '../../shared/canonical.ts'
import type { EventReader } from '../../shared/chunk-stream.ts'
import { type Fallback, namedText, usageOf } from '../../shared/upstream.ts'
import { logprobsOf } from './annotations.ts'
import { type ChoiceDelta, createItems } from './items.ts'

/** The events that end a response. Failed responses are handled as errors elsewhere. */
export const ENDS = ['response.completed', 'response.incomplete']

/** The member of a call that holds its arguments: some providers send the object itself. */
export const ARGUMENTS = ['arguments']

/** Whether an event reports that the response failed or was cancelled. */
export const isFailure = ({ type, response }: JsonRecord): boolean =>
  type === 'response.failed' ||
  type === 'response.cancelled' ||
  (isRecord(response) && (response.status === 'failed' || response.status === 'cancelled'))

/** `fallback` replaces an id, a model or a time that the provider leaves out. */
export function createEventReader(fallback: Fallback): EventReader {
  let head: Fallback = fallback
  let finished: FinishReason | undefined
  let hasStarted = false
  let isEmpty = false
  const items = createItems()

  function chunk({ delta, logprobs }: ChoiceDelta): ChatChunk | undefined {
    if (Object.keys(delta).length === 0) return undefined
    const first: Delta = hasStarted ? {} : { role: 'assistant', content: '' }
    hasStarted = true
    const choice = {
      index: 0,
      delta: { ...first, ...delta },
      finish_reason: null,
      ...(logprobs ? { logprobs: { content: logprobs, refusal: null } } : {}),
    }
    return { ...head, object: 'chat.completion.chunk', choices: [choice] }
  }

  /** Reads the id, model and time. Sends nothing: until there is output, another target can still be tried. */
  function setHead(response: unknown): undefined {
    if (!isRecord(response)) return
    const { id, model, created_at } = response
    head = {
      id: namedText(id) ?? head.id,
      model: namedText(model) ?? head.model,
      created: typeof created_at === 'number' && created_at > 0 ? Math.floor(created_at) : head.created,
    }
  }

  /** The response has started, at the latest with this event. */
  const start = (first: ChoiceDelta): ChatChunk | undefined =>
    hasStarted ? chunk(first) : chunk({ ...first, delta: { content: '', ...first.delta } })

  /** The end of the response: what was not sent before, the finish reason and the usage. */
  function end({ type, response: raw }: JsonRecord): ChatChunk {
    const response = asRecord(raw)
    setHead(response)
    const output = Array.isArray(response.output) ? response.output : []
    const rest = items.settleAll(output)
    const last = chunk(rest)
    const status = response.status ?? (type === 'response.incomplete' ? 'incomplete' : 'completed')
    finished = finishOf({ ...response, status }, items.calls() > 0)
    const usage = usageOf(response.usage)
    isEmpty = !hasStarted && isWithoutOutput({ ...response, status })
    const [choice] = last?.choices ?? []
    const role: Delta = hasStarted ? {} : { role: 'assistant', content: '' }
    return {
      ...head,
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta: role, ...choice, finish_reason: finished }],
      ...(usage ? { usage } : {}),
    }
  }

  return {
    take(event) {
      switch (event.type) {
        case 'response.output_text.delta':
          return chunk({ delta: items.text(event, 'content'), logprobs: logprobsOf(event.logprobs) })
        case 'response.created':
        case 'response.queued':
        case 'response.in_progress':
          return setHead(event.response)
        case 'response.output_item.added':
          return start({ delta: items.open(event) })
        case 'response.output_item.done':
          return start(items.settle(event))
        case 'response.function_call_arguments.delta':
        case 'response.custom_tool_call_input.delta':
          return chunk({ delta: items.argumentsOf(event, event.delta) })
        case 'response.reasoning_summary_text.delta':
          return chunk({ delta: items.thought(event, 'summary') })
        case 'response.reasoning_text.delta':
          return chunk({ delta: items.thought(event, 'content') })
        case 'response.refusal.delta':
          return chunk({ delta: items.text(event, 'refusal') })
        case 'response.output_text.annotation.added':
          return chunk({ delta: items.annotation(event) })
      }
      return ENDS.some((type) => type === event.type) ? end(event) : undefined
    },
    isFinished: () => finished !== undefined,
    isDone: () => finished !== undefined,
    isEmpty: () => isEmpty,
    exact: ARGUMENTS,
    isFailure,
  }
}

/** Whether a response claims to be complete without output, and without output tokens that are charged. */
export function isWithoutOutput({ status, output, usage }: JsonRecord): boolean {
  const tokens = memberOf(usage, 'output_tokens')
  const hasTokens = typeof tokens === 'number' && tokens > 0
  return status !== 'incomplete' && !hasTokens && !(Array.isArray(output) && output.length > 0)
}

const REASONS: Record<string, FinishReason> = {
  max_output_tokens: 'length',
  max_messages: 'length',
  content_filter: 'content_filter',
  steered: 'stop',
}

/** For a response that has ended. An unknown reason for an incomplete response counts as the token limit. */
function finishOf({ status, incomplete_details: details }: JsonRecord, hasCalls: boolean): FinishReason {
  if (status === 'incomplete') {
    const reason = isRecord(details) && typeof details.reason === 'string' ? details.reason : ''
    return (Object.hasOwn(REASONS, reason) ? REASONS[reason] : undefined) ?? 'length'
  }
  return hasCalls ? 'tool_calls' : 'stop'
}
