/** What is set for a token or a project, as text. */
import type { AccountSettings } from '../accounts/settings.ts'
import type { Budget, RateLimits } from '../spec/rate-limit.ts'
import type { Project, Token } from '../spec/token.ts'
import { table, timeText } from './table.ts'

/** One line for each thing that is set. */
export function accountText(account: Token | Project, more: [string, string][] = []): string {
  const { end_users } = account
  const rows: [string, string][] = [
    ...more,
    ['models', account.models.join(', ') || 'none'],
    ['families', account.families?.join(', ') ?? 'all'],
    ['limits', limitsText(account.rate_limits)],
    ['budgets', budgetsText(account.budgets)],
    ['end users', [limitsText(end_users.rate_limits), budgetsText(end_users.budgets)].filter(Boolean).join(', ')],
    ['addresses', account.allowed_addresses?.join(', ') ?? ''],
    ['labels', Object.entries(account.labels).map(([key, value]) => `${key}=${value}`).join(', ')], // biome-ignore format: short
    ['created', `${timeText(account.created_at)} UTC`],
    ['expires', account.expires_at === null ? 'never' : `${timeText(account.expires_at)} UTC`],
  ]
  return table(rows.filter(([, value]) => value !== '').map(([name, value]) => [`  ${name}`, value]))
}

/** What a caller with it is limited to, for a sentence; empty: nothing. */
export function limitSentence({ rate_limits, budgets, allowed_addresses }: AccountSettings): string {
  const parts = [
    [limitsText(rate_limits), budgetsText(budgets)].filter(Boolean).join(', '),
    allowed_addresses ? `only from ${allowed_addresses.join(', ')}` : '',
  ].filter(Boolean)
  return parts.length === 0 ? '' : ` (${parts.join('; ')})`
}

const limitsText = (limits: RateLimits = {}): string =>
  Object.entries(limits)
    .map(([key, value]) => `${key}=${value}`)
    .join(', ')

const budgetsText = (budgets: readonly Budget[] = []): string =>
  budgets.map(({ amount, window }) => `${amount}/${window}`).join(', ')

export const accountStatus = (
  { disabled, expires_at }: Pick<Token, 'disabled' | 'expires_at'>,
  { now, off }: { now: number; off: string },
): string => (disabled ? off : expires_at !== null && expires_at <= now ? 'expired' : 'active')
