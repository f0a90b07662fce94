/** What draws, and the letters that it writes: loaded once, when something is first rendered. */
import type { createCanvas } from '@napi-rs/canvas'
import { type FontOf, registerFonts } from './fonts.ts'

export type Studio = { create: typeof createCanvas; fontOf: FontOf }

let studio: Promise<Studio> | undefined

export function openStudio(): Promise<Studio> {
  studio ??= import('@napi-rs/canvas').then(({ createCanvas: create, GlobalFonts }) => {
    return { create, fontOf: registerFonts(GlobalFonts) }
  })
  return studio
}
