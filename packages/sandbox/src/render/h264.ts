/** Encodes frames as H.264, with the encoder of a package (WebAssembly). */
import type { RenderPlan } from './plan.ts'

/** 0 is best and slowest, 10 is fastest; measured at 720p: 126, 57 and 29 ms a frame for 0, 5 and 10. */
const SPEED = 10
/** 10 is best, 51 is smallest: at 26, letters stay sharp and 720p takes about 2 Mbit/s. */
const QUANTIZATION = 26
const KEY_FRAME_SECONDS = 2

export async function createFrameEncoder({ width, height, rate }: RenderPlan) {
  const { createH264MP4Encoder } = await import('h264-mp4-encoder')
  const encoder = await createH264MP4Encoder()
  Object.assign(encoder, { width, height, frameRate: rate, speed: SPEED })
  Object.assign(encoder, { quantizationParameter: QUANTIZATION, groupOfPictures: rate * KEY_FRAME_SECONDS })
  encoder.initialize()
  return {
    /** Takes red, green, blue and alpha of every pixel. */
    add: (pixels: Uint8Array) => encoder.addFrameRgba(pixels),
    /** Returns the complete stream as an MP4 with its index at the end; the encoder cannot be used again. */
    finish() {
      encoder.finalize()
      const file = Uint8Array.from(encoder.FS.readFile(encoder.outputFilename))
      encoder.FS.unlink(encoder.outputFilename)
      encoder.delete()
      return file
    },
  }
}
