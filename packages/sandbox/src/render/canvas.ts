/** Loads the canvas library and the fonts. A machine may have no fonts at all, so a package brings them. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { createCanvas, GlobalFonts, loadImage } from '@napi-rs/canvas'
import { readPacked } from '../../../../src/kit/resources.ts'

/** The package has one file for each group of scripts; each letter uses the first family of the list that has it. */
const SCRIPTS = ['latin', 'latin-ext', 'cyrillic', 'cyrillic-ext', 'greek', 'greek-ext', 'vietnamese']
const WEIGHTS = [500, 700]

export type Weight = 500 | 700

const fontFile = (script: string, weight: number) => `inter-${script}-${weight}-normal.woff2`

/** The names of all of them in the directory `files` of @fontsource/inter. */
export const fontFiles = (): string[] => SCRIPTS.flatMap((script) => WEIGHTS.map((weight) => fontFile(script, weight)))

/** The `font` of a canvas context, for a size and a weight. */
export type FontOf = (pixels: number, weight: Weight) => string

/** Of the machine's own families; more would only make the choice for each letter slower. */
const MAX_FAMILIES = 40
/** Families for many scripts, or for those that Inter lacks, come first. */
const WIDE = /noto|emoji|cjk|unicode|dejavu|ping ?fang|hiragino|ya ?hei|gothic|segoe/i

const familyOf = (script: string) => `Gatehouse Inter ${script}`

/** Registers the package's fonts; after them come the machine's own, if any. Throws when a file is missing. */
function registerFonts(fonts: typeof GlobalFonts): FontOf {
  const own = fonts.families.map(({ family }) => family).filter((family) => !/["\\,]/.test(family))
  const others = [...own.filter((family) => WIDE.test(family)), ...own.filter((family) => !WIDE.test(family))]
  for (const script of SCRIPTS) {
    for (const weight of WEIGHTS) {
      const name = fontFile(script, weight)
      // An executable holds its files in itself: the library cannot open them by their paths.
      const font =
        readPacked(name) ?? readFileSync(fileURLToPath(import.meta.resolve(`@fontsource/inter/files/${name}`)))
      if (!fonts.register(font, familyOf(script))) {
        throw new Error(`the font file for ${script} ${weight} could not be read`)
      }
    }
  }
  const families = [...SCRIPTS.map(familyOf), ...others.slice(0, MAX_FAMILIES)].map((family) => `"${family}"`)
  const list = families.join(', ')
  return (pixels, weight) => `${weight} ${pixels}px ${list}`
}

export type CanvasTools = { create: typeof createCanvas; load: typeof loadImage; fontOf: FontOf }

let tools: Promise<CanvasTools> | undefined

/** Loads the library and the fonts once, when something is first drawn. */
export function loadCanvas(): Promise<CanvasTools> {
  tools ??= import('@napi-rs/canvas').then(({ createCanvas: create, loadImage: load, GlobalFonts }) => {
    return { create, load, fontOf: registerFonts(GlobalFonts) }
  })
  return tools
}
