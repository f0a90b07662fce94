/**
 * What a call is charged: its entry of the ledger, one for each other attempt that may have been charged, and the cost that
 * its client sees.
 */
import { orderedAlphanumerics } from '../kit/secret.ts'
import type { CatalogueModel } from '../models/catalogue.ts'
import { chargeOf, mostOf } from '../models/prices.ts'
import { NOT_ACCEPTED } from '../providers/orders/acceptance.ts'
import type { Target } from '../providers/provider.ts'
import { type ErrorCode, GatewayError } from '../spec/error.ts'
import { fromNano } from '../spec/price.ts'
import { boundedUnits, NO_UNITS, type Units } from '../spec/usage.ts'
import type { LedgerEntry } from '../store/ledger/ledger-entry.ts'
import type { AdmissionRequest, CallRecord, DoubtfulAttempt, Meter } from './call.ts'
import type { AnyMeter, Family, UsageOf } from './family.ts'
import type { AttemptPolicy } from './routing/outcome.ts'

/** A client chooses this name. */
const MAX_END_USER_LENGTH = 256

/**
 * `units`: undefined where the call failed or came from the cache, and is not charged by them. `attempt`: that the call is
 * charged for at the most that this can have used, instead.
 */
export function callEntry(
  record: CallRecord,
  model: CatalogueModel,
  now_ms: number,
  units: Units | undefined,
  attempt?: DoubtfulAttempt,
): LedgerEntry {
  const { call, family, target, error, at } = record
  record.entry_id ??= orderedAlphanumerics(now_ms, 24)
  const entry: LedgerEntry = {
    entry_id: record.entry_id,
    kind: 'call',
    at_ms: now_ms,
    call_id: storable(call.request_id),
    token_id: call.caller.token_id,
    project_id: call.caller.project_id ?? null,
    end_user: call.end_user === undefined ? null : storable(call.end_user).slice(0, MAX_END_USER_LENGTH),
    family,
    model: attempt?.model.id ?? record.model ?? '',
    provider: '',
    upstream_model: '',
    units: NO_UNITS,
    requests: 1,
    errors: error !== undefined && !call.signal.aborted ? 1 : 0,
    estimated: 0,
    amount: 0,
    cost: 0,
    price: null,
  }
  if (attempt) Object.assign(entry, mostUsed(attempt, at))
  else {
    const served = record.cache === 'hit' ? undefined : target
    charge(entry, { model, target: served, units: units && tiered(record, units), at })
  }
  entry.estimated = entry.units.estimated ? 1 : 0
  return entry
}

/** What a call is recorded as if its process ends before it: the most that it can use, at its first target. */
export function openEntry(
  record: CallRecord,
  { model, estimate }: Pick<AdmissionRequest, 'model' | 'estimate'>,
  now_ms: number,
): LedgerEntry {
  const { most } = estimate
  const entry = callEntry(record, model, now_ms, undefined, { target: model.targets[0], model, most })
  // Any target may serve it.
  const costs = model.targets.map((target) => mostUsed({ target, model, most }, record.at).cost)
  return { ...entry, cost: costs.includes(null) ? null : Math.max(entry.cost ?? 0, ...costs.map(Number)) }
}

/** A vendor charges its batches by their own prices. */
const tiered = ({ call: { exchange } }: CallRecord, units: Units): Units =>
  exchange ? { ...units, service_tier: 'batch' } : units

type Lost = {
  attempt: DoubtfulAttempt
  at: number
  /** What it had received; undefined: nothing, and it counts at the most that it can have used. */
  counted: Units | undefined
  /** From 1, among those of the call. */
  number: number
}

/** Of an attempt that did not serve its call: its provider may charge for it, the caller is not charged. */
export function lostEntry(entry: LedgerEntry, { attempt, at, counted, number }: Lost): LedgerEntry {
  const { target, model, lost_hedge } = attempt
  const units = counted && { ...counted, estimated: true }
  return {
    ...entry,
    entry_id: `${entry.entry_id}:lost:${number}`,
    kind: lost_hedge ? 'lost_hedge' : 'lost_attempt',
    model: model.id,
    requests: 0,
    errors: 0,
    estimated: 1,
    ...(units ? used({ model, target, units, at }) : mostUsed(attempt, at)),
    amount: 0,
  }
}

type Used = Pick<LedgerEntry, 'provider' | 'upstream_model' | 'units' | 'amount' | 'cost' | 'price'>

type UsedParts = {
  model: CatalogueModel
  target: Target | undefined
  units: Units | undefined
  /** Of the call: its prices count however long it takes. */
  at: number
}

