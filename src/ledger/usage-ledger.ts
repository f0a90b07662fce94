/** Records the usage of tokens: counted in memory at once, written some seconds later. */
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import type { UsageRow } from '../spec/token.ts'
import { createBatch } from '../store/batched-writes.ts'
import type { UsageStore } from '../store/store.ts'

/** One request that has come to its end. */
export type Use = {
  token_id: string
  /** The full public id. */
  model: string
  input_tokens: number
  output_tokens: number
  error: boolean
  /** Whether the token counts are an estimate. */
  estimated: boolean
}

type Ledger = {
  /** Records a call; never waits, never throws. */
  record(use: Use): void
  /** Writes what is still in memory. */
  close(): Promise<void>
}

type LedgerParts = {
  usage: Pick<UsageStore, 'add'>
  clock: Clock
  log: Log
  /** Called for every token that was used. */
  onUsed?: (token_id: string) => void
}

const WRITE_EVERY_MILLISECONDS = 2_000
/** Each row is one token, model and hour: some 3 MB at most while the store is away. */
const MAX_ROWS = 10_000
const HOUR_SECONDS = 3_600
/** No response has a billion tokens. A provider's wrong count must not corrupt the sums. */
const MAX_COUNT = 1_000_000_000

export function createLedger({ usage, clock, log, onUsed = () => {} }: LedgerParts): Ledger {
  const batch = createBatch<UsageRow>({
    clock,
    log,
    what: 'usage',
    every_ms: WRITE_EVERY_MILLISECONDS,
    max_rows: MAX_ROWS,
    key: ({ token_id, model, hour }) => `${token_id} ${hour} ${model}`,
    merge: addUp,
    write: (rows) => usage.add(rows),
  })
  return {
    record({ token_id, model, input_tokens, output_tokens, error, estimated }) {
      onUsed(token_id)
      batch.add({
        token_id,
        model,
        hour: Math.floor(clock.now() / 1000 / HOUR_SECONDS) * HOUR_SECONDS,
        requests: 1,
        errors: error ? 1 : 0,
        input_tokens: count(input_tokens),
        output_tokens: count(output_tokens),
        estimated: estimated ? 1 : 0,
      })
    },
    close: batch.close,
  }
}

function addUp(into: UsageRow, row: UsageRow): void {
  into.requests += row.requests
  into.errors += row.errors
  into.input_tokens += row.input_tokens
  into.output_tokens += row.output_tokens
  into.estimated += row.estimated
}

const count = (tokens: number): number => (tokens > 0 ? Math.min(MAX_COUNT, Math.round(tokens)) : 0)
