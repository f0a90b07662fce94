/** What can be drawn of a text: signs for which no font of the machine has a shape are left out, not drawn as boxes. */
import type { createCanvas } from '@napi-rs/canvas'
import type { FontOf } from './canvas.ts'
import { graphemesOf } from './word-wrap.ts'

export const NO_FONT = '(This machine has no font for the script of the prompt.)'

/** Whether there is a shape for a sign: it looks different from one that never has any. */
type HasGlyph = (grapheme: string) => boolean

/** Latin, Greek and Cyrillic come with the package. */
const FIRST_CHECKED = 0x530
/** The last code point of all is no character, and never will be one. */
const NONCHARACTER = '\u{10ffff}'
const PIXELS = 20

/** Runs of what cannot be drawn become an ellipsis; a text of nothing else becomes a sentence that says so. */
export function legibleText(text: string, hasGlyph: HasGlyph): string {
  const known = new Map<string, boolean>()
  const isLegible = (grapheme: string) => {
    if ((grapheme.codePointAt(0) ?? 0) < FIRST_CHECKED || grapheme.trim() === '') return true
    const answer = known.get(grapheme) ?? hasGlyph(grapheme)
    known.set(grapheme, answer)
    return answer
  }
  let shown = ''
  let isAnythingLeft = false
  for (const grapheme of graphemesOf(text)) {
    if (isLegible(grapheme)) shown += grapheme
    else if (!shown.trimEnd().endsWith('…')) shown += '…'
    // A letter or a digit of any script, or a picture.
    isAnythingLeft ||= isLegible(grapheme) && /[\p{L}\p{N}\p{Extended_Pictographic}]/u.test(grapheme)
  }
  return shown.includes('…') && !isAnythingLeft ? NO_FONT : shown
}

export function createGlyphCheck(create: typeof createCanvas, fontOf: FontOf): HasGlyph {
  const canvas = create(PIXELS, PIXELS * 2)
  const context = canvas.getContext('2d')
  const pixelsOf = (grapheme: string): Buffer => {
    context.clearRect(0, 0, canvas.width, canvas.height)
    context.font = fontOf(PIXELS, 700)
    context.textBaseline = 'middle'
    context.fillText(grapheme, 0, PIXELS)
    return Buffer.from(canvas.data())
  }
  const missingGlyph = pixelsOf(NONCHARACTER)
  // Marks and joiners have no shape of their own; a sign is drawn when all that it is made of is.
  return (grapheme) =>
    [...grapheme].every((part) => /[\p{M}\p{Cf}]/u.test(part) || !pixelsOf(part).equals(missingGlyph))
}
