/** The options that set something for a token or a project: models, limits, budgets, addresses, labels, expiry. */
import type { AccountSettings } from '../accounts/settings.ts'
import { patternProblem } from '../config/check/value-checks.ts'
import { canonicalNetwork } from '../kit/address.ts'
import { systemClock, unixSeconds } from '../kit/clock.ts'
import { notOneOf } from '../kit/nearest.ts'
import type { EndUserLimits } from '../spec/account-settings.ts'
import { CALL_FAMILIES, type CallFamily } from '../spec/endpoint-family.ts'
import { MAX_AMOUNT } from '../spec/price.ts'
import {
  BUDGET_WINDOWS,
  type Budget,
  type BudgetWindow,
  MAX_RATE_LIMIT,
  RATE_LIMIT_KEYS,
  type RateLimitKey,
  type RateLimits,
} from '../spec/rate-limit.ts'
import { type Arguments, type FlagTable, UsageError } from './arguments.ts'
import { readExpiry } from './expiry.ts'

export const ACCOUNT_FLAGS = {
  models: 'text',
  families: 'text',
  guards: 'text',
  limit: 'text',
  budget: 'text',
  expires: 'text',
  'allow-address': 'text',
  label: 'text',
  'end-user-limit': 'text',
  'end-user-budget': 'text',
} as const satisfies FlagTable

export const ACCOUNT_FLAGS_HELP = `\
      --models <patterns>    model ids, separated by commas; * matches any text
      --families <names>     families, separated by commas, or all
      --guards <names>       guards of the configuration that check its calls, separated by commas, or none
      --limit <key>=<n>      a rate limit, such as requests_per_minute=600; may be repeated; <key>=none removes it
      --budget <amount>/<window>
                             a budget by day, week, month or total; may be repeated; none/<window> removes one, none
                             all. Options: ,zone=Europe/Berlin ,soft (only notifies) ,hard ,thresholds=50+80
      --expires <when>       30d, 12h, 2026-12-31 (to the end of that day, UTC), or never
      --allow-address <range>
                             such as 203.0.113.0/24; may be repeated; any removes them all
      --label <key>=<value>  for you, it changes nothing; may be repeated; <key>= removes it
      --end-user-limit <key>=<n>, --end-user-budget <amount>/<window>
                             the same for each end user`

/** Throws UsageError where none of the options that say what to change is given. */
export function assertNamesChange(given: Arguments, flags: FlagTable, command: string): void {
  const isNamed = Object.entries(flags).some(([flag, kind]) => kind === 'text' && given.text(flag) !== undefined)
  if (!isNamed) throw new UsageError(command, 'needs an option that says what to change, as in --budget 50/month')
}

/** What the options change; absent: nothing of it. null removes. */
type AccountChange = {
  models?: string[]
  families?: CallFamily[] | null
  guards?: string[]
  expires_at?: number | null
  allowed_addresses?: string[] | null
  labels: [key: string, value: string | null][]
  limits: [key: RateLimitKey, value: number | null][]
  budgets: BudgetChange[]
  end_user_limits: [key: RateLimitKey, value: number | null][]
  end_user_budgets: BudgetChange[]
}

/** The budget of a window, of all without one. */
type BudgetChange = { window?: BudgetWindow; amount: number | null; more?: BudgetOptions }

type BudgetOptions = Pick<Budget, 'time_zone' | 'soft' | 'thresholds'>

