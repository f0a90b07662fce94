/** The terms of a text (no grammar, only which words are about its subject), and how much each weighs in a search (Okapi BM25). */

/** English words that do not identify a subject, with those that people use in any question. */
const STOP_WORDS = new Set(
  `a about above after again all also am an and any are as at be because been before being below between both but by can
  could did do does doing down during each either else ever every few for from further give given had has have having he
  hello her here hers hi him his how i if in into is it its itself just know let like may me might more most must my
  need no nor not now of off ok on once one only or other our out over own please same say shall she should show so some
  such tell than thank thanks that the their them then there these they thing things this those through to too under
  until up upon us using use very want was we were what when where which while who whom whose why will with within
  without would yes yet you your explain describe help write behave behaves happen happens mean means work works gatehouse`
    .split(/\s+/)
    .filter(Boolean),
)

/** Runs of letters (with their marks) and digits, of any script; a longer run is no word, but may fill megabytes. */
const WORD = /[\p{L}\p{M}\p{N}]{1,256}/gu
/** How many characters of a prompt are searched for terms: more than the terms of any language take. */
const MIN_SEARCHED = 10_000
const SEARCHED_PER_WORD = 64

/** The words of a text, unchanged, at most `limit`: a prompt may be megabytes long. */
export function splitWords(text: string, limit = 4000): string[] {
  const words: string[] = []
  const searched = text.slice(0, MIN_SEARCHED + limit * SEARCHED_PER_WORD)
  for (const found of searched.matchAll(WORD)) {
    if (words.push(found[0]) >= limit) break
  }
  return words
}

export const isStopWord = (word: string): boolean => word.length < 2 || STOP_WORDS.has(word.toLowerCase())

/** Removes common endings, so that `streams`, `streamed` and `streaming` become one term; deliberately simple. */
export function stem(word: string): string {
  const text = word.toLowerCase()
  for (const ending of ['ings', 'ing', 'ied', 'ies', 'ed', 'es', 's', 'e']) {
    if (text.length - ending.length >= 3 && text.endsWith(ending) && !(ending === 's' && text.endsWith('ss'))) {
      const cut = text.slice(0, -ending.length)
      return ending.startsWith('ie') ? `${cut}y` : cut
    }
  }
  return text
}

/** The stems of the words that are no stop words, with repetitions. */
export function termsOf(text: string, limit?: number): string[] {
  return splitWords(text, limit)
    .filter((word) => !isStopWord(word))
    .map(stem)
}

/** The words that a text is about, unchanged, each once, in order. */
export function topicsOf(text: string, limit: number): string[] {
  const topics = new Map<string, string>()
  for (const word of splitWords(text)) {
    if (topics.size >= limit) break
    // A name of more than 24 letters would make the sentence unreadable; a bare number is no topic.
    if (isStopWord(word) || word.length > 24 || /^\d+$/.test(word)) continue
    const key = stem(word)
    if (!topics.has(key)) topics.set(key, word)
  }
  return [...topics.values()]
}

/** The usual constants of Okapi BM25: how fast repeated words stop counting, and how much the length of a text lowers its score. */
const K1 = 1.2
const B = 0.75

/** The weight of a term that `holding` of the texts have; a term that no text has weighs most. */
export const inverseDocumentFrequency = (texts: number, holding: number): number =>
  Math.log(1 + (texts - holding + 0.5) / (holding + 0.5))

/** The factor of a term by its frequency in a text of this length, from 0 to K1 + 1. */
export const saturation = (weight: number, { length, average }: { length: number; average: number }): number =>
  (weight * (K1 + 1)) / (weight + K1 * (1 - B + (B * length) / average))

/** The limit of `saturation`, however often a term is repeated. */
export const MAX_SATURATION = K1 + 1
