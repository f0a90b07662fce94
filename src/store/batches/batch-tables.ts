/** The tables of batches as the query builder sees them. */
import type { Batch, BatchPart, ResultKind } from './batch-store.ts'

/** `request` and `progress` are JSON text. */
export type BatchesTable = Omit<Batch, 'request' | 'progress'> & { request: string; progress: string }

export type BatchLinesTable = {
  batch_id: string
  line: number
  offset_bytes: number
  bytes: number
  custom_id: string
  /** 0: it waits, 1: it is called, 2: it has a result. */
  state: number
  attempts: number
  /** 0 or 1. */
  called_again: number
  kind: ResultKind | null
  /** A line of JSONL; null: there is none, or it is in a part. */
  result: string | null
}

export type BatchTables = {
  batches: BatchesTable
  batch_lines: BatchLinesTable
  batch_parts: BatchPart & { batch_id: string }
}
