/** A conversation in the words of AI SDK packages, with what they cannot carry refused by name. */
import type { LanguageModelV4Message, LanguageModelV4Prompt } from '@ai-sdk/provider'
import { isRecord, parseJson } from '../../../kit/json.ts'
import type { Message, Opaque, Reasoning } from '../../../protocols/canonical.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { Media } from '../../media.ts'
import { fileOf, type PromptFile } from './file.ts'
import type { ChatVendor } from './vendor.ts'

type PromptParts = { vendor: ChatVendor; model: string; media: Pick<Media, 'read'>; signal: AbortSignal }
type Of<Role> = Extract<LanguageModelV4Message, { role: Role }>
type AssistantPart = Of<'assistant'>['content'][number]
type ToolPart = Of<'tool'>['content'][number]

export const refused = (param: string, what: string) =>
  new GatewayError('unsupported_parameter', `"${param}" ${what}.`, { param })

export async function promptOf(messages: Message[], parts: PromptParts): Promise<LanguageModelV4Prompt> {
  const system: LanguageModelV4Prompt = []
  const prompt: LanguageModelV4Prompt = []
  const names = toolNames(messages)
  for (const [index, message] of messages.entries()) {
    const at = `messages[${index}]`
    switch (message.role) {
      case 'system':
      case 'developer': {
        const place = parts.vendor.systemInFront ? system : prompt
        place.push({ role: 'system', content: wordsOf(message, at) })
        break
      }
      case 'user':
        prompt.push({ role: 'user', content: await userParts(message, at, parts) })
        break
      case 'assistant':
        prompt.push({ role: 'assistant', content: answerParts(message, at, parts) })
        break
      case 'tool': {
        const result = await resultOf(message, at, { ...parts, names })
        const last = prompt.at(-1)
        // Results of calls that were made at once belong together.
        if (last?.role === 'tool') last.content.push(result)
        else prompt.push({ role: 'tool', content: [result] })
        break
      }
      default:
        throw refused(`${at}.role`, 'must not be "function"; use the role "tool"')
    }
  }
  return [...system, ...prompt]
}

/** A call's id -> the name of its tool, which a result does not say. */
function toolNames(messages: Message[]): Map<string, string> {
  const calls = messages.flatMap(({ tool_calls }) => tool_calls ?? [])
  return new Map(calls.map((call) => [call.id, call.function.name]))
}

function wordsOf({ content }: Message, at: string): string {
  if (typeof content === 'string') return content
  return (content ?? [])
    .map((part, index) => {
      if (part.type === 'text') return part.text
      throw refused(`${at}.content[${index}].type`, 'must be "text" here')
    })
    .join('')
}

type Said = { type: 'text'; text: string } | PromptFile

async function userParts({ content }: Message, at: string, parts: PromptParts): Promise<Said[]> {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  const { media, vendor, signal } = parts
  return Promise.all(
    (content ?? []).map((part, index): Said | Promise<Said> => {
      if (part.type === 'text') return { type: 'text', text: part.text }
      if (part.type === 'refusal') return { type: 'text', text: part.refusal }
      return fileOf(part, `${at}.content[${index}]`, { media, signal, asBytes: vendor.media === 'bytes' })
    }),
  )
}

function answerParts(message: Message, at: string, { vendor, model }: PromptParts): AssistantPart[] {
  if (message.function_call) throw refused(`${at}.function_call`, 'is not known to the vendor; use "tool_calls"')
  const { content } = message
  const texts =
    typeof content === 'string'
      ? [content]
      : (content ?? []).map((part, index) => {
          if (part.type === 'text') return part.text
          if (part.type === 'refusal') return part.refusal
          throw refused(`${at}.content[${index}].type`, 'must be "text" or "refusal" in what the assistant said')
        })
  if (message.refusal) texts.push(message.refusal)
  const calls = (message.tool_calls ?? []).map(
    (call, index): AssistantPart => ({
      type: 'tool-call',
      toolCallId: call.id,
      toolName: call.function.name,
      input: inputOf(call.function.arguments, `${at}.tool_calls[${index}].function.arguments`),
      ...signature(call.opaque, false, vendor, model),
    }),
  )
  return [
    ...thoughtsOf(message, vendor, model),
    ...texts.filter((text) => text !== '').map((text): AssistantPart => ({ type: 'text', text })),
    ...calls,
  ]
}

/** Reasoning that the vendor takes back: signed by its family, or as plain text where it likes that. */
function thoughtsOf(message: Message, vendor: ChatVendor, model: string): AssistantPart[] {
  const pieces: Reasoning[] =
    message.reasoning_details ?? (message.reasoning_content ? [{ text: message.reasoning_content }] : [])
  if (vendor.thoughts === 'text') {
    return pieces.flatMap(({ text }) => (text ? [{ type: 'reasoning', text }] : []))
  }
  if (vendor.thoughts !== 'signed') return []
  return pieces.flatMap(({ text = '', opaque }): AssistantPart[] => {
    const signed = signature(opaque, text === '', vendor, model)
    return signed.providerOptions ? [{ type: 'reasoning', text, ...signed }] : []
  })
}

function signature(opaque: Opaque | undefined, isHidden: boolean, { signs, namespace }: ChatVendor, model: string) {
  if (!opaque || !signs || opaque.origin !== signs.origin || (signs.models && !signs.models.test(model))) return {}
  const member = isHidden ? (signs.hidden?.[0] ?? signs.shown) : signs.shown
  return { providerOptions: { [namespace]: { [member]: opaque.value } } }
}

type ResultParts = PromptParts & { names: Map<string, string> }

async function resultOf(message: Message, at: string, parts: ResultParts): Promise<ToolPart> {
  const { tool_call_id, content, is_error = false, name } = message
  if (tool_call_id === undefined) {
    const param = `${at}.tool_call_id`
    throw new GatewayError('missing_required_parameter', `"${param}" is required.`, { param })
  }
  const said = await userParts(message, at, parts)
  const hasFiles = said.some(({ type }) => type !== 'text')
  const words =
    typeof content === 'string' ? content : said.map((part) => (part.type === 'text' ? part.text : '')).join('')
  return {
    type: 'tool-result',
    toolCallId: tool_call_id,
    toolName: parts.names.get(tool_call_id) ?? name ?? 'unknown',
    output: hasFiles ? { type: 'content', value: said } : { type: is_error ? 'error-text' : 'text', value: words },
  }
}

function inputOf(text: string, param: string): unknown {
  if (text.trim() === '') return {}
  const input = parseJson(text)
  if (isRecord(input)) return input
  throw new GatewayError('invalid_value', `"${param}" must be the JSON text of an object.`, { param })
}
