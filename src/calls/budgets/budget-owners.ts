/** The budgets that an owner has now, by the key of its scope: for budgets that no call has counted towards lately. */
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import type { Budget } from '../../spec/rate-limit.ts'
import type { Project, Token } from '../../spec/token.ts'
import {
  type AccountOwner,
  type BudgetSettings,
  installationBudgets,
  projectLabel,
  tokenLabel,
} from './budget-accounts.ts'

export type PresentOwner = AccountOwner & { budgets: readonly Budget[] }

/** Undefined: it is revoked, expired or deleted, or an end user. */
export type FindOwner = (scope_key: string) => Promise<PresentOwner | undefined>

type Found<Account> = Promise<Account | undefined>
type OwnerParts = {
  store: {
    tokens: { find(id: string): Found<Pick<Token, 'name' | 'project_id' | 'budgets' | 'disabled' | 'expires_at'>> }
    projects: { find(id: string): Found<Pick<Project, 'name' | 'budgets'> & { deleted_at?: number | null }> }
  }
  settings(): BudgetSettings
  clock: Clock
}

export function createFindOwner({ store, settings, clock }: OwnerParts): FindOwner {
  async function token(token_id: string): Promise<PresentOwner | undefined> {
    const found = await store.tokens.find(token_id)
    if (!found || found.disabled) return undefined
    if (found.expires_at !== null && found.expires_at <= unixSeconds(clock)) return undefined
    const budgets = found.budgets.length > 0 ? found.budgets : (settings().tokens.budgets ?? [])
    return { label: tokenLabel(token_id, found.name), project_id: found.project_id, budgets }
  }

  async function project(project_id: string): Promise<PresentOwner | undefined> {
    const found = await store.projects.find(project_id)
    if (!found || typeof found.deleted_at === 'number') return undefined
    return { label: projectLabel(found.name), project_id, budgets: found.budgets }
  }

  return async (scope_key) => {
    const [scope, id = ''] = scope_key.split(':', 2)
    if (scope === 'installation')
      return { label: 'the installation', project_id: null, budgets: installationBudgets(settings()) }
    if (scope === 'token') return token(id)
    return scope === 'project' ? project(id) : undefined
  }
}
