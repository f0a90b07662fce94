/** The form of a token or project: what is typed, and the fields of the admin API that it makes. */
import type { Budget, EndUserLimits, Project, Token } from '../../api/types.ts'
import { money } from '../../lib/format.ts'
import { localText, secondsOf } from '../../lib/local-time.ts'

type Families = NonNullable<Token['families']>
type RateLimits = Token['rate_limits']
export type LimitName = keyof RateLimits
type Window = Budget['window']

/** `amount` as typed. */
export type LimitRow = { key: number; limit: LimitName; amount: string }
/** `stored`: the budget that the row was made of, whose other members stay. */
export type BudgetRow = { key: number; amount: string; window: Window; isSoft: boolean; stored: Partial<Budget> }

export type Draft = {
  name: string
  project_id: string
  /** One pattern a line, such as `sandbox/*`. */
  models: string
  /** Empty: all. */
  families: Families
  /** One name a line. */
  guards: string
  /** As an input of the type `datetime-local` has it; empty: never. */
  expires: string
  addresses: string
  limits: LimitRow[]
  budgets: BudgetRow[]
  /** What is limited for each end user. */
  userLimits: LimitRow[]
  userBudgets: BudgetRow[]
  /** One `name=value` a line. */
  labels: string
  /** Those that an import has written, which only it changes. */
  importLabels: string[]
}

export const EMPTY: Draft = {
  name: '',
  project_id: '',
  models: '',
  families: [],
  guards: '',
  expires: '',
  addresses: '',
  limits: [],
  budgets: [],
  userLimits: [],
  userBudgets: [],
  labels: '',
  importLabels: [],
}

let lastKey = 0
export const nextKey = (): number => ++lastKey

export function draftOf(account: Token | Project): Draft {
  return {
    name: account.name,
    project_id: account.project_id ?? '',
    models: account.models.join('\n'),
    families: account.families ?? [],
    guards: account.guards.join('\n'),
    expires: account.expires_at === null ? '' : localText(account.expires_at),
    addresses: account.allowed_addresses?.join('\n') ?? '',
    limits: limitRows(account.rate_limits),
    budgets: budgetRows(account.budgets),
    userLimits: limitRows(account.end_users.rate_limits),
    userBudgets: budgetRows(account.end_users.budgets),
    labels: labelLines(account.labels)
      .filter((line) => !isImported(line))
      .join('\n'),
    importLabels: labelLines(account.labels).filter(isImported),
  }
}

const isImported = (line: string): boolean => line.startsWith('import/')

const limitRows = (limits: RateLimits = {}): LimitRow[] =>
  Object.entries(limits).map(([limit, amount]) => ({
    key: nextKey(),
    limit: limit as LimitName,
    amount: String(amount),
  }))

const budgetRows = (budgets: Budget[] = []): BudgetRow[] =>
  budgets.map((stored) => ({
    key: nextKey(),
    amount: String(stored.amount),
    window: stored.window,
    isSoft: stored.soft === true,
    stored,
  }))

export const labelLines = (labels: Record<string, string>): string[] =>
  Object.entries(labels).map(([name, value]) => `${name}=${value}`)

/** What the draft says of an account, for a creation or a change. What cannot be a number is left to the gateway to refuse. */
export function fieldsOf(draft: Draft) {
  return {
    name: draft.name.trim(),
    models: lines(draft.models),
    families: draft.families.length === 0 ? null : draft.families.toSorted(),
    guards: lines(draft.guards),
    expires_at: secondsOf(draft.expires) ?? null,
    allowed_addresses: draft.addresses.trim() === '' ? null : lines(draft.addresses),
    rate_limits: limitsOf(draft.limits),
    budgets: draft.budgets.map(budgetOf),
    end_users: {
      ...(draft.userLimits.length > 0 && { rate_limits: limitsOf(draft.userLimits) }),
      ...(draft.userBudgets.length > 0 && { budgets: draft.userBudgets.map(budgetOf) }),
    },
    labels: labelsOf(draft.labels),
  }
}

