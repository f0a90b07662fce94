/** The tables as the query builder sees them; nothing here leaves the room. */
import type { Kysely, Transaction } from 'kysely'
import type { UsageRow } from '../spec/token.ts'

type TokensTable = {
  token_id: string
  name: string
  prefix: string
  hash: string
  /** JSON text: an array of glob patterns. */
  models: string
  /** JSON text: an array of families; null is every family. */
  families: string | null
  expires_at: number | null
  /** 0 or 1. */
  disabled: number
  created_at: number
  last_used_at: number | null
  /** The revision with which it came: the order among tokens of one second. */
  added_revision: number
}

type ModelsTable = { id: string; first_seen: number }

/** How often each noun was changed. */
type RevisionsTable = { noun: string; revision: number }

export type Tables = {
  tokens: TokensTable
  usage: UsageRow
  models: ModelsTable
  revisions: RevisionsTable
}

export type Database = Kysely<Tables>
export type Write = Transaction<Tables>
