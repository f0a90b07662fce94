/** Encodes the messages of a request as the prompt of AI SDK packages; refuses by name what the packages do not support. */
import type { LanguageModelV4Message, LanguageModelV4Prompt } from '@ai-sdk/provider'
import { assertAnswerable, isNoText } from '../../../protocols/shared/answerable.ts'
import type { Message, Opaque, Reasoning } from '../../../protocols/shared/canonical.ts'
import { argumentsObject, refusedField, refusedPart } from '../../../protocols/shared/request-error.ts'
import { missingField } from '../../../spec/error.ts'
import type { Media } from '../../media.ts'
import type { ChatVendor } from './chat-family.ts'
import { fileOf, type PromptFile } from './prompt-file.ts'

type PromptParts = { vendor: ChatVendor; model: string; media: Pick<Media, 'read'>; signal: AbortSignal }
type Of<Role> = Extract<LanguageModelV4Message, { role: Role }>
type AssistantPart = Of<'assistant'>['content'][number]
type ToolPart = Of<'tool'>['content'][number]

export async function promptOf(messages: Message[], parts: PromptParts): Promise<LanguageModelV4Prompt> {
  const system: LanguageModelV4Prompt = []
  const prompt: LanguageModelV4Prompt = []
  const names = toolNames(messages)
  for (const [index, message] of messages.entries()) {
    const at = `messages[${index}]`
    switch (message.role) {
      case 'system':
      case 'developer': {
        const place = parts.vendor.systemFirst ? system : prompt
        place.push({ role: 'system', content: textOf(message, at) })
        break
      }
      case 'user':
        prompt.push({ role: 'user', content: await userParts(message, at, parts) })
        break
      case 'assistant':
        prompt.push({ role: 'assistant', content: assistantParts(message, at, parts) })
        break
      case 'tool': {
        const result = await resultOf(message, at, { ...parts, names })
        const last = prompt.at(-1)
        // The results of parallel calls belong together.
        if (last?.role === 'tool') last.content.push(result)
        else prompt.push({ role: 'tool', content: [result] })
        break
      }
      default:
        throw refusedField(`${at}.role`, 'must not be "function"; use the role "tool"')
    }
  }
  if (parts.vendor.systemFirst) assertAnswerable(messages, prompt.some(hasContent), isNoText)
  return [...system, ...prompt]
}

const hasContent = ({ content }: LanguageModelV4Message): boolean => content.length > 0

/** The id of a call -> the name of its tool, which a result does not have. */
function toolNames(messages: Message[]): Map<string, string> {
  const calls = messages.flatMap(({ tool_calls }) => tool_calls ?? [])
  return new Map(calls.map((call) => [call.id, call.function.name]))
}

function textOf({ content }: Message, at: string): string {
  if (typeof content === 'string') return content
  return (content ?? [])
    .map((part, index) => {
      if (part.type === 'text') return part.text
      throw refusedPart(`${at}.content[${index}].type`, 'must be "text" here')
    })
    .join('')
}

type UserPart = { type: 'text'; text: string } | PromptFile

async function userParts({ content }: Message, at: string, parts: PromptParts): Promise<UserPart[]> {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  const { media, vendor, signal } = parts
  return Promise.all(
    (content ?? []).map((part, index): UserPart | Promise<UserPart> => {
      if (part.type === 'text') return { type: 'text', text: part.text }
      if (part.type === 'refusal') return { type: 'text', text: part.refusal }
      return fileOf(part, `${at}.content[${index}]`, { media, signal, asBytes: vendor.media === 'bytes' })
    }),
  )
}

function assistantParts(message: Message, at: string, { vendor, model }: PromptParts): AssistantPart[] {
  if (message.function_call)
    throw refusedField(`${at}.function_call`, 'is not supported by the provider; use "tool_calls"')
  const { content } = message
  const texts =
    typeof content === 'string'
      ? [content]
      : (content ?? []).map((part, index) => {
          if (part.type === 'text') return part.text
          if (part.type === 'refusal') return part.refusal
          throw refusedPart(`${at}.content[${index}].type`, 'must be "text" or "refusal" in an assistant message')
        })
  if (message.refusal) texts.push(message.refusal)
  const calls = (message.tool_calls ?? []).map(
    (call, index): AssistantPart => ({
      type: 'tool-call',
      toolCallId: call.id,
      toolName: call.function.name,
      input: argumentsObject(call.function.arguments, `${at}.tool_calls[${index}].function.arguments`),
      ...signatureOf(call.opaque, false, vendor, model),
    }),
  )
  return [
    ...reasoningOf(message, vendor, model),
    ...texts.filter((text) => text !== '').map((text): AssistantPart => ({ type: 'text', text })),
    ...calls,
  ]
}

/** Earlier reasoning that the vendor accepts: signed by its family of models, or as plain text. */
function reasoningOf(message: Message, vendor: ChatVendor, model: string): AssistantPart[] {
  const pieces: Reasoning[] =
    message.reasoning_details ?? (message.reasoning_content ? [{ text: message.reasoning_content }] : [])
  if (vendor.reasoningHistory === 'text') {
    return pieces.flatMap(({ text }) => (text ? [{ type: 'reasoning', text }] : []))
  }
  if (vendor.reasoningHistory !== 'signed') return []
  return pieces.flatMap(({ text = '', opaque }): AssistantPart[] => {
    const signed = signatureOf(opaque, text === '', vendor, model)
    return signed.providerOptions ? [{ type: 'reasoning', text, ...signed }] : []
  })
}

function signatureOf(opaque: Opaque | undefined, isHidden: boolean, vendor: ChatVendor, model: string) {
  const { signature, namespace } = vendor
  if (!opaque || !signature || opaque.origin !== signature.origin) return {}
  if (signature.models && !signature.models.test(model)) return {}
  const member = isHidden ? (signature.hidden?.[0] ?? signature.shown) : signature.shown
  return { providerOptions: { [namespace]: { [member]: opaque.value } } }
}

type ResultParts = PromptParts & { names: Map<string, string> }

async function resultOf(message: Message, at: string, parts: ResultParts): Promise<ToolPart> {
  const { tool_call_id, content, is_error = false, name } = message
  if (tool_call_id === undefined) throw missingField(`${at}.tool_call_id`)
  const result = await userParts(message, at, parts)
  const hasFiles = result.some(({ type }) => type !== 'text')
  const text =
    typeof content === 'string' ? content : result.map((part) => (part.type === 'text' ? part.text : '')).join('')
  return {
    type: 'tool-result',
    toolCallId: tool_call_id,
    toolName: parts.names.get(tool_call_id) ?? name ?? 'unknown',
    output: hasFiles ? { type: 'content', value: result } : { type: is_error ? 'error-text' : 'text', value: text },
  }
}
