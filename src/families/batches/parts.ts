/** The parts that the steps of a batch share, and how its progress is stored and its input is read. */
import type { Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import type { Catalogue } from '../../models/catalogue.ts'
import type { ByteRange, FileStore } from '../../outputs/outputs.ts'
import type { BatchExchange, BatchTarget } from '../../protocols/shared/batch-exchange.ts'
import type { Provider } from '../../providers/provider.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Caller } from '../../spec/token.ts'
import type { Batch, BatchProgress, BatchStore } from '../../store/batches/batch-store.ts'
import type { Files } from '../files/files.ts'
import type { BatchCrashHook } from './crash-points.ts'
import type { Slots } from './slots.ts'

export type LineCall = {
  path: string
  headers: Record<string, string>
  body: Uint8Array<ArrayBuffer>
  signal: AbortSignal
  caller: Caller
  /** Set where a vendor executes the line. */
  exchange?: BatchExchange
}
export type LineResponse = { status: number; headers: Pick<Headers, 'get'>; text: string }

/** Handles a line like a request of its path. */
export type CallRoute = (call: LineCall) => Promise<LineResponse>

type BatchSettings = {
  /** Lines that a process calls at a time. */
  concurrency: number
  /** Batches of a token that have not ended. */
  max_unfinished: number
  /** How long a batch and the results of one without files are kept. */
  keep_days: number
}

export type BatchParts = {
  store: BatchStore
  /** Where the requests of message batches and parts of results are. */
  fileStore: FileStore
  /** Files of clients: the input and the results of others. */
  files: Pick<Files, 'find' | 'read' | 'write' | 'newId'>
  catalogue: Pick<Catalogue, 'require'>
  call: CallRoute
  /** The provider of a target, as it is configured now; undefined: it is not. */
  providerOf(target: BatchTarget): Provider | undefined
  /** The caller that this token makes now; undefined: it was revoked, or its project was disabled. */
  callerOf(token_id: string): Promise<Caller | undefined>
  settings(): BatchSettings
  /** Private origins to which webhooks may be sent. */
  callback_origins(): readonly string[]
  clock: Clock
  log: Log
  crashHook: BatchCrashHook
}

/** A batch that this process has claimed. */
export type ClaimedBatch = BatchParts & {
  batch: Batch
  slots: Slots
  /** Aborted when the lease is lost or the process stops. */
  signal: AbortSignal
  /** Whether no further line may be started, because the process stops. */
  isClosing(): boolean
}

export const secondsOf = (ms: number): number => Math.floor(ms / 1000)

/** What is stored with the end of a batch: its webhook, where it has one. */
export const endingOf = ({ batch, clock }: Pick<ClaimedBatch, 'batch' | 'clock'>) => {
  const { request, token_id, project_id } = batch
  const { callback } = request
  return callback ? { ended: { callback, token_id, project_id, now_ms: clock.now() } } : {}
}

/** Stores a change of the progress; false: the claim is lost. */
export async function saveProgress(
  { store, batch }: Pick<ClaimedBatch, 'store' | 'batch'>,
  progress: Partial<BatchProgress>,
  status?: Batch['status'],
): Promise<boolean> {
  const next = { ...batch.progress, ...progress }
  const isSaved = await store.save(batch, { progress: next, ...(status && { status }) })
  if (isSaved) {
    batch.progress = next
    if (status) batch.status = status
  }
  return isSaved
}

/** The bytes of the input. Throws `file_not_found` where there is none any more. */
export async function inputStream(
  { fileStore, files, batch }: Pick<ClaimedBatch, 'fileStore' | 'files' | 'batch'>,
  range?: ByteRange,
): Promise<ReadableStream<Uint8Array>> {
  const { input_file_id, input_key = `batches/${batch.batch_id}/input` } = batch.request
  if (input_file_id !== undefined && !batch.progress.has_copy)
    return files.read(await files.find(input_file_id, { token_id: batch.token_id }), range)
  const file = await fileStore.open(input_key)
  if (!file) throw new GatewayError('file_not_found', 'The requests of the batch do not exist any more.')
  return file.body(range)
}
