/**
 * Keeps what is known of budgets that no call counts towards: metrics show a budget until its window ends, also after a
 * restart, and no longer than its owner has it.
 */
import type { Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import type { BudgetStore } from '../../store/ledger/budget-store.ts'
import { type BudgetAccount, type BudgetAccounts, isOfEndUser, nameOf } from './budget-accounts.ts'
import type { FindOwner } from './budget-owners.ts'

type UpkeepParts = {
  store: Pick<BudgetStore, 'list'>
  accounts: BudgetAccounts
  findOwner: FindOwner
  clock: Clock
  log: Log
}

/** The most that are kept without a call, since each is a series of the metrics. */
const MOST_KEPT = 10_000
/** Renewals without a call, which come every 3 seconds, between two looks at the owner: 5 minutes. */
const REVIEW_EVERY = 100

export function createUpkeep({ store, accounts, findOwner, clock, log }: UpkeepParts) {
  let restoring = Promise.resolve()
  let isStopped = false

  const budgetOf = async ({ scope_key, account_key }: BudgetAccount['name']) => {
    const owner = await findOwner(scope_key)
    const budget = owner?.budgets.find((one) => nameOf(scope_key, one, clock.now()).account_key === account_key)
    return owner && budget && { owner, budget }
  }

  async function review(account: BudgetAccount): Promise<void> {
    const found = await budgetOf(account.name)
    if (account.idle < REVIEW_EVERY) return // a call has come meanwhile, and knows better
    if (found) accounts.keep(account.name, found.owner, found.budget)
    else accounts.forget(account)
  }

  /** Those of the store whose window has not ended. End users come last in the order of the keys. */
  async function restore(): Promise<void> {
    for (const { settled, credit, ...name } of await store.list({ now_ms: clock.now(), limit: MOST_KEPT })) {
      if (isStopped || isOfEndUser(name)) return
      if (accounts.find(name)) continue
      const [, window = ''] = name.account_key.split('/')
      const found = await budgetOf({ ...name, window })
      if (!found || accounts.find(name)) continue
      const { account_key, scope_key, start_ms, end_ms } = name
      const account = accounts.keep({ account_key, scope_key, window, start_ms, end_ms }, found.owner, found.budget)
      Object.assign(account, { settled, credit })
    }
  }

  return {
    /** In the background: calls do not wait for it. */
    start(): void {
      restoring = restore().catch((cause) =>
        log.error('budgets could not be read; each is shown from its next call on', {}, cause),
      )
    },
    async stop(): Promise<void> {
      isStopped = true
      await restoring
    },
    /** Called at each renewal for an account that nothing is held of. Whether it is to be forgotten. */
    isOver(account: BudgetAccount): boolean {
      const { name, idle } = account
      if (isOfEndUser(name) || clock.now() >= name.end_ms || accounts.size() > MOST_KEPT) return true
      if (idle % REVIEW_EVERY === 0) {
        review(account).catch((cause) => log.error('the owner of a budget could not be read; will retry', {}, cause))
      }
      return false
    },
  }
}
