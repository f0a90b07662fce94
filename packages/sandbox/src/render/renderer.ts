/** The process in which videos and 3D models are rendered: takes a job a line, and tells of every frame in a line. */
import { setPriority } from 'node:os'
import { createInterface } from 'node:readline'
import { findFfmpeg } from './ffmpeg.ts'
import { renderModel } from './model.ts'
import { type RenderJob, renderVideo, renderWithFfmpeg } from './render.ts'
import type { RendererJob, RendererMessage } from './workers.ts'

/** Behind everything that answers somebody; of 20, so that it still gets on. */
const NICENESS = 10

let isFfmpegUsable = true

const send = (message: RendererMessage) => process.stdout.write(`${JSON.stringify(message)}\n`)

async function render({ plan, path, use_ffmpeg }: RendererJob): Promise<void> {
  if ('polygons' in plan) {
    await renderModel({ plan, path, onFrame: (frame) => send({ frame }) })
    send({ done: 'built-in' })
    return
  }
  const job: RenderJob = { plan, path, onFrame: (frame) => send({ frame }) }
  // The start of another process is not worth it for a few tiny frames.
  const command = use_ffmpeg && isFfmpegUsable && !plan.quick ? await findFfmpeg(process.env) : undefined
  if (command) {
    try {
      await renderWithFfmpeg(command, job)
      send({ done: 'ffmpeg' })
      return
    } catch {
      // It may lack an encoder: then there is our own way.
      isFfmpegUsable = false
    }
  }
  await renderVideo(job)
  send({ done: 'built-in' })
}

try {
  setPriority(NICENESS)
} catch {
  // A machine that forbids it renders at the usual priority.
}

const lines = createInterface({ input: process.stdin })
lines.on('line', (line) => {
  render(JSON.parse(line) as RendererJob).catch((error: unknown) => {
    send({ failed: error instanceof Error ? error.message : String(error) })
  })
})
// The gateway has ended, however it did: nobody waits for this any more.
lines.on('close', () => process.exit(0))
process.stdout.on('error', () => process.exit(0))
