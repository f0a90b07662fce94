/** Why the vendor stopped, in the specification's four words. */
import type { FinishReason } from '../../../spec/chat-completion.ts'

const FINISH_WORDS: Record<string, FinishReason> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  // The vendor's own tools took too long: there is more to say, and asking again says it.
  pause_turn: 'length',
  tool_use: 'tool_calls',
  refusal: 'content_filter',
}

/** null where it says that there is no end yet. A word that nobody knows is an end like any other. */
export function finishOf(word: unknown, hasCalls: boolean): FinishReason | null {
  if (typeof word !== 'string' || word === '') return null
  const reason = FINISH_WORDS[word] ?? 'stop'
  return hasCalls && reason === 'stop' && word !== 'stop_sequence' ? 'tool_calls' : reason
}
