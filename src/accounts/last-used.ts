/** Records when tokens were last used, and writes it from time to time: a hint for operators, not an audit log. */
import { type Clock, unixSeconds } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import type { TokenStore } from '../store/account-store.ts'
import { createBatch } from '../store/batched-writes.ts'

const WRITE_EVERY_MILLISECONDS = 30_000
const MAX_ROWS = 50_000

type Row = { token_id: string; last_used_at: number }
type Parts = { store: Pick<TokenStore, 'touch'>; clock: Clock; log: Log }

export function createLastUsed({ store, clock, log }: Parts): {
  used(token_id: string): void
  close(): Promise<void>
} {
  const batch = createBatch<Row>({
    clock,
    log,
    what: 'last use of tokens',
    every_ms: WRITE_EVERY_MILLISECONDS,
    max_rows: MAX_ROWS,
    key: ({ token_id }) => token_id,
    merge: (into, { last_used_at }) => {
      into.last_used_at = Math.max(into.last_used_at, last_used_at)
    },
    write: (rows) => store.touch(rows),
  })
  return { used: (token_id) => batch.add({ token_id, last_used_at: unixSeconds(clock) }), close: batch.close }
}
