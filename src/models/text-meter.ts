/** Counts what a request used that only puts text in (embeddings, rerank): as the vendor says, or estimated and marked so. */
import type { AccessNote } from '../http/context.ts'
import { createSample } from '../kit/sample.ts'
import type { Tokenizer } from '../kit/tokenizer.ts'
import type { GatewayError } from '../spec/error.ts'
import type { TextUsage } from '../spec/usage.ts'

/** Where counts go: the ledger of the caller's use. */
export type RecordTextUse = (use: {
  input_tokens: number
  output_tokens: number
  error: boolean
  estimated: boolean
}) => void

/** A text, or the numbers of its tokens. */
type Input = string | readonly number[]

export type TextMeter = {
  /** Records an answer; `told` is the vendor's own count. The usage as the client should see it. */
  answered(told: number | undefined): Promise<TextUsage>
  /** Records a request that came to nothing. What the vendor may have worked for is counted as an estimate. */
  failed(thrown: unknown, signal: AbortSignal): Promise<void>
}

type MeterParts = { inputs: readonly Input[]; tokenizer: Tokenizer; note: AccessNote; record: RecordTextUse }

/** Codes after which the upstream may have worked, and charged, although its answer never arrived in full. */
const HALF_DONE = new Set(['upstream_cut', 'upstream_timeout', 'shutting_down', 'client_closed_request'])

export function createTextMeter({ inputs, tokenizer, note, record }: MeterParts): TextMeter {
  async function estimate(): Promise<TextUsage> {
    const sample = createSample()
    let numbers = 0
    for (const input of inputs) {
      if (typeof input === 'string') sample.add(`${input}\n`)
      else numbers += input.length
    }
    const isText = inputs.some((input) => typeof input === 'string')
    const tokens = numbers + (isText ? await sample.tokens(tokenizer) : 0)
    // Token numbers are counted, not estimated.
    return { ...usageOf(tokens), ...(isText ? { estimated: true as const } : {}) }
  }

  function settle({ prompt_tokens, estimated }: TextUsage, error: boolean): void {
    note.input_tokens = prompt_tokens
    note.output_tokens = 0
    if (estimated) note.estimated = true
    record({ input_tokens: prompt_tokens, output_tokens: 0, error, estimated: estimated ?? false })
  }

  return {
    async answered(told) {
      const usage = told === undefined ? await estimate() : usageOf(told)
      settle(usage, false)
      return usage
    },
    async failed(thrown, signal) {
      const code = (thrown as Partial<GatewayError>).code ?? ''
      const mayHaveWorked = signal.aborted || HALF_DONE.has(code)
      settle(mayHaveWorked ? await estimate() : usageOf(0), !signal.aborted)
    },
  }
}

const usageOf = (tokens: number): TextUsage => ({ prompt_tokens: tokens, total_tokens: tokens })
