/** Makes the ledger entry of a task, for the transaction that ends or reopens it. Pure. */
import type { FailCode, Task } from '../../spec/task.ts'
import { NO_UNITS, type Units } from '../../spec/usage.ts'
import { type LedgerEntry, reversalOf } from '../../store/ledger/ledger-entry.ts'

/** What a successful task uses, with its price: in nano-units; null where the price is unknown. */
export type TaskCharge = Pick<LedgerEntry, 'amount' | 'cost' | 'price'> & { units: Units }

type Ending = { status: 'SUCCESS' } | { status: 'FAILURE'; fail_code: FailCode }

/** The provider has generated the result, although the client did not get it. */
const WAS_GENERATED: ReadonlySet<FailCode> = new Set(['output_expired', 'output_invalid'])
/** The provider may still generate it, or may have. */
const MAY_BE_GENERATED: ReadonlySet<FailCode> = new Set(['submit_outcome_unknown', 'timeout', 'canceled'])

/**
 * One request; an error, unless its client canceled it. A caller is not charged for a task that failed. What the provider
 * charges for it is unknown where it may have generated the result.
 *
 * `at_ms`: of its submission, so that it is charged to the budgets of the windows that have admitted and held it.
 *
 * The id is derived from the task and its fence, which increases before it can end again: an end that is written twice
 * is recorded once.
 */
export function taskEntry(
  task: Task,
  ending: Ending,
  { at_ms, charge }: { at_ms: number; charge: TaskCharge },
): LedgerEntry {
  const { task_id, token_id, family, model, provider, upstream_model } = task
  const code = ending.status === 'FAILURE' ? ending.fail_code : undefined
  const failed = { units: NO_UNITS, amount: 0, cost: code === undefined ? 0 : costOfFailure(task, code, charge.cost) }
  const { units, amount, cost } = code === undefined ? charge : failed
  return {
    entry_id: `${task_id}:${task.fence}`,
    kind: 'task',
    at_ms,
    call_id: task_id,
    token_id,
    project_id: task.project_id,
    end_user: task.end_user,
    family,
    model,
    provider,
    upstream_model,
    units,
    requests: 1,
    errors: code === undefined || code === 'canceled' ? 0 : 1,
    estimated: 0,
    amount,
    cost,
    price: code === undefined ? charge.price : null,
  }
}

function costOfFailure(task: Task, code: FailCode, cost: number | null): number | null {
  if (WAS_GENERATED.has(code)) return cost
  return MAY_BE_GENERATED.has(code) && task.sent_at !== null ? null : 0
}

/** For a failed task that ended before there was a ledger: its request was counted, and nothing else. */
export function taskReversal(task: Task): LedgerEntry {
  const fail_code = task.fail_code || 'internal_error'
  const charge = { units: NO_UNITS, amount: 0, cost: 0, price: null }
  const entry = taskEntry(task, { status: 'FAILURE', fail_code }, { at_ms: task.finish_time * 1000, charge })
  return { ...reversalOf(entry, entry.at_ms), amount: null, cost: null }
}
