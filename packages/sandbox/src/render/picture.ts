/** Draws the frames of a video: drifting lights in seeded colours, the prompt, the time, and a watermark. */
import type { SKRSContext2D } from '@napi-rs/canvas'
import { createRandom } from '../random.ts'
import type { FontOf, Weight } from './canvas.ts'
import type { RenderPlan } from './plan.ts'
import { LINE_HEIGHT, layoutText, type TextLayout } from './word-wrap.ts'

export const WATERMARK = 'Gatehouse sandbox: simulated'

type Light = {
  hue: number
  /** The centre of its path, the radius of the path, and its own radius, as fractions of the frame. */
  x: number
  y: number
  reach: number
  radius: number
  /** Turns per second, and the starting point in the turn. */
  speed: number
  phase: number
}

type Palette = { hue: number; spread: number; lights: Light[] }

const LIGHTS = 6
const FULL_TURN = 2 * Math.PI

/** A canvas context and its fonts. */
type DrawingContext = { context: SKRSContext2D; fontOf: FontOf }

/** Returns the function that draws one frame by its number. */
export function createPicture(drawing: DrawingContext, plan: RenderPlan): (frame: number) => void {
  const palette = paletteOf(plan.seed)
  const { width, height, frames, rate } = plan
  const unit = Math.min(width, height)
  const setting = layoutOf(drawing, plan)
  return (frame) => {
    const seconds = frame / rate
    drawBackground(drawing.context, plan, { palette, seconds })
    drawPrompt(drawing, plan, setting)
    drawMargin(drawing, plan, `${timeCode(seconds)} / ${timeCode(frames / rate)}`)
    drawing.context.fillStyle = 'rgba(255, 255, 255, 0.85)'
    drawing.context.fillRect(0, height - unit / 90, (width * (frame + 1)) / frames, unit / 90)
  }
}

/** What a still image depends on. */
type Still = Pick<RenderPlan, 'seed' | 'text' | 'width' | 'height'>

/** Draws a still image with `note` in its corner. Without a background it is drawn over the existing pixels. */
export function drawStill(
  drawing: DrawingContext,
  still: Still,
  { note, background = true }: { note: string; background?: boolean },
): void {
  if (background) drawBackground(drawing.context, still, { palette: paletteOf(still.seed), seconds: 0 })
  drawPrompt(drawing, still, layoutOf(drawing, still))
  drawMargin(drawing, still, note)
}

function layoutOf({ context, fontOf }: DrawingContext, { width, height, text }: Still): TextLayout {
  const unit = Math.min(width, height)
  const box = { width: width * 0.82, height: height * 0.6, largest: unit / 9, smallest: Math.max(1, unit / 32) }
  return layoutText(text, { ...box, largest: Math.max(box.largest, 2) }, (line, pixels) => {
    context.font = fontOf(pixels, 700)
    return context.measureText(line).width
  })
}

function paletteOf(seed: string): Palette {
  const random = createRandom(`picture:${seed}`)
  const hue = random.below(360)
  const spread = 40 + random.below(80)
  const lights = Array.from({ length: LIGHTS }, () => ({
    hue: hue + spread * (random.next() * 2 - 0.5),
    x: 0.15 + 0.7 * random.next(),
    y: 0.15 + 0.7 * random.next(),
    reach: 0.12 + 0.25 * random.next(),
    radius: 0.16 + 0.28 * random.next(),
    speed: (0.05 + 0.1 * random.next()) * random.pick([-1, 1]),
    phase: random.next(),
  }))
  return { hue, spread, lights }
}

function drawBackground(
  context: SKRSContext2D,
  { width, height }: Still,
  { palette, seconds }: { palette: Palette; seconds: number },
): void {
  const turn = seconds * 0.25
  const across = context.createLinearGradient(
    width * (0.5 - 0.5 * Math.cos(turn)),
    height * (0.5 - 0.5 * Math.sin(turn)),
    width * (0.5 + 0.5 * Math.cos(turn)),
    height * (0.5 + 0.5 * Math.sin(turn)),
  )
  across.addColorStop(0, `hsl(${palette.hue + seconds * 4}, 55%, 22%)`)
  across.addColorStop(1, `hsl(${palette.hue + palette.spread + seconds * 4}, 60%, 13%)`)
  context.fillStyle = across
  context.fillRect(0, 0, width, height)
  for (const light of palette.lights) drawLight(context, light, { width, height, seconds })
}

function drawLight(
  context: SKRSContext2D,
  light: Light,
  { width, height, seconds }: { width: number; height: number; seconds: number },
): void {
  const angle = FULL_TURN * (light.phase + light.speed * seconds)
  const x = width * (light.x + light.reach * Math.cos(angle))
  const y = height * (light.y + light.reach * Math.sin(angle * 1.5))
  const radius = Math.min(width, height) * light.radius
  const glow = context.createRadialGradient(x, y, radius * 0.1, x, y, radius)
  glow.addColorStop(0, `hsla(${light.hue}, 75%, 62%, 0.75)`)
  glow.addColorStop(0.6, `hsla(${light.hue}, 75%, 52%, 0.4)`)
  glow.addColorStop(1, `hsla(${light.hue}, 75%, 45%, 0)`)
  context.fillStyle = glow
  context.beginPath()
  context.arc(x, y, radius, 0, FULL_TURN)
  context.fill()
}

function drawPrompt(drawing: DrawingContext, { width, height }: Still, { pixels, lines }: TextLayout): void {
  const top = height / 2 - ((lines.length - 1) * pixels * LINE_HEIGHT) / 2
  lines.forEach((line, index) => {
    drawText(drawing, line, {
      x: width / 2,
      y: top + index * pixels * LINE_HEIGHT,
      pixels,
      weight: 700,
      align: 'center',
    })
  })
}

/** Draws the watermark and the time in opposite corners. */
function drawMargin(drawing: DrawingContext, { width, height }: Still, time: string): void {
  const unit = Math.min(width, height)
  const pixels = unit / 28
  const edge = unit / 24
  drawText(drawing, WATERMARK, { x: edge, y: edge + pixels / 2, pixels, weight: 500, align: 'left' })
  drawText(drawing, time, { x: width - edge, y: height - edge - pixels / 2, pixels, weight: 500, align: 'right' })
}

type Place = { x: number; y: number; pixels: number; weight: Weight; align: 'left' | 'right' | 'center' }

function drawText({ context, fontOf }: DrawingContext, text: string, { x, y, pixels, weight, align }: Place): void {
  context.font = fontOf(pixels, weight)
  context.textAlign = align
  context.textBaseline = 'middle'
  fillLegibly(context, text, { x, y, shadow: Math.max(1, pixels / 16), darkness: 0.55 })
}

/** White text with a shadow is legible on every colour. */
export function fillLegibly(
  context: SKRSContext2D,
  text: string,
  { x, y, shadow, darkness }: { x: number; y: number; shadow: number; darkness: number },
): void {
  context.fillStyle = `rgba(0, 0, 0, ${darkness})`
  context.fillText(text, x + shadow, y + shadow)
  context.fillStyle = '#ffffff'
  context.fillText(text, x, y)
}

/** Minutes, seconds and hundredths. */
function timeCode(seconds: number): string {
  const hundredths = Math.round(seconds * 100)
  const two = (number: number) => String(number).padStart(2, '0')
  return `${two(Math.floor(hundredths / 6000))}:${two(Math.floor(hundredths / 100) % 60)}.${two(hundredths % 100)}`
}
