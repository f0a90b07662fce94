/** The contents of a call as they are recorded: taken from its capture when it ends, redacted later. */
import type { ChatRequest, Message } from '../../protocols/shared/canonical.ts'
import type { Capture, CapturedResponse } from '../../protocols/shared/capture.ts'

/** `type`: `text`, `tool_call`, `tool_result`, or the kind of a part that is named and not copied, such as `image_url`. */
type ContentsPart = { type: string; id?: string; name?: string; text?: string }

export type Contents = {
  /** In the order of the request; the oldest are left out where not all fit. */
  input: { role: string; parts: ContentsPart[] }[]
  /** By choice. Null: there was no response, or not one that can be recorded; `note` says which. */
  output: { index: number; finish_reason: string | null; parts: ContentsPart[] }[] | null
  /** Whether something was left out for its size. */
  is_cut: boolean
  note: string | null
}

/**
 * Text beyond the bound that is read and not stored, so that what is to be redacted is not cut in two before it is
 * found. A longer secret is cut where the bound ends, and its beginning is stored.
 */
export const MARGIN_CHARACTERS = 2_048

/** `characters`: of all texts, which are in memory until they are written. */
export function contentsOf(capture: Capture): { contents: Contents; characters: number } {
  const input = createBudget(capture.max_characters)
  const output = createBudget(capture.max_characters)
  const texts = capture.input?.map((content) => ({ role: 'user' as const, content }))
  const request = capture.request ?? (texts && { messages: texts })
  const messages = request ? inputOf(request, input) : []
  const { choices, note } = outputOf(capture, output)
  const contents = { input: messages, output: choices, is_cut: input.isCut() || output.isCut(), note }
  return { contents, characters: input.used() + output.used() }
}

/** `max_characters`: of the input, and of the output. */
export function redactContents(contents: Contents, redact: (text: string) => string, max_characters: number): Contents {
  const [input, output] = [createBudget(max_characters), createBudget(max_characters)]
  const clean = <Of extends { parts: ContentsPart[] }>(one: Of, budget: Budget): Of => ({
    ...one,
    parts: one.parts.map(({ text, name, id, ...part }) => ({
      ...part,
      ...(id !== undefined && { id: redact(id) }),
      ...(name !== undefined && { name: redact(name) }),
      ...(text !== undefined && { text: budget.take(redact(text)) }),
    })),
  })
  const messages = contents.input.toReversed().map((message) => clean(message, input))
  const choices = contents.output?.map((choice) => clean(choice, output)) ?? null
  const is_cut = contents.is_cut || input.isCut() || output.isCut()
  return { ...contents, input: messages.reverse(), output: choices, is_cut }
}

/** What a part counts besides its text: its type, and its id and name, which are cut. */
const PART_CHARACTERS = 64
const MAX_ID_CHARACTERS = 256
const cutId = (id: string): string =>
  id.length <= MAX_ID_CHARACTERS ? id : id.slice(0, MAX_ID_CHARACTERS).toWellFormed()

type Budget = {
  /** For a part, or a message, whatever its text. */
  charge(): void
  take(text: string): string
  isCut(): boolean
  isEmpty(): boolean
  used(): number
  cut(): void
}

function createBudget(max_characters: number): Budget {
  let left = max_characters
  let isCut = false
  return {
    charge() {
      left = Math.max(0, left - PART_CHARACTERS)
    },
    take(text) {
      if (text.length <= left) {
        left -= text.length
        return text
      }
      isCut = true
      // A copy: a slice would keep all of the text in memory.
      const kept = Buffer.from(text.slice(0, left).toWellFormed()).toString()
      left = 0
      return kept
    },
    cut() {
      isCut = true
    },
    isCut: () => isCut,
    isEmpty: () => left === 0,
    used: () => max_characters - left,
  }
}

