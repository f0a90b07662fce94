/** Encodes with the ffmpeg of the machine, if there is one: smaller files in less time. */
import { spawn } from 'node:child_process'
import { access, constants, rm, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { WATERMARK } from './picture.ts'
import type { RenderPlan } from './plan.ts'
import { SAMPLE_RATE } from './sound.ts'

/** The path of the first ffmpeg on PATH. */
export async function findFfmpeg(environment: Record<string, string | undefined>): Promise<string | undefined> {
  for (const directory of (environment.PATH ?? '').split(delimiter).filter(Boolean)) {
    const path = join(directory, 'ffmpeg')
    const isThere = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    )
    if (isThere) return path
  }
  return undefined
}

/** The capacity of a pipe; of a larger piece, Bun copies the rest again after each partial write. */
const PIECE_BYTES = 64 * 1024

type FfmpegParts = { command: string; plan: RenderPlan; path: string; sound: Float32Array | undefined }

export async function startFfmpeg({ command, plan, path, sound }: FfmpegParts) {
  const soundPath = `${path}.f32`
  if (sound) await writeFile(soundPath, new Uint8Array(sound.buffer))
  const child = spawn(command, argumentsFor(plan, path, sound && soundPath), { stdio: ['pipe', 'ignore', 'pipe'] })
  let errorOutput = ''
  child.stderr.on('data', (data: Buffer) => {
    errorOutput = `${errorOutput}${data}`.slice(-500)
  })
  const ended = new Promise<void>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => {
      if (code === 0) resolve()
      else reject(new Error(`ffmpeg ended with ${code}: ${errorOutput.trim()}`))
    })
  }).finally(() => rm(soundPath, { force: true }))
  // Awaited below, where an early end is noticed too.
  ended.catch(() => {})
  // The exit code of the process reports a broken pipe.
  child.stdin.on('error', () => {})
  return {
    /** Takes red, green, blue and alpha of every pixel; resolves when the next frame can be written. */
    async add(pixels: Uint8Array) {
      for (let at = 0; at < pixels.length; at += PIECE_BYTES) {
        const piece = pixels.subarray(at, at + PIECE_BYTES)
        const isWritten = new Promise<void>((resolve) => child.stdin.write(piece, () => resolve()))
        await Promise.race([isWritten, ended])
      }
    },
    /** Resolves when the file is complete. */
    async finish() {
      child.stdin.end()
      await ended
    },
    /** Ends it without a file. */
    kill() {
      child.kill('SIGKILL')
    },
  }
}

function argumentsFor({ width, height, rate, frames, text }: RenderPlan, path: string, sound?: string): string[] {
  const pictures = ['-f', 'rawvideo', '-pix_fmt', 'rgba', '-video_size', `${width}x${height}`, '-framerate', `${rate}`]
  const samples = sound ? ['-f', 'f32le', '-ar', `${SAMPLE_RATE}`, '-ac', '1', '-i', sound] : []
  const colours = ['-colorspace', 'bt709', '-color_primaries', 'bt709', '-color_trc', 'bt709']
  return [
    ...['-hide_banner', '-nostats', '-loglevel', 'error', '-y'],
    ...[...pictures, '-i', 'pipe:0', ...samples],
    ...['-vf', 'scale=out_color_matrix=bt709:out_range=tv', ...colours],
    // Two threads leave the other cores free; at crf 21, letters stay sharp.
    ...['-c:v', 'libx264', '-preset', 'veryfast', '-crf', '21', '-pix_fmt', 'yuv420p', '-threads', '2'],
    ...['-g', String(rate * 2), '-fflags', '+bitexact', '-flags:v', '+bitexact', '-flags:a', '+bitexact'],
    ...(sound ? ['-c:a', 'aac', '-b:a', '96k', '-ac', '2'] : []),
    ...['-t', String(frames / rate), '-metadata', `title=${text.slice(0, 200)}`, '-metadata', `comment=${WATERMARK}`],
    ...['-movflags', '+faststart', '-f', 'mp4', path],
  ]
}
