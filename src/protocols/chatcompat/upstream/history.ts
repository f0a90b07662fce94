/** Conversations as every OpenAI-shaped vendor knows them: what only the house and other families have is put in their way. */
import { GatewayError } from '../../../spec/error.ts'
import type { ContentPart } from '../../../spec/message.ts'
import type { Message } from '../../canonical.ts'

/** The very same array where nothing has to change, which is nearly always. */
export function plainHistory(messages: Message[]): Message[] {
  if (!messages.some(isForeign)) return messages
  const out: Message[] = []
  /** Parts of tools' results that are no text; a tool's message holds text only, so they follow in the user's name. */
  let pending: ContentPart[] = []
  const flush = () => {
    if (pending.length > 0) out.push({ role: 'user', content: pending })
    pending = []
  }
  for (const [index, message] of messages.entries()) {
    if (message.role !== 'tool') flush() // the results of parallel calls stay together
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
 * Reasoning that another vendor has signed means nothing to this one, and neither does its text. Plain words were most
 * likely its own: some vendors refuse a call of the past that comes without them.
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
  return [{ type: 'text', text: `What the tool call ${tool_call_id ?? ''} gave beside its text:` }, ...rest]
}

function refuseAddresses({ content }: Message, index: number): void {
  if (!Array.isArray(content)) return
  const at = content.findIndex(isAddressedFile)
  if (at === -1) return
  throw new GatewayError('unsupported_value', 'This model takes files by their content only, not by an address.', {
    param: `messages[${index}].content[${at}].file.file_url`,
    accepted: 'no',
  })
}
