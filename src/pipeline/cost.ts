/** Tells the client what its call is charged, where it asks for it. */
import { chargeOf } from '../models/prices.ts'
import { fromNano } from '../spec/money.ts'
import { boundedUnits } from '../spec/units.ts'
import type { AnyMeter, Family, PreparedCall, UsageOf } from './family.ts'

/** The usage that the provider has reported, for the client: with `cost`, in units of the ledger's currency, or null. */
export async function usageForClient<Work, M extends AnyMeter>(
  { asksForCost }: Pick<Family<never, Work, never, M>, 'asksForCost'>,
  { record, metering, model, work }: Pick<PreparedCall<Work, unknown, M>, 'record' | 'metering' | 'model' | 'work'>,
): Promise<UsageOf<M>> {
  const meter = metering.current
  const usage = await meter?.usage()
  if (!meter || !asksForCost?.(work)) return usage as UsageOf<M>
  const { target, at } = record
  const { amount } = chargeOf({ model, target, units: boundedUnits(meter.units(usage)), at })
  return { ...(usage as object), cost: amount === null ? null : fromNano(amount) } as UsageOf<M>
}
