/**
 * Learns the positions of the text and the numbers in a common event of a stream, so that the following events pass
 * without being parsed.
 */
import { isRecord, type JsonRecord, parseJson } from '../../../kit/json.ts'
import { closingQuote } from '../../../kit/json-span.ts'
import { readSseBlock } from '../../../kit/sse.ts'

/** A member that differs from event to event. */
export type Member = {
  name: string
  kind: 'text' | 'number'
  /** Matches up to the start of the value, inside the quotes of a text. */
  pattern: RegExp
  /** The value in the parsed event: confirms that it is the right member. */
  of(payload: JsonRecord): unknown
  /** Events without it are not learned. */
  isNeeded?: true
}

/** An event that passes: its end, the raw values of its members, and its rewritten text. */
type Matched = { end: number; values: string[]; rewritten: string | undefined }

export type Slots = {
  payload: JsonRecord
  /** The index of a member's value; -1 if the event has none. */
  place(name: string): number
  /** `rewritten` is undefined if the event passes unchanged. An event with an empty text does not match. */
  match(text: string, at: number): Matched | undefined
}

type Slot = Member & { from: number; to: number; trial: string | number }
type Frame = { fixed: string[]; isText: boolean[]; rewritten: string[] | undefined }

const NUMBER = 987654321
const TEXT = 'gatehouse-text'

type Learning = {
  members: readonly Member[]
  /** Rewrites a constant part of the event for the client. */
  rewrite(fixed: string): string
}

/** Undefined if the positions are not certain. */
function slotsOf(event: string, payload: JsonRecord, { members, rewrite }: Learning): Slots | undefined {
  const slots: Slot[] = []
  for (const [index, member] of members.entries()) {
    const found = member.pattern.exec(event)
    if (!found && member.isNeeded) return undefined
    if (!found) continue
    const from = found.index + found[0].length
    const isText = member.kind === 'text'
    slots.push({ ...member, from, to: endOf(event, from, isText), trial: isText ? TEXT + index : NUMBER + index })
  }
  slots.sort((left, right) => left.from - right.from)
  const fixed = [...slots, undefined].map((slot, index) => event.slice(slots[index - 1]?.to ?? 0, slot?.from))
  if (slots.some(({ to }) => to === -1) || !isCertain(fixed, slots)) return undefined
  const rewritten = fixed.map(rewrite)
  const isSame = rewritten.every((part, index) => part === fixed[index])
  const isText = slots.map(({ kind }) => kind === 'text')
  const frame = { fixed, isText, rewritten: isSame ? undefined : rewritten }
  const needed = slots.findIndex((slot) => slot.isNeeded && slot.kind === 'text')
  return {
    payload,
    place: (name) => slots.findIndex((slot) => slot.name === name),
    match(text, at) {
      const matched = matchOf(frame, text, at)
      // An empty text may have a special meaning.
      return matched?.values[needed] === '' ? undefined : matched
    },
  }
}

function endOf(event: string, from: number, isText: boolean): number {
  if (isText) return closingQuote(event, from)
  let to = from
  while (isDigit(event.charCodeAt(to))) to++
  return to === from ? -1 : to
}

const isDigit = (sign: number): boolean => sign >= 48 && sign <= 57

/** Whether trial values appear in the right members of the parsed event. */
function isCertain(fixed: string[], slots: Slot[]): boolean {
  const text = fixed.map((part, index) => part + (slots[index]?.trial ?? '')).join('')
  const payload = parseJson(readSseBlock(text)?.data ?? '')
  return isRecord(payload) && slots.every(({ of, trial }) => of(payload) === trial)
}

function matchOf({ fixed, isText, rewritten }: Frame, text: string, at: number): Matched | undefined {
  const values: string[] = []
  let output = ''
  let from = at
  for (const [index, isOfText] of isText.entries()) {
    const before = fixed[index] ?? ''
    if (!text.startsWith(before, from)) return undefined
    from += before.length
    const to = endOf(text, from, isOfText)
    if (to === -1) return undefined
    const value = text.slice(from, to)
    if (rewritten) output += (rewritten[index] ?? '') + value
    values.push(value)
    from = to
  }
  const last = fixed.at(-1) ?? ''
  if (!text.startsWith(last, from)) return undefined
  return { end: from + last.length, values, rewritten: rewritten && output + (rewritten.at(-1) ?? '') }
}

/** How many kinds of events are known at a time: text, and tool calls between text. */
const MAX_KNOWN = 2
/** After this many learned events without a match, learning stops: every event of this provider differs. */
const MAX_UNUSED = 16

export function createSlots(members: readonly Member[]) {
  let known: Slots[] = []
  let unused = 0
  return {
    learn(event: string, payload: JsonRecord, rewrite: (fixed: string) => string): void {
      if (unused >= MAX_UNUSED) return
      const slots = slotsOf(event, payload, { members, rewrite })
      if (!slots) return
      unused++
      known = [slots, ...known].slice(0, MAX_KNOWN)
    },
    match(text: string, at: number): { slots: Slots; matched: Matched } | undefined {
      for (const slots of known) {
        const matched = slots.match(text, at)
        if (!matched) continue
        unused = 0
        return { slots, matched }
      }
      return undefined
    },
  }
}
