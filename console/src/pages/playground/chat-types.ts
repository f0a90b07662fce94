/** Types and size limits of a conversation in the playground. */
export type Attachment = { name: string; type: string; size: number; data_url: string }
export type ToolCall = { id: string; name: string; arguments: string }
export type ToolResult = { id: string; name: string; text: string }
/** What an answer cites. The provider chose both texts. */
export type Source = { url: string; title: string }
export type ChatUsage = { input: number; cached: number; output: number; reasoning: number }

export type UserMessage = { role: 'user'; text: string; files: Attachment[] }
export type ToolMessage = { role: 'tool'; results: ToolResult[] }
export type Answer = {
  role: 'assistant'
  state: 'running' | 'done' | 'stopped' | 'failed'
  text: string
  reasoning: string
  tool_calls: ToolCall[]
  sources: Source[]
  finish_reason: string | null
  usage: ChatUsage | null
  error: { message: string; code: string } | null
  request_id: string | null
  /** Milliseconds from the request to the first token, and to the end. */
  first_ms: number | null
  total_ms: number | null
}
export type ChatMessage = UserMessage | ToolMessage | Answer

/** What the person sets for all models; empty: the default of the model. */
export type ChatSettings = {
  system: string
  temperature: string
  top_p: string
  max_tokens: string
  seed: string
  stop: string
  effort: string
  format: 'text' | 'json_object' | 'json_schema'
  schema: string
  tools: string
}

export const MAX_MODELS = 4
/** In one conversation, of both sides. */
export const MAX_MESSAGES = 100
export const MAX_FILES = 8
export const MAX_FILE_BYTES = 10_000_000
/** Of one message together. */
export const MAX_MESSAGE_BYTES = 20_000_000
/** Of one answer; the others are not listed. */
export const MAX_SOURCES = 30
/** Characters of one answer with its reasoning; it is stopped there. */
export const MAX_ANSWER = 1_000_000