/** Sets what the entry of nothing is charged for. `parts` become those of the charge. */
function charge<Entry extends Used>(entry: Entry, parts: UsedParts): Entry {
  const { target, units } = parts
  entry.provider = target?.provider.id ?? ''
  entry.upstream_model = target?.model ?? ''
  if (units === undefined) return entry
  entry.units = parts.units = boundedUnits(units)
  const { amount, cost, price } = chargeOf(parts as UsedParts & { units: Units })
  entry.amount = amount
  entry.cost = cost
  entry.price = price
  return entry
}

const used = (parts: UsedParts): Used =>
  charge({ provider: '', upstream_model: '', units: NO_UNITS, amount: 0, cost: 0, price: null }, parts)

/** The most that an attempt can have used, at the dearest prices that this can have. */
function mostUsed({ target, model, most }: DoubtfulAttempt, at: number): Used {
  const provider = target?.provider.id ?? ''
  const upstream_model = target?.model ?? ''
  if (most === undefined)
    return { provider, upstream_model, units: UNKNOWN_UNITS, amount: null, cost: null, price: null }
  const units = boundedUnits({ ...most, estimated: true })
  const { price } = chargeOf({ model, target, units, at })
  const amount = mostOf({ model, units: most, at })
  const cost = mostOf({ model: { prices: target?.prices ?? model.prices }, units: most, at })
  return { provider, upstream_model, units, amount, cost, price }
}

const UNKNOWN_UNITS: Units = { ...NO_UNITS, estimated: true }

/** PostgreSQL's text type cannot hold NUL. */
const storable = (text: string): string => text.replaceAll('\0', '')

/** A provider that returns one of these has done no work for the request, or was never reached. */
const REFUSALS: ReadonlySet<ErrorCode> = new Set([
  'no_available_channel',
  'server_is_overloaded',
  'storage_unavailable',
  'upstream_auth',
  'upstream_unreachable',
])

/**
 * Whether the provider may have charged for an attempt that ended with this error. Of an order, each error counts that does
 * not prove that it was not accepted.
 */
export function mayHaveCharged(error: unknown, policy: AttemptPolicy): boolean {
  if (!(error instanceof GatewayError)) return true
  const { code, status, detail } = error
  if (detail.accepted === 'no' || detail.fail_code !== undefined) return false
  if (code === 'client_closed_request') return true
  if (status < 500) return false
  if (policy === 'until_accepted') return true
  return !REFUSALS.has(code) && !NOT_ACCEPTED.includes(detail.upstream_status ?? 0)
}

export function noteDoubt(record: CallRecord, attempt: DoubtfulAttempt): void {
  record.doubts ??= []
  record.doubts.push(attempt)
}

/** Whether the counts of a meter cover what its provider may charge. */
export const hasCounted = (meter: Meter<unknown>): boolean => meter.hasCounted?.() ?? true

type Asked<Work, M extends AnyMeter> = Pick<Family<never, Work, never, M>, 'asksForCost'>
type Metered<Work, M extends AnyMeter> = { record: CallRecord; meter: M; model: CatalogueModel; work: Work }

/**
 * The usage that the provider has reported, for the client: with `cost`, in units of the ledger's currency, or null. A
 * promise only where it is estimated.
 */
export function usageForClient<Work, M extends AnyMeter>(
  { asksForCost }: Asked<Work, M>,
  call: Metered<Work, M>,
): UsageOf<M> | Promise<UsageOf<M>> {
  const { meter } = call
  if (!meter) return undefined as UsageOf<M>
  const usage = meter.usage()
  if (!asksForCost?.(call.work)) return usage as UsageOf<M> | Promise<UsageOf<M>>
  return usage instanceof Promise ? withLateCost(call, meter, usage) : withCost<M>(call, meter, usage)
}

const withLateCost = async <Work, M extends AnyMeter>(
  call: Metered<Work, M>,
  meter: NonNullable<M>,
  usage: Promise<unknown>,
): Promise<UsageOf<M>> => withCost<M>(call, meter, await usage)

function withCost<M extends AnyMeter>(
  { record, model }: Pick<Metered<never, M>, 'record' | 'model'>,
  meter: NonNullable<M>,
  usage: unknown,
): UsageOf<M> {
  const { target, at } = record
  const { amount } = chargeOf({ model, target, units: boundedUnits(tiered(record, meter.units(usage))), at })
  return { ...(usage as object), cost: amount === null ? null : fromNano(amount) } as UsageOf<M>
}
