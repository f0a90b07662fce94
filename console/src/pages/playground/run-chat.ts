/** Calls a chat model through the playground and follows its stream. */
import { ApiError, send } from '../../api/client.ts'
import { eventsOf } from '../../api/events.ts'
import type { Body } from './chat-body.ts'
import { type Answer, MAX_ANSWER, MAX_SOURCES, type Source, type ToolCall } from './chat-types.ts'

export const newAnswer = (): Answer => ({
  role: 'assistant',
  state: 'running',
  text: '',
  reasoning: '',
  tool_calls: [],
  sources: [],
  finish_reason: null,
  usage: null,
  error: null,
  request_id: null,
  first_ms: null,
  total_ms: null,
})

/** Names the project that is billed; the header is left out where the person is bound to one. */
export const projectHeader = (project: string): Record<string, string> =>
  project === '' ? {} : { 'x-gatehouse-project': project }

type RunOptions = { body: Body; project: string; signal: AbortSignal; onChange(answer: Answer): void }
type Delta = {
  content?: string | null
  reasoning_content?: string | null
  reasoning?: string | null
  annotations?: { url_citation?: { url?: string; title?: string } }[] | null
  tool_calls?: { index?: number; id?: string; function?: { name?: string; arguments?: string } }[]
}
type Chunk = {
  error?: { message?: string; code?: string }
  choices?: { delta?: Delta; finish_reason?: string | null }[]
  usage?: {
    prompt_tokens?: number
    completion_tokens?: number
    prompt_tokens_details?: { cached_tokens?: number } | null
    completion_tokens_details?: { reasoning_tokens?: number } | null
  } | null
}

/** Ends with the answer, whatever happened: an error is a part of it. */
export async function runChat({ body, project, signal, onChange }: RunOptions): Promise<void> {
  const began = performance.now()
  const elapsed = () => performance.now() - began
  let answer = newAnswer()
  const change = (changes: Partial<Answer>) => {
    answer = { ...answer, ...changes }
    onChange(answer)
  }
  try {
    const response = await send('POST /admin/v1/playground/v1/chat/completions', {
      body: { ...body, stream: true, stream_options: { include_usage: true } },
      headers: { accept: 'text/event-stream', ...projectHeader(project) },
      signal,
    })
    change({ request_id: response.headers.get('x-request-id') })
    for await (const { data } of eventsOf(response)) {
      if (data === '[DONE]') continue
      const changes = read(JSON.parse(data) as Chunk, answer)
      const isFirst = answer.first_ms === null && (changes.text || changes.reasoning || changes.tool_calls)
      change({ ...changes, ...(isFirst && { first_ms: elapsed() }) })
      if (answer.text.length + answer.reasoning.length > MAX_ANSWER) throw new TooLong()
      if (answer.error) break
    }
    change({ state: answer.error ? 'failed' : 'done', total_ms: elapsed() })
  } catch (error) {
    if (signal.aborted) change({ state: 'stopped', total_ms: elapsed() })
    else change({ state: 'failed', total_ms: elapsed(), ...failure(error, answer) })
  }
}

class TooLong extends Error {
  constructor() {
    super(`The answer was stopped: it has more than ${MAX_ANSWER} characters.`)
  }
}

function failure(error: unknown, { request_id }: Answer): Partial<Answer> {
  const message = error instanceof Error ? error.message : String(error)
  if (!(error instanceof ApiError)) return { error: { message, code: 'not_read' } }
  return { error: { message, code: error.code }, request_id: error.request_id ?? request_id }
}

function read({ choices, usage, error }: Chunk, answer: Answer): Partial<Answer> {
  const changes: Partial<Answer> = {}
  if (error)
    changes.error = { message: error.message ?? 'The stream ended with an error.', code: error.code ?? 'unknown' }
  const [choice] = choices ?? []
  const { content, reasoning_content, reasoning, tool_calls, annotations } = choice?.delta ?? {}
  if (content) changes.text = answer.text + content
  const thought = reasoning_content ?? reasoning
  if (thought) changes.reasoning = answer.reasoning + thought
  if (tool_calls) changes.tool_calls = merged(answer.tool_calls, tool_calls)
  if (annotations) changes.sources = withSources(answer.sources, annotations)
  if (choice?.finish_reason) changes.finish_reason = choice.finish_reason
  if (usage)
    changes.usage = {
      input: usage.prompt_tokens ?? 0,
      cached: usage.prompt_tokens_details?.cached_tokens ?? 0,
      output: usage.completion_tokens ?? 0,
      reasoning: usage.completion_tokens_details?.reasoning_tokens ?? 0,
    }
  return changes
}

/** Each address once. */
function withSources(known: Source[], annotations: NonNullable<Delta['annotations']>): Source[] {
  const sources = [...known]
  for (const { url_citation } of annotations) {
    const { url, title } = url_citation ?? {}
    if (typeof url !== 'string' || sources.length >= MAX_SOURCES || sources.some((one) => one.url === url)) continue
    sources.push({ url, title: typeof title === 'string' ? title : '' })
  }
  return sources
}

/** Tool calls arrive in pieces, each with its index. */
function merged(known: ToolCall[], pieces: NonNullable<Delta['tool_calls']>): ToolCall[] {
  const calls = [...known]
  for (const { index = calls.length, id, function: given } of pieces) {
    const former = calls[index] ?? { id: '', name: '', arguments: '' }
    calls[index] = {
      id: former.id || (id ?? ''),
      name: former.name || (given?.name ?? ''),
      arguments: former.arguments + (given?.arguments ?? ''),
    }
  }
  return calls.filter(Boolean)
}
