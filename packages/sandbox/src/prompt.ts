/** A chat request as the sandbox reads it: the question, what came with it, and how it should behave. */
import type { ChatRequest } from '../../../src/spec/chat-request.ts'
import type { ContentPart, Message } from '../../../src/spec/message.ts'
import { type Directives, parseDirectives, takeDirectiveLines } from './directives.ts'
import type { Hints } from './json-schema-scalars.ts'
import { isFiller, topicsOf, wordsOf } from './terms.ts'

type ToolResult = { name: string; text: string }

export type Prompt = {
  /** The text of the last user message, without directive lines. */
  question: string
  /** The addresses of the last user message's images, data URIs too. */
  images: string[]
  /** What tools answered since that message. */
  results: ToolResult[]
  directives: Directives
  /** Everything that the answer's words depend on: not how long, how fast or in what form it is sent. */
  seed: string
}

/** Throws `upstream_invalid_request` for a directive that is not understood. */
export function readPrompt(model: string, request: ChatRequest): Prompt {
  const { messages } = request
  const at = messages.findLastIndex((message) => message.role === 'user')
  const found = messages[at === -1 ? messages.length - 1 : at]
  const { asked, lines } = found && at !== -1 ? withoutDirectives(found) : { asked: found, lines: [] }
  const parts = Array.isArray(asked?.content) ? asked.content : []
  const seen = messages.map((message, index) => (asked && index === at ? asked : message))
  return {
    question: asked ? textOf(asked) : '',
    images: parts.flatMap((part) => (part.type === 'image_url' ? [part.image_url.url] : [])),
    results: resultsAfter(messages, at),
    directives: parseDirectives(lines, { param: `messages[${at}].content`, choices: request.n ?? 1 }),
    seed: seedOf(model, request, seen),
  }
}

function seedOf(model: string, request: ChatRequest, messages: Message[]): string {
  const { tools, functions, tool_choice, function_call, response_format, seed } = request
  const { temperature, top_p, frequency_penalty, presence_penalty, repetition_penalty } = request
  const sampling = [temperature, top_p, frequency_penalty, presence_penalty, repetition_penalty, seed]
  return JSON.stringify([model, messages, tools, functions, tool_choice, function_call, response_format, sampling])
}

function withoutDirectives(message: Message): { asked: Message; lines: string[] } {
  const lines: string[] = []
  const take = (text: string) => {
    const taken = takeDirectiveLines(text)
    lines.push(...taken.lines)
    return taken.rest
  }
  if (typeof message.content === 'string') return { asked: { ...message, content: take(message.content) }, lines }
  if (!message.content) return { asked: message, lines }
  const content = message.content.map(
    (part): ContentPart => (part.type === 'text' ? { ...part, text: take(part.text) } : part),
  )
  return { asked: { ...message, content }, lines }
}

function textOf({ content }: Message): string {
  if (typeof content === 'string') return content
  return (content ?? []).flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n')
}

function resultsAfter(messages: Message[], at: number): ToolResult[] {
  const after = messages.slice(at + 1)
  const calls = after.flatMap((message) => message.tool_calls ?? [])
  return after
    .filter((message) => message.role === 'tool' || message.role === 'function')
    .map((message) => {
      const call = calls.find(({ id }) => id === message.tool_call_id)
      return { name: call?.function.name ?? message.name ?? 'tool', text: textOf(message) }
    })
}

/** More than this is not taken from one prompt. */
const MAX_HINTS = 40

/** What a prompt names, best first: quoted texts, names within a sentence, the remaining topics; and its numbers. */
export function hintsOf(question: string, turn: number): Hints {
  const text = question.slice(0, 20_000)
  // "..." or “...”, short enough to be a value.
  const quoted = [...text.matchAll(/["“]([^"“”\n]{1,80})["”]/g)].map((found) => found[1] ?? '')
  // Capitalised runs of words that do not open a sentence: New York, Paris.
  const names = [...text.matchAll(/(?<![.!?\n]\s{0,3}|^)\b\p{Lu}[\p{L}\p{M}]+(?: \p{Lu}[\p{L}\p{M}]+){0,3}/gu)]
    .map((found) => found[0])
    .filter((name) => !wordsOf(name).every(isFiller))
  const words = [...new Set([...quoted, ...names, ...topicsOf(text, MAX_HINTS)])].slice(0, MAX_HINTS)
  const numbers = [...text.matchAll(/(?<![\p{L}\d.])-?\d{1,9}(?:\.\d{1,6})?(?![\p{L}\d])/gu)]
    .slice(0, MAX_HINTS)
    .map((found) => Number(found[0]))
  // Another choice of the same answer starts one further on, so that it differs.
  return { words: [...words.slice(turn), ...words.slice(0, turn)], numbers, taken: { words: 0, numbers: 0 } }
}
