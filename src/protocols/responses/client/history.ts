/** Decodes the items of a Responses request to canonical messages. */
import { type GatewayError, invalidValue, missingField } from '../../../spec/error.ts'
import type { ContentPart } from '../../../spec/message.ts'
import type { GeneratedImage, Message, Opaque, Reasoning } from '../../shared/canonical.ts'
import { customCall } from '../../shared/custom-tools.ts'
import { places, refusedField } from '../../shared/request-error.ts'
import { isSummaryItem, messageOfSummary, triggerMessage } from './compaction.ts'
import { decodeEncrypted } from './items.ts'
import { mcpCallOf, type PlacedItem } from './mcp-tools.ts'
import type { ClientTool, InputItem, InputPart } from './schema.ts'
import { flatTools, TOOL_SEARCH, type ToolNames } from './tool-names.ts'

type Item<T extends string> = Extract<InputItem, { type: T }>
type MessageItem = Extract<InputItem, { role: string }>
type ReferenceItem = Extract<InputItem, { type?: 'item_reference' }> & { id: string }
type ToolCalls = NonNullable<Message['tool_calls']>
/** An earlier response that is being decoded. A canonical message holds reasoning, text, calls and images. */
type Draft = {
  at: string
  reasoning: Reasoning[]
  texts: string[]
  refusals: string[]
  calls: ToolCalls
  images: (GeneratedImage & { id?: string | undefined })[]
}

/** Both may leave out their `type`. */
const isMessage = (item: InputItem): item is MessageItem =>
  item.type === 'message' || (item.type === undefined && 'content' in item)
export const isReference = (item: InputItem): item is ReferenceItem =>
  item.type === 'item_reference' || (item.type === undefined && !isMessage(item))

/**
 * Converts all items to messages. Calls use the names that providers know. Items outside the conversation (calls of a
 * vendor's own tools) are ignored.
 */
export function historyOf(items: PlacedItem[], names: ToolNames): Message[] {
  const messages: Message[] = []
  /** Signatures of calls and images, which clients return in separate reasoning items. */
  const signed = new Map<string, Opaque>()
  let draft: Draft | undefined
  /** Of calls of MCP servers, which one item holds together with their results. */
  let results: { message: Message; at: string }[] = []
  const flush = () => {
    if (draft) add(messageOf(draft, signed), draft.at)
    draft = undefined
    for (const { message, at } of results) add(message, at)
    results = []
  }
  const add = (message: Message, at: string) => {
    places.set(message, at)
    messages.push(message)
  }
  const answering = (at: string): Draft => {
    draft ??= { at, reasoning: [], texts: [], refusals: [], calls: [], images: [] }
    return draft
  }
  for (const { item, at } of items) {
    const mcp = mcpCallOf(item, items)
    if (mcp) {
      const { id, server_label: namespace, name, result } = mcp
      answering(at).calls.push(callOf(id, names.vendorName({ name, namespace }), mcp.arguments))
      results.push({ message: { role: 'tool', tool_call_id: id, content: result }, at })
    } else if (isMessage(item)) {
      if (item.role === 'assistant') {
        if (results.length > 0) flush()
        addContent(answering(at), item, at)
      } else {
        flush()
        const content = contentOf(item.content, `${at}.content`)
        add({ role: item.role, content }, at)
      }
    } else if (item.type === 'reasoning') {
      const { piece, owner } = reasoningOf(item)
      if (owner !== undefined) {
        if (piece.opaque) signed.set(owner, piece.opaque)
        continue
      }
      if (results.length > 0) flush()
      // Reasoning after text starts a new message. Nothing may come between a call and its result.
      if (draft && draft.texts.length + draft.refusals.length > 0 && draft.calls.length === 0) flush()
      answering(at).reasoning.push(piece)
    } else if (item.type === 'function_call') {
      answering(at).calls.push(callOf(item.call_id, names.vendorName(nameOf(item)), item.arguments))
    } else if (item.type === 'custom_tool_call') {
      answering(at).calls.push(customCall(item.call_id, { name: names.vendorName(nameOf(item)), input: item.input }))
    } else if (item.type === 'tool_search_call') {
      const { call_id, arguments: clientRequest = {} } = item
      if (call_id !== undefined)
        answering(at).calls.push(callOf(call_id, names.vendorName(TOOL_SEARCH), JSON.stringify(clientRequest)))
    } else if (item.type === 'tool_search_output') {
      if (item.call_id === undefined) continue
      flush()
      add({ role: 'tool', tool_call_id: item.call_id, content: foundText(item.tools, names) }, at)
    } else if (item.type === 'image_generation_call') {
      const { id, result, output_format = 'png' } = item
      const url = `data:image/${output_format};base64,${result}`
      if (result) answering(at).images.push({ type: 'image_url', image_url: { url }, id })
    } else if (item.type === 'function_call_output' || item.type === 'custom_tool_call_output') {
      flush()
      const content = contentOf(item.output, `${at}.output`)
      add({ role: 'tool', tool_call_id: item.call_id, content }, at)
    } else if (item.type === 'agent_message') {
      flush()
      add({ role: 'user', content: agentText(item) }, at)
    } else if (isSummaryItem(item)) {
      flush()
      add(messageOfSummary(item, at), at)
    } else if (item.type === 'compaction_trigger') {
      flush()
      add(triggerMessage(at, item === items.at(-1)?.item), at)
    } else if (isReference(item)) throw itemNotFound(at, item.id)
  }
  flush()
  return messages
}

