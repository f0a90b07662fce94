/**
 * Parses the common event of a stream, which differs from the one before only in one text, without a JSON parser: it learns
 * what stands before and after the text from an event that was parsed.
 */
import { isDeepStrictEqual } from 'node:util'
import { isRecord, type JsonRecord, parseJson } from '../../kit/json.ts'

/** An event's data around its text, and its members. */
type Frame = {
  before: string
  after: string
  /** Members with values that are shared by all events: no objects. */
  payload: JsonRecord
  choice: JsonRecord
  delta: JsonRecord
}

/** JSON may write these in another way. */
const ESCAPED = /["\\\p{Cc}]/u

const TRIAL = 'gatehouse-text'
/** After this many learned frames without a match, learning stops: every event of this provider differs. */
const MAX_UNUSED = 4

/** The events of one stream of chat completions with one choice that has `content` and nothing else. */
export class PlainEvents {
  #frame: Frame | undefined
  #unused = 0

  /** The payload of an event, as a JSON parser would return it; undefined where only a parser can tell. */
  parse(data: string): JsonRecord | undefined {
    const frame = this.#frame
    if (!frame) return undefined
    const { before, after } = frame
    const end = data.length - after.length
    if (end < before.length || !data.startsWith(before) || !data.endsWith(after)) return undefined
    const raw = data.slice(before.length, end)
    const content = ESCAPED.test(raw) ? parseJson(`"${raw}"`) : raw
    if (typeof content !== 'string') return undefined // it ends before, and other members follow
    this.#unused = 0
    return withContent(frame, content)
  }

  /** To be called before anything is changed in the payload. */
  learn(data: string, payload: JsonRecord): void {
    if (this.#unused >= MAX_UNUSED) return
    const frame = frameOf(data, payload)
    if (!frame) return
    this.#frame = frame
    this.#unused++
  }
}

const withContent = ({ payload, choice, delta }: Frame, content: string): JsonRecord => ({
  ...payload,
  choices: [{ ...choice, delta: { ...delta, content } }],
})

/** Undefined if the event is another one, or the place of its text is not certain. */
function frameOf(data: string, payload: JsonRecord): Frame | undefined {
  const { choices } = payload
  const choice: unknown = Array.isArray(choices) && choices.length === 1 ? choices[0] : undefined
  if (!isRecord(choice) || !isRecord(choice.delta)) return undefined
  const { delta } = choice
  if (typeof delta.content !== 'string' || delta.content === '') return undefined
  if (!isFlat(payload, 'choices') || !isFlat(choice, 'delta') || !isFlat(delta, '')) return undefined
  const text = JSON.stringify(delta.content)
  const at = data.indexOf(`"content":${text}`)
  if (at === -1) return undefined
  const from = at + '"content":"'.length
  const before = data.slice(0, from)
  const after = data.slice(from + text.length - 2)
  const frame = { before, after, payload: { ...payload }, choice: { ...choice }, delta: { ...delta } }
  return isDeepStrictEqual(parseJson(before + TRIAL + after), withContent(frame, TRIAL)) ? frame : undefined
}

function isFlat(value: JsonRecord, except: string): boolean {
  for (const name in value) if (name !== except && typeof value[name] === 'object' && value[name] !== null) return false
  return true
}
