/** Counts the usage of a call that only sends text (embeddings, rerank, moderations): reported by the provider, or estimated. */
import { createSample } from '../kit/sample.ts'
import type { Tokenizer } from '../kit/tokenizer.ts'
import type { Estimate, TextUsage, Units } from '../spec/usage.ts'
import type { Meter } from './call.ts'

/** A text, or its token numbers. */
type Input = string | readonly number[]

export type TextMeter = Meter<TextUsage> & {
  /** The provider's own counts; undefined where it reported none. */
  reported(prompt_tokens: number | undefined, searches?: number): void
}

/** Before it is sent: no token is shorter than a byte, and each text may get two special ones. */
export function estimateTexts(inputs: readonly Input[], searches?: number): Estimate {
  let bytes = 0
  let tokens = 0
  for (const input of inputs) {
    if (typeof input === 'string') bytes += Buffer.byteLength(input)
    else tokens += input.length
  }
  const most = bytes + tokens + inputs.length * SPECIAL_TOKENS
  return {
    expected: textUnits(Math.ceil(bytes / BYTES_OF_A_TOKEN) + tokens, searches),
    most: textUnits(most, searches),
  }
}

const textUnits = (input_tokens: number, searches: number | undefined): Units => ({
  input_tokens,
  output_tokens: 0,
  searches,
  requests: 1,
})

const BYTES_OF_A_TOKEN = 4
const SPECIAL_TOKENS = 2

type TextMeterParts = {
  inputs: readonly Input[]
  tokenizer: Tokenizer
  /** Of a rerank call, where the provider does not report them. */
  searches?: number
}

export function createTextMeter({ inputs, tokenizer, searches }: TextMeterParts): TextMeter {
  let searched = searches
  let usage: TextUsage | undefined
  let isAnswered = false

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

  return {
    reported(prompt_tokens, searches) {
      isAnswered = true
      searched = searches ?? searched
      if (prompt_tokens !== undefined) usage = usageOf(prompt_tokens)
    },
    async usage() {
      usage ??= await estimate()
      return usage
    },
    hasCounted: () => isAnswered,
    units: ({ prompt_tokens, estimated }) => ({ ...textUnits(prompt_tokens, searched), estimated }),
  }
}

const usageOf = (tokens: number): TextUsage => ({ prompt_tokens: tokens, total_tokens: tokens })