const limitsOf = (rows: LimitRow[]): RateLimits =>
  Object.fromEntries(rows.map(({ limit, amount }) => [limit, numberOf(amount)])) as RateLimits

/** A line without `=` is a name without a value. */
function labelsOf(text: string): Record<string, string> {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '')
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.indexOf('=')
      return at === -1 ? [line.trim(), ''] : [line.slice(0, at).trim(), line.slice(at + 1).trim()]
    }),
  )
}

type Fields = ReturnType<typeof fieldsOf>

/** Only the fields that differ: a change must not undo what somebody else has changed meanwhile. */
export function changesOf(before: Draft, after: Draft): Partial<Fields> {
  const [old, fresh] = [fieldsOf(before), fieldsOf(after)]
  const names = Object.keys(fresh) as (keyof Fields)[]
  return Object.fromEntries(
    names
      .filter((name) => JSON.stringify(old[name]) !== JSON.stringify(fresh[name]))
      .map((name) => [name, fresh[name]]),
  )
}

/** For a creation: what is empty is left to the defaults of the configuration. */
export function orderOf(draft: Draft) {
  const { name, models, families, guards, expires_at, allowed_addresses, rate_limits, budgets, end_users, labels } =
    fieldsOf(draft)
  return {
    name,
    ...(models.length > 0 && { models }),
    ...(families !== null && { families }),
    ...(guards.length > 0 && { guards }),
    ...(expires_at !== null && { expires_at }),
    ...(allowed_addresses !== null && { allowed_addresses }),
    ...(draft.limits.length > 0 && { rate_limits }),
    ...(budgets.length > 0 && { budgets }),
    ...(Object.keys(end_users).length > 0 && { end_users }),
    ...(Object.keys(labels).length > 0 && { labels }),
  }
}

function budgetOf({ amount, window, isSoft, stored }: BudgetRow): Budget {
  const { soft: _, ...rest } = stored
  return { ...rest, amount: numberOf(amount), window, ...(isSoft && { soft: true }) }
}

const lines = (text: string): string[] =>
  text
    .split(/[\n,]/)
    .map((line) => line.trim())
    .filter(Boolean)

const numberOf = (text: string): number => (text.trim() === '' ? Number.NaN : Number(text))

const UNITS: Record<string, string> = {
  requests: 'Requests',
  input_tokens: 'Input tokens',
  output_tokens: 'Output tokens',
  tokens: 'Tokens',
  images: 'Images',
  videos: 'Videos',
  video_seconds: 'Video seconds',
  three_d: '3D models',
  audio_seconds: 'Audio seconds',
}
const PERIODS = ['second', 'minute', 'hour', 'day']

/** Every limit with its name for people. */
export const LIMITS: [LimitName, string][] = [
  ...Object.entries(UNITS).flatMap(([unit, name]) =>
    PERIODS.map((period): [LimitName, string] => [`${unit}_per_${period}` as LimitName, `${name} per ${period}`]),
  ),
  ['concurrent_requests', 'Requests at the same time'],
  ['tasks_in_flight', 'Tasks in flight'],
]

export const limitName = (limit: string): string => LIMITS.find(([name]) => name === limit)?.[1] ?? limit
export const WINDOWS: [Window, string][] = [
  ['day', 'a day'],
  ['week', 'a week'],
  ['month', 'a month'],
  ['total', 'in total'],
]
export const windowName = (window: string): string => WINDOWS.find(([name]) => name === window)?.[1] ?? window

const budgetText = ({ amount, window, soft }: Budget): string =>
  `${money(amount)} ${windowName(window)}${soft ? ' (only warns)' : ''}`

export function endUserText({ rate_limits = {}, budgets = [] }: EndUserLimits): string {
  const limits = Object.entries(rate_limits).map(([limit, amount]) => `${limitName(limit)}: ${amount}`)
  return [...limits, ...budgets.map(budgetText)].join(', ')
}
