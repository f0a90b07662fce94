/** Texts that name an angle without a digit, for tests of semantic caches: texts with different numbers never match. */

const LETTERS = 'abcdefghij'

/** A letter for each digit, such as `<ba> degrees` for 10. */
export const angle = (degrees: number): string =>
  `<${String(degrees).replaceAll(/\d/g, (digit) => LETTERS.charAt(Number(digit)))}> degrees`

/** The angle that a text names; 0 where it names none. */
export const degreesIn = (text: string): number =>
  Number(/<([a-j]+)>/.exec(text)?.[1]?.replaceAll(/./g, (letter) => String(LETTERS.indexOf(letter))) ?? 0)
