/** Shares among the steps of a batch its parts, its progress, and its files: the input, the lines of orders, the results. */
import type { FairSlots } from '../../jobs/fair-slots.ts'
import type { Clock } from '../../kit/clock.ts'
import { freeBytes } from '../../kit/free-bytes.ts'
import { linesOf } from '../../kit/json-lines.ts'
import type { Log } from '../../kit/log.ts'
import { streamOf } from '../../kit/stream-of.ts'
import type { Catalogue } from '../../models/catalogue.ts'
import type { ByteRange, FileStore } from '../../outputs/outputs.ts'
import type { BatchTarget, CallRoute } from '../../protocols/shared/batch-exchange.ts'
import type { Provider } from '../../providers/provider.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Caller } from '../../spec/token.ts'
import type {
  Batch,
  BatchPart,
  BatchProblem,
  BatchProgress,
  BatchStore,
  BatchVendorOrder,
  LineResult,
  ResultKind,
} from '../../store/batches/batch-store.ts'
import type { Files } from '../files/files.ts'
import type { BatchCrashPoint } from '../tasks/crash-points.ts'

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
  /** Of the ledger. */
  currency(): string
  clock: Clock
  log: Log
  crashHook(point: BatchCrashPoint): void
}

/** A batch that this process has claimed. */
export type ClaimedBatch = BatchParts & {
  batch: Batch
  slots: FairSlots
  /** Aborted when the lease is lost or the process stops. */
  signal: AbortSignal
  /** Whether no further line may be started, because the process stops. */
  isClosing(): boolean
}

export const REVOKED = {
  code: 'invalid_api_key',
  message: 'The token of this batch was revoked, or its project disabled.',
}

export const secondsOf = (ms: number): number => Math.floor(ms / 1000)

/** What is stored with the end of a batch: its webhook, where it has one. */
export const endingOf = ({ batch, clock }: Pick<ClaimedBatch, 'batch' | 'clock'>) => {
  const { request, token_id, project_id } = batch
  const { callback } = request
  return callback ? { ended: { callback, token_id, project_id, now_ms: clock.now() } } : {}
}

/** Ends a batch of which nothing was executed. The change; undefined: somebody else has claimed it. */
export async function fail(
  { store, clock, log }: Pick<BatchParts, 'store' | 'clock' | 'log'>,
  batch: Batch,
  { total, problems }: { total: number; problems: BatchProblem[] },
) {
  const progress = { ...batch.progress, problems, ended_at: secondsOf(clock.now()) }
  const change = { status: 'failed', progress, total } as const
  const released = { due_ms: clock.now(), release: true, ...endingOf({ batch, clock }) } as const
  if (!(await store.save(batch, { ...change, ...released }))) return undefined
  log.info('batch failed', { batch_id: batch.batch_id, token_id: batch.token_id, lines: total })
  return change
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
  const { input_file_id, input_key = inputKeyOf(batch.batch_id) } = batch.request
  if (input_file_id !== undefined && !batch.progress.has_copy)
    return files.read(await files.find(input_file_id, { token_id: batch.token_id }), range)
  const file = await fileStore.open(input_key)
  if (!file) throw new GatewayError('file_not_found', 'The requests of the batch do not exist any more.')
  return file.body(range)
}

/** A batch is claimed some ten thousand times at most, and the number has 31 bits. */
const PARTS_OF_CLAIM = 10_000
/** What is read of results at a time: larger parts let the memory of a large batch grow by tens of megabytes. */
const PART_BYTES = 512 * 1024
const PART_LINES = 1_000
const LINES_PER_DELETE = 5_000
const DAY_MILLISECONDS = 86_400_000
const LINES_PER_PIECE = 100
export const JSONL = 'application/jsonl'
const KINDS: readonly ResultKind[] = ['output', 'error']

/** Keys of files: letters, digits, `_`, `-` and `.`. */
export const inputKeyOf = (batch_id: string): string => `batches/${batch_id}/input`
const partKeyOf = (batch_id: string, { kind, part }: Pick<BatchPart, 'kind' | 'part'>): string =>
  `batches/${batch_id}/${kind}-${String(part).padStart(6, '0')}`

