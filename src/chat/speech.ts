/** An answer on its way to the client, whichever lane it came by: what is told piece by piece, and how it ends. */
import type { ChatChunk } from '../spec/chat-completion.ts'
import type { Usage } from '../spec/usage.ts'
import type { AnswerHead, AnswerWriter } from './dialects/dialect.ts'
import type { Meter } from './meter.ts'

/** Who tells the client, and under which name. */
export type Teller = { head: AnswerHead; writer: AnswerWriter }

export type Speech = {
  /** Whole events, as text or encoded; never an empty piece. */
  batches: AsyncIterable<string | Uint8Array>
  tellsUsage: boolean
  end(usage: Usage | undefined): string
}

/** A whole answer: its body, as JSON text or as what is to become it. */
export type Whole = { write(usage: Usage): unknown }

/** What a vendor says in chunks, written by the client's dialect. Resolves with its first words, or its refusal. */
export const translated = (
  chunks: AsyncIterable<ChatChunk[]>,
  { write, tellsUsage, end }: AnswerWriter,
  meter: Meter,
): Promise<Speech> => begun({ batches: written(chunks, write, meter), tellsUsage, end })

async function* written(
  batches: AsyncIterable<ChatChunk[]>,
  write: AnswerWriter['write'],
  meter: Meter,
): AsyncGenerator<string> {
  for await (const batch of batches) {
    meter.count(batch)
    const text = write(batch)
    if (text !== '') yield text
  }
}

/** Waits for the first piece, so that a refusal still is one: nothing has been promised to the client yet. */
export async function begun(speech: Speech): Promise<Speech> {
  const iterator = speech.batches[Symbol.asyncIterator]()
  let first: IteratorResult<string | Uint8Array> | undefined = await iterator.next()
  return {
    ...speech,
    batches: {
      [Symbol.asyncIterator]: () => ({
        next() {
          if (!first) return iterator.next()
          const item = first
          first = undefined
          return Promise.resolve(item)
        },
        return: () => iterator.return?.() ?? Promise.resolve({ done: true, value: undefined }),
      }),
    },
  }
}
