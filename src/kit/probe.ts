/** A check of something that may hang: it runs once at a time, and its callers wait for a limited time. */
import type { Clock } from './clock.ts'

type ProbeParts = { check(): Promise<unknown>; limit_ms: number; clock: Clock }

/** The result rejects as `check` does, or after `limit_ms`; a check that hangs is not started again. */
export function createProbe({ check, limit_ms, clock }: ProbeParts): () => Promise<void> {
  let running: Promise<unknown> | undefined
  return async () => {
    running ??= check().finally(() => {
      running = undefined
    })
    const late = Promise.withResolvers<never>()
    const cancel = clock.after(limit_ms, () => late.reject(new Error(`No answer within ${limit_ms} ms.`)))
    try {
      await Promise.race([running, late.promise])
    } finally {
      cancel()
    }
  }
}
