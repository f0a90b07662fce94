/**
 * Events of a stream of which most are the one before with other numbers and another piece of text. Where those stand is
 * learned once, and the next ones then pass without being parsed.
 */
import { isRecord, type JsonRecord, parseJson } from '../../kit/json.ts'
import { closingQuote } from '../../kit/json-span.ts'
import { readSseBlock } from '../../kit/sse.ts'

/** A member that differs from event to event. */
export type Member = {
  name: string
  kind: 'text' | 'number'
  /** Up to where its value begins, within the quotes of a text. */
  pattern: RegExp
  /** What an event has there: shows whether it is the member that was meant. */
  of(payload: JsonRecord): unknown
  /** Without it nothing is gained. */
  isNeeded?: true
}

/** An event that passes: where it ends, its members' values as they stand there, and all of it as it is told. */
type Matched = { end: number; values: string[]; told: string | undefined }

export type Slots = {
  /** The event that was learned. */
  payload: JsonRecord
  /** Where among the values a member's stands; -1 where the event has none. */
  place(name: string): number
  /** `told` is undefined where it is told as it came. An event with an empty text is none of them. */
  match(text: string, at: number): Matched | undefined
}

type Slot = Member & { from: number; to: number; trial: string | number }
type Frame = { fixed: string[]; isText: boolean[]; told: string[] | undefined }

const NUMBER = 987654321
const TEXT = 'gatehouse-text'

type Learning = {
  members: readonly Member[]
  /** What the client gets for a part of the event that is always the same. */
  tell(fixed: string): string
}

/** undefined where it is not certain. */
function slotsOf(event: string, payload: JsonRecord, { members, tell }: Learning): Slots | undefined {
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
  const told = fixed.map(tell)
  const isSame = told.every((part, index) => part === fixed[index])
  const isText = slots.map(({ kind }) => kind === 'text')
  const frame = { fixed, isText, told: isSame ? undefined : told }
  const needed = slots.findIndex((slot) => slot.isNeeded && slot.kind === 'text')
  return {
    payload,
    place: (name) => slots.findIndex((slot) => slot.name === name),
    match(text, at) {
      const matched = matchOf(frame, text, at)
      // An empty piece may mean something of its own.
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

/** Whether the members that were found are those that were meant, and nothing else. */
function isCertain(fixed: string[], slots: Slot[]): boolean {
  const text = fixed.map((part, index) => part + (slots[index]?.trial ?? '')).join('')
  const payload = parseJson(readSseBlock(text)?.data ?? '')
  return isRecord(payload) && slots.every(({ of, trial }) => of(payload) === trial)
}

function matchOf({ fixed, isText, told }: Frame, text: string, at: number): Matched | undefined {
  const values: string[] = []
  let made = ''
  let from = at
  for (const [index, isOfText] of isText.entries()) {
    const before = fixed[index] ?? ''
    if (!text.startsWith(before, from)) return undefined
    from += before.length
    const to = endOf(text, from, isOfText)
    if (to === -1) return undefined
    const value = text.slice(from, to)
    if (told) made += (told[index] ?? '') + value
    values.push(value)
    from = to
  }
  const last = fixed.at(-1) ?? ''
  if (!text.startsWith(last, from)) return undefined
  return { end: from + last.length, values, told: told && made + (told.at(-1) ?? '') }
}

/** So many kinds of events are known by heart: words, and calls between them. */
const KEPT = 2
/** A vendor whose events have each something of their own is read instead. */
const MOST_UNMET = 16

/** What was learned of one stream. */
export function createSlots(members: readonly Member[]) {
  let known: Slots[] = []
  /** Learned, and not once met since. */
  let unmet = 0
  return {
    learn(event: string, payload: JsonRecord, tell: (fixed: string) => string): void {
      if (unmet >= MOST_UNMET) return
      const slots = slotsOf(event, payload, { members, tell })
      if (!slots) return
      unmet++
      known = [slots, ...known].slice(0, KEPT)
    },
    match(text: string, at: number): { slots: Slots; matched: Matched } | undefined {
      for (const slots of known) {
        const matched = slots.match(text, at)
        if (!matched) continue
        unmet = 0
        return { slots, matched }
      }
      return undefined
    },
  }
}
