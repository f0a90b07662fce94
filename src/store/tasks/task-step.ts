/** A state that a task has reached, at which target, and how often a step has failed there. */
import type { Task } from '../../spec/task.ts'

/** `failures`: failed steps since the last successful one. */
export type TaskStep = Pick<Task, 'status' | 'provider' | 'upstream_model' | 'failures' | 'fail_code'> & {
  provider_key: string | null
  at_ms: number
}
