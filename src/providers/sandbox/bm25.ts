/** Okapi BM25: how much a word in a text says about a question, given all the texts there are. */

/** The usual constants: how fast repeats stop to count, and how far long texts are held back. */
const K1 = 1.2
const B = 0.75

/** Of a word that stands in so many of the texts; one that stands nowhere is the most telling of all. */
export const rarityOf = (texts: number, holding: number): number =>
  Math.log(1 + (texts - holding + 0.5) / (holding + 0.5))

/** The part of its rarity that a word counts, from 0 up to K1 + 1, by its weight in a text of this length. */
export const fullness = (weight: number, { length, average }: { length: number; average: number }): number =>
  (weight * (K1 + 1)) / (weight + K1 * (1 - B + (B * length) / average))

/** What `fullness` comes near to, however often a word is repeated. */
export const MOST_FULLNESS = K1 + 1
