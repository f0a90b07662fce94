/** Encodes text completions: the responses to the chat requests of all prompts, whole or as one stream. */
import { isRecord } from '../../../kit/json.ts'
import { inOneLine } from '../../../kit/sse.ts'
import type { FinishReason } from '../../../spec/chat-completion.ts'
import { errorBody, type GatewayError } from '../../../spec/error.ts'
import type { TextChoice, TextCompletion, TextLogprobs } from '../../../spec/text-completion.ts'
import type { Usage } from '../../../spec/usage.ts'
import type { ChatChunk, ChatCompletion, ChunkChoice } from '../../shared/canonical.ts'
import type { ResponseEncoder, ResponseHead } from '../../shared/protocol.ts'
import type { TextCompletionInput } from './text-request.ts'

type ChatChoice = ChatCompletion['choices'][number]

export type TextCompletionEncoder = ReturnType<typeof createTextCompletionEncoder>

export function createTextCompletionEncoder(input: TextCompletionInput, head: ResponseHead) {
  const { prompts, n, echo, requests } = input
  const includesUsage = requests[0]?.stream_options?.include_usage === true
  const base = { id: head.id, object: 'text_completion' as const, created: head.created, model: head.model }
  const completed: TextChoice[][] = prompts.map(() => [])
  let system_fingerprint: string | undefined

  const event = (choices: object[], usage?: Usage | null) =>
    `data: ${JSON.stringify({ ...base, ...(usage === undefined ? {} : { usage }), choices })}\n\n`
  const echoed = (prompt: number): string => (echo ? (prompts[prompt] ?? '') : '')
  const fail = (error: GatewayError) => inOneLine(`data: ${JSON.stringify(errorBody(error))}\n\n`)

  function choiceOf({ message, finish_reason, logprobs }: ChatChoice, prompt: number): Omit<TextChoice, 'index'> {
    return {
      text: echoed(prompt) + (message.content ?? message.refusal ?? ''),
      logprobs: input.logprobs ? textLogprobs(logprobs, 0) : null,
      finish_reason: finishOf(finish_reason ?? 'stop'),
    }
  }

  /** `offsets`: the length of the text that each choice has so far, in code points. */
  function chunkChoice({ index, delta, finish_reason, logprobs }: ChunkChoice, prompt: number, offsets: number[]) {
    const first = offsets[index] === undefined
    const added = delta.content ?? delta.refusal ?? ''
    const text = first ? echoed(prompt) + added : added
    const given = input.logprobs ? textLogprobs(logprobs, offsets[index] ?? 0) : null
    if (text === '' && !finish_reason && !given) return undefined
    offsets[index] = (offsets[index] ?? 0) + [...text].length
    const finish = finish_reason ? finishOf(finish_reason) : null
    return { text, index: prompt * n + index, logprobs: given, finish_reason: finish }
  }

  return {
    /** The encoder of the responses to one prompt. */
    of(prompt: number): ResponseEncoder {
      const offsets: number[] = []
      return {
        whole(answer) {
          system_fingerprint ??= answer.system_fingerprint ?? undefined
          completed[prompt] = mostLikely(answer.choices, n).map((choice, index) => ({
            ...choiceOf(choice, prompt),
            index: prompt * n + index,
          }))
        },
        encode(batch: ChatChunk[]) {
          let events = ''
          for (const { choices } of batch) {
            const encoded = choices.flatMap((choice) => chunkChoice(choice, prompt, offsets) ?? [])
            if (encoded.length > 0) events += event(encoded, includesUsage ? null : undefined)
          }
          return inOneLine(events)
        },
        includesUsage,
        end: () => '',
        fail,
      }
    },
    /** The whole response, after the response to each prompt was encoded. */
    whole: (usage: Usage): TextCompletion => ({
      ...base,
      ...(system_fingerprint === undefined ? {} : { system_fingerprint }),
      choices: completed.flat(),
      usage,
    }),
    includesUsage,
    end: (usage: Usage | undefined) => `${usage ? event([], usage) : ''}data: [DONE]\n\n`,
    fail,
  }
}

/** The `n` most likely choices by token, the most likely first; those without log probabilities keep their order, last. */
function mostLikely(choices: ChatChoice[], n: number): ChatChoice[] {
  if (choices.length <= n) return choices
  const likelihood = new Map(choices.map((choice) => [choice, meanLogprob(choice.logprobs) ?? -Infinity]))
  return choices.toSorted((a, b) => compare(likelihood.get(b), likelihood.get(a))).slice(0, n)
}

const compare = (a = -Infinity, b = -Infinity): number => (a === b ? 0 : a < b ? -1 : 1)

/** Without tools, `tool_calls` is an end like `stop`. */
const finishOf = (reason: FinishReason): TextChoice['finish_reason'] => (reason === 'tool_calls' ? 'stop' : reason)

/** Log probabilities in the form of text completions; null if the provider returned none. `offset`: the length of the text before, in code points as Python counts them. */
function textLogprobs(logprobs: unknown, offset: number): TextLogprobs | null {
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
function meanLogprob(logprobs: unknown): number | undefined {
  const content = contentOf(logprobs)
  if (content.length === 0) return undefined
  return content.reduce((sum, { logprob }) => sum + logprob, 0) / content.length
}

type Entry = { token: string; logprob: number; top_logprobs?: unknown }

const contentOf = (logprobs: unknown): Entry[] => (isRecord(logprobs) ? entriesOf(logprobs.content) : [])

const entriesOf = (list: unknown): Entry[] => (Array.isArray(list) ? list.filter(isEntry) : [])

const isEntry = (value: unknown): value is Entry =>
  isRecord(value) && typeof value.token === 'string' && typeof value.logprob === 'number'
