/** The audit log: records what the store does not append by itself, and reads it. */
import type { Clock } from '../../kit/clock.ts'
import type { AuditEvent, AuditOrigin, AuditRow } from '../../spec/audit.ts'
import type { AuditCheck, AuditFilter, AuditStore } from '../../store/admin/audit-store.ts'
import type { StorePage } from '../../store/page.ts'

/** `after`: for the audit log. */
type Outcome<T> = { result: T; after: unknown }

export type Audit = {
  /**
   * Records a change. Resolves when it is stored, before which a change is not to be confirmed. Secrets are removed
   * from `before` and `after`, of which only the members that differ are stored.
   */
  record(event: AuditOrigin & AuditEvent): Promise<void>
  /**
   * For a change that is not in the store: a row `<action>.begin` before it, and a row `<action>` after it with what
   * `work` returns as `after`, or with `failed: true`. A process that ends in between leaves the first. Nothing is done
   * where the first row cannot be stored.
   */
  around<T>(event: AuditOrigin & AuditEvent, work: () => Outcome<T> | Promise<Outcome<T>>): Promise<T>
  /** Newest first. */
  page(filter: AuditFilter & { limit: number; after?: string[] }): Promise<StorePage<AuditRow>>
  /** Checks that no row was changed, removed or inserted. */
  verify(): Promise<AuditCheck>
}

export function createAudit({ store, clock }: { store: AuditStore; clock: Pick<Clock, 'now'> }): Audit {
  const record: Audit['record'] = (event) => store.append({ ...event, at_ms: clock.now() })
  return {
    record,
    async around(event, work) {
      await record({ ...event, action: `${event.action}.begin` })
      const { result, after } = await Promise.try(work).catch(async (error: unknown) => {
        await record({ ...event, after: { failed: true } }).catch(() => {}) // the first row stands
        throw error
      })
      await record({ ...event, after })
      return result
    },
    page: store.page,
    verify: store.verify,
  }
}
