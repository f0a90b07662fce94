/** Decodes the contents of a contentgen request to canonical messages. */
import { invalidValue, missingField } from '../../../spec/error.ts'
import { type ContentPart, contentOf } from '../../../spec/message.ts'
import type { GeneratedImage, Message, Opaque, Reasoning } from '../../shared/canonical.ts'
import { places } from '../../shared/request-error.ts'
import { filePart, inlinePart, refuseCut, standardBase64, textPart, toolText } from './parts.ts'
import { type Content, PART_KINDS, type Part } from './schema.ts'
import { decodeSignature, isWrapped } from './signed-content.ts'

type PlacedPart = { part: Part; at: string }
type ToolCalls = NonNullable<Message['tool_calls']>
/** An earlier call, and whether its result has appeared. */
type Call = { id: string; name: string; isAnswered: boolean }
type Calls = {
  byId: Map<string, Call>
  /** The calls in order, and how many of the first ones have a result. */
  byName: Map<string, { list: Call[]; answered: number }>
}
type History = { messages: Message[]; calls: Calls }

/** Consecutive contents of the model form one message: clients store a stream in this way. */
export function historyOf(contents: Content[]): Message[] {
  const history: History = { messages: [], calls: { byId: new Map(), byName: new Map() } }
  let answer: PlacedPart[] = []
  for (const [index, { role = 'user', parts = [] }] of contents.entries()) {
    const at = `contents[${index}]`
    const placed = parts.map((part, place) => ({ part, at: `${at}.parts[${place}]` }))
    if (role === 'model') for (const one of placed) answer.push(one)
    else {
      addAnswer(answer, history)
      answer = []
      if (parts.length === 0) throw missingField(`${at}.parts`)
      addUserParts(placed, at, history)
    }
  }
  addAnswer(answer, history)
  return history.messages
}

/** The parts of the system instruction become paragraphs of one text. */
export function systemText({ parts = [] }: Pick<Content, 'parts'>): string {
  const texts = parts.map((part, index) => {
    if (part.text !== undefined) return part.text
    throw refused(`systemInstruction.parts[${index}]`, 'must be a text')
  })
  return texts.filter((text) => text !== '').join('\n\n')
}

function addUserParts(placed: PlacedPart[], at: string, history: History): void {
  const { messages } = history
  const media: ContentPart[] = []
  for (const { part, at: place } of placed) {
    if (part.functionResponse) {
      const message = resultOf(part.functionResponse, place, history)
      places.set(message, place)
      messages.push(message)
    } else {
      for (const one of partsOf(part, place)) {
        places.set(one, place)
        media.push(one)
      }
    }
  }
  if (media.length === 0) return
  const message: Message = { role: 'user', content: contentOf(media) }
  places.set(message, at)
  messages.push(message)
}

function partsOf(part: Part, at: string): ContentPart[] {
  refuseCut(part, at)
  if (part.text !== undefined) return part.thought ? [] : [textPart(part.text)]
  if (part.inlineData) return [inlinePart(part.inlineData)]
  if (part.fileData) return [filePart(part.fileData)]
  const ran = toolText(part)
  if (ran !== undefined) return [textPart(ran)]
  if (part.functionCall) throw refused(`${at}.functionCall`, 'must have the role "model"')
  throw refused(at, `must have one of ${PART_KINDS.join(', ')}`)
}

type Result = NonNullable<Part['functionResponse']>

function resultOf({ id, name, response = {}, parts = [] }: Result, at: string, { calls }: History): Message {
  const call = (id === undefined ? undefined : calls.byId.get(id)) ?? firstUnanswered(name, calls)
  if (!call) {
    const param = `${at}.functionResponse`
    throw invalidValue(
      param,
      `"${param}" must answer a "functionCall" of an earlier content: there is no unanswered call of ${JSON.stringify(name.slice(0, 60))}.`,
    )
  }
  call.isAnswered = true
  const media = parts.flatMap(({ inlineData, fileData }) => [
    ...(inlineData ? [inlinePart(inlineData)] : []),
    ...(fileData ? [filePart(fileData)] : []),
  ])
  const { text, isError } = textOf(response, name)
  const content = media.length === 0 ? text : [...(text === '' ? [] : [textPart(text)]), ...media]
  return { role: 'tool', tool_call_id: call.id, content, ...(isError ? { is_error: true } : {}) }
}

function firstUnanswered(name: string, { byName }: Calls): Call | undefined {
  const named = byName.get(name)
  while (named?.list[named.answered]?.isAnswered) named.answered++
  return named?.list[named.answered]
}

/**
 * As the vendor documents it, a result is in `output` or `error`, or is the whole object. Some clients send `name`
 * and `content`.
 */
function textOf(response: Record<string, unknown>, name: string): { text: string; isError: boolean } {
  const members = Object.keys(response)
  const only = members.length === 1 ? members[0] : undefined
  if (only === 'error') return { text: jsonText(response.error), isError: true }
  if (only === 'output') return { text: jsonText(response.output), isError: false }
  const isNamed = members.length === 2 && response.name === name && 'content' in response
  return { text: jsonText(isNamed ? response.content : response), isError: false }
}

