/** Encodes an answer as a chat completion: as chunks in the order of a stream, or complete. */
import type { ChatChunk, ChatCompletion, ChunkChoice, Delta } from '../../../src/providers/provider.ts'
import type { Usage } from '../../../src/spec/usage.ts'
import { type ChoiceAnswer, tokensOf } from './answer.ts'
import { audioParts, wholeAudio } from './chat-audio.ts'
import { type LogprobsRequest, logprobsOf } from './logprobs.ts'

export type Answer = {
  id: string
  created: number
  model: string
  choices: ChoiceAnswer[]
  usage: Usage | undefined
  logprobs: LogprobsRequest | undefined
}

const FINGERPRINT = 'sandbox'

/** One chunk for each token, generated on demand. The choices alternate, and the usage comes last. */
export function* chunksOf(answer: Answer): Generator<ChatChunk> {
  const frame = (choices: ChunkChoice[]): ChatChunk => ({
    id: answer.id,
    object: 'chat.completion.chunk',
    created: answer.created,
    model: answer.model,
    system_fingerprint: FINGERPRINT,
    choices,
  })
  let active = answer.choices.map((_, index) => choiceChunks(answer, index))
  while (active.length > 0) {
    const remaining: typeof active = []
    for (const choice of active) {
      const next = choice.next()
      if (next.done) continue
      yield frame([next.value])
      remaining.push(choice)
    }
    active = remaining
  }
  if (answer.usage) yield { ...frame([]), usage: answer.usage }
}

function* choiceChunks(answer: Answer, index: number): Generator<ChunkChoice> {
  const choice = answer.choices[index]
  if (!choice) return
  const choiceChunk = (delta: Delta, logprobs: unknown = null): ChunkChoice => ({
    index,
    delta,
    logprobs,
    finish_reason: null,
  })
  yield choiceChunk({ role: 'assistant', content: '' })
  for (const reasoning_content of choice.reasoning) yield choiceChunk({ reasoning_content })
  if (choice.audio) {
    for (const audio of audioParts(audioAnswerOf(choice, answer))) yield choiceChunk({ audio })
  }
  for (const [at, content] of choice.audio ? [] : choice.content.entries()) {
    yield choiceChunk(
      { content },
      answer.logprobs ? logprobsOf([content], at, logprobsRequestFor(answer.logprobs, index)) : null,
    )
  }
  if (choice.annotations.length > 0) yield choiceChunk({ annotations: choice.annotations })
  for (const [at, { id, name, pieces }] of choice.calls.entries()) {
    yield choiceChunk({ tool_calls: [{ index: at, id, type: 'function', function: { name, arguments: '' } }] })
    for (const piece of pieces) yield choiceChunk({ tool_calls: [{ index: at, function: { arguments: piece } }] })
  }
  yield { index, delta: {}, logprobs: null, finish_reason: choice.finish_reason }
}

const logprobsRequestFor = ({ seed, top }: LogprobsRequest, index: number): LogprobsRequest => ({
  seed: `${index}:${seed}`,
  top,
})

export function completionOf(answer: Answer): ChatCompletion {
  const completion: ChatCompletion = {
    id: answer.id,
    object: 'chat.completion',
    created: answer.created,
    model: answer.model,
    system_fingerprint: FINGERPRINT,
    choices: answer.choices.map((choice, index) => ({
      index,
      message: messageOf(choice, answer),
      finish_reason: choice.finish_reason,
      logprobs:
        answer.logprobs && choice.calls.length === 0 && !choice.audio
          ? logprobsOf(choice.content, 0, logprobsRequestFor(answer.logprobs, index))
          : null,
    })),
  }
  return answer.usage ? { ...completion, usage: answer.usage } : completion
}

function audioAnswerOf(
  { audio, content: pieces }: ChoiceAnswer,
  { created }: Answer,
): Parameters<typeof wholeAudio>[0] {
  return { id: audio?.id ?? '', format: audio?.format ?? 'wav', pieces, created }
}

function messageOf(choice: ChoiceAnswer, answer: Answer): ChatCompletion['choices'][number]['message'] {
  const calls = choice.calls.map(({ id, name, pieces }) => ({
    id,
    type: 'function' as const,
    function: { name, arguments: pieces.join('') },
  }))
  return {
    role: 'assistant',
    content: calls.length > 0 || choice.audio ? null : choice.content.join(''),
    refusal: null,
    ...(choice.audio ? { audio: wholeAudio(audioAnswerOf(choice, answer)) } : {}),
    ...(choice.reasoning.length > 0 ? { reasoning_content: choice.reasoning.join('') } : {}),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
    ...(choice.annotations.length > 0 ? { annotations: choice.annotations } : {}),
  }
}

/** The tokens of all choices together. */
export function outputOf(choices: ChoiceAnswer[]): { output: number; reasoning: number; output_audio: number } {
  let [output, reasoning, output_audio] = [0, 0, 0]
  for (const choice of choices) {
    const tokens = tokensOf(choice)
    output += tokens.output
    reasoning += tokens.reasoning
    output_audio += tokens.audio
  }
  return { output, reasoning, output_audio }
}
