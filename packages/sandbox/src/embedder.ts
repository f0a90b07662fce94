/**
 * Computes embeddings: of a short list at once, of a long one in a worker thread, since a long list takes seconds and the
 * main thread serves every request. Calls share the worker: each waits for one piece before it sends the next.
 */
import { Worker } from 'node:worker_threads'
import type { Clock } from '../../../src/kit/clock.ts'
import type { EmbeddingInput } from '../../../src/spec/embedding-request.ts'
import { embed } from './embed.ts'
import type { EmbedAnswer } from './embed-worker.ts'

/** Takes about ten milliseconds; characters or token ids. */
const MAX_DIRECT = 8_000
/** Of one piece in the worker: another call waits for it. */
const MAX_PIECE = 100_000
const IDLE_MILLISECONDS = 60_000

type Waiting = { resolve(embeddings: number[][]): void; reject(reason: unknown): void }

export function createEmbedder({ clock }: { clock: Clock }) {
  let worker: Worker | undefined
  let cancelIdle = () => {}
  let lastTicket = 0
  const waiting = new Map<number, Waiting>()

  function stop(reason: unknown): void {
    cancelIdle()
    void worker?.terminate()
    worker = undefined
    for (const { reject } of waiting.values()) reject(reason)
    waiting.clear()
  }

  function start(): Worker {
    const fresh = new Worker(new URL('./embed-worker.ts', import.meta.url))
    fresh.unref()
    fresh.on('message', ({ ticket, embeddings }: EmbedAnswer) => {
      waiting.get(ticket)?.resolve(embeddings)
      waiting.delete(ticket)
    })
    fresh.on('error', (cause) => {
      if (worker === fresh) stop(cause)
    })
    return fresh
  }

  function embedPiece(inputs: EmbeddingInput[], dimensions: number): Promise<number[][]> {
    cancelIdle()
    cancelIdle = clock.after(IDLE_MILLISECONDS, () => stop(new Error('the embedding worker was idle')))
    worker ??= start()
    const ticket = ++lastTicket
    const { promise, resolve, reject } = Promise.withResolvers<number[][]>()
    waiting.set(ticket, { resolve, reject })
    worker.postMessage({ ticket, inputs, dimensions })
    return promise
  }

  return {
    /** The vectors of these inputs. Rejects with the signal's reason once it is aborted. */
    async embed(inputs: EmbeddingInput[], dimensions: number, signal: AbortSignal): Promise<number[][]> {
      if (lengthOf(inputs) <= MAX_DIRECT) return inputs.map((input) => embed(input, dimensions))
      const embeddings: number[][] = []
      for (const piece of piecesOf(inputs)) {
        signal.throwIfAborted()
        embeddings.push(...(await embedPiece(piece, dimensions)))
      }
      signal.throwIfAborted()
      return embeddings
    },
    close: () => stop(new Error('the sandbox is closed')),
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
