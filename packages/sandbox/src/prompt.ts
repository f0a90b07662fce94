/** Parses a chat request: the question, its images and tool results, and the directives for how the sandbox behaves. */
import { sha256 } from '../../../src/kit/secret.ts'
import type { ChatRequest, Message } from '../../../src/providers/provider.ts'
import type { ContentPart } from '../../../src/spec/message.ts'
import { textOfAudio } from './chat-audio.ts'
import { extractDirectiveLines, parseDirectives } from './directives.ts'
import type { Hints } from './json-schema-scalars.ts'
import { isStopWord, splitWords, topicsOf } from './terms.ts'

type ToolResult = { name: string; text: string }

export type Prompt = ReturnType<typeof parsePrompt>

/** Throws `upstream_invalid_request` for an unknown directive. */
export function parsePrompt(model: string, request: ChatRequest) {
  const { messages } = request
  const at = messages.findLastIndex((message) => message.role === 'user')
  const found = messages[at === -1 ? messages.length - 1 : at]
  const { message, lines } = found && at !== -1 ? withoutDirectives(found) : { message: found, lines: [] }
  const parts = Array.isArray(message?.content) ? message.content : []
  const withoutLines = messages.map((each, index) => (message && index === at ? message : each))
  return {
    /** The text of the last user message, without directive lines. */
    question: message ? textOf(message) : '',
    /** The URLs of the images in the last user message, data URIs included. */
    images: parts.flatMap((part) => (part.type === 'image_url' ? [part.image_url.url] : [])),
    /** What the sandbox says of the other files in it. */
    files: parts.flatMap(describePart),
    /** The results of tools since that message. */
    results: resultsAfter(messages, at),
    directives: parseDirectives(lines, { param: `messages[${at}].content`, choices: request.n ?? 1 }),
    /** All that the text of the answer depends on. Its length, its speed and its form are not part of it. */
    seed: seedOf(model, request, withoutLines),
  }
}

function describePart(part: ContentPart): string[] {
  if (part.type === 'file') return [describeFile(part.file)]
  const isUnknown = part.type === 'input_audio' && textOfAudio(part.input_audio.data) === undefined
  return isUnknown ? ['audio, of which the sandbox understands only what its own speech has made'] : []
}

type FilePart = Extract<ContentPart, { type: 'file' }>['file']

function describeFile({ filename, file_data }: FilePart): string {
  const [, type, data = ''] = /^data:([^;,]{1,100});base64,(.*)$/s.exec(file_data ?? '') ?? []
  if (type === undefined) return 'a file that the sandbox does not fetch'
  return `the file "${(filename ?? 'unnamed').slice(0, 100)}" of ${Buffer.byteLength(data, 'base64')} bytes (${type})`
}

function seedOf(model: string, request: ChatRequest, messages: Message[]): string {
  const { tools, functions, tool_choice, function_call, response_format, seed } = request
  const { temperature, top_p, frequency_penalty, presence_penalty, repetition_penalty } = request
  const sampling = [temperature, top_p, frequency_penalty, presence_penalty, repetition_penalty, seed]
  const text = JSON.stringify([
    model,
    messages,
    tools,
    functions,
    tool_choice,
    function_call,
    response_format,
    sampling,
  ])
  // It is hashed for each choice and more: a long one only once.
  return text.length > LONG_SEED ? sha256(text) : text
}

const LONG_SEED = 10_000

function withoutDirectives(message: Message): { message: Message; lines: string[] } {
  const lines: string[] = []
  const extract = (text: string) => {
    const extracted = extractDirectiveLines(text)
    lines.push(...extracted.lines)
    return extracted.rest
  }
  if (typeof message.content === 'string') return { message: { ...message, content: extract(message.content) }, lines }
  if (!message.content) return { message, lines }
  const content = message.content.map(
    (part): ContentPart => (part.type === 'text' ? { ...part, text: extract(part.text) } : part),
  )
  return { message: { ...message, content }, lines }
}

function textOf({ content }: Message): string {
  if (typeof content === 'string') return content
  const text = (part: ContentPart) => {
    if (part.type === 'text') return part.text
    return part.type === 'input_audio' ? textOfAudio(part.input_audio.data) : undefined
  }
  return (content ?? []).flatMap((part) => text(part) ?? []).join('\n')
}

function resultsAfter(messages: Message[], at: number): ToolResult[] {
  const after = messages.slice(at + 1)
  const names = new Map<string, string>()
  for (const { id, function: called } of after.flatMap((message) => message.tool_calls ?? [])) {
    if (!names.has(id)) names.set(id, called.name)
  }
  return after
    .filter((message) => message.role === 'tool' || message.role === 'function')
    .map((message) => ({
      name: names.get(message.tool_call_id ?? '') ?? message.name ?? 'tool',
      text: textOf(message),
    }))
}

/** The most terms, and the most numbers, that are used of one prompt. */
const MAX_HINTS = 40

/** Values that a prompt mentions, best first: quoted texts, names within a sentence, other topics; and its numbers. */
export function hintsOf(question: string, choiceIndex: number): Hints {
  const text = question.slice(0, 20_000)
  // "..." or “...”, short enough to be a value.
  const quoted = [...text.matchAll(/["“]([^"“”\n]{1,80})["”]/g)].map((found) => found[1] ?? '')
  // Capitalised runs of words that do not open a sentence: New York, Paris.
  const names = [...text.matchAll(/(?<![.!?\n]\s{0,3}|^)\b\p{Lu}[\p{L}\p{M}]+(?: \p{Lu}[\p{L}\p{M}]+){0,3}/gu)]
    .map((found) => found[0])
    .filter((name) => !splitWords(name).every(isStopWord))
  const terms = [...new Set([...quoted, ...names, ...topicsOf(text, MAX_HINTS)])].slice(0, MAX_HINTS)
  const numbers = [...text.matchAll(/(?<![\p{L}\d.])-?\d{1,9}(?:\.\d{1,6})?(?![\p{L}\d])/gu)]
    .slice(0, MAX_HINTS)
    .map((found) => Number(found[0]))
  // Each choice of one answer starts with another term, so that the choices differ.
  return {
    terms: [...terms.slice(choiceIndex), ...terms.slice(0, choiceIndex)],
    numbers,
    used: { terms: 0, numbers: 0 },
  }
}