/** Throws UsageError, naming the option and what would be right. */
export function readAccountFlags(given: Arguments, command: string): AccountChange {
  const fail = (flag: string, trouble: string): never => {
    throw new UsageError(command, `--${flag}: ${trouble}`)
  }
  const models = listOf(given.text('models'))
  for (const pattern of models ?? []) {
    const trouble = patternProblem(pattern)
    if (trouble) fail('models', trouble)
  }
  const families = given.text('families')
  const guards = listOf(given.text('guards'))
  const expires_at = expiryOf(given.text('expires'), fail)
  const addresses = given.texts('allow-address')
  return {
    ...(models && { models }),
    ...(families !== undefined && {
      families: families === 'all' ? null : (listOf(families) ?? []).map((name) => familyOf(name, fail)),
    }),
    ...(guards && { guards: guards.includes('none') ? [] : guards }),
    ...(expires_at !== undefined && { expires_at }),
    ...(addresses.length > 0 && { allowed_addresses: addresses.includes('any') ? null : networksOf(addresses, fail) }),
    labels: given.texts('label').map((text) => labelOf(text, fail)),
    limits: given.texts('limit').map((text) => limitOf(text, 'limit', fail)),
    budgets: given.texts('budget').map((text) => budgetOf(text, 'budget', fail)),
    end_user_limits: given.texts('end-user-limit').map((text) => limitOf(text, 'end-user-limit', fail)),
    end_user_budgets: given.texts('end-user-budget').map((text) => budgetOf(text, 'end-user-budget', fail)),
  }
}

type Present = Pick<AccountSettings, 'labels' | 'rate_limits' | 'budgets' | 'end_users'>
const NOTHING: Present = { labels: {}, rate_limits: {}, budgets: [], end_users: {} }

/** The settings that the options make of the present ones; only those that are named. */
export function changedSettings(change: AccountChange, present: Present = NOTHING): Partial<AccountSettings> {
  const { labels, limits, budgets, end_user_limits, end_user_budgets, ...same } = change
  const settings: Partial<AccountSettings> = { ...same }
  if (labels.length > 0) settings.labels = withChanges(present.labels, labels)
  if (limits.length > 0)
    settings.rate_limits = withChanges<number>(present.rate_limits as Record<string, number>, limits)
  if (budgets.length > 0) settings.budgets = withBudgets(present.budgets, budgets)
  if (end_user_limits.length > 0 || end_user_budgets.length > 0) {
    const { rate_limits = {}, budgets: before = [] } = present.end_users
    settings.end_users = endUsersOf(
      withChanges<number>(rate_limits as Record<string, number>, end_user_limits),
      withBudgets(before, end_user_budgets),
    )
  }
  return settings
}

const endUsersOf = (rate_limits: RateLimits, budgets: Budget[]): EndUserLimits => ({
  ...(Object.keys(rate_limits).length > 0 && { rate_limits }),
  ...(budgets.length > 0 && { budgets }),
})

function withChanges<Value>(
  present: Record<string, Value>,
  changes: [key: string, value: Value | null][],
): Record<string, Value> {
  const values = new Map(Object.entries(present))
  for (const [key, value] of changes) {
    if (value === null) values.delete(key)
    else values.set(key, value)
  }
  return Object.fromEntries(values)
}

/** Another amount for a window keeps what else is set of its budget, unless that is given too. */
function withBudgets(present: readonly Budget[], changes: readonly BudgetChange[]): Budget[] {
  let budgets = [...present]
  for (const { window, amount, more } of changes) {
    const before = budgets.find((budget) => budget.window === window)
    if (amount === null || window === undefined) {
      budgets = budgets.filter((budget) => window !== undefined && budget.window !== window)
    } else if (before) budgets = budgets.map((budget) => (budget === before ? { ...budget, amount, ...more } : budget))
    else budgets.push({ amount, window, ...more })
  }
  return budgets
}

type Fail = (flag: string, trouble: string) => never

const listOf = (text: string | undefined): string[] | undefined => text?.split(',').map((part) => part.trim())

function familyOf(name: string, fail: Fail): CallFamily {
  return CALL_FAMILIES.find((known) => known === name) ?? fail('families', notOneOf(name, CALL_FAMILIES))
}

function expiryOf(text: string | undefined, fail: Fail): number | null | undefined {
  const expires_at = text === undefined ? undefined : readExpiry(text, unixSeconds(systemClock))
  return typeof expires_at === 'string' ? fail('expires', expires_at) : expires_at
}

function networksOf(texts: string[], fail: Fail): string[] {
  return texts.map(
    (text) =>
      canonicalNetwork(text) ??
      fail(
        'allow-address',
        `found ${JSON.stringify(text)}, must be like 203.0.113.0/24, 203.0.113.7, 2001:db8::/32, or any`,
      ),
  )
}

