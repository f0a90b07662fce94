/** The types of the matrix: the input of a client, and the response that it returns. */
import type { PageRow } from './page.ts'

export type JsonSchema = Record<string, unknown>
export type Tool = { name: string; description: string; parameters: JsonSchema }
export type Call = { id: string; name: string; args: unknown }
export type Result = { id: string; name: string; text: string; is_error?: boolean }

export type Turn =
  | { role: 'user'; text: string; picture?: Picture }
  | { role: 'assistant'; reply: Reply }
  | { role: 'results'; results: Result[] }

/** An image in base64, with its media type. */
export type Picture = { media_type: string; data: string }

export type ChatInput = {
  model: string
  system?: string
  turns: Turn[]
  tools?: Tool[]
  /** `required`: the model must call one of the tools. */
  tool_choice?: 'required'
  schema?: JsonSchema
  /** The model must reason first and return its reasoning. */
  is_thinking?: boolean
  max_tokens?: number
  stop?: string
  temperature?: number
}

export type Finish = 'stop' | 'length' | 'tool_calls' | 'stop_sequence' | 'other'

/** Input includes cached tokens, and output includes reasoning. A client that cannot know a number leaves it out. */
export type Reply = {
  text: string
  reasoning?: string
  calls: Call[]
  finish: Finish
  usage: { input: number; output: number; cached?: number; reasoning?: number } | undefined
  /** Absent if the client does not report the model. */
  model?: string
  /** The response as the client itself stores it for the next request. */
  own: unknown
}

/** The client's handling of a stream. */
export type Watch = { signal?: AbortSignal; onText?: (text: string) => void }

/**
 * The second response as it was received and as it was retrieved, the number of its input items, and the error after
 * its deletion.
 */
export type StoredResult = { reply: Reply; found: Reply; itemCount: number; deletedError: unknown }

/** An error as the client library reports it. */
export type Fault = { status: number | undefined; message: string; is_own_class: boolean }

/** A client of a gateway. It lacks the members that it does not support, and the matrix then shows "has none". */
export type Client = {
  whole(chatInput: ChatInput): Promise<Reply>
  stream(chatInput: ChatInput, watch?: Watch): Promise<Reply>
  /** The client's own helper that collects a stream. */
  collected?(chatInput: ChatInput): Promise<Reply>
  /** The client's own helper for structured output: the value. */
  parsed?(chatInput: ChatInput): Promise<unknown>
  count?(chatInput: ChatInput): Promise<number>
  /** A stored response, and one that continues it with this text; both are deleted at the end. */
  stored?(chatInput: ChatInput, next: string): Promise<StoredResult>
  list?(): Promise<string[]>
  retrieve?(model: string): Promise<string>
  /** How the client reports the error of a refusal with this status. */
  fault(error: unknown, status: number): Fault
}

/** What a client of this kind cannot send or report by design. */
export type Unsupported =
  | 'cached_input'
  | 'stream_error'
  | 'refusal'
  | 'reasoning'
  | 'reasoning_history'
  | 'stop'
  | 'stop_sequence'
  | 'parallel'

export type Gateway = { origin: string; token: string }

export type Row = PageRow & {
  dialect: 'chatcompat' | 'chatcompat-response' | 'messages-compat' | 'contentgen-compat'
  unsupported: readonly Unsupported[]
  connect(gateway: Gateway): Client
}
