/** The error of a call that a budget refuses. */
import { GatewayError } from '../../spec/error.ts'
import { nanoText } from '../../spec/price.ts'
import { type BudgetAccount, leftOf, type RefusalReason, usedOf } from './budget-accounts.ts'

/** `left`: what a call may still cost now, in nano-units. */
export class BudgetRefusal extends GatewayError {
  readonly left: number
  constructor(message: string, detail: { retry_after?: number; retry?: boolean }, left: number) {
    super('insufficient_quota', message, detail)
    this.left = left
  }
}

/** `held`: what is charged leaves enough for a call that may cost so much; only what open calls hold is in its way. */
export function refusalReason(account: BudgetAccount, most: number): RefusalReason {
  const whole = account.limit + account.credit
  if (whole - usedOf(account) >= most) return 'held'
  return most > whole ? 'too_large' : 'used'
}

/** `most`: what the call may cost. */
export function refusalBy(account: BudgetAccount, most: number, currency: string): BudgetRefusal {
  const { budget, name, owner, credit } = account
  const money = (nano: number) => `${nanoText(nano)} ${currency}`
  const reason = refusalReason(account, most)
  const mayRetry = reason === 'held'
  const topped = credit === 0 ? '' : `, and ${money(credit)} of credit`
  const state = mayRetry
    ? 'the rest is held for other calls'
    : budget.window === 'total'
      ? 'the operator of the gateway can raise it or add credit'
      : reason === 'too_large'
        ? 'it is more than the whole budget, which the operator of the gateway can raise'
        : `it starts again at ${new Date(name.end_ms).toISOString()}`
  return new BudgetRefusal(
    `The budget of ${owner} is ${amountText(account, currency)}${topped}; ${money(usedOf(account))} is used, and this call may cost up to ${money(most)}: ${state}.`,
    mayRetry ? { retry_after: 1, retry: true } : {},
    leftOf(account),
  )
}

/** Such as `50 USD a month`. */
export const amountText = ({ budget, limit }: BudgetAccount, currency: string): string =>
  `${nanoText(limit)} ${currency} ${budget.window === 'total' ? 'in all' : `a ${budget.window}`}`
