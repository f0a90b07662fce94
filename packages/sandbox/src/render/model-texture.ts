/** Draws the textures of a 3D model: its colours with the prompt on both sides, and maps for physically based rendering. */
import type { Canvas, SKRSContext2D } from '@napi-rs/canvas'
import { createRandom, type Random } from '../random.ts'
import type { CanvasTools } from './canvas.ts'
import { createGlyphCheck, legibleText } from './legible.ts'
import type { ModelPlan } from './model-plan.ts'
import { fillLegibly, WATERMARK } from './picture.ts'
import { LINE_HEIGHT, layoutText } from './word-wrap.ts'

/** The texture is twice as wide as high: it wraps around the model. */
const HEIGHT = 1024
const QUICK_HEIGHT = 128
const MAP_HEIGHT = 256
const FULL_TURN = 2 * Math.PI
/** The area that is legible from one side, as fractions of the circumference and of the height. */
const READABLE = { width: 0.27, height: 0.34 }

type Plan = Pick<ModelPlan, 'seed' | 'text' | 'quick'>

export function drawTexture({ create, fontOf }: CanvasTools, { seed, text, quick }: Plan): Canvas {
  const height = quick ? QUICK_HEIGHT : HEIGHT
  const width = height * 2
  const canvas = create(width, height)
  const context = canvas.getContext('2d')
  drawBackground(context, { width, height, random: createRandom(`texture:${seed}`) })
  const shown = legibleText(text, createGlyphCheck(create, fontOf))
  const box = {
    width: width * READABLE.width,
    height: height * READABLE.height,
    largest: height / 9,
    smallest: height / 48,
  }
  const { pixels, lines } = layoutText(shown, box, (line, size) => {
    context.font = fontOf(size, 700)
    return context.measureText(line).width
  })
  context.textAlign = 'center'
  context.textBaseline = 'middle'
  for (const middle of [width * 0.25, width * 0.75]) {
    const top = height / 2 - ((lines.length - 1) * pixels * LINE_HEIGHT) / 2
    context.font = fontOf(pixels, 700)
    lines.forEach((line, index) => {
      const place = { x: middle, y: top + index * pixels * LINE_HEIGHT, shadow: pixels / 16 }
      fillLegibly(context, line, { ...place, darkness: 0.6 })
    })
    context.font = fontOf(height / 44, 500)
    fillLegibly(context, WATERMARK, { x: middle, y: height * 0.74, shadow: 1, darkness: 0.6 })
  }
  return canvas
}

type Background = { width: number; height: number; random: Random }

/** Draws each light three times side by side, so that the left edge continues the right one. */
function drawBackground(context: SKRSContext2D, { width, height, random }: Background): void {
  const hue = random.below(360)
  const down = context.createLinearGradient(0, 0, 0, height)
  down.addColorStop(0, `hsl(${hue}, 50%, 44%)`)
  down.addColorStop(0.5, `hsl(${hue + 40}, 55%, 30%)`)
  down.addColorStop(1, `hsl(${hue + 90}, 50%, 24%)`)
  context.fillStyle = down
  context.fillRect(0, 0, width, height)
  for (let light = 0; light < 14; light++) {
    const [x, y] = [width * random.next(), height * random.next()]
    const radius = height * (0.06 + 0.2 * random.next())
    const colour = hue + random.below(140)
    for (const shift of [-width, 0, width]) {
      const glow = context.createRadialGradient(x + shift, y, radius * 0.1, x + shift, y, radius)
      glow.addColorStop(0, `hsla(${colour}, 70%, 58%, 0.55)`)
      glow.addColorStop(1, `hsla(${colour}, 70%, 45%, 0)`)
      context.fillStyle = glow
      context.beginPath()
      context.arc(x + shift, y, radius, 0, FULL_TURN)
      context.fill()
    }
  }
}

/** The maps of roughness and metal, and of normals. */
type Relief = { surface: Canvas; normal: Canvas }

/**
 * Fine waves without a seam around the model. `surface` holds occlusion, roughness and metal in red, green and blue, as in
 * glTF; `normal` holds the normals, with green pointing up.
 */
export function drawRelief({ create }: CanvasTools, { seed, quick }: Plan): Relief {
  const random = createRandom(`relief:${seed}`)
  const height = quick ? QUICK_HEIGHT : MAP_HEIGHT
  const width = height * 2
  const [around, down] = [6 + random.below(18), 4 + random.below(12)]
  const [metal, steep] = [Math.round(255 * random.next()), 0.25 + 0.35 * random.next()]
  const surface = new Uint8ClampedArray(width * height * 4)
  const normal = new Uint8ClampedArray(width * height * 4)
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const [a, b] = [(FULL_TURN * around * x) / width, (FULL_TURN * down * y) / height]
      const wave = Math.sin(a) * Math.sin(b)
      const slope = { right: -steep * Math.cos(a) * Math.sin(b), up: steep * Math.sin(a) * Math.cos(b) }
      const length = Math.hypot(slope.right, slope.up, 1)
      const at = (y * width + x) * 4
      surface.set([235 + 20 * wave, 140 - 70 * wave, metal, 255], at)
      normal.set(
        [slope.right, slope.up, 1].map((part) => 127.5 + (127.5 * part) / length),
        at,
      )
      normal[at + 3] = 255
    }
  }
  return { surface: canvasOf(create, surface, width), normal: canvasOf(create, normal, width) }
}

function canvasOf(create: CanvasTools['create'], pixels: Uint8ClampedArray, width: number): Canvas {
  const height = pixels.length / 4 / width
  const canvas = create(width, height)
  const context = canvas.getContext('2d')
  const image = context.createImageData(width, height)
  image.data.set(pixels)
  context.putImageData(image, 0, 0)
  return canvas
}
