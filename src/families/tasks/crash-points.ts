/** The points at which a test kills the process; otherwise the hook does nothing. */

/** In the order in which a task reaches them. A `write` is one durable write to the store. */
export const CRASH_POINTS = [
  'submit: before the row',
  'submit: after the row',
  'prepare: before the write',
  'prepare: after the write',
  'send: before sent_at',
  'send: after sent_at',
  'send: before the operation',
  'send: after the operation',
  'refused: before the write',
  'refused: after the write',
  'doubt: before the order',
  'proceed: before the mark',
  'proceed: after the mark',
  'poll: before the write',
  'poll: after the write',
  'made: before the write',
  'made: after the write',
  'copy: before the first byte',
  'copy: in the middle',
  'copy: after the last byte',
  'copy: before the write',
  'copy: after the write',
  'cancel: before the provider',
  'cancel: after the provider',
  'end: before the write',
  'end: after the write',
  'late: before the write',
  'late: after the write',
] as const
export type CrashPoint = (typeof CRASH_POINTS)[number]

/** The kinds of writes that a step makes. */
export type WriteKind = 'prepare' | 'refused' | 'poll' | 'made' | 'copy' | 'end' | 'late'

/** Called at each point. */
export type CrashHook = (point: CrashPoint) => void

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
