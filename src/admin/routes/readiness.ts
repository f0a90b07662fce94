/** The admin API's readiness: what `/readyz` answers, and what waits to be done or written. */
import Type from 'typebox'
import type { LedgerHealth } from '../../calls/recording/ledger.ts'
import type { Route } from '../../http/context.ts'
import { GatewayError } from '../../spec/error.ts'
import { orNull, titled } from '../../spec/fields.ts'
import { adminRoute } from './route.ts'

export type ReadinessRouteParts = {
  /** Rejects with `storage_unavailable` or `shutting_down`. */
  ready(): Promise<void>
  health: {
    ledger(): LedgerHealth
    tasks(): Promise<{ unfinished: number; oldest_seconds: number; lag_seconds: number }>
    open_requests(): number
  }
  version: string
}

const Count = Type.Integer({ minimum: 0 })
const Readiness = titled('Readiness', {
  status: Type.Enum(['ready', 'not ready']),
  reason: orNull(Type.String(), 'What cannot be written, or that it is being stopped; null: it is ready.'),
  version: Type.String(),
  open_requests: Count,
  ledger: Type.Object(
    {
      queued: Type.Integer({ minimum: 0, description: 'Entries in memory.' }),
      lag_seconds: Type.Number({ description: 'The age of the oldest of them.' }),
      spool_bytes: Type.Integer({ minimum: 0, description: 'On disk, while the store is away.' }),
      lost: Type.Integer({ minimum: 0, description: 'Entries that found no place since the start.' }),
      is_store_away: Type.Boolean(),
    },
    { description: 'Of the process that answers, as are the open requests.' },
  ),
  tasks: orNull(
    Type.Object({ unfinished: Count, oldest_seconds: Type.Number(), lag_seconds: Type.Number() }),
    'Of all processes; null: the store does not answer.',
  ),
})
type Readiness = Type.Static<typeof Readiness>

export function readinessRoutes({ ready, health, version }: ReadinessRouteParts): Route[] {
  const reasonOf = () =>
    ready().then(
      () => null,
      (thrown) => (thrown instanceof GatewayError ? thrown.message : 'the store does not answer'),
    )

  async function read(): Promise<Readiness> {
    const reason = await reasonOf()
    const { queued, lag_ms, spool_bytes, lost, is_store_away } = health.ledger()
    return {
      status: reason === null ? 'ready' : 'not ready',
      reason,
      version,
      open_requests: health.open_requests(),
      ledger: { queued, lag_seconds: lag_ms / 1000, spool_bytes, lost, is_store_away },
      // Asked only where the store answers, since a query would wait.
      tasks: reason === null ? await health.tasks().catch(() => null) : null,
    }
  }

  return [
    adminRoute(['GET', '/admin/v1/readiness', 'read'], {
      summary: 'Whether the gateway can do its work, and what waits',
      description: 'Status 200 in both cases: `/readyz` is for load balancers.',
      response: Readiness,
      handle: async () => Response.json(await read()),
    }),
  ]
}
