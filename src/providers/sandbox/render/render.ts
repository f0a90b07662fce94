/** Renders one video, frame by frame, in the process that it is called in. */
import { writeFile } from 'node:fs/promises'
import { setImmediate } from 'node:timers/promises'
import { encodeSound } from './aac.ts'
import { registerFonts } from './fonts.ts'
import { createFrameEncoder } from './h264.ts'
import { muxVideo } from './mux.ts'
import { createPicture } from './picture.ts'
import type { RenderPlan } from './plan.ts'
import { composeSound } from './sound.ts'

let areFontsRegistered = false

export async function renderVideo(plan: RenderPlan, path: string, onFrame: (frames: number) => void): Promise<void> {
  const { createCanvas, GlobalFonts } = await import('@napi-rs/canvas')
  if (!areFontsRegistered) registerFonts(GlobalFonts)
  areFontsRegistered = true
  const canvas = createCanvas(plan.width, plan.height)
  const draw = createPicture(canvas.getContext('2d'), plan)
  const encoder = await createFrameEncoder(plan)
  for (let frame = 0; frame < plan.frames; frame++) {
    draw(frame)
    encoder.add(canvas.data())
    onFrame(frame + 1)
    await setImmediate()
  }
  const sound = plan.audio ? await encodeSound(composeSound(plan.seed, plan.frames / plan.rate)) : undefined
  await writeFile(path, await muxVideo({ plan, pictures: encoder.finish(), sound }))
}
