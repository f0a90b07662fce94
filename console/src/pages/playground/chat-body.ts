/** Makes the request of a conversation, in the API of OpenAI's chat completions. */
import type { Attachment, ChatMessage, ChatSettings } from './chat-types.ts'
import type { Limits } from './model-limits.ts'

export type Body = Record<string, unknown>
export type ContentPart = { type: string } & Record<string, unknown>

/** The body without `stream`. A number beyond a limit of the model is sent as that limit. */
export function chatBody(
  model: string,
  messages: ChatMessage[],
  given: { settings: ChatSettings; limits: Limits },
): Body {
  const { settings, limits } = given
  const number = (name: 'temperature' | 'top_p' | 'max_tokens' | 'seed') => clamped(settings[name], limits[name])
  const system = settings.system.trim() === '' ? [] : [{ role: 'system', content: settings.system }]
  return withoutUndefined({
    model,
    messages: [...system, ...messages.flatMap(toMessages)],
    temperature: number('temperature'),
    top_p: number('top_p'),
    max_tokens: number('max_tokens'),
    seed: number('seed'),
    stop: settings.stop === '' ? undefined : settings.stop.split(',').map((one) => one.trim()),
    reasoning_effort: settings.effort || undefined,
    response_format: formatOf(settings),
    tools: toolsOf(settings.tools),
  })
}

export const withoutUndefined = (value: Body): Body =>
  Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined))

export function clamped(text: string, limit: { minimum?: number; maximum?: number } = {}): number | undefined {
  const value = Number(text)
  if (text.trim() === '' || !Number.isFinite(value)) return undefined
  return Math.min(limit.maximum ?? value, Math.max(limit.minimum ?? value, value))
}

function toMessages(message: ChatMessage): object[] {
  if (message.role === 'tool')
    return message.results.map(({ id, text }) => ({ role: 'tool', tool_call_id: id, content: text }))
  if (message.role === 'user') {
    const { text, files } = message
    if (files.length === 0) return [{ role: 'user', content: text }]
    const parts = text === '' ? [] : [{ type: 'text', text }]
    return [{ role: 'user', content: [...parts, ...files.map(partOf)] }]
  }
  const { text, tool_calls } = message
  if (text === '' && tool_calls.length === 0) return []
  const calls = tool_calls.map(({ id, name, arguments: given }) => ({
    id,
    type: 'function',
    function: { name, arguments: given },
  }))
  return [{ role: 'assistant', content: text === '' ? null : text, ...(calls.length > 0 && { tool_calls: calls }) }]
}

const partOf = ({ name, type, data_url }: Attachment): ContentPart =>
  type.startsWith('image/')
    ? { type: 'image_url', image_url: { url: data_url } }
    : { type: 'file', file: { filename: name, file_data: data_url } }

function formatOf({ format, schema }: ChatSettings): object | undefined {
  if (format === 'text') return undefined
  if (format === 'json_object') return { type: 'json_object' }
  return { type: 'json_schema', json_schema: { name: 'answer', schema: JSON.parse(schema || '{}'), strict: true } }
}

/** The tools as they were typed: a list, or one. Throws SyntaxError. */
function toolsOf(text: string): object[] | undefined {
  if (text.trim() === '') return undefined
  const parsed: unknown = JSON.parse(text)
  return (Array.isArray(parsed) ? parsed : [parsed]) as object[]
}

/** What is wrong with JSON that was typed; undefined: nothing. */
export function jsonProblem(text: string, kind: 'tools' | 'schema'): string | undefined {
  if (text.trim() === '') return kind === 'schema' ? 'Type the JSON schema of the answer.' : undefined
  try {
    const parsed: unknown = JSON.parse(text)
    if (typeof parsed !== 'object' || parsed === null) return 'This is not a JSON object.'
    if (kind === 'schema' && Array.isArray(parsed)) return 'A schema is a JSON object, not a list.'
    return undefined
  } catch (error) {
    return `This is not JSON: ${error instanceof Error ? error.message : String(error)}`
  }
}
