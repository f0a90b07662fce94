/**
 * Counts tokens of text, for estimates. The o200k table takes 0.1 s and some 20 MB, so it is loaded in a worker that
 * starts at the first request and ends when idle: a gateway whose upstreams report usage never loads it.
 */
import { Worker } from 'node:worker_threads'
import type { Clock } from './clock.ts'
import { createIdleWorker } from './idle-worker.ts'

export type Tokenizer = ReturnType<typeof createTokenizer>

const IDLE_MILLISECONDS = 10 * 60_000

export function createTokenizer({ clock }: { clock: Clock }) {
  const worker = createIdleWorker<string[], number[]>({
    start: () => new Worker(new URL('./tokenizer-worker.ts', import.meta.url)),
    idleMilliseconds: IDLE_MILLISECONDS,
    clock,
  })
  return {
    /** The token count of each text. Never rejects: without a worker the result is characters / 4. */
    count: (texts: string[]): Promise<number[]> => worker.ask(texts).catch(() => texts.map(roughCount)),
    close: (): void => worker.stop('the tokenizer is closed'),
  }
}

const roughCount = (text: string) => Math.ceil(text.length / 4)