/** The newest messages first: of a long conversation they are the ones that the call is about. */
function inputOf({ messages }: Pick<ChatRequest, 'messages'>, budget: Budget): Contents['input'] {
  const kept: Contents['input'] = []
  for (const message of messages.toReversed()) {
    if (budget.isEmpty()) {
      budget.cut()
      break
    }
    budget.charge()
    kept.push({ role: message.role, parts: partsOf(message, budget) })
  }
  return kept.reverse()
}

function partsOf({ role, content, tool_calls, tool_call_id }: Message, budget: Budget): ContentsPart[] {
  const given = typeof content === 'string' ? [{ type: 'text' as const, text: content }] : (content ?? [])
  const parts: ContentsPart[] = []
  for (const part of given) {
    if (isFull(budget)) return parts
    if (part.type !== 'text') parts.push({ type: part.type })
    else if (role === 'tool') {
      parts.push({ type: 'tool_result', id: cutId(tool_call_id ?? ''), text: budget.take(part.text) })
    } else parts.push({ type: 'text', text: budget.take(part.text) })
  }
  for (const { id, function: called } of tool_calls ?? []) {
    if (isFull(budget)) return parts
    parts.push(toolCall({ id, name: called.name, text: called.arguments }, budget))
  }
  return parts
}

/** Counts a part that is about to be kept; true: there is no place for it. */
function isFull(budget: Budget): boolean {
  if (budget.isEmpty()) budget.cut()
  else budget.charge()
  return budget.isCut() && budget.isEmpty()
}

const toolCall = ({ id, name, text }: { id: string; name: string; text: string }, budget: Budget): ContentsPart => ({
  type: 'tool_call',
  id: cutId(id),
  name: cutId(name),
  text: budget.take(text),
})

const NO_RESPONSE = 'There was no response of a provider: the call failed, or the response came from the cache.'
const NO_TEXT = 'The response of this family is no text, and is not recorded.'
const SEVERAL_CHOICES = 'The response is not recorded: its choices arrived mixed in one stream.'

type Output = { choices: Contents['output']; note: string | null }

function outputOf(capture: Capture, budget: Budget): Output {
  const { request, response, max_characters } = capture
  if (!response) return { choices: null, note: capture.input ? NO_TEXT : NO_RESPONSE }
  const isRaw = response.texts.some((piece) => piece.is_raw)
  if (isRaw && (request?.n ?? 1) > 1) return { choices: null, note: SEVERAL_CHOICES }
  const { texts, tool_calls, finish_reasons, characters } = response
  if (characters > max_characters) budget.cut()
  const indexes = new Set([...texts, ...tool_calls].map(({ choice }) => choice))
  for (const index of finish_reasons.keys()) indexes.add(index)
  const choices = [...indexes]
    .sort((one, other) => one - other)
    .map((index) => ({
      index,
      finish_reason: finish_reasons[index] ?? null,
      parts: choiceParts(response, index, budget),
    }))
  return { choices, note: null }
}

/** The pieces of a stream are joined, so that what is split over them is found. */
function choiceParts({ texts, tool_calls }: CapturedResponse, index: number, budget: Budget): ContentsPart[] {
  const text = joined(texts.filter(({ choice }) => choice === index))
  const parts: ContentsPart[] = text === '' ? [] : [{ type: 'text', text: budget.take(text) }]
  for (const call of tool_calls) {
    if (call.choice !== index) continue
    if (isFull(budget)) return parts
    parts.push(toolCall({ id: call.id, name: call.name, text: call.arguments }, budget))
  }
  return parts
}

function joined(pieces: CapturedResponse['texts']): string {
  if (!pieces.some(({ is_raw }) => is_raw)) return pieces.map(({ text }) => text).join('')
  return pieces.map(({ text, is_raw }) => (is_raw ? unescaped(text) : text)).join('')
}

/** Text as it is between the quotes of JSON, one character for each byte. */
export function unescaped(raw: string): string {
  try {
    return JSON.parse(`"${Buffer.from(raw, 'latin1').toString('utf8')}"`)
  } catch {
    return ''
  }
}
