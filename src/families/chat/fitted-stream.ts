/**
 * The chunks of a streamed answer that must fit a schema: the text of a choice is held back until it ends, is repaired where
 * it does not fit, and a block ends the answer as a content filter does. A choice that calls tools passes.
 */
import { type CallGuards, MAX_FITTED_CHARACTERS } from '../../calls/guards/call-guards.ts'
import type { Answered } from '../../calls/guards/guard.ts'
import type { ChatChunk, ChunkChoice, Delta } from '../../protocols/shared/canonical.ts'
import { type Batch, CheckedChunks, chunkOf, OVER, openOf } from './guarded-stream.ts'

/** `held`: its text so far; undefined: it is not checked any more. */
type State = { held: string | undefined; isFinished: boolean }

export class FittedChunks extends CheckedChunks {
  readonly #answered: Answered
  readonly #choices = new Map<number, State>()
  #last: ChatChunk | undefined

  constructor(source: AsyncIterable<ChatChunk[]>, guards: CallGuards, answered: Answered) {
    super(source, guards)
    this.#answered = answered
  }

  async next(): Promise<Batch> {
    while (!this.isOver) {
      const { done, value } = await this.source.next()
      const out: ChatChunk[] = []
      try {
        if (done) await this.#end(out)
        else for (const chunk of value) await this.#take(chunk, out)
      } catch (thrown) {
        out.push(...(await this.refused(thrown, this.#last, openOf(this.#choices))))
      }
      if (out.length > 0) return { done: false, value: out }
    }
    return OVER
  }

  async #take(chunk: ChatChunk, out: ChatChunk[]): Promise<void> {
    this.#last = chunk
    const choices: ChunkChoice[] = []
    for (const choice of chunk.choices) {
      const known = this.#choices.get(choice.index)
      const state = known ?? { held: '', isFinished: false }
      if (!known) this.#choices.set(choice.index, state)
      const delta = await this.#fitted(choice, state)
      // The first one begins the response, whatever is left of it.
      if (!known || choice.finish_reason || Object.keys(delta).length > 0) choices.push({ ...choice, delta })
    }
    if (choices.length > 0 || chunk.choices.length === 0 || chunk.usage) out.push({ ...chunk, choices })
  }

  async #fitted({ delta, finish_reason }: ChunkChoice, state: State): Promise<Delta> {
    if (finish_reason) state.isFinished = true
    if (state.held === undefined) return delta
    const { content, ...rest } = delta
    const held = state.held + (content ?? '')
    const hasTool = (delta.tool_calls?.length ?? 0) > 0
    const isWhole = !hasTool && (state.isFinished || held.length > MAX_FITTED_CHARACTERS)
    state.held = hasTool || isWhole ? undefined : held
    const { holdsAnswer } = this.guards
    try {
      const text = isWhole ? await this.guards.fitted(held, this.#answered) : hasTool ? held : ''
      if (!holdsAnswer) return delta
      return text === '' ? rest : { ...rest, content: text }
    } catch (thrown) {
      state.isFinished = false
      throw thrown
    }
  }

  /** Where the provider has sent no finish reason. */
  async #end(out: ChatChunk[]): Promise<void> {
    this.isOver = true
    for (const [index, state] of this.#choices) {
      if (state.held === undefined) continue
      const content = await this.guards.fitted(state.held, this.#answered)
      if (this.guards.holdsAnswer && this.#last) out.push(chunkOf(this.#last, index, { content }))
    }
  }
}
