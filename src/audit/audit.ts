/** The audit log: records what the store does not append by itself, and reads it. */
import type { Clock } from '../kit/clock.ts'
import type { AuditEvent, AuditOrigin, AuditRow } from '../spec/audit.ts'
import type { AuditCheck, AuditFilter, AuditStore } from '../store/audit-store.ts'
import type { StorePage } from '../store/page.ts'

export type Audit = {
  /**
   * Records a change. Resolves when it is stored, before which a change is not to be confirmed. Secrets are removed
   * from `before` and `after`, of which only the members that differ are stored.
   */
  record(event: AuditOrigin & AuditEvent): Promise<void>
  /** Newest first. */
  page(filter: AuditFilter & { limit: number; after?: string[] }): Promise<StorePage<AuditRow>>
  /** Checks that no row was changed, removed or inserted. */
  verify(): Promise<AuditCheck>
}

export function createAudit({ store, clock }: { store: AuditStore; clock: Pick<Clock, 'now'> }): Audit {
  return {
    record: (event) => store.append({ ...event, at_ms: clock.now() }),
    page: store.page,
    verify: store.verify,
  }
}