const callOf = (id: string, name: string, text: string): ToolCalls[number] => ({
  id,
  type: 'function',
  function: { name, arguments: text },
})

const nameOf = ({ name, namespace }: Item<'function_call' | 'custom_tool_call'>) => ({ name, namespace })

/** Only OpenAI can read what its models encrypt (Fernet). With all other models the member holds plain text. */
const CIPHERTEXT = /^gAAAA[\w-]+=*$/

const agentText = ({ content }: Item<'agent_message'>): string =>
  content
    .map((part) => (part.type === 'input_text' ? part.text : part.encrypted_content))
    .filter((text) => !CIPHERTEXT.test(text))
    .join('')

/** The result of a tool search. The tools themselves are in the request, so their names are sufficient. */
function foundText(tools: ClientTool[], names: ToolNames): string {
  const found = flatTools(tools, '').flatMap(({ tool: { name }, namespace }) =>
    name === undefined ? [] : [names.vendorName({ name, namespace })],
  )
  return found.length === 0 ? 'No further tools were found.' : `These tools can be called now: ${found.join(', ')}`
}

/** The error for a reference to an item that is not stored. */
export function itemNotFound(at: string, id: string): GatewayError {
  const param = `${at}.id`
  return invalidValue(
    param,
    `Item with id '${id.slice(0, 80)}' not found: "${param}" must be the id of an item of a response that was stored.`,
  )
}

function addContent(draft: Draft, { content }: MessageItem, at: string): void {
  if (typeof content === 'string') {
    draft.texts.push(content)
    return
  }
  for (const [index, part] of content.entries()) {
    if (part.type === 'refusal') draft.refusals.push(part.refusal)
    else if (part.type === 'output_text' || part.type === 'input_text') draft.texts.push(part.text)
    else {
      const rule = `must be "output_text" or "refusal" in an assistant message, not "${part.type}"`
      throw refusedField(`${at}.content[${index}].type`, rule)
    }
  }
}

/** Text alone becomes one string, which every provider accepts. */
function contentOf(content: string | InputPart[], at: string): string | ContentPart[] {
  if (typeof content === 'string') return content
  const parts = content.map((part, index) => {
    const converted = partOf(part, `${at}[${index}]`)
    places.set(converted, `${at}[${index}]`)
    return converted
  })
  const [first] = parts
  if (parts.length === 0) return ''
  return parts.length === 1 && first?.type === 'text' ? first.text : parts
}

function partOf(part: InputPart, at: string): ContentPart {
  if (part.type === 'input_text' || part.type === 'output_text') return { type: 'text', text: part.text }
  if (part.type === 'refusal' || part.type === 'input_audio') return part
  if (part.type === 'input_image') {
    const { image_url: url, detail, file_id } = part
    if (url !== undefined) return { type: 'image_url', image_url: { url, ...(detail === undefined ? {} : { detail }) } }
    throw file_id === undefined ? missingField(`${at}.image_url`) : fileRefused(`${at}.file_id`, 'image_url')
  }
  const { file_data, file_url, file_id, filename } = part
  const named = filename === undefined ? {} : { filename }
  if (file_data !== undefined) return { type: 'file', file: { file_data, ...named } }
  if (file_url !== undefined) return { type: 'file', file: { file_url, ...named } }
  if (file_id !== undefined) throw fileRefused(`${at}.file_id`, 'file_data" or "file_url')
  throw missingField(`${at}.file_data`)
}

const fileRefused = (param: string, instead: string) =>
  refusedField(param, `is not supported: a stored file is known to one provider only; give "${instead}"`)

/** One piece of reasoning: its text, and its encrypted content. */
function reasoningOf({ id, summary = [], content = [], encrypted_content }: Item<'reasoning'>): {
  piece: Reasoning
  owner?: string | undefined
} {
  const texts = [...summary, ...content]
  const text = texts.length === 0 ? {} : { text: texts.map((part) => part.text).join('\n\n') }
  if (encrypted_content === undefined || encrypted_content === '') return { piece: text }
  const { opaque, owner } = decodeEncrypted(encrypted_content, id)
  return { piece: { ...text, ...(opaque ? { opaque } : {}) }, owner }
}

/** `signed`: the signatures of calls and images, by id. */
function messageOf({ reasoning, texts, refusals, calls, images }: Draft, signed: Map<string, Opaque>): Message {
  const content = texts.join('')
  const isSilent = content === '' && reasoning.length + calls.length + refusals.length + images.length > 0
  const message: Message = { role: 'assistant', content: isSilent ? null : content }
  const pieces = reasoning.filter(({ text, opaque }) => text !== undefined || opaque !== undefined)
  const plain = pieces.map(({ text = '' }) => text).join('')
  if (plain !== '') message.reasoning_content = plain
  // Some providers need unsigned reasoning again. Signed reasoning is for its own vendor only.
  if (pieces.some(({ opaque }) => opaque)) message.reasoning_details = pieces
  if (refusals.length > 0) message.refusal = refusals.join('')
  if (calls.length > 0) message.tool_calls = calls.map((call) => withOpaque(call, signed.get(call.id)))
  if (images.length > 0) message.images = images.map(({ id = '', ...image }) => withOpaque(image, signed.get(id)))
  return message
}

const withOpaque = <T extends object>(value: T, opaque: Opaque | undefined): T =>
  opaque ? { ...value, opaque } : value
