/** The sandbox as a vendor of rerankers: BM25 over the given documents, as a part of what a perfect one would score. */
import type { Clock } from '../../../src/kit/clock.ts'
import type { RerankProvider, SimulatedErrors } from '../../../src/providers/provider.ts'
import { fullness, isFiller, MOST_FULLNESS, rarityOf, stem, wordsOf } from './terms.ts'
import { obey, takeTextDirectives } from './text-directives.ts'
import { countTokens, splitTokens } from './tokens.ts'

/** A longer document is read by its beginning, as rerankers do. */
const MOST_TOKENS = 4_096
const MOST_QUERY_TERMS = 256
/** Cohere bills so many documents as one search. */
const UNIT_DOCUMENTS = 100

export function createSandboxRerank({ clock, errors }: { clock: Clock; errors: SimulatedErrors }): RerankProvider {
  return {
    async rerank({ model, query, documents, max_tokens_per_doc, top_n }, signal) {
      signal.throwIfAborted()
      const { rest, directives } = takeTextDirectives([query], 'query')
      await obey(directives, { model, clock, errors, signal })
      const [question = ''] = rest
      const most = Math.min(MOST_TOKENS, max_tokens_per_doc ?? MOST_TOKENS)
      const read = documents.map((text) => splitTokens(text, most))
      const scores = scoresOf(
        question,
        read.map((pieces) => pieces.join('')),
      )
      const results = scores
        .map((relevance_score, index) => ({ index, relevance_score }))
        .sort((one, other) => other.relevance_score - one.relevance_score || one.index - other.index)
        .slice(0, top_n)
      const told = directives.usage !== 'none'
      const prompt_tokens = countTokens(query) + read.reduce((sum, pieces) => sum + pieces.length, 0)
      return {
        results,
        search_units: Math.ceil(documents.length / UNIT_DOCUMENTS),
        ...(told ? { prompt_tokens } : {}),
      }
    },
  }
}

/** One score a text, from 0 (none of the words) towards 1. */
export function scoresOf(query: string, texts: string[]): number[] {
  const words = wordsOf(query, MOST_QUERY_TERMS)
  const telling = words.filter((word) => !isFiller(word))
  const terms = [...new Set((telling.length > 0 ? telling : words).map(stem))]
  const weights = texts.map(weightsOf)
  const lengths = weights.map((held) => [...held.values()].reduce((sum, weight) => sum + weight, 0))
  const average = Math.max(1, lengths.reduce((sum, length) => sum + length, 0) / Math.max(1, lengths.length))
  const rarity = new Map(
    terms.map((term) => [term, rarityOf(texts.length, weights.filter((held) => held.has(term)).length)]),
  )
  const best = MOST_FULLNESS * [...rarity.values()].reduce((sum, value) => sum + value, 0)
  return weights.map((held, at) => {
    const length = lengths[at] ?? 0
    const score = terms.reduce((sum, term) => {
      const weight = held.get(term)
      return weight === undefined ? sum : sum + (rarity.get(term) ?? 0) * fullness(weight, { length, average })
    }, 0)
    return best === 0 ? 0 : score / best
  })
}

/** How often each stem stands in a text. */
function weightsOf(text: string): Map<string, number> {
  const weights = new Map<string, number>()
  for (const word of wordsOf(text, MOST_TOKENS)) {
    const root = stem(word)
    weights.set(root, (weights.get(root) ?? 0) + 1)
  }
  return weights
}
