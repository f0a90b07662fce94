/** Removes what cannot be drawn from a text: characters without a glyph in any font of the machine would be boxes. */
import type { createCanvas } from '@napi-rs/canvas'
import type { FontOf } from './canvas.ts'
import { graphemesOf } from './word-wrap.ts'

export const NO_FONT = '(This machine has no font for the script of the prompt.)'

/** Whether a font has a glyph for a grapheme: it looks different from a character that never has one. */
type HasGlyph = (grapheme: string) => boolean

/** The first code point after Latin, Greek and Cyrillic, which the bundled fonts have. */
const FIRST_CHECKED = 0x530
/** The last code point is a noncharacter, now and in future. */
const NONCHARACTER = '\u{10ffff}'
const PIXELS = 20

/** Replaces what cannot be drawn by an ellipsis, and a text without anything else by a sentence that explains it. */
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
    // A letter or a digit of any script, or a pictograph.
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
  // Marks and joiners have no glyph of their own; a grapheme can be drawn if all its other parts can.
  return (grapheme) =>
    [...grapheme].every((part) => /[\p{M}\p{Cf}]/u.test(part) || !pixelsOf(part).equals(missingGlyph))
}
