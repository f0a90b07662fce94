/** Lines of a batch that a batch of their vendor executes, as they are stored after each step. */
import type { Json } from './task.ts'

/** Stored before anything is sent, so that it is created once. */
export type BatchOrder = {
  /** Of this order alone: the ids of its lines at the vendor begin with it. */
  mark: string
  /** The vendor's name of the model. */
  model: string
  /** The path that its lines call, below the base URL of the provider. */
  path: string
  lines: number
  bytes: number
}

export type PlacedOrder = BatchOrder & {
  /** `stored`: its lines are. `marked`: they wait no more. `uploaded`: what creating it needs is at the vendor. `sent`: it may exist. `created`: it does. */
  stage: 'stored' | 'marked' | 'uploaded' | 'sent' | 'created'
  uploaded?: Json
  /** When it was first sent, in unix milliseconds. */
  sent_ms?: number
  /** At the vendor. */
  id?: string | undefined
  polls?: number
  /** Its vendor had no room for it; `since_ms`: for the first time. */
  full?: { code: string; message: string; since_ms: number; until_ms: number }
  is_cancelled?: true
  /** The vendor was asked whether an installation that was restored had created it, which it had where it `is_adopted`. */
  is_sought?: true
  /** Its lines may be others than those that are stored. */
  is_adopted?: true
}
