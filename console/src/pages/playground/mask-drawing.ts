/** Draws the strokes of a mask, and writes the mask: where it is transparent, the image changes. */
export type Point = { x: number; y: number }
/** In pixels of the image. */
export type Stroke = { radius: number; points: Point[] }
export type Size = { width: number; height: number }

/** A canvas of more needs too much memory. */
const MAX_PIXELS = 40_000_000

/** The size of an image. Throws Error for a file that is none, or too large. */
export async function sizeOf(data_url: string): Promise<Size> {
  const image = new Image()
  image.src = data_url
  await image.decode().catch(() => {
    throw new Error('This file is no image that the browser can read.')
  })
  const { naturalWidth: width, naturalHeight: height } = image
  if (width * height > MAX_PIXELS) throw new Error(`An image of ${width} × ${height} pixels is too large to draw on.`)
  return { width, height }
}

export function drawStroke(context: CanvasRenderingContext2D, { radius, points }: Stroke): void {
  const [first] = points
  if (!first) return
  context.lineCap = 'round'
  context.lineJoin = 'round'
  context.lineWidth = radius * 2
  context.beginPath()
  context.moveTo(first.x, first.y)
  // A line without a length would not be drawn.
  context.lineTo(first.x + 0.01, first.y)
  for (const { x, y } of points) context.lineTo(x, y)
  context.stroke()
}

/** The mask as a PNG. */
export function maskOf({ width, height }: Size, strokes: Stroke[]): string {
  const canvas = document.createElement('canvas')
  canvas.width = width
  canvas.height = height
  const context = canvas.getContext('2d')
  if (!context) throw new Error('The browser cannot draw.')
  context.fillRect(0, 0, width, height)
  context.globalCompositeOperation = 'destination-out'
  for (const stroke of strokes) drawStroke(context, stroke)
  return canvas.toDataURL('image/png')
}
