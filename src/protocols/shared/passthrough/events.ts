/**
 * Rewrites the events of a stream that pass unread. They are kept as latin1, one character per byte: searched as text, and
 * every byte comes out as it went in. How the common event is rewritten is learned by rewriting it once with a placeholder
 * text; the following ones are then rewritten without parsing them.
 */
import { closingQuote } from '../../../kit/json-span.ts'
import { type createSseBlocks, escapeLineEnds, readSseBlock, SseTooLong } from '../../../kit/sse.ts'
import type { PassthroughStep } from '../protocol.ts'
import type { Faults } from '../upstream.ts'

/** Its text and its bytes are the same. */
const isAscii = (text: string): boolean => Buffer.byteLength(text) === text.length

/** Such text as what it says. */
export const fromBytes = (bytes: string): string => (isAscii(bytes) ? bytes : Buffer.from(bytes, 'latin1').toString())

/** The given text as latin1. */
export const toBytes = (text: string): string => (isAscii(text) ? text : Buffer.from(text).toString('latin1'))

/** The bytes of such texts, one after the other. */
export function bytesOf(events: readonly string[]): Uint8Array {
  const [only = '', another] = events
  if (another === undefined) return Buffer.from(only, 'latin1')
  let size = 0
  for (const { length } of events) size += length
  const bytes = Buffer.allocUnsafe(size)
  let at = 0
  for (const text of events) at += bytes.write(text, at, 'latin1')
  return bytes
}

/** The whole events in some bytes. Throws where one is too long. */
export function pushed(
  blocks: ReturnType<typeof createSseBlocks>,
  bytes: Uint8Array,
  faults: Faults,
): readonly string[] {
  try {
    return blocks.push(bytes)
  } catch (thrown) {
    if (thrown instanceof SseTooLong) throw faults.notUnderstood(`sent ${thrown.message}`)
    throw thrown
  }
}

export const nothingYet = (): PassthroughStep => ({ events: [], received: [], isDone: false })

/** Adds whole events for the client. */
export function pass(step: PassthroughStep, events: string): void {
  if (events !== '') step.events.push(events)
}

/** Each text apart: joined first, long ones would be copied twice. Of many, most are short. */
const FEW_TEXTS = 16

/** What `takeEvents` makes of these texts of whole events. */
export function stepOf(
  texts: readonly string[],
  takeEvents: (text: string, step: PassthroughStep) => void,
): PassthroughStep {
  const step = nothingYet()
  for (const text of texts) takeEvents(text, step)
  const { events } = step
  step.events = (events.length > FEW_TEXTS ? [events.join('')] : events).map(escapeLineEnds)
  return step
}

/** Takes note of the texts of events that passed unread, and empties their list. */
export function receiveText(step: PassthroughStep, texts: string[]): void {
  if (texts.length === 0) return
  // Joined, they are a text of their own, and not a part of a larger one that stays in memory for it.
  step.received.push(texts.join(''))
  texts.length = 0
}

type Matched = { text: string; received: string; end: number }

/** The constant parts around the text of an event, as received or as rewritten. Padding has no meaning and any length. */
type Frame = {
  before: string
  after: string
  /** From one text to the text of the next event; created at the first read with several events. */
  between: string | undefined
  last: string | undefined
}
type Template = Frame & { rewritten: Frame }

const SLOT = /"(?:content|reasoning_content|reasoning|arguments)": ?"/g
/** Padding, which prevents guessing a text by the lengths of its events. */
const PADDING = /"obfuscation": ?"/

const TEXT = 'gatehouse-text'
const PAD = 'gatehouse-padding'

/** How many templates are known at a time: text, and tool calls between text. */
const MAX_TEMPLATES = 2
/** After this many learned templates without a match, learning stops: every event of this provider differs. */
const MAX_UNUSED = 16
/** Shared by all streams: most of those that wait have learned nothing yet. */
const NONE: Template[] = []

export class Templates {
  #known: Template[] = NONE
  #unused = 0

