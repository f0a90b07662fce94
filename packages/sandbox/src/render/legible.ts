/** What can be drawn of a text: signs for which no font of the machine has a shape are left out, not drawn as boxes. */
import type { createCanvas } from '@napi-rs/canvas'
import type { FontOf } from './canvas.ts'
import { signsOf } from './word-wrap.ts'

export const NO_FONT = '(This machine has no font for the script of the prompt.)'

/** Whether there is a shape for a sign: it looks different from one that never has any. */
type HasShape = (sign: string) => boolean

/** Latin, Greek and Cyrillic come with the package. */
const FIRST_UNSURE = 0x530
/** The last code point of all is no character, and never will be one. */
const NO_CHARACTER = '\u{10ffff}'
const PIXELS = 20

/** Runs of what cannot be drawn become an ellipsis; a text of nothing else becomes a sentence that says so. */
export function legibleText(text: string, hasShape: HasShape): string {
  const known = new Map<string, boolean>()
  const isLegible = (sign: string) => {
    if ((sign.codePointAt(0) ?? 0) < FIRST_UNSURE || sign.trim() === '') return true
    const answer = known.get(sign) ?? hasShape(sign)
    known.set(sign, answer)
    return answer
  }
  let shown = ''
  let isAnythingLeft = false
  for (const sign of signsOf(text)) {
    if (isLegible(sign)) shown += sign
    else if (!shown.trimEnd().endsWith('…')) shown += '…'
    // A letter or a digit of any script, or a picture.
    isAnythingLeft ||= isLegible(sign) && /[\p{L}\p{N}\p{Extended_Pictographic}]/u.test(sign)
  }
  return shown.includes('…') && !isAnythingLeft ? NO_FONT : shown
}

export function createShapeCheck(create: typeof createCanvas, fontOf: FontOf): HasShape {
  const canvas = create(PIXELS, PIXELS * 2)
  const context = canvas.getContext('2d')
  const look = (sign: string): Buffer => {
    context.clearRect(0, 0, canvas.width, canvas.height)
    context.font = fontOf(PIXELS, 700)
    context.textBaseline = 'middle'
    context.fillText(sign, 0, PIXELS)
    return Buffer.from(canvas.data())
  }
  const nothing = look(NO_CHARACTER)
  // Marks and joiners have no shape of their own; a sign is drawn when all that it is made of is.
  return (sign) => [...sign].every((part) => /[\p{M}\p{Cf}]/u.test(part) || !look(part).equals(nothing))
}
