/** Validates what an operator sets for a token or a project. */
import { patternProblem } from '../config/check/value-checks.ts'
import { canonicalNetwork } from '../kit/address.ts'
import { notOneOf } from '../kit/nearest.ts'
import { ACCOUNT_SETTING_NAMES, type EndUserLimits } from '../spec/account-settings.ts'
import { CALL_FAMILIES } from '../spec/endpoint-family.ts'
import { invalidValue } from '../spec/error.ts'
import { LATEST_TIME } from '../spec/fields.ts'
import { MAX_AMOUNT } from '../spec/price.ts'
import { BUDGET_WINDOWS, type Budget, MAX_RATE_LIMIT, RATE_LIMIT_KEYS, type RateLimits } from '../spec/rate-limit.ts'
import type { Project } from '../spec/token.ts'

/** What can be set for a token and for a project. */
export type AccountSettings = Omit<Project, 'project_id' | 'created_at' | 'disabled' | 'declared' | 'log_contents'>

const MAX_NAME = 100
const MAX_PATTERNS = 1_000
const MAX_LABELS = 64
const MAX_LABEL_VALUE = 256
const MAX_NETWORKS = 1_000
const MAX_GUARDS = 32
const LABEL = /^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$/
/** Control characters would garble terminals and logs. */
const CONTROL = /\p{Cc}/u

type Checks = { [Name in keyof AccountSettings]?: (value: AccountSettings[Name], now: number) => AccountSettings[Name] }

/** What a schema cannot say of a setting. */
const CHECKS: Checks = {
  name: readName,
  labels: readLabels,
  models: readModels,
  families: readFamilies,
  rate_limits: (limits) => readRateLimits(limits, 'rate_limits'),
  budgets: (budgets) => readBudgets(budgets, 'budgets'),
  end_users: readEndUsers,
  allowed_addresses: readNetworks,
  guards: readGuards,
  expires_at: readExpiry,
}

/** The given settings, normalised; absent ones stay absent. Throws invalid_value, naming the field. */
export function readSettings(given: Partial<AccountSettings>, now: number): Partial<AccountSettings> {
  const read: Partial<AccountSettings> = {}
  const readOne = <Name extends keyof AccountSettings>(name: Name) => {
    const value = given[name]
    if (value !== undefined) read[name] = CHECKS[name]?.(value as AccountSettings[Name], now) ?? value
  }
  readOne('name')
  for (const name of ACCOUNT_SETTING_NAMES) readOne(name)
  return read
}

export function readName(given: string): string {
  const name = given.trim()
  if (name === '') throw invalid('name', 'must not be empty')
  if (name.length > MAX_NAME) throw invalid('name', `must have at most ${MAX_NAME} characters; it has ${name.length}`)
  if (CONTROL.test(name)) throw invalid('name', 'must not hold control characters')
  return name
}

const IMPORT_LABEL = /^import\//

/**
 * The given settings; their labels with those that an import has written at the account, which nobody else changes: by them
 * the next import knows what it has charged. Throws invalid_value for one with another value.
 */
export function withImportLabels(
  given: Partial<AccountSettings>,
  { labels: present }: Pick<AccountSettings, 'labels'>,
): Partial<AccountSettings> {
  const { labels } = given
  if (labels === undefined) return given
  const changed = Object.keys(labels).find((key) => IMPORT_LABEL.test(key) && labels[key] !== present[key])
  if (changed !== undefined) throw invalid(`labels.${changed}`, 'is written by `gatehouse import` only: leave it out')
  return { ...given, labels: { ...labels, ...importLabels(present) } }
}

export const importLabels = (labels: AccountSettings['labels']): AccountSettings['labels'] =>
  Object.fromEntries(Object.entries(labels).filter(([key]) => IMPORT_LABEL.test(key)))

function readLabels(labels: AccountSettings['labels']): AccountSettings['labels'] {
  const entries = Object.entries(labels)
  if (entries.length > MAX_LABELS) throw invalid('labels', `must hold at most ${MAX_LABELS} labels`)
  for (const [key, value] of entries) {
    if (!LABEL.test(key)) {
      throw invalid(
        'labels',
        `${JSON.stringify(key)} must be 1 to 63 letters, digits and . _ / -, the first a letter or digit`,
      )
    }
    if (value.length > MAX_LABEL_VALUE) {
      throw invalid(`labels.${key}`, `must have at most ${MAX_LABEL_VALUE} characters; it has ${value.length}`)
    }
    if (CONTROL.test(value)) throw invalid(`labels.${key}`, 'must not hold control characters')
  }
  return labels
}

