/** The letters of a video: a machine may have no fonts at all, so they come with the package. */
import { fileURLToPath } from 'node:url'
import type { GlobalFonts } from '@napi-rs/canvas'

/** The package has one file for each group of scripts; a font is chosen letter by letter from the list of families. */
const SCRIPTS = ['latin', 'latin-ext', 'cyrillic', 'cyrillic-ext', 'greek', 'greek-ext', 'vietnamese']
const WEIGHTS = [500, 700]

export type Weight = 500 | 700

const familyOf = (script: string) => `Gatehouse Inter ${script}`

/** Throws when a file of the package is missing. */
export function registerFonts(fonts: typeof GlobalFonts): void {
  for (const script of SCRIPTS) {
    for (const weight of WEIGHTS) {
      const file = import.meta.resolve(`@fontsource/inter/files/inter-${script}-${weight}-normal.woff2`)
      if (!fonts.registerFromPath(fileURLToPath(file), familyOf(script))) {
        throw new Error(`the font file for ${script} ${weight} could not be read`)
      }
    }
  }
}

/** For a canvas context. What these fonts lack comes from the machine's own, where it has any. */
export function fontOf(pixels: number, weight: Weight): string {
  return `${weight} ${pixels}px ${SCRIPTS.map((script) => `"${familyOf(script)}"`).join(', ')}, sans-serif`
}
