/** Encodes a chat response for the client, whole or as a stream. */

import type { ResponseStream } from '../pipeline/family.ts'
import type { ChatChunk } from '../protocols/canonical.ts'
import type { ResponseEncoder, ResponseHead } from '../protocols/protocol.ts'
import type { Usage } from '../spec/usage.ts'
import type { ChatMeter } from './meter.ts'

/** What the encoding of a response needs: its identity, and the client's encoder. */
export type ResponseContext = { head: ResponseHead; writer: ResponseEncoder }

/** A whole response: its body as JSON text, or as a value to be serialized. */
export type Whole = { encode(usage: Usage): unknown }

/** Chunks of a provider, encoded for the client. Resolves when the first part has arrived, or rejects with the provider's error. */
export const translated = (
  chunks: AsyncIterable<ChatChunk[]>,
  writer: ResponseEncoder,
  meter: ChatMeter,
): Promise<ResponseStream<Usage>> => awaitFirstPart(encode(chunks, writer.encode, meter), writer)

async function* encode(
  batches: AsyncIterable<ChatChunk[]>,
  write: ResponseEncoder['encode'],
  meter: ChatMeter,
): AsyncGenerator<string> {
  for await (const batch of batches) {
    meter.count(batch)
    const text = write(batch)
    if (text !== '') yield text
  }
}

type End = Pick<ResponseEncoder, 'includesUsage' | 'end' | 'fail' | 'store'>

/** Waits for the first part, so that an error can still set the status: nothing was sent to the client yet. */
export async function awaitFirstPart(
  parts: AsyncGenerator<string | Uint8Array>,
  { includesUsage, end, fail, store }: End,
): Promise<ResponseStream<Usage>> {
  let first: IteratorResult<string | Uint8Array> | undefined = await parts.next()
  return {
    includesUsage: includesUsage,
    end,
    fail,
    ...(store ? { store } : {}),
    parts: {
      [Symbol.asyncIterator]: () => ({
        next() {
          if (!first) return parts.next()
          const item = first
          first = undefined
          return Promise.resolve(item)
        },
        return: () => parts.return(undefined),
      }),
    },
  }
}
