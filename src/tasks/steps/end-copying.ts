/** The end of a task whose finished files could not be copied: what a later resume needs is kept. */
import { unixSeconds } from '../../kit/clock.ts'
import type { GatewayError } from '../../spec/error.ts'
import type { ComingOutput, TaskOutput } from '../../spec/task.ts'
import { type ClaimedTask, end } from './claimed-task.ts'
import { reasonFrom } from './fail-code.ts'

/** How long the links, and the files that were copied, are kept for an operator who resumes the task. */
const RESUMABLE_SECONDS = 7 * 86_400

type Given = { made: ComingOutput[]; error: GatewayError; outputs?: TaskOutput[] }

/** A fault of the gateway's own storage is `internal_error`: the client can do nothing about it, the operator can. */
export function endCopying(
  claimed: ClaimedTask,
  { made, error, outputs = claimed.task.outputs }: Given,
): Promise<void> {
  const reason = reasonFrom(error.message)
  const outputs_expire_at = unixSeconds(claimed.clock) + RESUMABLE_SECONDS
  return end(claimed, {
    status: 'FAILURE',
    fail_code: error.code === 'internal_error' ? 'internal_error' : 'output_expired',
    fail_reason: error.code === 'output_refused' ? reason : `${MADE} ${reason}`,
    resumable: { made, outputs, outputs_expire_at },
  })
}

const MADE = 'The upstream made it, but its file could not be copied before the deadline:'
