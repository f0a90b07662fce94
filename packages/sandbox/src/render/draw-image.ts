/**
 * Draws and encodes one image in the calling process, which is the renderer's. It encodes while the canvas is in use:
 * an encoder in a thread of its own reads freed memory where the canvas is collected meanwhile.
 */
import type { Canvas, SKRSContext2D } from '@napi-rs/canvas'
import { type CanvasTools, loadCanvas } from './canvas.ts'
import { createGlyphCheck, legibleText } from './legible.ts'
import { drawStill } from './picture.ts'

export type ImagePlan = {
  /** Determines the colours. */
  seed: string
  text: string
  width: number
  height: number
  format: 'png' | 'jpeg' | 'webp'
  /** 0 to 100; for jpeg and webp. */
  quality: number
  is_transparent: boolean
  /** Text in the corner of the image. */
  note: string
  /** The images to edit, drawn side by side below the text; the transparent areas of the mask are drawn again. */
  sources: Uint8Array[]
  mask?: Uint8Array
  /** The progress from 0 to 1: a partial image is blurred. Default 1. */
  share?: number
}

/** The same as JSON, for another process: files are base64. */
export type EncodedImagePlan = Omit<ImagePlan, 'sources' | 'mask'> & { sources: string[]; mask?: string; quick: true }

/** The width and height in which a partial image starts; it is scaled up to its full size. */
const COARSEST = 24

/** The bytes of the image. Throws where a source or the mask cannot be read. */
export async function drawImage(plan: ImagePlan): Promise<Uint8Array> {
  const { create, load, fontOf } = await loadCanvas()
  const text = legibleText(plan.text, createGlyphCheck(create, fontOf))
  const canvas = create(plan.width, plan.height)
  const context = canvas.getContext('2d')
  const still = { ...plan, text }
  const style = { note: plan.note, background: !plan.is_transparent }
  if (plan.sources.length === 0) drawStill({ context, fontOf }, still, style)
  else {
    await drawSources(context, plan, load)
    const layer = create(plan.width, plan.height)
    drawStill({ context: layer.getContext('2d'), fontOf }, still, { ...style, background: plan.mask !== undefined })
    if (plan.mask !== undefined) await cutByMask(layer, plan.mask, load)
    context.drawImage(layer, 0, 0)
  }
  const finished = plan.share === undefined || plan.share >= 1 ? canvas : coarse(canvas, plan.share, create)
  if (plan.format === 'png') return finished.encodeSync('png')
  return plan.format === 'jpeg' ? finished.encodeSync('jpeg', plan.quality) : finished.encodeSync('webp', plan.quality)
}

/** Each source fills a column of the canvas, cropped to the ratio of the column. */
async function drawSources(context: SKRSContext2D, plan: ImagePlan, load: CanvasTools['load']): Promise<void> {
  const column = plan.width / plan.sources.length
  for (const [at, source] of plan.sources.entries()) {
    const image = await load(Buffer.from(source))
    const scale = Math.max(column / image.width, plan.height / image.height)
    const [width, height] = [image.width * scale, image.height * scale]
    context.save()
    context.beginPath()
    context.rect(at * column, 0, column, plan.height)
    context.clip()
    context.drawImage(image, at * column + (column - width) / 2, (plan.height - height) / 2, width, height)
    context.restore()
  }
}

/** Keeps only the part of the layer where the mask is transparent. */
async function cutByMask(layer: Canvas, mask: Uint8Array, load: CanvasTools['load']): Promise<void> {
  const image = await load(Buffer.from(mask))
  const context = layer.getContext('2d')
  context.globalCompositeOperation = 'destination-out'
  context.drawImage(image, 0, 0, layer.width, layer.height)
}

function coarse(canvas: Canvas, share: number, create: CanvasTools['create']): Canvas {
  const small = create(
    COARSEST + (canvas.width / 8 - COARSEST) * share,
    COARSEST + (canvas.height / 8 - COARSEST) * share,
  )
  small.getContext('2d').drawImage(canvas, 0, 0, small.width, small.height)
  const large = create(canvas.width, canvas.height)
  large.getContext('2d').drawImage(small, 0, 0, large.width, large.height)
  return large
}
