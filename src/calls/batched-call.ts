/** A call that is a line of a batch which its vendor executes: collects its request, and reads its result. */
import { type BatchExchange, type BatchTarget, COLLECTED, withExchange } from '../protocols/shared/batch-exchange.ts'
import type { Target } from '../providers/provider.ts'
import { GatewayError } from '../spec/error.ts'
import { NO_UNITS } from '../spec/usage.ts'
import { createAdmission } from './admission.ts'
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
  const gates = prepared.gates.filter(({ name }) => name === 'budgets')
  await admission.admit(descriptor, { model, work, record, meter, gates })
  const holds = record.holds ?? []
  record.holds = undefined
  exchange.release = () => {
    for (const hold of holds.splice(0)) {
      if (hold.cancel) hold.cancel()
      else hold.settle(NO_UNITS, 0)
    }
  }
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