function labelOf(text: string, fail: Fail): [string, string | null] {
  const [, key = '', value = ''] =
    /^([^=]+)=(.*)$/s.exec(text) ?? fail('label', `found ${JSON.stringify(text)}, must be like team=search`)
  return [key.trim(), value === '' ? null : value]
}

function limitOf(text: string, flag: string, fail: Fail): [RateLimitKey, number | null] {
  const [, name = '', value = ''] =
    /^([^=]*)=(.*)$/s.exec(text) ?? fail(flag, `found ${JSON.stringify(text)}, must be like requests_per_minute=600`)
  const key = RATE_LIMIT_KEYS.find((known) => known === name.trim())
  if (key === undefined) return fail(flag, notOneOf(name.trim(), RATE_LIMIT_KEYS))
  if (value.trim() === 'none') return [key, null]
  const number = /^\d{1,13}$/.test(value.trim()) ? Number(value) : Number.NaN
  if (number <= MAX_RATE_LIMIT) return [key, number]
  return fail(
    flag,
    `${key}: found ${JSON.stringify(value)}, must be a whole number from 0 to ${MAX_RATE_LIMIT}, or none`,
  )
}

/** At most nine decimals: nano-units. */
const AMOUNT = /^\d{1,7}(\.\d{1,9})?$/

function budgetOf(text: string, flag: string, fail: Fail): BudgetChange {
  if (text.trim() === 'none') return { amount: null }
  const rule = `must be an amount and a window, such as 50/month; windows are ${BUDGET_WINDOWS.join(', ')}; none removes`
  const [, amount = '', name = '', options] =
    /^([^/]*)\/([^/,]*)(?:,(.*))?$/s.exec(text) ?? fail(flag, `found ${JSON.stringify(text)}, ${rule}`)
  const window = BUDGET_WINDOWS.find((known) => known === name.trim())
  if (window === undefined) return fail(flag, `${JSON.stringify(text)}: ${notOneOf(name.trim(), BUDGET_WINDOWS)}`)
  if (amount.trim() === 'none' && options === undefined) return { window, amount: null }
  const number = AMOUNT.test(amount.trim()) ? Number(amount) : Number.NaN
  if (!(number <= MAX_AMOUNT)) {
    return fail(
      flag,
      `found ${JSON.stringify(amount)}, must be an amount from 0 to ${MAX_AMOUNT} with at most 9 decimals, such as 0.25, or none`,
    )
  }
  const failOption = (trouble: string) => fail(flag, `${JSON.stringify(text)}: ${trouble}`)
  return { window, amount: number, ...(options !== undefined && { more: budgetOptions(options, failOption) }) }
}

/** Such as `zone=Europe/Berlin,soft,thresholds=50+80`. Whether there is such a time zone is checked with the whole account. */
function budgetOptions(text: string, fail: (trouble: string) => never): BudgetOptions {
  const options: BudgetOptions = {}
  for (const option of listOf(text) ?? []) {
    const [, name, value = ''] = /^([^=]*)(?:=(.*))?$/s.exec(option) ?? []
    if (option === 'soft' || option === 'hard') options.soft = option === 'soft'
    else if (name === 'zone' && value !== '') options.time_zone = value
    else if (name === 'thresholds' && value !== '') options.thresholds = thresholdsOf(value, fail)
    else fail(`found ${JSON.stringify(option)}, must be zone=<name>, soft, hard, or thresholds=50+80`)
  }
  return options
}

function thresholdsOf(text: string, fail: (trouble: string) => never): number[] {
  if (text === 'none') return []
  const numbers = text.split('+').map((part) => (/^\d{1,3}(\.\d{1,3})?$/.test(part) ? Number(part) : Number.NaN))
  const isRight = numbers.length <= 10 && numbers.every((number) => number > 0 && number <= 100)
  return isRight
    ? numbers
    : fail(`thresholds: found ${JSON.stringify(text)}, must be at most 10 percentages such as 50+80+100, or none`)
}