const jsonText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value ?? null))

/**
 * An earlier response that is being decoded. A canonical message holds reasoning, text, images and calls, in this
 * order.
 */
type Draft = { at: string; reasoning: Reasoning[]; texts: string[]; images: GeneratedImage[]; calls: ToolCalls }

/**
 * Signed reasoning after text starts a new message; consecutive assistant messages form one turn. Unsigned reasoning
 * has no fixed place: it often arrives with the call that it led to, after the text. Nothing may come between a call
 * and its result.
 */
function addAnswer(placed: PlacedPart[], history: History): void {
  const drafts: Draft[] = []
  let draft: Draft | undefined
  let thought: string | undefined
  /** Whether the client sent thoughts since the last call. Some clients send none back. */
  let hasThoughts = false
  const at = (place: string): Draft => {
    if (!draft) {
      draft = { at: place, reasoning: [], texts: [], images: [], calls: [] }
      drafts.push(draft)
    }
    return draft
  }
  const reason = (place: string, pieces: Reasoning[]) => {
    if (pieces.length === 0) return
    const isSigned = pieces.some(({ opaque }) => opaque)
    if (isSigned && draft && draft.texts.length > 0 && draft.calls.length === 0) draft = undefined
    at(place).reasoning.push(...pieces)
  }
  const endThought = (place: string) => {
    if (thought !== undefined) reason(place, [{ text: thought }])
    thought = undefined
  }
  for (const { part, at: place } of placed) {
    const { thoughtSignature: signature = '', text } = part
    const { own, before = [], shown = [] } = signature === '' ? {} : decodeSignature(signature)
    if (part.thought && text !== undefined) {
      hasThoughts = true
      thought = (thought ?? '') + text
      reason(place, before)
      if (!own) continue
      reason(place, [{ text: thought, opaque: own }])
      thought = undefined
      continue
    }
    endThought(place)
    reason(place, before)
    // Drafts that a model produces while it thinks.
    if (part.thought && part.inlineData) continue
    if (part.functionCall) {
      if (!hasThoughts) reason(place, shown)
      hasThoughts = false
      at(place).calls.push(callOf(part.functionCall, own, history))
    } else if (part.inlineData) at(place).images.push(imageOf(part, own, place))
    else {
      const content = text ?? toolText(part) ?? ''
      if (content !== '') at(place).texts.push(content)
      // The signature of a text becomes a hidden piece of reasoning after it.
      if (own && !isWrapped(signature)) at(place).reasoning.push({ opaque: own })
      if (part.fileData) throw refused(`${place}.fileData`, 'must not have the role "model"')
    }
  }
  const last = placed.at(-1)
  if (last) endThought(last.at)
  for (const one of drafts) {
    const message = messageOf(one)
    places.set(message, one.at)
    history.messages.push(message)
  }
}

type FunctionCall = NonNullable<Part['functionCall']>

/** A call without an id gets one by its position, which is the same in each request of a conversation. */
function callOf({ id, name, args = {} }: FunctionCall, own: Opaque | undefined, { calls }: History): ToolCalls[number] {
  const { byId, byName } = calls
  const call: Call = { id: id || `call_no_${byId.size + 1}`, name, isAnswered: false }
  byId.set(call.id, call)
  const named = byName.get(name) ?? { list: [], answered: 0 }
  named.list.push(call)
  byName.set(name, named)
  const called = { name, arguments: JSON.stringify(args) }
  return { id: call.id, type: 'function', function: called, ...(own ? { opaque: own } : {}) }
}

function imageOf({ inlineData }: Part, own: Opaque | undefined, at: string): GeneratedImage {
  if (!inlineData?.mimeType.startsWith('image/')) {
    throw refused(`${at}.inlineData`, 'must be an image where the role is "model"')
  }
  const url = `data:${inlineData.mimeType};base64,${standardBase64(inlineData.data)}`
  return { type: 'image_url', image_url: { url }, ...(own ? { opaque: own } : {}) }
}

function messageOf({ reasoning, texts, images, calls }: Draft): Message {
  const content = texts.join('')
  const isSilent = content === '' && reasoning.length + images.length + calls.length > 0
  const message: Message = { role: 'assistant', content: isSilent ? null : content }
  const plain = reasoning.map(({ text = '' }) => text).join('')
  if (plain !== '') message.reasoning_content = plain
  // Some providers need unsigned reasoning again. Signed reasoning is for its own vendor only.
  if (reasoning.some(({ opaque }) => opaque)) message.reasoning_details = reasoning
  if (images.length > 0) message.images = images
  if (calls.length > 0) message.tool_calls = calls
  return message
}

const refused = (param: string, rule: string) => invalidValue(param, `"${param}" ${rule}.`)
