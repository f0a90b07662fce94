/**
 * Draws images in a process of its own: native code draws, and a fault in it would end the gateway. Two are known in
 * @napi-rs/canvas 1.0.0: a PNG, JPEG or WebP that ends early, and a canvas that is collected while it is encoded.
 */
import { readFile } from 'node:fs/promises'
import type { ImagePlan } from './render/draw-image.ts'
import { createRenderWorkers, type RenderWorkers } from './render/workers.ts'
import { createTemporaryFiles } from './temporary-files.ts'

export type ImageRenderer = ReturnType<typeof createImageRenderer>

/** One process: an edit takes much memory. It is not that of the videos, behind which an image would wait for a minute. */
export function createImageRenderer(parts: { renderWorkers?: RenderWorkers } = {}) {
  const { renderWorkers = createRenderWorkers({ size: 1 }) } = parts
  const files = createTemporaryFiles()
  return {
    /** The bytes of the image. Rejects where a source or the mask cannot be decoded. */
    async draw({ sources, mask, ...plan }: ImagePlan, signal: AbortSignal): Promise<Uint8Array> {
      const path = await files.reserve('image')
      const encoded = { sources: sources.map(base64Of), ...(mask ? { mask: base64Of(mask) } : {}) }
      try {
        await renderWorkers.render(
          { plan: { ...plan, ...encoded, quick: true }, path, onStart() {}, onFrame() {} },
          signal,
        )
        return await readFile(path)
      } finally {
        await files.remove(path)
      }
    },
    async close() {
      renderWorkers.close()
      await files.close()
    },
  }
}

export const base64Of = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
