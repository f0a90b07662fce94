/** Adds why builds before a schema cannot use the database. Those before this one cannot write a partitioned request log. */
import type { Statements } from './statements.ts'

export const OLDEST_REASON: Record<string, Statements> = {
  '0046-oldest-reason': 'alter table schema_compatibility add column reason text',
}
