/**
 * Computes embeddings: of a short list at once, of a long one in a worker thread, since a long list takes seconds and the
 * main thread serves every request. Calls share the worker: each waits for one piece before it sends the next.
 */
import { Worker } from 'node:worker_threads'
import type { Clock } from '../../../src/kit/clock.ts'
import { createIdleWorker } from '../../../src/kit/idle-worker.ts'
import type { EmbeddingInput } from '../../../src/spec/embedding-request.ts'
import { embed } from './embed.ts'
import type { EmbedQuestion } from './embed-worker.ts'

/** Takes about ten milliseconds; characters or token ids. */
const MAX_DIRECT = 8_000
/** Of one piece in the worker: another call waits for it. */
const MAX_PIECE = 100_000
const IDLE_MILLISECONDS = 60_000

export function createEmbedder({ clock }: { clock: Clock }) {
  const worker = createIdleWorker<EmbedQuestion, number[][]>({
    start: () => new Worker(new URL('./embed-worker.ts', import.meta.url)),
    idleMilliseconds: IDLE_MILLISECONDS,
    clock,
  })
  return {
    /** The vectors of these inputs. Rejects with the signal's reason once it is aborted. */
    async embed(inputs: EmbeddingInput[], dimensions: number, signal: AbortSignal): Promise<number[][]> {
      if (lengthOf(inputs) <= MAX_DIRECT) return inputs.map((input) => embed(input, dimensions))
      const embeddings: number[][] = []
      for (const piece of piecesOf(inputs)) {
        signal.throwIfAborted()
        embeddings.push(...(await worker.ask({ inputs: piece, dimensions })))
      }
      signal.throwIfAborted()
      return embeddings
    },
    close: () => worker.stop(new Error('the sandbox is closed')),
  }
}

const lengthOf = (inputs: EmbeddingInput[]): number => inputs.reduce((sum, { length }) => sum + length, 0)

function* piecesOf(inputs: EmbeddingInput[]): Generator<EmbeddingInput[]> {
  let piece: EmbeddingInput[] = []
  let length = 0
  for (const input of inputs) {
    if (piece.length > 0 && length + input.length > MAX_PIECE) {
      yield piece
      piece = []
      length = 0
    }
    piece.push(input)
    length += input.length
  }
  if (piece.length > 0) yield piece
}
