/** A call that is a line of a batch which its vendor executes: collects its request, and reads its result. */
import { chargeOf, mostOf } from '../models/prices.ts'
import { type BatchExchange, type BatchTarget, COLLECTED, withExchange } from '../protocols/shared/batch-exchange.ts'
import type { Target } from '../providers/provider.ts'
import { GatewayError } from '../spec/error.ts'
import { NO_UNITS } from '../spec/usage.ts'
import { createAdmission, undo } from './admission.ts'
import { type AnyMeter, type ByTarget, sendAndRead } from './family.ts'
import { executeGuarded } from './guarded-call.ts'
import type { PreparedCall } from './prepared-call.ts'

const admission = createAdmission()

/** Throws what the vendor has answered where that is an error. */
export async function readBatched<Work, Answer, M extends AnyMeter>(
  prepared: PreparedCall<Work, Answer, M>,
  exchange: BatchExchange,
): Promise<Answer> {
  const { call, descriptor, record } = prepared
  record.entry_id = exchange.entry_id
  const work = () => {
    const target = targetOf(prepared, exchange)
    record.target = target
    const named = { provider: target.provider.id, key: target.key ?? null, model: target.model }
    return withExchange(exchange, named, () =>
      sendAndRead(descriptor as ByTarget<Work, Answer, M>, { target, work: prepared.work, tried: prepared }),
    )
  }
  return await (call.guards ? executeGuarded(prepared, call.guards, work) : work())
}

/** Admits the call to the budgets, as its cost is known before; rate limits of the gateway are not those of a vendor's batches. */
export async function collectBatched<Work, Answer, M extends AnyMeter>(
  prepared: PreparedCall<Work, Answer, M>,
  exchange: BatchExchange,
): Promise<never> {
  const { descriptor, record, model, work, meter } = prepared
  const gates = exchange.estimates ? [] : prepared.gates.filter(({ name }) => name === 'budgets')
  await admission.admit(descriptor, { model, work, record, meter, gates })
  if (exchange.estimates) {
    exchange.estimated = estimateOf(prepared)
    throw COLLECTED
  }
  const holds = record.holds ?? []
  record.holds = undefined
  exchange.release = () => undo(holds)
  try {
    await readBatched(prepared, exchange)
  } catch (thrown) {
    if (exchange.collected) throw COLLECTED
    exchange.release()
    throw thrown
  }
  exchange.release()
  throw new GatewayError('internal_error', 'A line of a batch was answered before it was sent.')
}

/** At least its input is charged; at most all that it may generate, at the dearest prices that this can have. */
function estimateOf({ record, model }: Pick<PreparedCall<never, never, AnyMeter>, 'record' | 'model'>) {
  const { expected = NO_UNITS, most = NO_UNITS } = record.estimate ?? {}
  const tier = model.has_native_batches ? { service_tier: 'batch' } : {}
  const { at } = record
  const input = { ...NO_UNITS, ...tier, input_tokens: expected.input_tokens }
  return {
    input_tokens: expected.input_tokens,
    output_tokens: most.output_tokens,
    lowest: chargeOf({ model, target: undefined, units: input, at }).amount,
    highest: mostOf({ model, units: { ...most, ...tier }, at }),
  }
}

function targetOf<Work, Answer, M extends AnyMeter>(
  { descriptor, work, model }: PreparedCall<Work, Answer, M>,
  { result }: BatchExchange,
): Target {
  const targets = descriptor.execute ? [] : descriptor.targets(work)
  const found = result
    ? targets.find((target) => isSame(target, result))
    : targets
        .filter(({ provider, weight = 1 }) => provider.batches && weight > 0)
        .sort((one, other) => (one.priority ?? 0) - (other.priority ?? 0))[0]
  if (found) return found
  throw new GatewayError('no_available_channel', `No provider of "${model.id}" executes batches of this endpoint.`)
}

const isSame = ({ provider, key = undefined, model }: Target, target: BatchTarget): boolean =>
  provider.id === target.provider && (key ?? null) === target.key && model === target.model
