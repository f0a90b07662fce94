/** The budgets that apply to a call, each with what this process holds of it. */
import { type InstallationBudgets, isBudgetList } from '../../config/schema/account-schema.ts'
import { toNano } from '../../spec/price.ts'
import type { Budget } from '../../spec/rate-limit.ts'
import { type BudgetName, type Charged, NEVER, scopesOf } from '../../store/ledger/budget-store.ts'
import { isOfSameScopes } from '../../store/ledger/ledger-append.ts'
import { spanAt } from './budget-window.ts'

type Limited = {
  budgets?: readonly Budget[] | undefined
  end_users?: { budgets?: readonly Budget[] | undefined } | undefined
}

/** Whose budgets apply: the same object for every call of a token, until the token changes. */
export type BudgetOwner = Limited & {
  token_id: string
  name?: string | undefined
  /** Of two callers that share a budget, the limit of the one with the greater number counts. */
  as_of?: number
  project?: (Limited & { project_id: string; name: string }) | undefined
}

/**
 * What is in the way of a call: charges, what open calls and other processes hold, or the size of the budget, which is less
 * than the call may cost.
 */
export type RefusalReason = 'used' | 'held' | 'too_large'

/** One budget in one window, as this process knows it. Amounts are nano-units. */
export type BudgetAccount = {
  name: BudgetName
  /** For messages, such as `token "laptop"`. */
  owner: string
  /** Of a project or of a token of it. */
  project_id: string | null
  budget: Budget
  limit: number
  /** Of the caller that has set it. */
  as_of: number
  /** More than the limit may be leased, until the next renewal returns it. */
  is_lowered: boolean
  /** `held + unsettled` is at most this, where the lease is valid. */
  leased: number
  /** What open calls may cost. */
  held: number
  /** What was charged and is not yet appended to the ledger. */
  unsettled: number
  /** The part of it that waits in the spool of the ledger. */
  spooled: number
  /** The lease in the store may be more than `leased`, until the next renewal returns the difference. */
  has_more: boolean
  /** By the steady clock: when the lease ends. */
  valid_until: number
  /** As of the last answer of the store. */
  settled: number
  credit: number
  /** What calls were admitted with: those before each renewal count half. */
  demand: number
  /** The store is not asked before this time (steady) for more than `left`. */
  ask_after: number
  left: number
  /** The highest threshold of which the operator was notified, as far as this process knows. */
  notified: number
  /** By the steady clock: when a call was last refused, and until when the operator is not told again for each reason. */
  refused_at: number
  quiet_until: Record<RefusalReason, number>
  /** How often the lease was renewed since a call was admitted. */
  idle: number
  /** Calls that wait for the store: until they are admitted, nothing is returned, and nothing forgotten. */
  waiting: number
}

/** End users of one token whose accounts are remembered; further ones are looked up again. */
const MAX_END_USERS = 1_000

type Resolved = {
  accounts: readonly BudgetAccount[]
  /** Unix milliseconds: from when until when these are the accounts. */
  from_ms: number
  until_ms: number
  made_of: unknown
  generation: number
}

/** `label`: for messages, such as `the token "laptop"`. */
export type AccountOwner = { label: string; project_id: string | null }

/** Budgets of the installation, and of tokens and end users that have none of their own. */
export type BudgetSettings = { budgets: InstallationBudgets; tokens: Limited }

export const installationBudgets = ({ budgets }: Pick<BudgetSettings, 'budgets'>): readonly Budget[] =>
  isBudgetList(budgets) ? budgets : (budgets.installation ?? [])

type AccountsParts = {
  /** Another object after a reload. */
  settings(): BudgetSettings
  /** Changes with it. Absent: the settings are asked for each time. */
  revision?: { readonly current: number } | undefined
}

export type BudgetAccounts = {
  /** Whether the owner, or one of its end users, has any budget. */
  mayApply(owner: BudgetOwner): boolean
  /** The accounts of the windows that contain the time; the same array while nothing has changed. */
  of(owner: BudgetOwner, end_user: string | undefined, now_ms: number): readonly BudgetAccount[]
  find(key: Pick<BudgetName, 'account_key' | 'start_ms'>): BudgetAccount | undefined
  /** Calls the function for each that a charge counts towards. */
  eachCharged(charge: Charged, work: (account: BudgetAccount, amount: number) => void): void
  all(): IterableIterator<BudgetAccount>
  size(): number
  /** The account of a budget as its owner has it now, where no call says so. */
  keep(name: BudgetName, owner: AccountOwner, budget: Budget): BudgetAccount
  forget(account: BudgetAccount): void
}

