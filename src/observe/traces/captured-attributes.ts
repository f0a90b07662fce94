/** The part of a span that says how a response ended, which tools it calls and, where switched on, its contents. */
import type { ChatRequest, Message } from '../../protocols/shared/canonical.ts'
import type { Capture, CapturedResponse } from '../../protocols/shared/capture.ts'
import { unescaped } from '../requests/captured-contents.ts'
import type { Span, SpanAttributes } from './span.ts'

type Events = NonNullable<Span['events']>

/** One event for each choice, and one for each call of a tool. */
export function capturedEvents(capture: Capture, at_ms: number): Events {
  const { response } = capture
  const max_characters = spanCharacters(capture)
  if (!response) return []
  const choices = response.finish_reasons.flatMap((finish_reason, index) =>
    finish_reason ? [{ name: 'gen_ai.choice', at_ms, attributes: { index, finish_reason } }] : [],
  )
  const calls = response.tool_calls.map(({ choice, id, name, arguments: text }) => ({
    name: 'gen_ai.tool.call',
    at_ms,
    attributes: {
      index: choice,
      'gen_ai.tool.name': name,
      'gen_ai.tool.call.id': id || undefined,
      'gen_ai.tool.call.arguments': max_characters > 0 ? text.slice(0, max_characters) : undefined,
    },
  }))
  return [...choices, ...calls]
}

export function capturedAttributes(capture: Capture): SpanAttributes {
  const { request, response } = capture
  const max_characters = spanCharacters(capture)
  const reasons = response?.finish_reasons.filter(Boolean) ?? []
  const attributes: SpanAttributes = {}
  if (reasons.length > 0) attributes['gen_ai.response.finish_reasons'] = reasons
  if (max_characters === 0) return attributes
  if (request) attributes['gen_ai.input.messages'] = inputMessages(request, max_characters)
  if (response) attributes['gen_ai.output.messages'] = outputMessages(response, max_characters)
  return attributes
}

type Part = { type: string; content?: string; id?: string; name?: string; arguments?: string; result?: string }

const spanCharacters = ({ span_characters, max_characters }: Capture): number => span_characters ?? max_characters

/** The latest messages, in the order of the request; what does not fit is left out, and says so. */
function inputMessages({ messages }: ChatRequest, max_characters: number): string {
  const kept: { role: string; parts: Part[] }[] = []
  const left = { characters: max_characters }
  for (const message of messages.toReversed()) {
    if (left.characters <= 0) {
      kept.push({ role: 'system', parts: [{ type: 'text', content: '[earlier messages left out]' }] })
      break
    }
    kept.push({ role: message.role, parts: partsOf(message, (text) => cut(text, left)) })
  }
  return JSON.stringify(kept.reverse())
}

function partsOf({ role, content, tool_calls, tool_call_id }: Message, keep: (text: string) => string): Part[] {
  const texts = typeof content === 'string' ? [{ type: 'text' as const, text: content }] : (content ?? [])
  const parts = texts.map((part): Part => {
    if (part.type === 'text')
      return role === 'tool'
        ? { type: 'tool_call_response', ...(tool_call_id ? { id: tool_call_id } : {}), result: keep(part.text) }
        : { type: 'text', content: keep(part.text) }
    return { type: part.type } // images, audio and files are named, not copied
  })
  const calls = (tool_calls ?? []).map(
    ({ id, function: called }): Part => ({
      type: 'tool_call',
      id,
      name: called.name,
      arguments: keep(called.arguments),
    }),
  )
  return [...parts, ...calls]
}

function outputMessages({ texts, tool_calls, finish_reasons }: CapturedResponse, max_characters: number): string {
  const left = { characters: max_characters }
  const text = cut(texts.map((piece) => (piece.is_raw ? unescaped(piece.text) : piece.text)).join(''), left)
  const parts: Part[] = text === '' ? [] : [{ type: 'text', content: text }]
  for (const { id, name, arguments: given } of tool_calls)
    parts.push({ type: 'tool_call', id, name, arguments: cut(given, left) })
  const [finish_reason] = finish_reasons.filter(Boolean)
  return JSON.stringify([{ role: 'assistant', parts, ...(finish_reason ? { finish_reason } : {}) }])
}

function cut(text: string, left: { characters: number }): string {
  const kept = text.length <= left.characters ? text : `${text.slice(0, Math.max(0, left.characters))}[cut]`
  left.characters -= text.length
  return kept
}
