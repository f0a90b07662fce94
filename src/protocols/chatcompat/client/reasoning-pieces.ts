/** Collects the pieces of streamed reasoning, and sends them once, complete, with the finish reason. */
import type { ChunkChoice, Reasoning } from '../../shared/canonical.ts'
import { isOfProvider } from './openrouter.ts'

type Collected = { text: string; pieces: Reasoning[] }

/**
 * Clients disagree on a member that comes in several deltas: some append lists, while the accumulator of the openai
 * package keeps the last value alone and so loses all signatures but one. A list that is sent once suits both.
 */
export function createReasoningPieces() {
  const collected = new Map<number, Collected>()

  function collect(state: Collected, { reasoning_content, reasoning_details = [] }: ChunkChoice['delta']): void {
    // A whole piece of reasoning repeats its text as plain text.
    const isRepeated = state.text === '' && reasoning_details.some((piece) => piece.text !== undefined)
    if (!isRepeated) state.text += reasoning_content ?? ''
    for (const piece of reasoning_details) {
      state.pieces.push(state.text === '' ? piece : { text: state.text, ...piece })
      state.text = ''
    }
  }

  return {
    /** Changes the delta of the choice. */
    take({ index, delta, finish_reason }: ChunkChoice): void {
      // Pieces in a provider's own format are parts of pieces and pass as they are.
      if (delta.reasoning_details?.some(isOfProvider)) return
      let state = collected.get(index)
      if (delta.reasoning_content || delta.reasoning_details) {
        state ??= { text: '', pieces: [] }
        collected.set(index, state)
        collect(state, delta)
        delete delta.reasoning_details
      }
      if (!finish_reason || !state?.pieces.length) return
      delta.reasoning_details = state.pieces
      collected.delete(index)
    },
  }
}