export const orderKeyOf = (batch_id: string, { mark, fence }: Pick<BatchVendorOrder, 'mark' | 'fence'>): string =>
  `batches/${batch_id}/order-${mark}-${fence}`

/** The lines of an order that was backed up may have been removed since. */
export const hasLines = async ({ fileStore, batch }: ClaimedBatch, order: BatchVendorOrder): Promise<boolean> =>
  (await fileStore.open(orderKeyOf(batch.batch_id, order))) !== undefined

export async function orderStream({ fileStore, batch }: ClaimedBatch, order: BatchVendorOrder) {
  const file = await fileStore.open(orderKeyOf(batch.batch_id, order))
  if (!file) throw new Error(`The lines of an order of ${batch.batch_id} do not exist any more.`)
  return file.body()
}

/** The numbers of its lines, some at a time. */
export async function* linesInOrder(claimed: ClaimedBatch, order: BatchVendorOrder): AsyncGenerator<number[]> {
  const id = new RegExp(`"${order.mark}(\\d+)"`)
  let numbers: number[] = []
  for await (const piece of linesOf(await orderStream(claimed, order), { max_line_bytes: Number.POSITIVE_INFINITY })) {
    for (const { bytes } of piece) {
      const found = id.exec(Buffer.from(bytes.subarray(0, ID_BYTES)).toString('latin1'))
      if (found) numbers.push(Number(found[1]))
    }
    if (numbers.length < PART_LINES) continue
    yield numbers
    numbers = []
  }
  if (numbers.length > 0) yield numbers
}

/** The id stands at the beginning of a line. */
const ID_BYTES = 200

/** `undefined`: it has ended. */
export async function saveOrder(
  claimed: ClaimedBatch,
  order: BatchVendorOrder,
  change: Partial<BatchVendorOrder> | undefined,
): Promise<boolean> {
  Object.assign(order, change)
  const orders = (claimed.batch.progress.orders ?? []).filter((one) => change || one.mark !== order.mark)
  return saveProgress(claimed, { orders: orders.map((one) => (one.mark === order.mark ? order : one)) })
}

/** `all`: until no result is left. Otherwise one part of each kind. Throws where the claim is lost. */
export async function storeParts(claimed: ClaimedBatch, { all }: { all: boolean }): Promise<void> {
  const { batch, store, fileStore, signal, crashHook } = claimed
  const { batch_id } = batch
  for (const kind of KINDS) {
    for (;;) {
      const results = await store.results(batch_id, kind, PART_BYTES)
      if (results.length === 0) break
      const last = (await store.parts(batch_id, kind)).at(-1)?.part ?? 0
      // Each claim has numbers of its own: what one that was lost still writes must not replace a part of the next.
      const part = Math.max(last, batch.fence * PARTS_OF_CLAIM) + 1
      let bytes = 0
      async function* pieces() {
        for (let at = 0; at < results.length; at += LINES_PER_PIECE) {
          const some = results.slice(at, at + LINES_PER_PIECE)
          const piece = Buffer.from(some.map(({ text }) => `${text}\n`).join(''))
          bytes += piece.length
          yield piece
          freeBytes(piece)
        }
      }
      const key = partKeyOf(batch_id, { kind, part })
      await fileStore.write(key, { content_type: JSONL, body: streamOf(pieces()) }, signal)
      crashHook('batch: part written')
      const place = { kind, part, lines: results.length, bytes }
      const lines = results.map(({ line }) => line)
      if (!(await store.moved(batch, place, lines))) return void (await fileStore.remove(key))
      crashHook('batch: part noted')
      if (!all) break
    }
  }
}

