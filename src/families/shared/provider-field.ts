/** The field `provider` of a request: checked, and as the router reads it. */
import Type from 'typebox'
import type { ProviderPreferences } from '../../calls/routing/preferences.ts'
import { checker } from '../../kit/checker.ts'
import { diagnose } from '../../kit/diagnose.ts'
import { isRawNumber, isRecord, type JsonRecord } from '../../kit/json.ts'
import { refusalOf } from '../../protocols/shared/request-error.ts'
import { GatewayError, invalidValue } from '../../spec/error.ts'
import { ROUTING_FIELDS } from '../../spec/routing-fields.ts'

const Field = Type.Object({ provider: ROUTING_FIELDS.provider })
const check = checker(Field)

const LISTS = ['order', 'only', 'ignore'] as const
/** Members of OpenRouter that the gateway cannot obey, and the values that ask for nothing. */
const UNSUPPORTED: Readonly<Record<string, unknown>> = {
  require_parameters: false,
  data_collection: 'allow',
  zdr: false,
  enforce_distillable_text: false,
  quantizations: undefined,
  preferred_min_throughput: undefined,
  preferred_max_latency: undefined,
}
const PRICES = ['prompt', 'completion']

/** The names of providers in a field of any shape. */
export function namesIn(field: unknown): unknown[] {
  if (!isRecord(field)) return []
  return LISTS.flatMap((list) => field[list] ?? [])
}

/**
 * Reads the field. `isKnown` tells whether the caller may know of a provider; undefined: of none, and none may be named.
 * Throws GatewayError that names the member and its rule.
 */
export function parsePreferences(field: unknown, isKnown: ((id: string) => boolean) | undefined): ProviderPreferences {
  const given: unknown = { provider: isRecord(field) ? supported(field) : field }
  if (!check.Check(given) || !given.provider) throw refusalOf(diagnose(Field, given))
  const { sort, ...preferences } = given.provider
  for (const list of LISTS) {
    for (const name of preferences[list] ?? []) assertKnown(name, list, isKnown)
  }
  if (sort === undefined) return preferences
  return { ...preferences, sort: sort === 'price' ? 'cheapest' : 'least_latency' }
}

/** The members that are set, in their plain form. Throws for a member that the gateway cannot obey. */
function supported(field: JsonRecord): JsonRecord {
  const members: JsonRecord = {}
  for (const [name, value] of Object.entries(field)) {
    if (value === null || (Object.hasOwn(UNSUPPORTED, name) && value === UNSUPPORTED[name])) continue
    if (!Object.hasOwn(ROUTING_FIELDS.provider.properties, name)) throw notSupported(`provider.${name}`)
    members[name] = value
  }
  if (isRecord(members.sort)) members.sort = sortOf(members.sort)
  if (members.sort === 'throughput') {
    throw notSupported('provider.sort', '"throughput" is not measured here; it may be "price" or "latency"')
  }
  const max_price = plainNumber(members.max_price)
  if (max_price !== undefined) members.max_price = isRecord(max_price) ? pricesOf(max_price) : max_price
  return members
}

/** The longer form: `{"by": "price", "partition": "model"}`. */
function sortOf({ by, partition, ...others }: JsonRecord): unknown {
  const [other] = Object.keys(others)
  if (other !== undefined) throw notSupported(`provider.sort.${other}`)
  if (partition === undefined || partition === null || partition === 'model') return by
  throw notSupported('provider.sort.partition', 'it may only be "model"')
}

/** A number that is too large for JavaScript has its text. */
const plainNumber = (value: unknown): unknown => (isRawNumber(value) ? Number(value.rawJSON) : value)

/** Libraries also send numbers as text. */
function pricesOf(given: JsonRecord): JsonRecord {
  const prices: JsonRecord = {}
  for (const [name, member] of Object.entries(given)) {
    const value = plainNumber(member)
    if (value === null) continue
    if (!PRICES.includes(name)) throw notSupported(`provider.max_price.${name}`)
    // JSON has such a number (1e309), and a schema no rule for it.
    if (value === Number.POSITIVE_INFINITY) throw tooLarge(`provider.max_price.${name}`)
    prices[name] = typeof value === 'string' && /^\d{1,9}(\.\d{1,12})?$/.test(value) ? Number(value) : value
  }
  return prices
}

function assertKnown(name: string, list: (typeof LISTS)[number], isKnown: ((id: string) => boolean) | undefined): void {
  const param = `provider.${list}`
  if (!isKnown) throw notSupported(param, 'this gateway does not name its providers')
  if (isKnown(name)) return
  const message = `"${param}" must be a list of providers of this gateway, and ${JSON.stringify(name)} is none that this token may use.`
  throw invalidValue(param, message)
}

const tooLarge = (param: string) =>
  invalidValue(param, `"${param}" must be a number that is not infinite, such as 2.5.`)

const notSupported = (param: string, why = 'leave it out') =>
  new GatewayError('unsupported_parameter', `"${param.slice(0, 100)}" is not supported: ${why}.`, {
    param: param.slice(0, 100),
  })