export function createBudgetAccounts({ settings, revision }: AccountsParts): BudgetAccounts {
  const madeOf = (): unknown => (revision ? revision.current : settings())
  const accounts = new Map<string, BudgetAccount>()
  /** Increased when an account is forgotten: what was resolved may contain it. */
  let generation = 0
  const byScope = new Map<string, BudgetAccount[]>()
  const resolved = new WeakMap<BudgetOwner, Map<string | undefined, Resolved>>()

  /** A caller that was read before a change, such as that of an open WebSocket, does not restore an old limit. */
  function accountFor(
    name: BudgetName,
    { label, project_id }: AccountOwner,
    { budget, as_of }: { budget: Budget; as_of: number },
  ): BudgetAccount {
    const key = keyOf(name)
    const limit = toNano(budget.amount)
    const known = accounts.get(key)
    if (known) {
      if (as_of < known.as_of) return known
      if (limit < known.limit) known.is_lowered = true
      Object.assign(known, { budget, limit, as_of })
      return known
    }
    const account = newAccount({ name, owner: label, project_id, budget, limit, as_of })
    accounts.set(key, account)
    byScope.getOrInsertComputed(name.scope_key, () => []).push(account)
    return account
  }

  function resolve(owner: BudgetOwner, end_user: string | undefined, now_ms: number): Resolved {
    const current = settings()
    const { tokens } = current
    const found: BudgetAccount[] = []
    let [from_ms, until_ms] = [Number.NEGATIVE_INFINITY, NEVER]
    const { as_of = 0, token_id, name, project } = owner
    const project_id = project?.project_id ?? null
    const add = (scope_key: string, label: string, budgets: readonly Budget[] = []) => {
      for (const budget of budgets) {
        const name = nameOf(scope_key, budget, now_ms)
        const hasStarted = name.start_ms <= now_ms
        const owner = { label, project_id: scope_key === 'installation' ? null : project_id }
        if (hasStarted) found.push(accountFor(name, owner, { budget, as_of: scope_key === 'installation' ? 0 : as_of }))
        from_ms = hasStarted ? Math.max(from_ms, name.start_ms) : from_ms
        until_ms = Math.min(until_ms, hasStarted ? name.end_ms : name.start_ms)
      }
    }
    add('installation', 'the installation', installationBudgets(current))
    if (project) add(`project:${project.project_id}`, projectLabel(project.name), project.budgets)
    add(`token:${token_id}`, tokenLabel(token_id, name), owner.budgets ?? tokens.budgets)
    if (end_user !== undefined) {
      const label = `the end user "${end_user}"`
      if (project) add(`user:${project.project_id}/${end_user}`, label, project.end_users?.budgets)
      add(`user:${token_id}/${end_user}`, label, owner.end_users?.budgets ?? tokens.end_users?.budgets)
    }
    return { accounts: found, from_ms, until_ms, made_of: madeOf(), generation }
  }

  /** The last entry that was asked for, and its scopes. */
  let charged: Charged | undefined
  let scopes: readonly string[] = []

  const isCurrent = (known: Resolved, now_ms: number): boolean =>
    known.generation === generation && known.made_of === madeOf() && now_ms < known.until_ms && now_ms >= known.from_ms

  return {
    mayApply({ budgets, end_users, project }) {
      const { tokens, ...installation } = settings()
      const ofUsers = [end_users, tokens.end_users, project?.end_users].map((users) => users?.budgets)
      const all = [installationBudgets(installation), budgets, tokens.budgets, project?.budgets, ...ofUsers]
      return all.some((list) => list !== undefined && list.length > 0)
    },
    of(owner, end_user, now_ms) {
      let users = resolved.get(owner)
      if (!users) {
        users = new Map()
        resolved.set(owner, users)
      }
      const known = users.get(end_user)
      if (known && isCurrent(known, now_ms)) return known.accounts
      if (users.size >= MAX_END_USERS) users.clear()
      const found = resolve(owner, end_user, now_ms)
      users.set(end_user, found)
      return found.accounts
    },
    find: (key) => accounts.get(keyOf(key)),
    all: () => accounts.values(),
    size: () => accounts.size,
    keep: (name, owner, budget) =>
      accountFor(name, owner, { budget, as_of: accounts.get(keyOf(name))?.as_of ?? Number.NEGATIVE_INFINITY }),
    eachCharged(charge, work) {
      if (accounts.size === 0) return
      // Mostly they are those of the entry before.
      if (!charged || !isOfSameScopes(charge, charged)) scopes = scopesOf(charge)
      charged = charge
      for (const scope of scopes) {
        const ofScope = byScope.get(scope)
        if (!ofScope) continue
        for (const account of ofScope) {
          const { start_ms, end_ms } = account.name
          if (charge.at_ms >= start_ms && charge.at_ms < end_ms) work(account, charge.amount ?? 0)
        }
      }
    },
    forget(account) {
      generation++
      accounts.delete(keyOf(account.name))
      const { scope_key } = account.name
      const others = byScope.get(scope_key)?.filter((other) => other !== account)
      if (others?.length) byScope.set(scope_key, others)
      else byScope.delete(scope_key)
    },
  }
}

