/** Batches as the store keeps them: the batch, its lines, and the parts of files that its results are moved to. */
import type { AuditDraft } from '../../spec/audit.ts'
import type { BatchStatus } from '../../spec/batch.ts'
import type { PlacedOrder } from '../../spec/batch-order.ts'

/** Whose API has created it. */
export type BatchApi = 'openai' | 'anthropic'

type BatchCallback = { callback_id: string; url: string }

/** What its creator asks for; never changes. */
export type BatchRequest = {
  /** Where the requests are that were sent with it: the key of a stored file, as JSONL. */
  input_key?: string
  /** The file that the client has uploaded, otherwise. */
  input_file_id?: string
  /** Headers of the request that apply to each line. */
  headers: Record<string, string>
  metadata?: Record<string, string> | null
  /** Notified of its end. */
  callback?: BatchCallback
  /** A line whose outcome is unknown is not called again. */
  exactly_once?: true
  /** The address of the gateway, for links. */
  base_url: string
  completion_window?: string
  /** How long output files are kept. */
  output_seconds?: number
}

export type BatchProblem = { code: string; message: string; param: string | null; line: number | null }

/** Why lines wait, since when and until when in unix milliseconds. */
export type BatchPause = { code: string; message: string; since_ms?: number; until_ms: number }

export type BatchVendorOrder = PlacedOrder & {
  provider: string
  key: string | null
  /** Of the claim that has stored its lines: no other one writes to the same file. */
  fence: number
}

/** What is known about the run of a batch; written by the process that has claimed it. Times in unix seconds. */
export type BatchProgress = {
  model?: string
  in_progress_at?: number
  finalizing_at?: number
  /** When it was completed, failed, cancelled or expired. */
  ended_at?: number
  /** What it becomes once its results are stored. */
  ending?: 'completed' | 'expired' | 'cancelled'
  /** Why the lines that are not called are not. */
  reason?: { code: string; message: string }
  problems?: BatchProblem[]
  pause?: BatchPause | undefined
  /** Batches of vendors that execute lines of it now, and how many there were. */
  orders?: BatchVendorOrder[]
  order_count?: number
  /** The file of the lines of the next one, while it is written. */
  order_file?: string | undefined
  /** All lines that vendors execute are in an order. */
  is_ordered?: true | undefined
  /** From a backup of this time, restored at that one: orders may have been created between. In unix milliseconds. */
  restored?: { backup_ms: number; at_ms: number }
  /** One of those orders was certainly absent. Each that follows is still looked for: the absent one may have been refused. */
  is_recovered?: true
  /** The input was copied, since it is read until the results of vendors are there. */
  has_copy?: true
  output_file_id?: string
  error_file_id?: string
  /** Its lines are deleted, and so are those of its files that nobody reads any more. */
  is_cleaned?: true
}

export const waitingOf = ({ pause, orders }: BatchProgress): BatchPause | undefined =>
  pause ?? orders?.find(({ full, stage }) => full && stage !== 'created')?.full

type BatchCounts = { total: number; succeeded: number; errored: number; canceled: number; expired: number }
export type BatchTokens = {
  input_tokens: number
  cached_tokens: number
  output_tokens: number
  reasoning_tokens: number
}

export type Batch = BatchCounts &
  BatchTokens & {
    batch_id: string
    token_id: string
    project_id: string | null
    api: BatchApi
    /** The path that each line calls. */
    endpoint: string
    status: BatchStatus
    request: BatchRequest
    progress: BatchProgress
    created_at: number
    expires_at: number
    cancelling_at: number | null
    /** When its owner has deleted it: it is not found any more. */
    deleted_at: number | null
    /** When it is due; while it is claimed, the end of the lease. Null: nothing is left to do. */
    due_ms: number | null
    /** Empty: it is not claimed. */
    leased_by: string
    fence: number
  }

/** A line of the input: where it lies, and how often its call was started. */
export type BatchLine = {
  line: number
  offset: number
  bytes: number
  custom_id: string
  attempts: number
  /** Its outcome was unknown once. */
  called_again: boolean
}
export type NewLine = Pick<BatchLine, 'line' | 'offset' | 'bytes' | 'custom_id'>

/** Results that succeeded, and all others. */
export type ResultKind = 'output' | 'error'
export type LineOutcome = 'succeeded' | 'errored' | 'canceled' | 'expired'
export type LineResult = { outcome: LineOutcome; kind: ResultKind; text: string; tokens?: BatchTokens | undefined }

export type BatchPart = { kind: ResultKind; part: number; lines: number; bytes: number }
type Claimed = Pick<Batch, 'batch_id' | 'fence'>
type Started = Pick<BatchLine, 'line' | 'attempts'>

