/** Joins words with times to sentences. */

type Word = { word: string; start: number; end: number }
type Sentence = { text: string; start: number; end: number }

/** A sentence without an end, as of a text without punctuation, gets no longer: a subtitle must fit on a screen. */
const LONGEST = 200

export function sentencesOf(words: readonly Word[]): Sentence[] {
  const sentences: Sentence[] = []
  let open: Sentence | undefined
  for (const { word, start, end } of words) {
    if (word.trim() === '') continue
    open = open ? { ...open, end, text: `${open.text} ${word}` } : { start, end, text: word }
    if (open.text.length < LONGEST && !/[.!?…。！？]["')”’]?$/.test(word)) continue
    sentences.push(open)
    open = undefined
  }
  return open ? [...sentences, open] : sentences
}