/** Counts results that are in no part yet. `store`: moves them to one where they are enough for it. */
export async function unstoredResults(claimed: ClaimedBatch) {
  let { lines, bytes } = await claimed.store.loose(claimed.batch.batch_id)
  return {
    add({ text }: LineResult): void {
      lines++
      bytes += text.length
    },
    async store(): Promise<void> {
      if (lines < PART_LINES && bytes < PART_BYTES) return
      lines = 0
      bytes = 0
      await storeParts(claimed, { all: false })
    },
  }
}

type Reading = { store: Pick<BatchStore, 'parts'>; fileStore: Pick<FileStore, 'open'> }

/** The parts of these kinds as one stream. */
export async function partsStream(
  { store, fileStore }: Reading,
  batch_id: string,
  kinds: readonly ResultKind[] = KINDS,
): Promise<ReadableStream<Uint8Array>> {
  const parts = (await store.parts(batch_id)).filter(({ kind }) => kinds.includes(kind))
  // Successes first, in the order in which they were stored.
  parts.sort((one, other) => KINDS.indexOf(one.kind) - KINDS.indexOf(other.kind) || one.part - other.part)
  async function* bytes() {
    for (const part of parts) {
      const file = await fileStore.open(partKeyOf(batch_id, part))
      if (!file) throw new Error(`A part of the results of ${batch_id} does not exist.`)
      for await (const piece of file.body()) {
        yield piece
        freeBytes(piece)
      }
    }
  }
  return streamOf(bytes())
}

/** The files first, then their rows: after a failure in between it is repeated. */
async function removeParts(
  { store, fileStore }: { store: Pick<BatchStore, 'parts' | 'deleteParts'>; fileStore: Pick<FileStore, 'remove'> },
  batch_id: string,
): Promise<void> {
  for (const part of await store.parts(batch_id)) await fileStore.remove(partKeyOf(batch_id, part))
  await store.deleteParts(batch_id)
}

/** A file of results, whose id is stored before it is written: written again, it is the same. */
export async function writeFile(claimed: ClaimedBatch, kind: ResultKind): Promise<boolean> {
  const { batch, store, files, signal, crashHook } = claimed
  if ((await store.parts(batch.batch_id, kind)).length === 0) return true
  const name = `${kind}_file_id` as const
  if (batch.progress[name] === undefined && !(await saveProgress(claimed, { [name]: files.newId() }))) return false
  const file_id = batch.progress[name] ?? ''
  const owner = { token_id: batch.token_id, project_id: batch.project_id ?? undefined }
  const { output_seconds } = batch.request
  const file = {
    owner,
    purpose: 'batch_output',
    filename: `${batch.batch_id}_${kind}.jsonl`,
    content_type: JSONL,
    file_id,
    ...(output_seconds !== undefined && { expires_at: secondsOf(claimed.clock.now()) + output_seconds }),
  } as const
  await files.write(file, await partsStream(claimed, batch.batch_id, [kind]), signal)
  crashHook('batch: output written')
  return true
}

/** Removes what an ended batch does not need any more; then all of it, once it has been kept long enough. */
export async function clean({ batch, store, fileStore, settings, clock, crashHook }: ClaimedBatch): Promise<void> {
  const { batch_id, progress, request } = batch
  const ended_ms = (progress.ended_at ?? batch.created_at) * 1000
  const kept_until_ms = ended_ms + settings().keep_days * DAY_MILLISECONDS
  const isOver = batch.deleted_at !== null || clock.now() >= kept_until_ms
  if (progress.is_cleaned && isOver) {
    await removeParts({ store, fileStore }, batch_id)
    await store.remove(batch_id)
    return
  }
  if (!progress.is_cleaned) {
    while ((await store.deleteLines(batch_id, LINES_PER_DELETE)) === LINES_PER_DELETE);
    if (request.input_file_id === undefined || progress.has_copy) await fileStore.remove(inputKeyOf(batch_id))
    if (request.input_file_id !== undefined) await removeParts({ store, fileStore }, batch_id)
  }
  const due_ms = isOver ? clock.now() : kept_until_ms
  await store.save(batch, { progress: { ...progress, is_cleaned: true }, due_ms, release: true })
  crashHook('batch: cleaned')
}
