/** What a settled call becomes in the ledger: one entry, and another one where two targets were asked. */
import { orderedAlphanumerics } from '../kit/secret.ts'
import type { CatalogueModel } from '../models/catalogue.ts'
import { chargeOf, mostOf } from '../models/prices.ts'
import type { Target } from '../providers/provider.ts'
import { boundedUnits, NO_UNITS, type Units } from '../spec/units.ts'
import type { LedgerEntry } from '../store/ledger-entry.ts'
import type { AdmissionRequest, CallRecord } from './call.ts'

/** A client chooses this name. */
const MAX_END_USER_LENGTH = 256

type Settled = {
  record: CallRecord
  model: CatalogueModel
  now_ms: number
  /** Undefined: the call failed or came from the cache, and is not charged. */
  units: Units | undefined
}

export function callEntry({ record, model, now_ms, units }: Settled): LedgerEntry {
  const { call, family, target, error } = record
  record.entry_id ??= orderedAlphanumerics(now_ms, 24)
  const served = record.cache === 'hit' ? undefined : target
  const charged = used({ model, target: served, units, at: record.at })
  return {
    entry_id: record.entry_id,
    kind: 'call',
    at_ms: now_ms,
    call_id: storable(call.request_id),
    token_id: call.caller.token_id,
    project_id: call.caller.project_id ?? null,
    end_user: call.end_user === undefined ? null : storable(call.end_user).slice(0, MAX_END_USER_LENGTH),
    family,
    model: record.model ?? '',
    provider: charged.provider,
    upstream_model: charged.upstream_model,
    units: charged.units,
    requests: 1,
    errors: error !== undefined && !call.signal.aborted ? 1 : 0,
    estimated: units?.estimated ? 1 : 0,
    amount: charged.amount,
    cost: charged.cost,
    price: charged.price,
  }
}

/** What a call is recorded as if its process ends before it: the most that it can use, at its first target. */
export function openEntry(
  record: CallRecord,
  { model, estimate, now_ms }: Pick<AdmissionRequest, 'model' | 'estimate'> & { now_ms: number },
): LedgerEntry {
  const [target] = model.targets
  const units = { ...estimate.most, estimated: true }
  const entry = callEntry({ record, model, now_ms, units })
  return {
    ...entry,
    model: model.id, // not yet that of the record, where a fallback takes over
    estimated: 1,
    amount: mostOf({ model, units, at: Math.floor(now_ms / 1000) }),
    provider: target?.provider.id ?? '',
    upstream_model: target?.model ?? '',
  }
}

/** Of a target that was given up because another one answered first: its provider may charge for it, the caller is not charged. */
export function lostEntry(
  entry: LedgerEntry,
  { record, model, target, units }: Pick<Settled, 'record' | 'model'> & { target: Target | undefined; units: Units },
): LedgerEntry {
  return {
    ...entry,
    entry_id: `${entry.entry_id}:hedge`,
    kind: 'lost_hedge',
    requests: 0,
    errors: 0,
    estimated: 1,
    ...used({ model, target, units: { ...units, estimated: true }, at: record.at }),
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

function used({ model, target, units, at }: UsedParts): Used {
  const provider = target?.provider.id ?? ''
  const upstream_model = target?.model ?? ''
  if (units === undefined) return { provider, upstream_model, units: NO_UNITS, amount: 0, cost: 0, price: null }
  const bounded = boundedUnits(units)
  const { amount, cost, price } = chargeOf({ model, target, units: bounded, at })
  return { provider, upstream_model, units: bounded, amount, cost, price }
}

/** PostgreSQL's text type cannot hold NUL. */
const storable = (text: string): string => text.replaceAll('\0', '')
