/** The process that renders videos, 3D models and images: reads one job a line, and writes one line for each frame. */
import { writeFile } from 'node:fs/promises'
import { setPriority } from 'node:os'
import { createInterface } from 'node:readline'
import { drawImage } from './draw-image.ts'
import { findFfmpeg } from './ffmpeg.ts'
import { renderModel } from './model.ts'
import { type RenderJob, renderVideo, renderWithFfmpeg } from './render.ts'
import type { RendererJob, RendererMessage } from './workers.ts'

/** Lower priority than all that serves requests, but not the lowest (19), so that it makes progress. */
const NICENESS = 10

let isFfmpegUsable = true

const send = (message: RendererMessage) => process.stdout.write(`${JSON.stringify(message)}\n`)

async function render({ plan, path, use_ffmpeg }: RendererJob): Promise<void> {
  if ('polygons' in plan) {
    await renderModel({ plan, path, onFrame: (frame) => send({ frame }) })
    send({ done: 'built-in' })
    return
  }
  if ('sources' in plan) {
    const { sources, mask, quick: _, ...rest } = plan
    const files = { sources: sources.map(bytesOf), ...(mask === undefined ? {} : { mask: bytesOf(mask) }) }
    await writeFile(path, await drawImage({ ...rest, ...files }))
    send({ done: 'built-in' })
    return
  }
  const job: RenderJob = { plan, path, onFrame: (frame) => send({ frame }) }
  // For a few tiny frames, another process is not worth its start.
  const command = use_ffmpeg && isFfmpegUsable && !plan.quick ? await findFfmpeg(process.env) : undefined
  if (command) {
    try {
      await renderWithFfmpeg(command, job)
      send({ done: 'ffmpeg' })
      return
    } catch {
      // This ffmpeg may lack an encoder: then the encoders of the packages are used.
      isFfmpegUsable = false
    }
  }
  await renderVideo(job)
  send({ done: 'built-in' })
}

const bytesOf = (base64: string): Uint8Array => Buffer.from(base64, 'base64')

try {
  setPriority(NICENESS)
} catch {
  // A machine that forbids it renders at normal priority.
}

const lines = createInterface({ input: process.stdin })
lines.on('line', (line) => {
  render(JSON.parse(line) as RendererJob).catch((error: unknown) => {
    // The drawing library gives advice for npm; the reason is below.
    const reason = error instanceof Error && error.cause instanceof Error ? error.cause : error
    send({ failed: reason instanceof Error ? reason.message : String(reason) })
  })
})
// The gateway has ended, so nobody waits for this process.
lines.on('close', () => process.exit(0))
process.stdout.on('error', () => process.exit(0))
