/** What is said between the gateway and the process that renders for it: a line of JSON each. */
import type { ModelPlan } from './model-plan.ts'
import type { RenderPlan } from './plan.ts'

/** What can be rendered: a video, or a 3D model. */
export type Plan = RenderPlan | ModelPlan

/** To the process; the next one only after the answer to this one. */
export type RendererJob = { plan: Plan; path: string; use_ffmpeg: boolean }

/** From the process: how many frames are done, and how it ended. */
export type RendererWord = { frame: number } | { done: 'ffmpeg' | 'built-in' } | { failed: string }

/** Undefined for what is no word of ours: a library may write a line of its own. */
export function readWord(line: string): RendererWord | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    const word = JSON.parse(line)
    return 'frame' in word || 'done' in word || 'failed' in word ? word : undefined
  } catch {
    return undefined
  }
}
