/** What is to be rendered, down to the pixel and the frame: everything that a video's bytes depend on. */

export const ASPECT_RATIOS = ['16:9', '9:16', '1:1', '4:3', '3:4'] as const
export const SIZES = ['720p', '1080p'] as const
export const DURATIONS = [4, 8] as const

type AspectRatio = (typeof ASPECT_RATIOS)[number]
type Size = (typeof SIZES)[number]

export type RenderPlan = {
  /** Chooses colours, motion and sound. */
  seed: string
  text: string
  width: number
  height: number
  frames: number
  /** Frames per second; `frames` divided by it is the length in seconds. */
  rate: number
  audio: boolean
  /** Says in the file that it is a small stand-in. */
  quick: boolean
}

type PlanParts = {
  seed: string
  text: string
  aspect_ratio: AspectRatio
  size: Size
  duration: number
  audio: boolean
  quick: boolean
}

/** As films have it: smooth, and a fifth fewer frames to draw than 30. */
const RATE = 24
/** The shorter side of a quick video; divides by two in every ratio. */
const QUICK_SIDE = 36
/** One frame a second makes a quick video as long as it was asked to be. */
const QUICK_RATE = 1

export function planRender({ seed, text, aspect_ratio, size, duration, audio, quick }: PlanParts): RenderPlan {
  const { width, height } = frameSize(aspect_ratio, quick ? QUICK_SIDE : Number.parseInt(size, 10))
  const rate = quick ? QUICK_RATE : RATE
  return { seed, text, width, height, frames: duration * rate, rate, audio, quick }
}

/** The shorter side is the `side`, the longer one follows from the ratio: 16:9 at 720 is 1280 x 720. */
export function frameSize(ratio: AspectRatio, side: number): { width: number; height: number } {
  const [across = 1, down = 1] = ratio.split(':').map(Number)
  const unit = side / Math.min(across, down)
  return { width: Math.round(across * unit), height: Math.round(down * unit) }
}
