/** Combines the events of a whole response, usually one, to a completion. */
import { isRecord } from '../../../kit/json.ts'
import type { AnswerMessage, ChatChunk, ChatCompletion, Delta, Reasoning } from '../../shared/canonical.ts'
import type { Fallback } from '../../shared/upstream.ts'

/** A complete body has ended, even if the provider gives no finish reason. */
export function ended(payloads: unknown[]): unknown[] {
  const last = payloads.at(-1)
  if (!isRecord(last) || !Array.isArray(last.candidates)) return payloads
  const candidates = last.candidates.map((one: unknown) =>
    isRecord(one) ? { ...one, finishReason: one.finishReason ?? 'STOP' } : one,
  )
  return [...payloads.slice(0, -1), { ...last, candidates }]
}

type Choice = ChatCompletion['choices'][number]

export function wholeOf(chunks: ChatChunk[], fallback: Fallback): ChatCompletion {
  const builds = new Map<number, { choice: Choice; build: MessageBuild }>()
  let usage: ChatChunk['usage']
  for (const chunk of chunks) {
    usage = chunk.usage ?? usage
    for (const { index, delta, finish_reason, logprobs } of chunk.choices) {
      const one = builds.get(index) ?? startChoice(index)
      builds.set(index, one)
      one.build.add(delta)
      if (finish_reason) one.choice.finish_reason = finish_reason
      if (logprobs !== undefined) one.choice.logprobs = logprobs
    }
  }
  const { id, model, created } = chunks.at(-1) ?? fallback
  const choices = [...builds.values()].map(({ choice, build }) => ({ ...choice, message: build.message() }))
  choices.sort((left, right) => left.index - right.index)
  return { id, object: 'chat.completion', created, model, choices, ...(usage ? { usage } : {}) }
}

function startChoice(index: number): { choice: Choice; build: MessageBuild } {
  const build = createMessage()
  return { choice: { index, message: build.message(), finish_reason: null }, build }
}

type MessageBuild = { add(delta: Delta): void; message(): AnswerMessage }

function createMessage(): MessageBuild {
  let content = ''
  let reasoning = ''
  /** The text of the current piece of reasoning. */
  let open: string | undefined
  const pieces: Reasoning[] = []
  const calls: NonNullable<AnswerMessage['tool_calls']> = []
  const annotations: NonNullable<AnswerMessage['annotations']> = []
  const images: NonNullable<AnswerMessage['images']> = []

  function end(piece: Reasoning): void {
    if (open !== undefined) pieces.push({ text: open, ...piece })
    else if (piece.text !== undefined || piece.opaque) pieces.push(piece)
    open = undefined
  }

  return {
    add(delta) {
      content += delta.content ?? ''
      if (delta.reasoning_content) {
        reasoning += delta.reasoning_content
        open = (open ?? '') + delta.reasoning_content
      }
      delta.reasoning_details?.forEach(end)
      for (const { index: _, ...call } of delta.tool_calls ?? []) calls.push(call)
      annotations.push(...(delta.annotations ?? []))
      images.push(...(delta.images ?? []))
    },
    message() {
      const whole = open === undefined ? pieces : [...pieces, { text: open }]
      return {
        role: 'assistant',
        content: content === '' && calls.length > 0 ? null : content,
        ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
        // Without signed reasoning, the text alone is sufficient.
        ...(whole.some(({ opaque }) => opaque) ? { reasoning_details: whole } : {}),
        ...(calls.length > 0 ? { tool_calls: calls } : {}),
        ...(annotations.length > 0 ? { annotations } : {}),
        ...(images.length > 0 ? { images } : {}),
      }
    },
  }
}
