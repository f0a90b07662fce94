/** The plan of a video: everything that its bytes depend on, down to the pixels and the frames. */

export const ASPECT_RATIOS = ['16:9', '9:16', '1:1', '4:3', '3:4'] as const
export const SIZES = ['720p', '1080p'] as const
export const DURATIONS = [4, 8] as const

type AspectRatio = (typeof ASPECT_RATIOS)[number]
type Size = (typeof SIZES)[number]

export type RenderPlan = {
  /** Determines colours, motion and sound. */
  seed: string
  text: string
  width: number
  height: number
  frames: number
  /** Frames per second; `frames` divided by it is the length in seconds. */
  rate: number
  audio: boolean
  /** A small replacement, which the metadata of the file declares. */
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

/** The rate of films: smooth, and a fifth fewer frames to draw than at 30. */
const RATE = 24
/** The shorter side of a quick video; both sides are even in every ratio. */
const QUICK_SIDE = 36
/** With one frame a second, a quick video has the requested duration. */
const QUICK_RATE = 1

export function planRender({ seed, text, aspect_ratio, size, duration, audio, quick }: PlanParts): RenderPlan {
  const { width, height } = frameSize(aspect_ratio, quick ? QUICK_SIDE : Number.parseInt(size, 10))
  const rate = quick ? QUICK_RATE : RATE
  return { seed, text, width, height, frames: duration * rate, rate, audio, quick }
}

/** `side` is the shorter side, the longer one follows from the ratio: 16:9 at 720 is 1280 x 720. */
export function frameSize(ratio: AspectRatio, side: number): { width: number; height: number } {
  const [across = 1, down = 1] = ratio.split(':').map(Number)
  const unit = side / Math.min(across, down)
  return { width: Math.round(across * unit), height: Math.round(down * unit) }
}
