/** The matrix's own words: what a client is asked to ask, and what it says that it was told. */
import type { PageRow } from './page.ts'

export type JsonSchema = Record<string, unknown>
export type Tool = { name: string; description: string; parameters: JsonSchema }
export type Call = { id: string; name: string; args: unknown }
export type Result = { id: string; name: string; text: string; is_error?: boolean }

export type Turn =
  | { role: 'user'; text: string; picture?: Picture }
  | { role: 'assistant'; reply: Reply }
  | { role: 'results'; results: Result[] }

/** A picture's bytes in base64, and what they are. */
export type Picture = { media_type: string; data: string }

export type ChatInput = {
  model: string
  system?: string
  turns: Turn[]
  tools?: Tool[]
  /** `required`: the model must call one of the tools. */
  tool_choice?: 'required'
  schema?: JsonSchema
  /** The model is to think first, and to tell what it thought. */
  is_thinking?: boolean
  max_tokens?: number
  stop?: string
  temperature?: number
}

export type Finish = 'stop' | 'length' | 'tool_calls' | 'stop_sequence' | 'other'

/** Input with what was cached, output with what was thought; a client that cannot know a number leaves it out. */
export type Reply = {
  text: string
  reasoning?: string
  calls: Call[]
  finish: Finish
  usage: { input: number; output: number; cached?: number; reasoning?: number } | undefined
  /** Left out by clients that do not tell which model answered. */
  model?: string
  /** The answer as the client itself keeps it for the next request. */
  own: unknown
}

/** What a client does while a stream comes in. */
export type Watch = { signal?: AbortSignal; onText?: (text: string) => void }

/** The second answer as it came and as it was found again, how many items were asked, and what is left of it. */
export type StoredResult = { reply: Reply; found: Reply; itemCount: number; deletedError: unknown }

/** An error as a user of the client sees it. */
export type Fault = { status: number | undefined; message: string; is_own_class: boolean }

/** A client that stands before a gateway. What it lacks it has not: the matrix then says "has none". */
export type Client = {
  whole(chatInput: ChatInput): Promise<Reply>
  stream(chatInput: ChatInput, watch?: Watch): Promise<Reply>
  /** The client's own way to put a stream together. */
  collected?(chatInput: ChatInput): Promise<Reply>
  /** The client's own way to an answer that fits a schema: the value. */
  parsed?(chatInput: ChatInput): Promise<unknown>
  count?(chatInput: ChatInput): Promise<number>
  /** An answer that the gateway keeps, and one that goes on from it with these words; both deleted in the end. */
  stored?(chatInput: ChatInput, next: string): Promise<StoredResult>
  list?(): Promise<string[]>
  retrieve?(model: string): Promise<string>
  /** How the error of a refusal with this status looks. */
  fault(error: unknown, status: number): Fault
}

/** What a client of this kind cannot tell or ask, by its own design. */
export type Unsupported = 'reasoning' | 'stop' | 'stop_sequence' | 'parallel'

export type Row = PageRow & {
  dialect: 'chatcompat' | 'chatcompat-response' | 'messages-compat' | 'contentgen-compat'
  unsupported: readonly Unsupported[]
  connect(gateway: { origin: string; token: string }): Client
}
