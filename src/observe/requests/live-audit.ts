/** Reads the audit log for those who follow it: its rows are in the store, whichever process recorded them. */
import type { Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import type { AuditRow } from '../../spec/audit.ts'
import type { AuditStore } from '../../store/admin/audit-store.ts'
import { type Follower, give, type LiveItem, lose } from './live-followers.ts'

type LiveAudit = {
  /** Somebody new follows: what was recorded before is sent only where its place says so. */
  begin(follower: Follower): Promise<void>
  left(): void
}

type AuditParts = {
  audit: Pick<AuditStore, 'page'>
  followers: Iterable<Follower>
  clock: Clock
  log: Log
}

/** How soon a row of the audit log is sent. */
const LOOK_MILLISECONDS = 1_000
const ROWS = 200

export function createLiveAudit({ audit, followers, clock, log }: AuditParts): LiveAudit {
  /** The last row that was sent. */
  let sequence: number | undefined
  let cancelLook = () => {}

  function isFollowed(): boolean {
    for (const { filter } of followers) if (filter.types.includes('audit')) return true
    return false
  }

  function publish(rows: readonly AuditRow[], to: Iterable<Follower>): void {
    const items = rows.map((row): LiveItem => {
      const { at_ms, project_id, sequence: number } = row
      return { type: 'audit', at_ms, project_id, audit: number, data: () => shown(row) }
    })
    for (const follower of to) for (const item of items) if ((item.audit ?? 0) > follower.audit) give(follower, item)
  }

  /** More was recorded at once than is read: nobody knows whose it is. */
  function drop(rows: number): void {
    for (const follower of followers) {
      if (follower.filter.types.includes('audit') && follower.filter.project_id === undefined) follower.dropped += rows
    }
  }

  async function look(): Promise<void> {
    try {
      const { rows } = await audit.page({ limit: sequence === undefined ? 1 : ROWS })
      const known = sequence ?? rows[0]?.sequence ?? 0
      const later = rows.filter((row) => row.sequence > known).toReversed()
      const missed = later.length === 0 ? 0 : (later[0]?.sequence ?? 0) - known - 1
      if (missed > 0) drop(missed)
      publish(later, followers)
      sequence = Math.max(known, later.at(-1)?.sequence ?? 0)
    } catch (error) {
      log.error('live events could not read the audit log', {}, error)
    }
    if (isFollowed()) lookLater()
    else sequence = undefined
  }

  function lookLater(): void {
    cancelLook()
    cancelLook = clock.after(LOOK_MILLISECONDS, () => void look())
  }

  /** Until it has read these, no later ones are given to it. */
  async function readEarlier(follower: Follower, after: number): Promise<void> {
    let last = after
    do {
      const { rows } = await audit.page({ limit: ROWS })
      follower.audit = last
      if ((rows.at(-1)?.sequence ?? 0) > last + 1) lose(follower, clock.now()) // more than are read at once
      publish(rows.toReversed(), [follower])
      last = Math.max(last, rows[0]?.sequence ?? 0)
      follower.audit = Number.POSITIVE_INFINITY
    } while ((sequence ?? 0) > last)
    follower.audit = last
  }

  return {
    async begin(follower) {
      const { types, after } = follower.filter
      if (!types.includes('audit')) return
      const isBack = after !== undefined && after.audit > 0
      if (isBack) follower.audit = Number.POSITIVE_INFINITY
      if (sequence === undefined) void look()
      if (isBack) await readEarlier(follower, after.audit)
    },
    left() {
      if (isFollowed()) return
      cancelLook()
      sequence = undefined
    },
  }
}

/** The hashes are for the check of the chain. */
const shown = ({ previous_hash: _, hash: __, ...row }: AuditRow): object => row
