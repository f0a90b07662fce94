/** Replaces prose by filler: English words of the same lengths. Punctuation, line breaks and tags stay where they are. */

/** Words of our own, by length. None holds the name of a tool of an agent, which a scripted model would take as a wish. */
export const WORDS: readonly (readonly string[])[] = [
  ['a'],
  ['of', 'to', 'in', 'by'],
  ['the', 'and', 'one', 'day', 'sea'],
  ['rain', 'moon', 'hill', 'lake', 'road'],
  ['river', 'cloud', 'stone', 'ocean', 'green'],
  ['forest', 'summer', 'yellow', 'garden', 'valley'],
  ['morning', 'weather', 'evening', 'harvest'],
  ['mountain', 'daylight', 'calendar', 'sunshine'],
  ['landscape', 'moonlight', 'chocolate', 'waterfall'],
  ['vegetables', 'atmosphere', 'lighthouse'],
  ['temperature', 'countryside', 'hummingbird'],
  ['thunderstorm', 'neighborhood', 'mountainside'],
]
const LONGEST = WORDS.length
const KNOWN = new Set(WORDS.flat())

/** What stays in prose besides our own phrases: a tag, and the line by which one agent is billed. */
const NAMES = /<\/?[a-z][a-z0-9_-]*(?: instructions)?>|x-anthropic-billing-header: [a-z0-9_=.;& -]*/i
const WORD = /[\p{L}\p{N}]+/gu

/** Our own phrases, in any prose; those that start with another one come first. */
function splitter(ours: readonly string[]): RegExp {
  const escaped = [...ours].sort((one, other) => other.length - one.length).map((text) => RegExp.escape(text))
  return new RegExp(`(${[...escaped, NAMES.source].join('|')})`, 'i')
}

/** Prose as filler of the same length; `ours` are the phrases that stay. The same text always gives the same filler. */
export function fillerFor(text: string, ours: readonly string[]): string {
  let count = 0
  const word = (original: string): string => {
    if (/^\p{N}+$/u.test(original)) return '7'.repeat(original.length)
    let made = ''
    while (made.length < original.length) {
      const words = WORDS[Math.min(LONGEST, original.length - made.length) - 1] ?? ['a']
      made += words[count++ % words.length]
    }
    return /^\p{Lu}/u.test(original) ? `${made.charAt(0).toUpperCase()}${made.slice(1)}` : made
  }
  // A split by one group gives what lies between the matches at even places, and the matches at odd ones.
  return text
    .split(splitter(ours))
    .map((piece, at) => (at % 2 === 1 ? piece : piece.replaceAll(WORD, word)))
    .join('')
}

/** Whether nothing is left in a text but filler, names and our own phrases: filler of filler has the same words. */
export function isFiller(text: string, ours: readonly string[]): boolean {
  return text
    .split(splitter(ours))
    .every(
      (piece, at) => at % 2 === 1 || [...piece.matchAll(WORD)].every(([word]) => isMadeOfWords(word.toLowerCase())),
    )
}

function isMadeOfWords(word: string): boolean {
  if (/^7+$/.test(word)) return true
  let rest = word
  while (rest.length > 0) {
    const length = Math.min(LONGEST, rest.length)
    if (!KNOWN.has(rest.slice(0, length))) return false
    rest = rest.slice(length)
  }
  return true
}
