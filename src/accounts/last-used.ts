/** Records when tokens were last used, and writes it from time to time: a hint for operators, not an audit log. */
import { BatchQueue } from '../kit/batch-queue.ts'
import { type Clock, unixSeconds } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import type { TokenStore } from '../store/tokens/account-store.ts'

const WRITE_EVERY_MILLISECONDS = 30_000
const WRITE_MILLISECONDS = 10_000
const MAX_TOKENS = 50_000
/** Rows of one transaction: it blocks the event loop for a few milliseconds. */
const TOKENS_PER_WRITE = 500

type Parts = { store: Pick<TokenStore, 'touch'>; clock: Clock; log: Log }

export function createLastUsed({ store, clock, log }: Parts): {
  used(token_id: string): void
  close(): Promise<void>
} {
  /** In unix seconds, of the tokens that wait to be written. */
  const times = new Map<string, number>()
  const queue = new BatchQueue<string>({
    name: 'last use of tokens',
    async write(token_ids) {
      const rows = token_ids.flatMap((token_id) => {
        const last_used_at = times.get(token_id)
        return last_used_at === undefined ? [] : [{ token_id, last_used_at }]
      })
      await store.touch(rows)
      // One that was used meanwhile waits again.
      for (const { token_id, last_used_at } of rows)
        if (times.get(token_id) === last_used_at || !queue.push(token_id)) times.delete(token_id)
      return 0
    },
    max_queued: MAX_TOKENS,
    max_batch: TOKENS_PER_WRITE,
    every_ms: WRITE_EVERY_MILLISECONDS,
    timeout_ms: WRITE_MILLISECONDS,
    clock,
    log,
  })
  return {
    used(token_id) {
      if (times.has(token_id) || queue.push(token_id)) times.set(token_id, unixSeconds(clock))
    },
    close: () => queue.close({ deadline_ms: WRITE_MILLISECONDS }),
  }
}
