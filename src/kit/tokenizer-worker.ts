/** The tokenizer's worker thread: receives texts, returns counts. */
import { parentPort } from 'node:worker_threads'
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'
import { inShortRuns } from './short-runs.ts'

type Question = { ticket: number; texts: string[] }

// Text that looks like a special token is encoded as plain text.
const options = { disallowedSpecial: new Set<string>() }

parentPort?.on('message', ({ ticket, texts }: Question) => {
  const counts = texts.map((text) => inShortRuns(text).reduce((sum, part) => sum + countTokens(part, options), 0))
  parentPort?.postMessage({ ticket, counts })
})
