/** Counts the usage of a call that only sends text (embeddings, rerank, moderations): reported by the provider, or estimated. */
import { createSample } from '../kit/sample.ts'
import type { Tokenizer } from '../kit/tokenizer.ts'
import type { TextUsage } from '../spec/usage.ts'
import type { Meter } from './call.ts'

/** A text, or its token numbers. */
type Input = string | readonly number[]

export type TextMeter = Meter<TextUsage> & {
  /** The provider's own counts; undefined where it reported none. */
  reported(prompt_tokens: number | undefined, searches?: number): void
}

type TextMeterParts = {
  inputs: readonly Input[]
  tokenizer: Tokenizer
  /** Of a rerank call, where the provider does not report them. */
  searches?: number
}

export function createTextMeter({ inputs, tokenizer, searches }: TextMeterParts): TextMeter {
  let searched = searches
  let usage: TextUsage | undefined

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
      searched = searches ?? searched
      if (prompt_tokens !== undefined) usage = usageOf(prompt_tokens)
    },
    async usage() {
      usage ??= await estimate()
      return usage
    },
    units: ({ prompt_tokens, estimated }) => ({
      input_tokens: prompt_tokens,
      output_tokens: 0,
      searches: searched,
      requests: 1,
      estimated,
    }),
  }
}

const usageOf = (tokens: number): TextUsage => ({ prompt_tokens: tokens, total_tokens: tokens })
