/**
 * The sandbox's own tokenizer. A token is one of: up to eight letters, marks or digits, with one space before them if
 * there is one; up to eight white-space characters; any other single character. All tokens joined are the text.
 */
import type { ChatRequest, Message } from '../../../src/providers/provider.ts'
import { inputAudioTokens } from './chat-audio.ts'

/** The tokens of an image in the prompt, whatever its size: a round number within the range of real providers. */
export const IMAGE_TOKENS = 256

const PIECE_CHARACTERS = 8

const UNKNOWN = 0
const OTHER = 1
const WORD = 2
const WHITE = 3

/** Of every code point, each found once: a regular expression for each character of megabytes takes seconds. */
const KINDS = new Uint8Array(0x110000)

function kindOfText(character: string): number {
  // Letters, combining marks and digits of any script form words; white space is what `\s` matches.
  if (/[\p{L}\p{M}\p{N}]/u.test(character)) return WORD
  return /\s/.test(character) ? WHITE : OTHER
}

function kindOf(code: number): number {
  const known = KINDS[code] ?? OTHER
  if (known !== UNKNOWN) return known
  const kind = kindOfText(String.fromCodePoint(code))
  KINDS[code] = kind
  return kind
}

/** The end of the token that starts at `start`. A surrogate pair is one character and is never split. */
function pieceEnd(text: string, start: number): number {
  const code = text.codePointAt(start) ?? 0
  const following = code === 32 ? text.codePointAt(start + 1) : undefined
  const spaced = following !== undefined && kindOf(following) === WORD
  const kind = spaced ? WORD : kindOf(code)
  let at = spaced ? start + 1 : start
  for (let count = 0; at < text.length && count < PIECE_CHARACTERS; count++) {
    const here = text.codePointAt(at) ?? 0
    if (count > 0 && (kind === OTHER || kindOf(here) !== kind)) break
    at += here > 0xffff ? 2 : 1
  }
  return at
}

/** The tokens of a text, at most `limit` of them. */
export function splitTokens(text: string, limit = Number.POSITIVE_INFINITY): string[] {
  const pieces: string[] = []
  for (let at = 0; at < text.length && pieces.length < limit; ) {
    const end = pieceEnd(text, at)
    pieces.push(text.slice(at, end))
    at = end
  }
  return pieces
}

export function countTokens(text: string): number {
  let count = 0
  for (let at = 0; at < text.length; at = pieceEnd(text, at)) count++
  return count
}

type PromptTokens = { input: number; image: number; audio: number }

/** The tokens of a prompt: all texts of all messages, and the tools as JSON; roles and separators do not count. */
export function countPrompt(request: ChatRequest): PromptTokens {
  let text = 0
  let images = 0
  let audio = 0
  for (const message of request.messages) {
    for (const piece of textsOf(message)) text += countTokens(piece)
    for (const part of Array.isArray(message.content) ? message.content : []) {
      if (part.type === 'image_url') images++
      if (part.type === 'input_audio') audio += inputAudioTokens(part.input_audio.data)
    }
  }
  for (const tools of toolTexts(request)) text += countTokens(tools)
  const image = images * IMAGE_TOKENS
  return { input: text + image + audio, image, audio }
}

/** The characters of the same texts. Cheap, so that a prompt beyond the limit costs nothing else. */
export function promptLength(request: ChatRequest): number {
  let length = 0
  for (const message of request.messages) for (const piece of textsOf(message)) length += piece.length
  for (const tools of toolTexts(request)) length += tools.length
  return length
}

const toolTexts = ({ tools, functions }: ChatRequest): string[] =>
  [tools, functions].flatMap((list) => (list?.length ? [JSON.stringify(list)] : []))

function textsOf(message: Message): string[] {
  const texts: string[] = []
  if (typeof message.content === 'string') texts.push(message.content)
  else if (message.content) {
    for (const part of message.content) {
      if (part.type === 'text') texts.push(part.text)
      if (part.type === 'refusal') texts.push(part.refusal)
    }
  }
  for (const text of [message.name, message.reasoning_content, message.refusal]) if (text) texts.push(text)
  for (const call of message.tool_calls ?? []) texts.push(call.function.name, call.function.arguments)
  if (message.function_call) texts.push(message.function_call.name, message.function_call.arguments)
  return texts
}
