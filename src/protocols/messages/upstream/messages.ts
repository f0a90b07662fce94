/** Encodes canonical messages as turns of blocks. */
import { missingField } from '../../../spec/error.ts'
import { assertAnswerable } from '../../shared/answerable.ts'
import type { Message, Reasoning } from '../../shared/canonical.ts'
import { argumentsObject, refusedField } from '../../shared/request-error.ts'
import { type Block, blockOf } from './blocks.ts'

type Turn = { role: 'user' | 'assistant' | 'system'; content: Block[] }
export type Conversation = { system: Block[]; messages: Turn[] }

type ToolIds = (id: string) => string

/**
 * System messages move to the front, except those within the conversation if the model accepts them there.
 * Consecutive messages of one role form one turn, in which tool results come first.
 */
export function conversationOf(messages: Message[], { inner_system }: { inner_system: boolean }): Conversation {
  const system: Block[] = []
  const turns: Turn[] = []
  const toolId = createToolIds()
  for (const [index, message] of messages.entries()) {
    const at = `messages[${index}]`
    if (message.role === 'system' || message.role === 'developer') {
      const blocks = contentOf(message, at)
      const isInner = inner_system && turns.at(-1)?.role !== 'assistant' && isAnsweredNext(messages, index)
      if (isInner && turns.length > 0) add(turns, 'system', blocks)
      else system.push(...blocks)
    } else if (message.role === 'user') add(turns, 'user', contentOf(message, at))
    else if (message.role === 'tool') add(turns, 'user', [resultOf(message, { at, toolId })])
    else if (message.role === 'assistant') add(turns, 'assistant', answerOf(message, { at, toolId }))
    else throw refusedField(`${at}.role`, `must not be "function"; use the role "tool"`)
  }
  assertAnswerable(messages, turns.length > 0, isBlank)
  trimLast(turns)
  return { system, messages: turns }
}

/** The vendor accepts a system message only before an assistant message: an earlier one, or the one to generate. */
function isAnsweredNext(messages: Message[], index: number): boolean {
  const next = messages.slice(index + 1).find(({ role }) => role !== 'system' && role !== 'developer')
  return next === undefined || next.role === 'assistant'
}

function add(turns: Turn[], role: Turn['role'], content: Block[]): void {
  if (content.length === 0) return
  const last = turns.at(-1)
  if (last?.role === role) last.content.push(...content)
  else turns.push({ role, content })
}

function contentOf({ content }: Message, at: string): Block[] {
  if (typeof content === 'string') return textBlocks(content)
  return (content ?? []).flatMap((part, index) => {
    const block = blockOf(part, `${at}.content[${index}]`)
    return block.type === 'text' ? textBlocks(block.text as string) : [block]
  })
}

const isBlank = (text: string): boolean => text.trim() === ''

/** The vendor refuses blocks of only white space. */
const textBlocks = (text: string): Block[] => (isBlank(text) ? [] : [{ type: 'text', text }])

type Place = { at: string; toolId: ToolIds }

function resultOf(message: Message, { at, toolId }: Place): Block {
  const { tool_call_id, content, is_error } = message
  if (tool_call_id === undefined) throw missingField(`${at}.tool_call_id`)
  return {
    type: 'tool_result',
    tool_use_id: toolId(tool_call_id),
    content: typeof content === 'string' ? content : contentOf(message, at),
    ...(is_error === undefined ? {} : { is_error }),
  }
}

function answerOf(message: Message, { at, toolId }: Place): Block[] {
  if (message.function_call)
    throw refusedField(`${at}.function_call`, 'is not supported by the vendor; use "tool_calls"')
  const calls = (message.tool_calls ?? []).map((call, index) => ({
    type: 'tool_use',
    id: toolId(call.id),
    name: call.function.name,
    input: argumentsObject(call.function.arguments, `${at}.tool_calls[${index}].function.arguments`),
  }))
  const refusal = message.refusal ? textBlocks(message.refusal) : []
  return [
    ...(message.reasoning_details ?? []).flatMap(reasoningBlocks),
    ...contentOf(message, at),
    ...refusal,
    ...calls,
  ]
}

/** Only reasoning that a provider of this API signed can be sent back to it. */
function reasoningBlocks({ text, opaque }: Reasoning): Block[] {
  if (opaque?.origin !== 'messages-compat') return []
  if (text === undefined) return [{ type: 'redacted_thinking', data: opaque.value }]
  return [{ type: 'thinking', thinking: text, signature: opaque.value }]
}

/**
 * The vendor accepts letters, digits, `_` and `-` in an id. Ids of other vendors have more characters. Different ids
 * stay different.
 */
function createToolIds(): ToolIds {
  const known = new Map<string, string>()
  const used = new Set<string>()
  return (id) => {
    const found = known.get(id)
    if (found !== undefined) return found
    const clean = id.replaceAll(/[^a-zA-Z0-9_-]/g, '_') || 'call'
    let unique = clean
    for (let count = 2; used.has(unique); count++) unique = `${clean}_${count}`
    known.set(id, unique)
    used.add(unique)
    return unique
  }
}

/** A last assistant message, which the model continues, must not end in white space. */
function trimLast(turns: Turn[]): void {
  const last = turns.at(-1)
  const block = last?.role === 'assistant' ? last.content.at(-1) : undefined
  if (last && block?.type === 'text')
    last.content[last.content.length - 1] = { ...block, text: String(block.text).trimEnd() }
}

/** Whether the last turn holds results of calls that were made without signed thinking. */
export function continuesUnsigned({ messages }: Conversation): boolean {
  const last = messages.findLastIndex(({ role }) => role !== 'system')
  if (messages[last]?.role !== 'user' || !messages[last].content.some(({ type }) => type === 'tool_result'))
    return false
  const first = messages[last - 1]?.content[0]?.type
  return first !== 'thinking' && first !== 'redacted_thinking'
}