function readModels(patterns: string[]): string[] {
  if (patterns.length === 0) throw invalid('models', 'must hold at least one pattern; "*" is every model')
  if (patterns.length > MAX_PATTERNS) throw invalid('models', `must hold at most ${MAX_PATTERNS} patterns`)
  for (const [index, pattern] of patterns.entries()) {
    const trouble = patternProblem(pattern)
    if (trouble) throw invalid(`models[${index}]`, trouble)
  }
  return [...new Set(patterns)]
}

function readFamilies(families: AccountSettings['families']): AccountSettings['families'] {
  if (families === null) return null
  if (families.length === 0) throw invalid('families', 'must hold at least one family; null is every family')
  const unknown = families.find((family) => !CALL_FAMILIES.includes(family))
  if (unknown === undefined) return [...new Set(families)]
  throw invalid('families', notOneOf(unknown, CALL_FAMILIES))
}

function readRateLimits(limits: RateLimits, param: string): RateLimits {
  for (const [key, value] of Object.entries(limits)) {
    if (!RATE_LIMIT_KEYS.some((known) => known === key)) throw invalid(param, notOneOf(key, RATE_LIMIT_KEYS))
    if (!Number.isInteger(value) || value < 0 || value > MAX_RATE_LIMIT) {
      throw invalid(`${param}.${key}`, `must be a whole number from 0 to ${MAX_RATE_LIMIT}; found ${value}`)
    }
  }
  return limits
}

/** At most one a window: what would two mean? */
function readBudgets(budgets: Budget[], param: string): Budget[] {
  for (const [index, budget] of budgets.entries()) {
    const at = `${param}[${index}]`
    const { amount, window, time_zone, thresholds = [], starts_at = 0 } = budget
    if (!(amount >= 0 && amount <= MAX_AMOUNT)) {
      throw invalid(`${at}.amount`, `must be a number from 0 to ${MAX_AMOUNT}; found ${amount}`)
    }
    if (!BUDGET_WINDOWS.includes(window)) throw invalid(`${at}.window`, notOneOf(window, BUDGET_WINDOWS))
    if (budgets.findIndex((other) => other.window === window) < index) {
      throw invalid(`${at}.window`, `another budget has the window ${window} too`)
    }
    if (time_zone !== undefined && !isTimeZone(time_zone)) {
      throw invalid(`${at}.time_zone`, `found ${JSON.stringify(time_zone)}, must be a name such as Europe/Berlin`)
    }
    if (!Number.isInteger(starts_at) || starts_at < 0 || starts_at > LATEST_TIME) {
      throw invalid(`${at}.starts_at`, `must be a time in whole unix seconds; found ${starts_at}`)
    }
    if (thresholds.length > 10 || thresholds.some((percent) => !(percent > 0 && percent <= 100))) {
      throw invalid(`${at}.thresholds`, 'must hold at most 10 percentages above 0 and at most 100')
    }
  }
  return budgets
}

function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}

function readEndUsers({ rate_limits, budgets }: EndUserLimits): EndUserLimits {
  return {
    ...(rate_limits && { rate_limits: readRateLimits(rate_limits, 'end_users.rate_limits') }),
    ...(budgets && { budgets: readBudgets(budgets, 'end_users.budgets') }),
  }
}

function readNetworks(networks: string[] | null): string[] | null {
  if (networks === null) return null
  if (networks.length === 0) throw invalid('allowed_addresses', 'must hold at least one range; null is every address')
  if (networks.length > MAX_NETWORKS) throw invalid('allowed_addresses', `must hold at most ${MAX_NETWORKS} ranges`)
  const read = networks.map((text, index) => {
    const network = canonicalNetwork(text)
    if (network !== undefined) return network
    const found = `found ${JSON.stringify(text)}, must be an address or a range such as 203.0.113.0/24 or 2001:db8::/32`
    throw invalid(`allowed_addresses[${index}]`, found)
  })
  return [...new Set(read)]
}

/** Whether there are such guards is known where there is a configuration. */
function readGuards(guards: string[]): string[] {
  if (guards.length > MAX_GUARDS) throw invalid('guards', `must hold at most ${MAX_GUARDS} names`)
  return [...new Set(guards)]
}

function readExpiry(expires_at: number | null, now: number): number | null {
  if (expires_at === null) return null
  if (!Number.isInteger(expires_at) || expires_at > LATEST_TIME) {
    throw invalid('expires_at', `must be a time in whole unix seconds; found ${expires_at}`)
  }
  if (expires_at <= now) throw invalid('expires_at', `must lie in the future; ${expires_at} has passed (now ${now})`)
  return expires_at
}

const invalid = (param: string, trouble: string) => invalidValue(param, `${param}: ${trouble}.`)
