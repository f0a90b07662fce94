/** Conversations as every OpenAI-shaped vendor knows them: what only the house and other families have is put in their way. */
import { GatewayError } from '../../../spec/error.ts'
import type { ContentPart, Message } from '../../../spec/message.ts'

/** The very same array where nothing has to change, which is nearly always. */
export function plainHistory(messages: Message[]): Message[] {
  if (!messages.some(isForeign)) return messages
  const out: Message[] = []
  /** Parts of tools' results that are no text; a tool's message holds text only, so they follow in the user's name. */
  let shown: ContentPart[] = []
  const show = () => {
    if (shown.length > 0) out.push({ role: 'user', content: shown })
    shown = []
  }
  for (const [index, message] of messages.entries()) {
    if (message.role !== 'tool') show() // the results of parallel calls stay together
    refuseAddresses(message, index)
    out.push(plain(message))
    if (message.role === 'tool') shown.push(...partsToShow(message))
  }
  show()
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
  const { reasoning_details, is_error: _, images: _images, ...kept } = message
  const copy: Message = kept
  if (reasoning_details) {
    const words = reasoning_details.map(({ text = '', opaque }) => (opaque ? '' : text)).join('')
    if (words === '') delete copy.reasoning_content
    else copy.reasoning_content = words
  }
  if (copy.tool_calls) copy.tool_calls = copy.tool_calls.map(({ opaque: _opaque, ...call }) => call)
  if (message.role === 'tool' && Array.isArray(message.content)) copy.content = textOf(message.content)
  return copy
}

const textOf = (parts: ContentPart[]): string => parts.map((part) => (part.type === 'text' ? part.text : '')).join('')

function partsToShow({ content, tool_call_id }: Message): ContentPart[] {
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
    taken: 'no',
  })
}
