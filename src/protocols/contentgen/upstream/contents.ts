/** Encodes canonical messages as contents: turns of the user and the model, each with parts. */
import { isRecord, parseExactJson } from '../../../kit/json.ts'
import { invalidValue, missingField } from '../../../spec/error.ts'
import { assertAnswerable, isNoText } from '../../shared/answerable.ts'
import type { Message } from '../../shared/canonical.ts'
import { argumentsObject, refusedField, refusedPart } from '../../shared/request-error.ts'
import type { ModelRule } from './model-rules.ts'
import { imageOf, type Part, type PartReader, partsOf, textParts } from './parts.ts'

type Content = { role: 'user' | 'model'; parts: Part[] }
type Conversation = { system: Part[]; contents: Content[] }

type Contents = PartReader & {
  rule: ModelRule
  ids: boolean
}
type Turn = Content & { kind: 'words' | 'results' | 'answer' }

/** The vendor's documented value for a call from elsewhere, which would otherwise lack a signature. */
export const UNSIGNED = 'skip_thought_signature_validator'

/**
 * System messages move to the front. Consecutive messages of one role form one turn, except that function results
 * form a turn of their own.
 */
export async function conversationOf(messages: Message[], parts: Contents): Promise<Conversation> {
  const system: Part[] = []
  const turns: Turn[] = []
  /** Call id -> function name, by which the vendor identifies a result. */
  const names = new Map<string, string>()
  for (const [index, message] of messages.entries()) {
    const at = `messages[${index}]`
    if (message.role === 'system' || message.role === 'developer') system.push(...instructionsOf(message, at))
    else if (message.role === 'user') add(turns, 'words', await contentOf(message, at, parts))
    else if (message.role === 'tool') add(turns, 'results', await resultOf(message, at, { ...parts, names }))
    else if (message.role === 'assistant') {
      for (const { id, function: called } of message.tool_calls ?? []) names.set(id, called.name)
      add(turns, 'answer', await answerOf(message, at, parts))
    } else throw refusedField(`${at}.role`, 'must not be "function"; use the role "tool"')
  }
  const contents = turns.map(({ role, parts: content }) => ({ role, parts: content }))
  const conversation = placed(system, contents, parts.rule)
  assertAnswerable(messages, conversation.contents.length > 0, isNoText)
  return conversation
}

/** If there are only instructions, or the model accepts none, they become text of the user. */
function placed(system: Part[], contents: Content[], { instructions }: ModelRule): Conversation {
  if (system.length === 0 || (instructions && contents.length > 0)) return { system, contents }
  const [first, ...rest] = contents
  if (first?.role !== 'user') return { system: [], contents: [{ role: 'user', parts: system }, ...contents] }
  return { system: [], contents: [{ role: 'user', parts: [...system, ...first.parts] }, ...rest] }
}

function add(turns: Turn[], kind: Turn['kind'], parts: Part[]): void {
  if (parts.length === 0) return
  const last = turns.at(-1)
  if (last?.kind === kind) last.parts.push(...parts)
  else turns.push({ kind, role: kind === 'answer' ? 'model' : 'user', parts })
}

function instructionsOf({ content }: Message, at: string): Part[] {
  if (typeof content === 'string') return textParts(content)
  return (content ?? []).flatMap((part, index) => {
    if (part.type === 'text') return textParts(part.text)
    throw refusedPart(`${at}.content[${index}].type`, 'must be "text" in a system message')
  })
}

async function contentOf({ content }: Message, at: string, reader: PartReader): Promise<Part[]> {
  if (typeof content === 'string') return textParts(content)
  const parts: Part[] = []
  for (const [index, part] of (content ?? []).entries()) {
    parts.push(...(await partsOf(part, `${at}.content[${index}]`, reader)))
  }
  return parts
}

async function resultOf(message: Message, at: string, parts: Contents & { names: Map<string, string> }) {
  const { tool_call_id: id } = message
  const param = `${at}.tool_call_id`
  if (id === undefined) throw missingField(param)
  const name = parts.names.get(id) ?? message.name
  if (name === undefined) {
    throw invalidValue(param, `"${param}" must be the id of a tool call in an earlier message.`)
  }
  const content = await contentOf(message, at, parts)
  const media = content.filter((part) => part.text === undefined)
  const text = content.map((part) => (typeof part.text === 'string' ? part.text : '')).join('')
  const within = media.length > 0 && parts.rule.result_media
  const functionResponse = {
    ...(parts.ids ? { id } : {}),
    name,
    response: responseOf(text, message.is_error === true),
    ...(within ? { parts: media } : {}),
  }
  return [{ functionResponse }, ...(within ? [] : media)]
}

/**
 * An object is the result itself. The vendor gives `$ref` a meaning of its own, so an object with one is sent as
 * text.
 */
function responseOf(text: string, isError: boolean): object {
  if (isError) return { error: text }
  const value = text.startsWith('{') && !text.includes('"$ref"') ? parseExactJson(text) : undefined
  return isRecord(value) ? value : { output: text }
}

async function answerOf(message: Message, at: string, parts: Contents): Promise<Part[]> {
  if (message.function_call)
    throw refusedField(`${at}.function_call`, 'is not supported by the vendor; use "tool_calls"')
  const thoughts: Part[] = []
  /** Signatures of texts, not of thoughts. */
  const hidden: string[] = []
  // Only reasoning that a provider of this API signed can be sent back to it.
  for (const { text, opaque } of message.reasoning_details ?? []) {
    if (opaque?.origin !== 'contentgen-compat') continue
    if (text === undefined) hidden.push(opaque.value)
    else thoughts.push({ text, thought: true, thoughtSignature: opaque.value })
  }
  const texts = [...(await contentOf(message, at, parts)), ...textParts(message.refusal ?? '')]
  const images: Part[] = []
  for (const [index, { image_url, opaque }] of (message.images ?? []).entries()) {
    const image = await imageOf(image_url.url, `${at}.images[${index}].image_url.url`, parts)
    images.push(opaque?.origin === 'contentgen-compat' ? { ...image, thoughtSignature: opaque.value } : image)
  }
  return [...thoughts, ...signed(texts, hidden), ...images, ...callsOf(message, at, parts)]
}

/** The last signature goes on the last text. If there is no text, it goes on an empty one. */
function signed(texts: Part[], signatures: string[]): Part[] {
  const last = texts.at(-1)
  const own = last === undefined ? undefined : signatures.at(-1)
  const rest = own === undefined ? signatures : signatures.slice(0, -1)
  const empty = rest.map((thoughtSignature) => ({ text: '', thoughtSignature }))
  return [...empty, ...(own === undefined ? texts : [...texts.slice(0, -1), { ...last, thoughtSignature: own }])]
}

function callsOf(message: Message, at: string, { rule, ids }: Contents): Part[] {
  const calls: Part[] = (message.tool_calls ?? []).map(({ id, function: called, opaque }, index) => ({
    functionCall: {
      ...(ids ? { id } : {}),
      name: called.name,
      args: argumentsObject(called.arguments, `${at}.tool_calls[${index}].function.arguments`),
    },
    ...(opaque?.origin === 'contentgen-compat' ? { thoughtSignature: opaque.value } : {}),
  }))
  const [first] = calls
  // Of parallel calls only the first has a signature.
  if (first && rule.requires_signatures && !calls.some((call) => call.thoughtSignature))
    first.thoughtSignature = UNSIGNED
  return calls
}
