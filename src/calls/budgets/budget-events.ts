/** Reports budgets to the operator: a threshold that is reached, and calls that are refused. Amounts are in units of the currency. */
import { type AuditDraft, BY_GATEWAY } from '../../spec/audit.ts'
import { fromNano, nanoText } from '../../spec/price.ts'
import { NEVER } from '../../store/ledger/budget-store.ts'
import { type BudgetAccount, usedOf } from './budget-accounts.ts'
import { amountText } from './budget-refusal.ts'
import type { ReachedThreshold, RefusedCall } from './budgets.ts'

const DAY_SECONDS = 86_400

/** `used`: nano-units. */
function reportOf(account: BudgetAccount, used: number, currency: string) {
  const { name, owner, budget, limit, credit } = account
  return {
    scope: name.scope_key,
    owner,
    window: budget.window,
    amount: fromNano(limit),
    ...(credit === 0 ? {} : { credit: fromNano(credit) }),
    used: fromNano(used),
    currency,
    window_start: new Date(name.start_ms).toISOString(),
    ...(name.end_ms === NEVER ? {} : { window_end: new Date(name.end_ms).toISOString() }),
  }
}

export function thresholdEvent({ account, threshold, refused }: ReachedThreshold, currency: string) {
  const isRefusing = refused > 0
  const used = isRefusing ? usedOf(account) : account.settled
  return {
    type: 'budget.threshold_reached' as const,
    message: `The budget of ${account.owner} has reached ${threshold} %${isRefusing ? ', with what a call may cost' : ''}.`,
    data: { threshold, ...reportOf(account, used, currency), ...(isRefusing && { call_may_cost: fromNano(refused) }) },
  }
}

/** Once a day for each budget, window and reason, with its row of the audit log. */
export function refusingEvent(
  { account, most, reason }: RefusedCall,
  { currency, now_ms }: { currency: string; now_ms: number },
) {
  const { name, owner, held, project_id } = account
  const [object_type = '', object_id = ''] = name.scope_key.split(':', 2)
  const used = `${nanoText(usedOf(account))} ${currency} of ${amountText(account, currency)} are used, and`
  const cost = `a call may cost up to ${nanoText(most)} ${currency}`
  const why = {
    used: `${used} ${cost}`,
    held: `${used} open calls or other processes hold the rest`,
    too_large: `${used} ${cost}, which is more than the whole budget`,
  }[reason]
  const data = {
    reason,
    ...reportOf(account, usedOf(account), currency),
    held: fromNano(held),
    call_may_cost: fromNano(most),
  }
  const audit: AuditDraft = {
    ...BY_GATEWAY,
    at_ms: now_ms,
    action: 'budget.refusing',
    object_type,
    object_id,
    project_id,
    after: data,
  }
  return {
    type: 'budget.refusing' as const,
    key: `budget.refusing ${reason} ${name.account_key} ${name.start_ms}`,
    again_seconds: DAY_SECONDS,
    message: `The budget of ${owner} refuses calls: ${why}.`,
    data,
    audit,
  }
}
