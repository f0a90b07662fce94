/** How the budgets of a token and of its project stand, for the token itself. */
import type { Clock } from '../../kit/clock.ts'
import { fromNano, toNano } from '../../spec/price.ts'
import type { Budget } from '../../spec/rate-limit.ts'
import { type BudgetListing, type BudgetName, type BudgetStore, NEVER } from '../../store/ledger/budget-store.ts'
import { type BudgetOwner, type BudgetSettings, nameOf } from './budget-accounts.ts'

/** Amounts are in units of the currency, times unix seconds. */
export type BudgetState = Budget & {
  /** Charges of the ledger in this window. */
  used: number
  /** Credit that was added; counts for windows that never end. */
  credit: number
  /** What open calls and tasks may cost, and what processes have leased for further ones. */
  held: number
  /** `amount + credit - used`, at least 0. */
  remaining: number
  window_start: number
  /** null: it never ends. */
  window_end: number | null
}

type StatesParts = { store: Pick<BudgetStore, 'list'>; settings(): BudgetSettings; clock: Pick<Clock, 'now'> }

/** Not asked of the store where neither has a budget. Rejects with `storage_unavailable`. */
export async function budgetStates(
  owner: BudgetOwner,
  { store, settings, clock }: StatesParts,
): Promise<{ token: BudgetState[]; project: BudgetState[] }> {
  const now_ms = clock.now()
  const { token_id, project } = owner
  const ofToken = named(`token:${token_id}`, owner.budgets ?? settings().tokens.budgets, now_ms)
  const ofProject = project ? named(`project:${project.project_id}`, project.budgets, now_ms) : []
  const all = [...ofToken, ...ofProject]
  if (all.length === 0) return { token: [], project: [] }
  const scope_keys = [...new Set(all.map(({ name }) => name.scope_key))]
  const found = await store.list({ now_ms, scope_keys, limit: MAX_LISTED })
  const known = new Map(found.map((listing) => [listing.account_key, listing]))
  const state = ({ name, budget }: Named) => stateOf(budget, name, known.get(name.account_key))
  return { token: ofToken.map(state), project: ofProject.map(state) }
}

/** Far above what one token and one project can have; budgets that were removed are listed too. */
const MAX_LISTED = 1_000

type Named = { name: BudgetName; budget: Budget }

const named = (scope_key: string, budgets: readonly Budget[] = [], now_ms: number): Named[] =>
  budgets.map((budget) => ({ budget, name: nameOf(scope_key, budget, now_ms) }))

/** A budget that no call has counted towards yet is not in the store. */
const UNUSED = { settled: 0, credit: 0, held: 0 }

function stateOf(budget: Budget, { start_ms, end_ms }: BudgetName, listing: BudgetListing | undefined): BudgetState {
  const { settled, credit, held } = listing ?? UNUSED
  return {
    ...budget,
    used: fromNano(settled),
    credit: fromNano(credit),
    held: fromNano(held),
    remaining: fromNano(Math.max(0, toNano(budget.amount) + credit - settled)),
    window_start: Math.floor(start_ms / 1000),
    window_end: end_ms === NEVER ? null : Math.floor(end_ms / 1000),
  }
}
