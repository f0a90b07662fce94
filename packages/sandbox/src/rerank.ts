/** The sandbox as a rerank provider: the BM25 score of each document, as a fraction of the best possible score. */
import type { RerankProvider } from '../../../src/providers/provider.ts'
import { inverseDocumentFrequency, isStopWord, MAX_SATURATION, saturation, splitWords, stem } from './terms.ts'
import { applyDirectives, type SimulationParts } from './text-directives.ts'
import { countTokens, splitTokens } from './tokens.ts'

/** Of a longer document, only the beginning counts, as with real rerankers. */
const MAX_DOCUMENT_TOKENS = 4_096
const MAX_QUERY_TERMS = 256
/** After so much text the event loop serves other requests: the work is done in the thread that serves them all. */
const CHARACTERS_PER_TURN = 50_000
/** Cohere bills so many documents as one search unit. */
const UNIT_DOCUMENTS = 100

/** The frequency of each stem in a text. */
type Weights = Map<string, number>

export function createSandboxRerank(parts: SimulationParts): RerankProvider {
  return {
    async rerank({ model, query, documents, max_tokens_per_doc, top_n }, signal) {
      const { rest, hasUsage } = await applyDirectives({ texts: [query], param: 'query', model, signal }, parts)
      const [question = ''] = rest
      const maxTokens = Math.min(MAX_DOCUMENT_TOKENS, max_tokens_per_doc ?? MAX_DOCUMENT_TOKENS)
      const weights: Weights[] = []
      let tokens = 0
      let since = 0
      for (const text of documents) {
        const pieces = splitTokens(text, maxTokens)
        tokens += pieces.length
        const truncated = pieces.join('')
        weights.push(weightsOf(truncated))
        since += truncated.length
        if (since < CHARACTERS_PER_TURN) continue
        since = 0
        await new Promise((resolve) => setImmediate(resolve))
        signal.throwIfAborted()
      }
      const scores = scoresFrom(question, weights)
      const results = scores
        .map((relevance_score, index) => ({ index, relevance_score }))
        .sort((one, other) => other.relevance_score - one.relevance_score || one.index - other.index)
        .slice(0, top_n)
      const search_units = Math.ceil(documents.length / UNIT_DOCUMENTS)
      return { results, search_units, ...(hasUsage ? { prompt_tokens: countTokens(query) + tokens } : {}) }
    },
  }
}

/** One score for each text, from 0 (no term of the query) towards 1. */
export const scoresOf = (query: string, texts: string[]): number[] => scoresFrom(query, texts.map(weightsOf))

function scoresFrom(query: string, weights: Weights[]): number[] {
  const words = splitWords(query, MAX_QUERY_TERMS)
  const significant = words.filter((word) => !isStopWord(word))
  const terms = [...new Set((significant.length > 0 ? significant : words).map(stem))]
  const lengths = weights.map((frequencies) => [...frequencies.values()].reduce((sum, weight) => sum + weight, 0))
  const average = Math.max(1, lengths.reduce((sum, length) => sum + length, 0) / Math.max(1, lengths.length))
  const idf = new Map(
    terms.map((term) => [
      term,
      inverseDocumentFrequency(weights.length, weights.filter((frequencies) => frequencies.has(term)).length),
    ]),
  )
  const best = MAX_SATURATION * [...idf.values()].reduce((sum, value) => sum + value, 0)
  return weights.map((frequencies, at) => {
    const length = lengths[at] ?? 0
    const score = terms.reduce((sum, term) => {
      const weight = frequencies.get(term)
      return weight === undefined ? sum : sum + (idf.get(term) ?? 0) * saturation(weight, { length, average })
    }, 0)
    return best === 0 ? 0 : score / best
  })
}

function weightsOf(text: string): Weights {
  const weights: Weights = new Map<string, number>()
  for (const word of splitWords(text, MAX_DOCUMENT_TOKENS)) {
    const root = stem(word)
    weights.set(root, (weights.get(root) ?? 0) + 1)
  }
  return weights
}