  /** Matches the events at this position that equal a learned one except for their text. */
  match(text: string, at: number): Matched | undefined {
    for (const template of this.#known) {
      const passed = apply(template, text, at)
      if (!passed) continue
      this.#unused = 0
      return passed
    }
    return undefined
  }

  /** `rewrite` returns the data of the client's event. Learns nothing when the result is not certain. */
  learn(block: string, rewrite: (data: string) => string): void {
    if (this.#unused >= MAX_UNUSED) return
    const template = templateOf(`${block}\n\n`, rewrite)
    if (!template) return
    this.#unused++
    this.#known = [template, ...this.#known].slice(0, MAX_TEMPLATES)
  }

  forget(): void {
    this.#known = NONE
  }
}

/** Matches as many consecutive events as possible. What passes is one flat text, which is copied once more at most. */
function apply(template: Template, text: string, at: number): Matched | undefined {
  const { before, after, last, rewritten } = template
  if (!text.startsWith(before, at)) return undefined
  if (last !== undefined) return applyPadded(template, text, at)
  let from = at + before.length
  let quote = closingQuote(text, from)
  // An empty text may be rewritten differently.
  if (quote === from || quote === -1 || !text.startsWith(after, quote)) return undefined
  let end = quote + after.length
  const first = text.slice(from, quote)
  // A slow provider sends its events one at a time.
  if (end === text.length) return { text: rewritten.before + first + rewritten.after, received: first, end }
  template.between ??= after + before
  rewritten.between ??= rewritten.after + rewritten.before
  const { between } = template
  const texts = [first]
  let goesOn = text.startsWith(between, quote)
  while (goesOn) {
    from = quote + between.length
    quote = closingQuote(text, from)
    if (quote === from || quote === -1) break
    goesOn = text.startsWith(between, quote)
    if (!goesOn && !text.startsWith(after, quote)) break
    texts.push(text.slice(from, quote))
    end = quote + after.length
  }
  const received = texts.join('')
  texts[0] = rewritten.before + first
  texts.push(texts.pop() + rewritten.after)
  return { text: texts.join(rewritten.between), received, end }
}

/** Matches one event with padding after its text. */
function applyPadded({ before, after, last = '', rewritten }: Template, text: string, at: number): Matched | undefined {
  const from = at + before.length
  const quote = closingQuote(text, from)
  if (quote === from || quote === -1 || !text.startsWith(after, quote)) return undefined
  const received = text.slice(from, quote)
  const end = quote + after.length
  const close = closingQuote(text, end)
  if (close === -1 || !text.startsWith(last, close)) return undefined
  const padding = rewritten.last === undefined ? '' : text.slice(end, close) + rewritten.last
  return { text: rewritten.before + received + rewritten.after + padding, received, end: close + last.length }
}

function templateOf(event: string, rewrite: (data: string) => string): Template | undefined {
  const [found, another] = [...event.matchAll(SLOT)].filter((match) => event[endOf(match)] !== '"')
  if (!found || another) return undefined
  const from = endOf(found)
  const quote = closingQuote(event, from)
  if (quote === -1) return undefined
  const before = event.slice(0, from)
  const rest = event.slice(quote)
  const padding = PADDING.exec(rest)
  const after = padding ? rest.slice(0, endOf(padding)) : rest
  const last = padding ? rest.slice(closingQuote(rest, endOf(padding))) : undefined
  const data = readSseBlock(`${before}${TEXT}${after}${last === undefined ? '' : PAD + last}`)?.data ?? ''
  const [newBefore = '', rewritten, more] = rewrite(data).split(TEXT)
  if (rewritten === undefined || more !== undefined) return undefined
  const [newAfter = '', newLast] = rewritten.split(PAD)
  return { ...frame(before, after, last), rewritten: frame(newBefore, newAfter, newLast) }
}

const frame = (before: string, after: string, last: string | undefined): Frame => ({
  before,
  after,
  between: undefined,
  last,
})

const endOf = (match: RegExpExecArray | RegExpMatchArray): number => (match.index ?? 0) + match[0].length
