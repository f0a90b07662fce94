/**
 * Rewrites a conversation to the form that every OpenAI-shaped provider accepts: without the extensions of the
 * gateway and of other APIs.
 */
import { GatewayError } from '../../../spec/error.ts'
import type { ContentPart } from '../../../spec/message.ts'
import type { Message } from '../../canonical.ts'

/** Returns the same array if nothing has to change, which is the usual case. */
export const plainHistory = (messages: Message[]): Message[] =>
  messages.some(isForeign) ? rewritten(messages) : messages

function rewritten(messages: Message[]): Message[] {
  const out: Message[] = []
  /** A tool message may hold only text. Other parts of a tool result follow in a user message. */
  let pending: ContentPart[] = []
  const flush = () => {
    if (pending.length > 0) out.push({ role: 'user', content: pending })
    pending = []
  }
  for (const [index, message] of messages.entries()) {
    if (message.role !== 'tool') flush() // the results of parallel calls must stay together
    refuseAddresses(message, index)
    out.push(plain(message))
    if (message.role === 'tool') pending.push(...nonTextParts(message))
  }
  flush()
  return out
}

const isForeign = (message: Message): boolean =>
  message.reasoning_details !== undefined ||
  message.is_error !== undefined ||
  message.images !== undefined ||
  (message.tool_calls?.some(({ opaque }) => opaque !== undefined) ?? false) ||
  (Array.isArray(message.content) && (message.role === 'tool' || message.content.some(isAddressedFile)))

const isAddressedFile = (part: ContentPart): boolean => part.type === 'file' && part.file.file_url !== undefined

/**
 * Reasoning that another vendor signed is useless to this one, and so is its text. Unsigned reasoning is kept: it
 * most likely came from this vendor, and some vendors refuse an earlier call without it.
 */
function plain(message: Message): Message {
  const { reasoning_details, is_error: _, images: _images, ...rest } = message
  const copy: Message = rest
  if (reasoning_details) {
    const reasoning = reasoning_details.map(({ text = '', opaque }) => (opaque ? '' : text)).join('')
    if (reasoning === '') delete copy.reasoning_content
    else copy.reasoning_content = reasoning
  }
  if (copy.tool_calls) copy.tool_calls = copy.tool_calls.map(({ opaque: _opaque, ...call }) => call)
  if (message.role === 'tool' && Array.isArray(message.content)) copy.content = textOf(message.content)
  return copy
}

const textOf = (parts: ContentPart[]): string => parts.map((part) => (part.type === 'text' ? part.text : '')).join('')

function nonTextParts({ content, tool_call_id }: Message): ContentPart[] {
  if (!Array.isArray(content)) return []
  const rest = content.filter(({ type }) => type !== 'text')
  if (rest.length === 0) return []
  return [{ type: 'text', text: `Other output of the tool call ${tool_call_id ?? ''}:` }, ...rest]
}

function refuseAddresses({ content }: Message, index: number): void {
  if (!Array.isArray(content)) return
  const at = content.findIndex(isAddressedFile)
  if (at === -1) return
  throw new GatewayError('unsupported_value', 'This model accepts files only as data, not by URL.', {
    param: `messages[${index}].content[${at}].file.file_url`,
    accepted: 'no',
  })
}
