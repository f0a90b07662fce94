/** The points at which a test kills the process that runs a batch; otherwise the hook does nothing. */

/** In the order in which a batch reaches them. */
export const BATCH_CRASH_POINTS = [
  'batch: before the row',
  'batch: after the row',
  'batch: lines added',
  'batch: validated',
  'batch: order stored',
  'batch: order uploaded',
  'batch: order sent',
  'batch: order created',
  'batch: order polled',
  'batch: order results read',
  'batch: order results stored',
  'batch: order ended',
  'batch: line started',
  'batch: line answered',
  'batch: line stored',
  'batch: part written',
  'batch: part noted',
  'batch: finalizing',
  'batch: lines closed',
  'batch: output written',
  'batch: ended',
  'batch: cleaned',
] as const
export type BatchCrashPoint = (typeof BATCH_CRASH_POINTS)[number]
export type BatchCrashHook = (point: BatchCrashPoint) => void
