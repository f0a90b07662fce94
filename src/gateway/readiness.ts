/** Whether the gateway can do its work, and is not about to stop: for /readyz. */
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import { createProbe } from '../kit/probe.ts'
import type { FileStore } from '../outputs/outputs.ts'
import { GatewayError } from '../spec/error.ts'
import { type SchemaState, schemaProblem } from '../store/schema-state.ts'
import type { Store } from '../store/store.ts'

/** With the time that a busy gateway takes to answer, less than the 2 seconds within which `/readyz` answers. */
const READY_MILLISECONDS = 1_500

type ReadinessParts = { store: Pick<Store, 'ping' | 'schema'>; files: FileStore; clock: Clock; log: Log }

type Readiness = {
  /** Rejects with `storage_unavailable`, which says what cannot be written; the cause is only logged. */
  canStore(): Promise<void>
  /** Rejects also with `shutting_down`, from `announceStop` on: load balancers send their requests elsewhere. */
  accepts(): Promise<void>
  announceStop(): void
}

export function createReadiness({ store, files, clock, log }: ReadinessParts): Readiness {
  let isStopping = false
  let schema: SchemaState | undefined
  /** A newer build may have migrated the database while this one runs. */
  async function pingStore(): Promise<void> {
    await store.ping()
    schema = await store.schema()
  }
  const probes = [
    { check: pingStore, reason: 'the database cannot be written' },
    { check: async () => files.ping?.(), reason: 'the directory of outputs cannot be written' },
  ].map(({ check, reason }) => ({ reason, probe: createProbe({ check, limit_ms: READY_MILLISECONDS, clock }) }))

  async function canStore(): Promise<void> {
    const failures = probes.map(async ({ probe, reason }) => {
      await probe().catch((cause: unknown) => {
        log.error('not ready', { reason }, cause)
        throw new GatewayError('storage_unavailable', reason, { cause })
      })
    })
    await Promise.all(failures)
  }

  return {
    canStore,
    async accepts() {
      if (isStopping) throw new GatewayError('shutting_down', 'the gateway is being stopped')
      await canStore()
      const problem = schema && schemaProblem(schema)
      if (problem !== undefined) throw new GatewayError('storage_unavailable', problem)
    },
    announceStop() {
      isStopping = true
    },
  }
}
