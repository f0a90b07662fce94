/** Tells the client what its call is charged, where it asks for it. */
import { chargeOf } from '../models/prices.ts'
import { fromNano } from '../spec/money.ts'
import { boundedUnits } from '../spec/units.ts'
import type { AnyMeter, Family, UsageOf } from './family.ts'
import type { PreparedCall } from './prepared-call.ts'

type Asked<Work, M extends AnyMeter> = Pick<Family<never, Work, never, M>, 'asksForCost'>
type Metered<Work, M extends AnyMeter> = Pick<PreparedCall<Work, unknown, M>, 'record' | 'meter' | 'model' | 'work'>

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
  const { amount } = chargeOf({ model, target, units: boundedUnits(meter.units(usage)), at })
  return { ...(usage as object), cost: amount === null ? null : fromNano(amount) } as UsageOf<M>
}
