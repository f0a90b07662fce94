/** Log probabilities of chat completions in the form of text completions. */
import { isRecord } from '../../../kit/json.ts'
import type { TextLogprobs } from '../../../spec/text-completion.ts'

/** Null if the provider returned none. `offset`: the length of the text before, in code points as Python counts them. */
export function textLogprobs(logprobs: unknown, offset: number): TextLogprobs | null {
  const content = contentOf(logprobs)
  if (content.length === 0) return null
  const out: TextLogprobs = { tokens: [], token_logprobs: [], top_logprobs: [], text_offset: [] }
  let at = offset
  for (const { token, logprob, top_logprobs } of content) {
    out.tokens.push(token)
    out.token_logprobs.push(logprob)
    const top = Object.fromEntries(entriesOf(top_logprobs).map((one) => [one.token, one.logprob]))
    // The sampled token is always among them, as OpenAI documents.
    out.top_logprobs.push({ ...top, [token]: logprob })
    out.text_offset.push(at)
    at += [...token].length
  }
  return out
}

/** How likely a choice is, by token; undefined if the provider returned no log probabilities. */
export function meanLogprob(logprobs: unknown): number | undefined {
  const content = contentOf(logprobs)
  if (content.length === 0) return undefined
  return content.reduce((sum, { logprob }) => sum + logprob, 0) / content.length
}

type Entry = { token: string; logprob: number; top_logprobs?: unknown }

const contentOf = (logprobs: unknown): Entry[] => (isRecord(logprobs) ? entriesOf(logprobs.content) : [])

const entriesOf = (list: unknown): Entry[] => (Array.isArray(list) ? list.filter(isEntry) : [])

const isEntry = (value: unknown): value is Entry =>
  isRecord(value) && typeof value.token === 'string' && typeof value.logprob === 'number'
