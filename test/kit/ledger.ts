/** Entries of the ledger for tests that only care about their counts. */
import { randomAlphanumerics } from '../../src/kit/secret.ts'
import type { UsageRow } from '../../src/spec/token.ts'
import type { LedgerEntry } from '../../src/store/ledger/ledger-entry.ts'

export const entry = (change: Partial<LedgerEntry> = {}): LedgerEntry => ({
  entry_id: randomAlphanumerics(24),
  kind: 'call',
  at_ms: Date.UTC(2026, 0, 1, 12, 30),
  call_id: 'req_a',
  token_id: 'tok_a',
  project_id: null,
  end_user: null,
  family: 'chatcompat',
  model: 'sandbox/general',
  provider: 'sandbox',
  upstream_model: 'general',
  units: { input_tokens: 10, output_tokens: 20 },
  requests: 1,
  errors: 0,
  estimated: 0,
  amount: 30,
  cost: 25,
  price: null,
  ...change,
})

/** One entry with the counts of a row. */
export const entryOf = ({ hour, input_tokens, output_tokens, ...row }: UsageRow): LedgerEntry =>
  entry({ ...row, at_ms: hour * 1000, units: { input_tokens, output_tokens } })
