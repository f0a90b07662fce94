/**
 * Computes the sandbox's embeddings by feature hashing: words, pairs of words and letter n-grams of a text are hashed to a
 * few positions of the vector, each with a sign. Texts with common features have similar vectors; other features cancel out.
 */
import type { EmbeddingInput } from '../../../src/spec/embedding-request.ts'
import { isStopWord, splitWords, stem } from './terms.ts'
import { splitTokens } from './tokens.ts'

/** Of a longer text, only the beginning counts; the limits of the model reject much longer ones. */
const MAX_WORDS = 8_192
/** The weight of a feature. Stop words mean little; n-grams catch what words miss: other endings, compounds, typing errors. */
const WEIGHTS = { word: 1, stop_word: 0.1, pair: 0.5, letters: 0.8 }
/** The lengths of the letter n-grams. */
const NGRAM_LENGTHS = [3, 4]
/** The positions of each feature: with one position, two features with the same hash would be indistinguishable. */
const BUCKETS = 3

export const embed = (input: EmbeddingInput, dimensions: number): number[] =>
  typeof input === 'string' ? embedText(input, dimensions) : embedTokens(input, dimensions)

/** A unit vector. A text without any feature gets a vector of its own. */
export function embedText(text: string, dimensions: number): number[] {
  const features = featuresOf(text)
  if (features.size === 0) features.set(`text ${text}`, 1)
  return vectorOf(features, dimensions)
}

/** Token ids of an unknown vocabulary: the same ids, with the same neighbours, are similar. */
export function embedTokens(tokens: readonly number[], dimensions: number): number[] {
  const features = new Map<string, number>()
  for (const [at, token] of tokens.slice(0, MAX_WORDS).entries()) {
    add(features, `token ${token}`, WEIGHTS.word)
    if (at > 0) add(features, `tokens ${tokens[at - 1]} ${token}`, WEIGHTS.pair)
  }
  return vectorOf(features, dimensions)
}

function featuresOf(text: string): Map<string, number> {
  const features = new Map<string, number>()
  const words = splitWords(text, MAX_WORDS)
  // In a text of stop words only, they count like other words.
  const hasOtherWords = words.some((word) => !isStopWord(word))
  let before: string | undefined
  for (const word of words) {
    const root = stem(word)
    if (hasOtherWords && isStopWord(word)) {
      add(features, `word ${root}`, WEIGHTS.stop_word)
      continue
    }
    add(features, `word ${root}`, WEIGHTS.word)
    if (before !== undefined) add(features, `pair ${before} ${root}`, WEIGHTS.pair)
    before = root
    // A short word has fewer n-grams than a long one; the square root keeps their total weights comparable.
    const ngrams = ngramsOf(`<${word.toLowerCase()}>`)
    for (const ngram of ngrams) add(features, `letters ${ngram}`, WEIGHTS.letters / Math.sqrt(ngrams.length))
  }
  // A text may consist of symbols only (":-)", "=>").
  if (words.length === 0) for (const piece of splitTokens(text, MAX_WORDS)) add(features, `sign ${piece}`, WEIGHTS.word)
  return features
}

function ngramsOf(word: string): string[] {
  const letters = [...word]
  return NGRAM_LENGTHS.flatMap((length) =>
    Array.from({ length: Math.max(0, letters.length - length + 1) }, (_, at) =>
      letters.slice(at, at + length).join(''),
    ),
  )
}

const add = (features: Map<string, number>, name: string, weight: number) =>
  void features.set(name, (features.get(name) ?? 0) + weight)

function vectorOf(features: Map<string, number>, dimensions: number): number[] {
  const vector = new Float64Array(dimensions)
  for (const [name, weight] of features) {
    // Each repetition counts less than the one before.
    const value = Math.sign(weight) * Math.log1p(weight)
    let hash = hashOf(name)
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      const at = (hash >>> 1) % dimensions
      vector[at] = (vector[at] ?? 0) + ((hash & 1) === 0 ? value : -value)
      hash = mixed(hash + 0x9e3779b9) // the golden ratio, as customary for a next hash
    }
  }
  const length = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0))
  // In a vector of few dimensions all features can cancel each other out.
  if (length === 0) return Array.from(vector, (_, at) => (at === 0 ? 1 : 0))
  return Array.from(vector, (value) => value / length)
}

/** FNV-1a over UTF-16, then mixed, since its low bits are poor. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return mixed(hash)
}

/** The finishing steps of MurmurHash3: every bit depends on every other. */
function mixed(value: number): number {
  let hash = value | 0
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
