/** Estimates what a batch would use and cost: the first lines each as a call, the others by their length. */
import { linesOf } from '../kit/json-lines.ts'
import type { BatchExchange } from '../protocols/shared/batch-exchange.ts'
import type { BatchEstimate } from '../spec/batch.ts'
import { type CheckParts, createLineCheck, MOST_LINE_BYTES } from './batch-lines.ts'

const PRICED_LINES = 1_000
const NANO = 1e9

type Estimating = CheckParts & {
  endpoint: string
  /** Undefined: its route refuses the line, which then costs nothing. */
  priceOf(line: { line: number; text: string }): Promise<BatchExchange['estimated']>
  currency: string
  signal: AbortSignal
}

export async function estimateBatch(
  input: ReadableStream<Uint8Array>,
  { endpoint, priceOf, currency, signal, ...parts }: Estimating,
): Promise<BatchEstimate> {
  const lines = createLineCheck({ ...parts, endpoint })
  const sums = { input_tokens: 0, output_tokens: 0, lowest: 0, highest: 0 }
  let [total, valid, valid_bytes, priced, priced_bytes] = [0, 0, 0, 0, 0]
  let isKnown = true
  for await (const piece of linesOf(input, { max_line_bytes: MOST_LINE_BYTES }))
    for (const raw of piece) {
      signal.throwIfAborted()
      total++
      if (lines.check(raw) === undefined) continue
      valid++
      valid_bytes += raw.length
      if (priced === PRICED_LINES) continue
      priced++
      priced_bytes += raw.length
      const estimated = await priceOf({ line: raw.line, text: new TextDecoder().decode(raw.bytes) })
      const { input_tokens = 0, output_tokens = 0, lowest = 0, highest = 0 } = estimated ?? {}
      sums.input_tokens += input_tokens
      sums.output_tokens += output_tokens
      isKnown &&= lowest !== null && highest !== null
      sums.lowest += lowest ?? 0
      sums.highest += highest ?? 0
    }
  const { problems } = lines.found()
  const scale = priced_bytes === 0 ? 0 : valid_bytes / priced_bytes
  const amount = (nano: number) => (isKnown ? Math.round(nano * scale) / NANO : null)
  return {
    object: 'batch.estimate',
    endpoint,
    request_counts: { total, invalid: total - valid },
    errors: problems.length > 0 ? { object: 'list', data: problems } : null,
    usage: {
      input_tokens: Math.round(sums.input_tokens * scale),
      most_output_tokens: Math.round(sums.output_tokens * scale),
    },
    cost: { lowest: amount(sums.lowest), highest: amount(sums.highest), currency },
  }
}
