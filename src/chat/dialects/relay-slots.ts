/**
 * Numbered events of a stream, of which most are the one before with another number and another piece of text. Where
 * those stand is learned once, and the next ones then pass without being parsed.
 */
import { isRecord, type JsonRecord, parseJson } from '../../kit/json.ts'
import { closingQuote } from '../../kit/json-span.ts'
import { readSseBlock } from '../../kit/sse.ts'

/** An event that passes: where it ends, its number and its text, as they stand there; and all of it as it is told. */
export type Matched = { end: number; number: string; said: string; told: string | undefined }

export type Slots = {
  /** The event that was learned. */
  payload: JsonRecord
  /** `told` is undefined where it is told as it came. */
  match(text: string, at: number): Matched | undefined
}

type Slot = { name: string; from: number; to: number }

const NUMBER = 987654321
const TEXT = 'gatehouse-text'
const PADDING = 'gatehouse-padding'

/** Members that differ from event to event, and what is put there to see whether they are the event's own. */
const TRIALS: { name: string; pattern: RegExp; trial: string | number }[] = [
  { name: 'sequence_number', pattern: /"sequence_number": ?(?=\d)/, trial: NUMBER },
  { name: 'delta', pattern: /"delta": ?"/, trial: TEXT },
  // Against guessing a text by the lengths of its events.
  { name: 'obfuscation', pattern: /"obfuscation": ?"/, trial: PADDING },
]

/** `tell`: what the client gets for a part of the event that is always the same. undefined where it is not certain. */
export function slotsOf(event: string, payload: JsonRecord, tell: (fixed: string) => string): Slots | undefined {
  const slots: Slot[] = []
  for (const { name, pattern } of TRIALS) {
    const found = pattern.exec(event)
    if (!found) {
      // Numbers are there in every event or in none, and without a text there is nothing to gain.
      if (name === 'obfuscation') continue
      return undefined
    }
    const from = found.index + found[0].length
    slots.push({ name, from, to: endOf(event, from, name) })
  }
  slots.sort((left, right) => left.from - right.from)
  const fixed = [...slots, undefined].map((slot, index) => event.slice(slots[index - 1]?.to ?? 0, slot?.from))
  const names = slots.map(({ name }) => name)
  if (!isCertain(fixed, names)) return undefined
  const told = fixed.map(tell)
  const isSame = told.every((part, index) => part === fixed[index])
  return { payload, match: (text, at) => matched({ fixed, names, told: isSame ? undefined : told }, text, at) }
}

function endOf(event: string, from: number, name: string): number {
  if (name !== 'sequence_number') return closingQuote(event, from)
  let to = from
  while (isDigit(event.charCodeAt(to))) to++
  return to
}

const isDigit = (sign: number): boolean => sign >= 48 && sign <= 57

/** Whether the members that were found are the event's own, and nothing else. */
function isCertain(fixed: string[], names: string[]): boolean {
  const trials = names.map((name) => TRIALS.find((one) => one.name === name)?.trial ?? '')
  const text = fixed.map((part, index) => part + (trials[index] ?? '')).join('')
  const payload = parseJson(readSseBlock(text)?.data ?? '')
  return isRecord(payload) && names.every((name, index) => payload[name] === trials[index])
}

type Frame = { fixed: string[]; names: string[]; told: string[] | undefined }

function matched({ fixed, names, told }: Frame, text: string, at: number): Matched | undefined {
  const made = { number: '', said: '' }
  const pieces: string[] = []
  let from = at
  for (const [index, name] of names.entries()) {
    const before = fixed[index] ?? ''
    if (!text.startsWith(before, from)) return undefined
    from += before.length
    const to = endOf(text, from, name)
    if (to === -1) return undefined
    const piece = text.slice(from, to)
    if (told) pieces.push(told[index] ?? '', piece)
    if (name === 'sequence_number') made.number = piece
    if (name === 'delta') made.said = piece
    from = to
  }
  const last = fixed.at(-1) ?? ''
  // An empty piece may mean something of its own.
  if (!text.startsWith(last, from) || made.said === '' || made.number === '') return undefined
  return { ...made, end: from + last.length, told: told && pieces.join('') + (told.at(-1) ?? '') }
}
