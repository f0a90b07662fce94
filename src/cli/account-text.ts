/** Prints the settings of a token or a project as text. */
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
    ['guards', account.guards.join(', ')],
    [
      'labels',
      Object.entries(account.labels)
        .map(([key, value]) => `${key}=${value}`)
        .join(', '),
    ],
    ['created', `${timeText(account.created_at)} UTC`],
    ['expires', account.expires_at === null ? 'never' : `${timeText(account.expires_at)} UTC`],
  ]
  return table(rows.filter(([, value]) => value !== '').map(([name, value]) => [`  ${name}`, value]))
}

/** What a caller with it may use, as the rest of a sentence. */
export function rightsSentence(account: AccountSettings): string {
  const { models, families, rate_limits, budgets, allowed_addresses } = account
  const within = [limitsText(rate_limits), budgets.map(budgetSentence).join(' and ')].filter(Boolean).join(' and ')
  return [
    models.length === 0 ? 'no model' : models.includes('*') ? 'all models' : models.join(', '),
    ...(families === null ? [] : [`by ${families.join(', ')}`]),
    ...(within === '' ? [] : [`within ${within}`]),
    ...(allowed_addresses ? [`only from ${allowed_addresses.join(', ')}`] : []),
  ].join(', ')
}

const budgetSentence = ({ amount, window, soft }: Budget): string =>
  `a ${soft ? 'soft ' : ''}budget of ${amount} ${window === 'total' ? 'in all' : `a ${window}`}`

const limitsText = (limits: RateLimits = {}): string =>
  Object.entries(limits)
    .map(([key, value]) => `${key}=${value}`)
    .join(', ')

const budgetsText = (budgets: readonly Budget[] = []): string => budgets.map(budgetText).join(', ')

/** As the option `--budget` takes it. */
const budgetText = ({ amount, window, time_zone, soft, thresholds }: Budget): string =>
  [
    `${amount}/${window}`,
    ...(time_zone === undefined ? [] : [`zone=${time_zone}`]),
    ...(soft ? ['soft'] : []),
    ...(thresholds === undefined ? [] : [`thresholds=${thresholds.join('+') || 'none'}`]),
  ].join(',')

export const accountStatus = (
  { disabled, expires_at }: Pick<Token, 'disabled' | 'expires_at'>,
  { now, off }: { now: number; off: string },
): string => (disabled ? off : expires_at !== null && expires_at <= now ? 'expired' : 'active')
