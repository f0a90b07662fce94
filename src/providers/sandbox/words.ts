/** Words of a text, as far as the sandbox understands them: no grammar, only which ones carry the meaning. */

/** Words that say nothing about the subject, in English, with those that people put around a question. */
const FILLERS = new Set(
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

/** Runs of letters (marks with them) and digits, of any script. */
const WORD = /[\p{L}\p{M}\p{N}]+/gu

/** The words of a text as they are written, at most `limit`: a prompt may be megabytes long. */
export function wordsOf(text: string, limit = 4000): string[] {
  const words: string[] = []
  for (const found of text.matchAll(WORD)) {
    if (words.push(found[0]) >= limit) break
  }
  return words
}

export const isFiller = (word: string): boolean => word.length < 2 || FILLERS.has(word.toLowerCase())

/** Common endings off, so that `streams`, `streamed` and `streaming` meet; crude on purpose. */
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

/** The stems of the words that carry meaning, with repeats. */
export function termsOf(text: string, limit?: number): string[] {
  return wordsOf(text, limit)
    .filter((word) => !isFiller(word))
    .map(stem)
}

/** The words that a text is about, as written, each once, in order. */
export function topicsOf(text: string, limit: number): string[] {
  const topics = new Map<string, string>()
  for (const word of wordsOf(text)) {
    if (topics.size >= limit) break
    // A name of more than 24 letters would make the sentence unreadable; a bare number is no topic.
    if (isFiller(word) || word.length > 24 || /^\d+$/.test(word)) continue
    const key = stem(word)
    if (!topics.has(key)) topics.set(key, word)
  }
  return [...topics.values()]
}
