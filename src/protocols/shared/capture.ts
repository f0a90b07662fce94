/** Captures facts of a chat call beside its usage, where somebody needs them: how it ended, its tools, and perhaps its contents. */
import type { ChatRequest } from './canonical.ts'

/** Set on a call before it is sent; the call fills it in. Read once the call is settled. */
export type Capture = {
  /** How much text of the request, and of the response, is kept: 0 for none. */
  readonly max_characters: number
  /** How much of that spans may contain; absent: all of it. */
  readonly span_characters?: number
  readonly is_recorded?: true
  /** Only where text is kept. */
  request?: ChatRequest
  /** Of a family other than chat: the texts of its input. Its output is no text, and is not kept. */
  input?: string[]
  /** Of the target that served the call. */
  response?: CapturedResponse
}

export type CapturedResponse = {
  /** By the index of the choice. */
  finish_reasons: string[]
  tool_calls: CapturedToolCall[]
  /**
   * Pieces of the text of all choices: as it is, or, where it passed without being parsed, as it is between the quotes of
   * JSON, in latin1. `choice`: the index of its choice, 0 where that is not known.
   */
  texts: { text: string; is_raw: boolean; choice: number }[]
  /** Of the texts and arguments. */
  characters: number
}

type CapturedToolCall = { choice: number; index: number; id: string; name: string; arguments: string }
