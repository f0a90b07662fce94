/** Moves results from the database to parts of a file, so that the database stays small, and reads them again. */
import { streamOf } from '../../kit/stream-of.ts'
import type { FileStore } from '../../outputs/outputs.ts'
import type { BatchPart, BatchStore, ResultKind } from '../../store/batches/batch-store.ts'
import type { ClaimedBatch } from './parts.ts'

/** Of 2 MiB; a batch is claimed some ten thousand times at most, and the number has 31 bits. */
const PARTS_OF_CLAIM = 10_000
const PART_BYTES = 2 * 1024 * 1024
const TYPE = 'application/jsonl'
const KINDS: readonly ResultKind[] = ['output', 'error']

/** Keys of files: letters, digits, `_`, `-` and `.`. */
export const inputKeyOf = (batch_id: string): string => `batches/${batch_id}/input`
const partKeyOf = (batch_id: string, { kind, part }: Pick<BatchPart, 'kind' | 'part'>): string =>
  `batches/${batch_id}/${kind}-${String(part).padStart(6, '0')}`

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
      const bytes = Buffer.from(results.map(({ text }) => `${text}\n`).join(''))
      const body = new Blob([bytes]).stream()
      const key = partKeyOf(batch_id, { kind, part })
      await fileStore.write(key, { content_type: TYPE, body }, signal)
      crashHook('batch: part written')
      const place = { kind, part, lines: results.length, bytes: bytes.length }
      const lines = results.map(({ line }) => line)
      if (!(await store.moved(batch, place, lines))) return void (await fileStore.remove(key))
      crashHook('batch: part noted')
      if (!all) break
    }
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
      yield* file.body()
    }
  }
  return streamOf(bytes())
}

/** The files first, then their rows: after a failure in between it is repeated. */
export async function removeParts(
  { store, fileStore }: { store: Pick<BatchStore, 'parts' | 'deleteParts'>; fileStore: Pick<FileStore, 'remove'> },
  batch_id: string,
): Promise<void> {
  for (const part of await store.parts(batch_id)) await fileStore.remove(partKeyOf(batch_id, part))
  await store.deleteParts(batch_id)
}