export const projectLabel = (name: string): string => `the project "${name}"`

export const tokenLabel = (token_id: string, name: string | undefined): string =>
  name === undefined ? `the token ${token_id}` : `the token "${name}"`

/** There is no bound on end users, so what is known of their budgets is not kept without a call. */
export const isOfEndUser = ({ scope_key }: Pick<BudgetName, 'scope_key'>): boolean => scope_key.startsWith('user:')

/** The budget in the window that contains this time, or in its first one where it starts later. */
export function nameOf(scope_key: string, budget: Budget, now_ms: number): BudgetName {
  const { window, time_zone = 'UTC', starts_at = 0 } = budget
  const { start_ms, end_ms = NEVER } = spanAt(budget, now_ms)
  return { account_key: `${scope_key}/${window}/${time_zone}/${starts_at}`, scope_key, window, start_ms, end_ms }
}

export const keyOf = ({ account_key, start_ms }: Pick<BudgetName, 'account_key' | 'start_ms'>) =>
  `${account_key} ${start_ms}`

const newAccount = (
  known: Pick<BudgetAccount, 'name' | 'owner' | 'project_id' | 'budget' | 'limit' | 'as_of'>,
): BudgetAccount => ({
  ...known,
  is_lowered: false,
  leased: 0,
  held: 0,
  unsettled: 0,
  spooled: 0,
  has_more: false,
  valid_until: Number.NEGATIVE_INFINITY,
  settled: 0,
  credit: 0,
  demand: 0,
  ask_after: Number.NEGATIVE_INFINITY,
  left: 0,
  notified: 0,
  refused_at: Number.NEGATIVE_INFINITY,
  quiet_until: {
    used: Number.NEGATIVE_INFINITY,
    held: Number.NEGATIVE_INFINITY,
    too_large: Number.NEGATIVE_INFINITY,
  },
  idle: 0,
  waiting: 0,
})

export const freeOf = ({ leased, held, unsettled }: BudgetAccount): number => leased - held - unsettled

/** Of the limit: the least and the most that is leased ahead. */
const [LEAST_SHARE, MOST_SHARE] = [0.01, 0.1]

/** How much is leased ahead: what twice the time between two renewals needs. */
export const sliceOf = ({ demand, limit }: BudgetAccount): number =>
  Math.ceil(Math.min(Math.max(2 * demand, limit * LEAST_SHARE), limit * MOST_SHARE))

/** What was charged in its window, as far as this process knows. */
export const usedOf = ({ settled, unsettled }: BudgetAccount): number => settled + unsettled

/** What a call may still cost, as far as this process knows. */
export const leftOf = (account: BudgetAccount): number =>
  Math.max(
    0,
    Math.min(
      account.limit + account.credit - usedOf(account) - account.held,
      account.left + Math.max(0, freeOf(account)),
    ),
  )

/** Whether a call goes beyond a budget that was lowered, as far as this process knows. */
export const isBeyond = (
  { is_lowered, limit, credit, settled, held, unsettled }: BudgetAccount,
  most: number,
): boolean => is_lowered && most > limit + credit - settled - held - unsettled

/**
 * The highest threshold (per cent) that the charges have reached; 0: none. `refuses`: a call is refused that may cost more
 * than the charges leave, so the budget is used up for it.
 */
export function thresholdReached({ budget, settled, credit, limit }: BudgetAccount, refuses: boolean): number {
  const total = limit + credit
  const used = total <= 0 || refuses ? 100 : (settled / total) * 100
  let reached = 0
  for (const threshold of budget.thresholds ?? DEFAULT_THRESHOLDS) {
    if (threshold <= used && threshold > reached) reached = threshold
  }
  return settled === 0 && !refuses ? 0 : reached
}

const DEFAULT_THRESHOLDS = [50, 80, 100]
