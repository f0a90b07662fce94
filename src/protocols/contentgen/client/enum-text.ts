/** Unwraps the value of a `text/x.enum` response, which providers return as the member of a JSON object. */
import { isRecord, parseJson } from '../../../kit/json.ts'
import type { ChatChunk, ChatCompletion } from '../../shared/canonical.ts'

/** The value; text that is no such object, as a model without structured output may return, is unchanged. */
function enumValueOf(text: string): string {
  const body = parseJson(text.trim())
  return isRecord(body) && typeof body.value === 'string' ? body.value : text
}

export const unwrapWhole = (answer: ChatCompletion): ChatCompletion => ({
  ...answer,
  choices: answer.choices.map((choice) => {
    const { content } = choice.message
    return content ? { ...choice, message: { ...choice.message, content: enumValueOf(content) } } : choice
  }),
})

/** Holds the text of each choice until it is complete: a value is short, and a part of it means nothing. */
export function createEnumStream() {
  const texts = new Map<number, string>()

  const release = (index: number): string | undefined => {
    const text = texts.get(index)
    texts.delete(index)
    return text === undefined ? undefined : enumValueOf(text)
  }

  return {
    take: (batch: ChatChunk[]): ChatChunk[] =>
      batch.map((chunk) => ({
        ...chunk,
        choices: chunk.choices.map((choice) => {
          const { content, ...delta } = choice.delta
          if (content) texts.set(choice.index, (texts.get(choice.index) ?? '') + content)
          const value = choice.finish_reason ? release(choice.index) : undefined
          return { ...choice, delta: value === undefined ? delta : { ...delta, content: value } }
        }),
      })),
    /** The values of choices that have no finish reason. */
    rest: () => [...texts.keys()].map((index) => ({ index, content: release(index) ?? '' })),
  }
}
