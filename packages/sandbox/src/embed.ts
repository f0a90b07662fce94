/**
 * The sandbox's embeddings: features of a text (words, pairs of words, runs of letters), each hashed to a few places of the
 * vector with a sign of its own. Texts that share features point the same way; what they do not share cancels out.
 */

import { isStopWord, splitWords, stem } from './terms.ts'
import { splitTokens } from './tokens.ts'

/** A longer text is embedded by its beginning; the sandbox's catalogue refuses what is much longer. */
const MAX_WORDS = 8_192
/** What a feature counts. Fillers say little, letters save what words miss: other endings, compounds, slips. */
const WEIGHTS = { word: 1, stop_word: 0.1, pair: 0.5, letters: 0.8 }
/** Runs of so many letters. */
const LETTERS = [3, 4]
/** Each feature goes to so many places: with one, two features that fall together would be taken for the same. */
const BUCKETS = 3

/** Of unit length. An empty text, or one without a word or sign, points to a place of its own. */
export function embedText(text: string, dimensions: number): number[] {
  const features = featuresOf(text)
  if (features.size === 0) features.set(`text ${text}`, 1)
  return vectorOf(features, dimensions)
}

/** Token numbers that no vocabulary tells: the same numbers, in the same neighbourhoods, are alike. */
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
  // Of a text that has nothing else, the small words are what it says.
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
    // The shorter the word, the fewer its runs: each word weighs the same by its letters.
    const runs = runsOf(`<${word.toLowerCase()}>`)
    for (const run of runs) add(features, `letters ${run}`, WEIGHTS.letters / Math.sqrt(runs.length))
  }
  // Signs alone (":-)", "=>") are a text too.
  if (words.length === 0) for (const piece of splitTokens(text, MAX_WORDS)) add(features, `sign ${piece}`, WEIGHTS.word)
  return features
}

function runsOf(word: string): string[] {
  const letters = [...word]
  return LETTERS.flatMap((length) =>
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
    // Repeats count less and less.
    const value = Math.sign(weight) * Math.log1p(weight)
    let hash = hashOf(name)
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      const at = (hash >>> 1) % dimensions
      vector[at] = (vector[at] ?? 0) + ((hash & 1) === 0 ? value : -value)
      hash = mixed(hash + 0x9e3779b9) // the golden ratio, as customary for a next hash
    }
  }
  const length = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0))
  // Features can cancel each other out in a vector of few dimensions.
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
