/** The simulated provider (`packages/sandbox`) as every gateway has it: loaded with the first call of one of its members. */
import type { SandboxParts } from '../../packages/sandbox/src/sandbox.ts'
import type { Clock } from '../kit/clock.ts'
import { errorFromResponse } from '../protocols/shared/provider-error.ts'
import { createSimulatedBatches } from './batches/simulated-batches.ts'
import { type FamilyMember, SERVED_BY } from './families.ts'
import { acceptanceDetail } from './orders/acceptance.ts'
import type { Provider, SimulatedErrors } from './provider.ts'

export { SANDBOX_MODELS } from '../../packages/sandbox/src/models.ts'

export function createLazySandbox(parts: Omit<SandboxParts, 'errors'>): Provider {
  const { batches, asLines } = createSimulatedBatches({
    clock: parts.clock,
    errors: simulatedErrors(parts),
    load: () => void load(),
  })
  let loaded: Provider | undefined
  const load = (): Provider => {
    if (loaded) return loaded
    const { createSandbox } =
      require('../../packages/sandbox/src/sandbox.ts') as typeof import('../../packages/sandbox/src/sandbox.ts')
    const sandbox = createSandbox({ ...parts, errors: simulatedErrors(parts) })
    const { chat, embeddings, moderations } = sandbox
    loaded = {
      ...sandbox,
      ...(chat && { chat: { ...chat, complete: asLines('/chat', chat.complete) } }),
      ...(embeddings && { embeddings: { ...embeddings, embed: asLines('/embeddings', embeddings.embed) } }),
      ...(moderations && { moderations: { moderate: asLines('/moderations', moderations.moderate) } }),
    }
    return loaded
  }
  /** A member whose functions are looked up in the loaded sandbox. */
  const lazy = (name: FamilyMember) =>
    new Proxy({}, { get: (_, property): unknown => Reflect.get(load()[name] ?? {}, property) })
  const served = new Set(Object.values(SERVED_BY))
  // The image provider needs a reader for the media of a request.
  if (!parts.media) served.delete('images')
  return {
    id: parts.id,
    kind: 'sandbox',
    batches,
    ...(Object.fromEntries([...served].map((name) => [name, lazy(name)])) as Pick<Provider, FamilyMember>),
    async close() {
      await loaded?.close?.()
    },
  }
}

/** A simulated error response takes the same path as the response of a real provider. */
export const simulatedErrors = ({ id, clock }: { id: string; clock: Clock }): SimulatedErrors => ({
  fromResponse: ({ model, status, retry_after, message }) =>
    errorFromResponse({
      provider: id,
      model,
      status,
      headers: new Headers(retry_after === undefined ? {} : { 'retry-after': String(retry_after) }),
      payload: { error: { message } },
      clock,
    }),
  acceptance: (status) => acceptanceDetail({ kind: 'sandbox', status, payload: undefined }),
})
