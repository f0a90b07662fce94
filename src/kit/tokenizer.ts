/**
 * Counts tokens of text, for estimates. The o200k table takes 0.1 s and some 20 MB, so it is loaded in a worker that
 * starts at the first request and ends when idle: a gateway whose upstreams report usage never loads it.
 */
import { Worker } from 'node:worker_threads'
import type { Clock } from './clock.ts'

export type Tokenizer = {
  /** The token count of each text. Never rejects: without a worker the result is characters / 4. */
  count(texts: string[]): Promise<number[]>
  close(): void
}

type Answer = { ticket: number; counts: number[] }

const IDLE_MILLISECONDS = 10 * 60_000

export function createTokenizer({ clock }: { clock: Clock }): Tokenizer {
  let worker: Worker | undefined
  let cancelIdle = () => {}
  let lastTicket = 0
  const waiting = new Map<number, { texts: string[]; resolve: (counts: number[]) => void }>()

  function stop(): void {
    cancelIdle()
    void worker?.terminate()
    worker = undefined
    for (const { texts, resolve } of waiting.values()) resolve(texts.map(roughCount))
    waiting.clear()
  }

  function start(): Worker {
    const fresh = new Worker(new URL('./tokenizer-worker.ts', import.meta.url))
    fresh.unref()
    fresh.on('message', ({ ticket, counts }: Answer) => {
      waiting.get(ticket)?.resolve(counts)
      waiting.delete(ticket)
    })
    fresh.on('error', () => {
      if (worker === fresh) stop()
    })
    return fresh
  }

  return {
    count(texts) {
      cancelIdle()
      cancelIdle = clock.after(IDLE_MILLISECONDS, stop)
      worker ??= start()
      const ticket = ++lastTicket
      return new Promise<number[]>((resolve) => {
        waiting.set(ticket, { texts, resolve })
        worker?.postMessage({ ticket, texts })
      })
    },
    close: stop,
  }
}

const roughCount = (text: string) => Math.ceil(text.length / 4)
