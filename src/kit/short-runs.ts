/** Cuts a text so that no part of it takes a tokenizer long. */

/**
 * A run of this many characters without a space (Chinese, base64), or of nothing but spaces. What a run costs grows
 * with its length squared: one of 200,000 characters takes minutes, four hundred of 500 a few milliseconds.
 */
const LONG_RUN = /\S{500}|\s{500}/g

/** The text cut after every long run, which adds a token at most. */
export function inShortRuns(text: string): string[] {
  const parts: string[] = []
  let start = 0
  for (const { 0: run, index } of text.matchAll(LONG_RUN)) {
    const end = index + run.length
    parts.push(text.slice(start, end))
    start = end
  }
  if (start < text.length) parts.push(text.slice(start))
  return parts
}
