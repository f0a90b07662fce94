/** Renders one video, frame by frame, in the calling process. */
import { rm, writeFile } from 'node:fs/promises'
import { setImmediate } from 'node:timers/promises'
import type { Canvas } from '@napi-rs/canvas'
import { encodeSound } from './aac.ts'
import { loadCanvas } from './canvas.ts'
import { startFfmpeg } from './ffmpeg.ts'
import { createFrameEncoder } from './h264.ts'
import { createGlyphCheck, legibleText } from './legible.ts'
import { muxVideo } from './mux.ts'
import { createPicture } from './picture.ts'
import type { RenderPlan } from './plan.ts'
import { composeSound } from './sound.ts'

export type RenderJob = {
  plan: RenderPlan
  path: string
  /** Called with the number of finished frames. */
  onFrame: (frames: number) => void
}

/** Renders with the encoders of the npm packages. */
export async function renderVideo({ plan, path, onFrame }: RenderJob): Promise<void> {
  const { canvas, draw } = await prepare(plan)
  const encoder = await createFrameEncoder(plan)
  for (let frame = 0; frame < plan.frames; frame++) {
    draw(frame)
    encoder.add(canvas.data())
    onFrame(frame + 1)
    await setImmediate()
  }
  const samples = soundOf(plan)
  const sound = samples && (await encodeSound(samples))
  await writeFile(path, await muxVideo({ plan, pictures: encoder.finish(), sound }))
}

/** Renders with the ffmpeg at `command`. */
export async function renderWithFfmpeg(command: string, { plan, path, onFrame }: RenderJob): Promise<void> {
  const { canvas, draw } = await prepare(plan)
  const ffmpeg = await startFfmpeg({ command, plan, path, sound: soundOf(plan) })
  try {
    for (let frame = 0; frame < plan.frames; frame++) {
      draw(frame)
      await ffmpeg.add(canvas.data())
      onFrame(frame + 1)
      await setImmediate()
    }
    await ffmpeg.finish()
  } catch (error) {
    ffmpeg.kill()
    await rm(path, { force: true })
    throw error
  }
}

async function prepare(plan: RenderPlan): Promise<{ canvas: Canvas; draw: (frame: number) => void }> {
  const { create, fontOf } = await loadCanvas()
  const canvas = create(plan.width, plan.height)
  const text = legibleText(plan.text, createGlyphCheck(create, fontOf))
  return { canvas, draw: createPicture({ context: canvas.getContext('2d'), fontOf }, { ...plan, text }) }
}

const soundOf = ({ audio, seed, frames, rate }: RenderPlan): Float32Array | undefined =>
  audio ? composeSound(seed, frames / rate) : undefined