export type BatchFilter = {
  token_id?: string
  project_id?: string
  api?: BatchApi
  statuses?: readonly BatchStatus[]
  /** The place after which the page starts: `created_at` and `batch_id`. */
  after?: Pick<Batch, 'created_at' | 'batch_id'> | undefined
  limit: number
  /** Default `desc`: newest first. */
  order?: 'asc' | 'desc'
}

type BatchChange = {
  status?: Batch['status']
  progress?: BatchProgress
  total?: number
  due_ms?: number | null
  /** It has ended: this webhook is due from now on. */
  ended?: { callback: BatchCallback; token_id: string; project_id: string | null; now_ms: number }
  release?: true
}

export type BatchStore = BatchLineStore & {
  /** Durable when it resolves. */
  add(batch: Batch): Promise<void>
  /** With a `token_id`: only a batch of that token that was not deleted. */
  find(batch_id: string, token_id?: string): Promise<Batch | undefined>
  list(filter: BatchFilter): Promise<Batch[]>
  /** How many of a token have not ended. */
  unfinished(token_id: string): Promise<number>
  /** By status, of those that have not ended. */
  counts(): Promise<{ status: BatchStatus; batches: number }[]>
  earliest(): Promise<number | null>
  /** Claims due batches, the oldest of each token before the second of any. */
  claim(claim: { by: string; now_ms: number; until_ms: number; limit: number }): Promise<Batch[]>
  renew(batch: Claimed, due_ms: number): Promise<boolean>
  /** False, and nothing is written, if the fence has changed. */
  save(batch: Claimed, change: BatchChange): Promise<boolean>
  /** Releases the claims of batches that are not run now. */
  postpone(batches: readonly (Claimed & { due_ms: number })[]): Promise<void>
  /** Sets `cancelling` where it has not ended, and makes it due. The batch as it is then; undefined: there is none. */
  cancel(
    batch_id: string,
    at: { now: number; now_ms: number; token_id?: string; audit?: AuditDraft },
  ): Promise<Batch | undefined>
  /** Hides an ended batch, and makes it due to be removed. */
  hide(batch_id: string, token_id: string, at: { now: number; now_ms: number }): Promise<void>
  /** Removes the row of an ended batch. */
  remove(batch_id: string): Promise<void>
}

export type BatchLineStore = {
  /** Replaces all lines from this number on: after a crash they are read again. False if the fence has changed. */
  addLines(batch: Claimed, lines: readonly NewLine[]): Promise<boolean>
  /** Lines that wait, after this number. */
  pending(batch_id: string, after: number, limit: number): Promise<BatchLine[]>
  /** Marks a line as started, right before it is called. `stopped`: the batch takes no more lines. `lost`: another process has it. */
  start(batch: Claimed, line: BatchLine): Promise<'started' | 'stopped' | 'lost' | 'gone'>
  /** Stores the result of a started line. False: it was given up meanwhile. */
  end(batch_id: string, line: Started, result: LineResult): Promise<boolean>
  /** Nothing was sent: the line waits again. */
  unstart(batch_id: string, line: Started): Promise<void>
  /** Lines that were started by a process that is gone. */
  started(batch_id: string): Promise<BatchLine[]>
  /** They wait again, marked as called again. */
  callAgain(batch: Claimed): Promise<boolean>
  /** Gives results to lines that wait or whose outcome is unknown. False if the fence has changed. */
  close(batch: Claimed, results: readonly { line: number; result: LineResult }[]): Promise<boolean>

  /** These lines, of those that wait, are given to a batch of their vendor. False if the fence has changed. */
  order(batch: Claimed, lines: readonly number[]): Promise<boolean>
  /** Of these lines those that a batch of their vendor has. */
  ordered(batch_id: string, lines: readonly number[]): Promise<BatchLine[]>
  /** Gives them results; without one a line waits again. False if the fence has changed. */
  closeOrdered(batch: Claimed, results: readonly { line: number; result?: LineResult }[]): Promise<boolean>

  /** Results that are not in a part yet: how many, and their size. */
  loose(batch_id: string): Promise<{ lines: number; bytes: number }>
  /** The first of them, together at most of this size, but at least one. */
  results(batch_id: string, kind: ResultKind, max_bytes: number): Promise<{ line: number; text: string }[]>
  parts(batch_id: string, kind?: ResultKind): Promise<BatchPart[]>
  /** These results are in a stored part now. False if the fence has changed. */
  moved(batch: Claimed, part: BatchPart, lines: readonly number[]): Promise<boolean>
  /** Deletes lines of an ended batch; returns how many. */
  deleteLines(batch_id: string, limit: number): Promise<number>
  deleteParts(batch_id: string): Promise<void>
}
