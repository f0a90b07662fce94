/** Takes the orders of a batch to its vendors: created once, polled, and their results read like responses to calls. */
import { LEASE_LOST } from '../../jobs/job-loop.ts'
import type { BatchProvider, VendorResult } from '../../providers/batches/batch-provider.ts'
import { placeOrder } from '../../providers/batches/place-order.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Caller } from '../../spec/token.ts'
import type { BatchLine, BatchVendorOrder, LineResult } from '../../store/batches/batch-store.ts'
import { readLineResult, UNKNOWN, uncalledResult } from './call-line.ts'
import { type ClaimedBatch, saveProgress, unstoredResults } from './parts.ts'
import { collectOrders, hasLines, linesInOrder, orderKeyOf, orderStream, readInput, saveOrder } from './read-input.ts'

/** `done`: vendors have nothing more to do. `until_ms`: when to look again; `isOver`: no further line may be called. */
export type Ordered = 'lost' | 'done' | { until_ms: number; isOver: boolean }

const PAUSE_MILLISECONDS = 60_000
/** So long after a restore a vendor is asked what it has of a batch that is over. */
const SOUGHT_MILLISECONDS = 3_600_000
/** So long after its window an order may still end; then its lines end as unknown. */
const LATE_MILLISECONDS = 2 * 86_400_000
const RESULTS_AT_ONCE = 64
const PART_LINES = 1_000

export async function runOrders(claimed: ClaimedBatch): Promise<Ordered> {
  const { batch, clock } = claimed
  const { progress } = batch
  if (progress.is_ordered && !progress.orders?.length) return 'done'
  if (batch.status === 'finalizing') return 'done'
  const caller = await claimed.callerOf(batch.token_id)
  const isOver = batch.status !== 'in_progress' || clock.now() >= batch.expires_at * 1000 || !caller
  const release: (() => void)[] = []
  try {
    let until_ms = Number.POSITIVE_INFINITY
    // One that is over is only looked for at its vendor.
    const mayCollect = !isOver || (progress.restored && !progress.is_recovered)
    if (mayCollect && caller && !progress.is_ordered) {
      const collected = await collectOrders(claimed, caller, release).catch((thrown: unknown) => {
        if (isOver && thrown instanceof GatewayError && thrown.code === 'file_not_found') return { pause: undefined }
        throw thrown
      })
      if (collected === 'lost') return 'lost'
      if (!isOver && !(await saveProgress(claimed, { pause: collected.pause }))) return 'lost'
      if (!isOver && collected.pause) until_ms = collected.pause.until_ms
    }
    for (const order of [...(batch.progress.orders ?? [])]) {
      if (claimed.isClosing()) return { until_ms: clock.now(), isOver: true }
      until_ms = Math.min(until_ms, await step(claimed, order, { isOver, caller }))
    }
    if (until_ms !== Number.POSITIVE_INFINITY) return { until_ms, isOver: isOver || !batch.progress.is_ordered }
    return batch.progress.is_ordered || isOver ? 'done' : { until_ms: clock.now(), isOver: true }
  } finally {
    for (const free of release) free()
  }
}

type Stepping = { isOver: boolean; caller: Caller | undefined }

/** Takes it as far as possible; the result is when to look again: infinite where it has ended. */
async function step(claimed: ClaimedBatch, order: BatchVendorOrder, stepping: Stepping): Promise<number> {
  const { batch, clock, log, signal } = claimed
  const fields = { batch_id: batch.batch_id, provider: order.provider, order: order.mark }
  const vendor = claimed.providerOf(order)?.batches
  const isLate = clock.now() >= batch.expires_at * 1000 + LATE_MILLISECONDS
  if (isLate) await end(claimed, order, UNKNOWN)
  else if (!vendor) {
    log.warn('the provider of a batch is not configured', fields)
    return clock.now() + PAUSE_MILLISECONDS
  } else
    try {
      const wait_ms = await advance(claimed, order, vendor, stepping)
      if (wait_ms !== undefined) return clock.now() + wait_ms
    } catch (thrown) {
      signal.throwIfAborted()
      if (!(thrown instanceof GatewayError) || thrown === LEASE_LOST) throw thrown
      log.warn('order of a batch failed', { ...fields, stage: order.stage, error: thrown.code, why: thrown.message })
      if (!isUnknowable(claimed, order, thrown, stepping.isOver)) return clock.now() + PAUSE_MILLISECONDS
      await end(claimed, order, UNKNOWN)
    }
  return Number.POSITIVE_INFINITY
}

/** In how many milliseconds to look again; undefined: it has ended. */
async function advance(
  claimed: ClaimedBatch,
  order: BatchVendorOrder,
  vendor: BatchProvider,
  { isOver, caller }: Stepping,
): Promise<number | undefined> {
  const { batch, clock, signal, log, crashHook } = claimed
  const { progress, status } = batch
  const lines = () => orderStream(claimed, order)
  const placed = await placeOrder(order, {
    vendor,
    lines,
    async save(change) {
      if (!(await saveOrder(claimed, order, change))) throw LEASE_LOST
    },
    isOver,
    restored: progress.restored,
    hasLines: () => hasLines(claimed, order),
    onAbsent() {
      batch.progress[isOver ? 'is_ordered' : 'is_recovered'] = true
    },
    crashHook,
    warn: (event, why) => log.warn(event, { order: order.id, why }),
    clock,
    signal,
  })
  if (placed.is === 'later') return placed.wait_ms
  let reason: Reason | undefined
  if (placed.is === 'gone') batch.progress.is_ordered = undefined
  else if (placed.is === 'unknown') reason = UNKNOWN
  else if (placed.is === 'refused') reason = { outcome: 'errored', code: placed.code, message: placed.message }
  else if (placed.is === 'ended') {
    await readResults(claimed, order, vendor.results(order.id ?? '', signal, lines), caller)
    const cancelled = { outcome: status === 'cancelling' ? 'canceled' : 'expired', ...NOT_EXECUTED } as const
    if (placed.problem !== undefined) reason = { outcome: 'errored', code: 'batch_failed', message: placed.problem }
    else if (!order.is_adopted || (order.is_cancelled && !isOver)) reason = order.is_cancelled ? cancelled : UNKNOWN
  }
  await end(claimed, order, reason)
  return undefined
}

/** Whether a restored batch lacks what reading its results needs, or has long been over while its vendor shows no list. */
function isUnknowable(
  { batch: { progress }, clock }: ClaimedBatch,
  { id, is_sought }: BatchVendorOrder,
  { code }: GatewayError,
  isOver: boolean,
): boolean {
  if (!progress.restored) return false
  if (id !== undefined) return code === 'file_not_found'
  return isOver && !is_sought && clock.now() >= progress.restored.at_ms + SOUGHT_MILLISECONDS
}

const NOT_EXECUTED = {
  code: 'batch_cancelled',
  message: 'This request was not executed: its batch was cancelled at the provider.',
}

type Reason = Parameters<typeof uncalledResult>[2]

/** Gives what is left of its lines a result, or lets them wait again. */
async function end(claimed: ClaimedBatch, order: BatchVendorOrder, reason: Reason | undefined): Promise<void> {
  const { batch, store, fileStore, log } = claimed
  for await (const numbers of linesOf(claimed, order)) {
    const left = await store.ordered(batch.batch_id, numbers)
    const results = left.map((line) => ({
      line: line.line,
      ...(reason && { result: uncalledResult(batch, line, reason) }),
    }))
    if (results.length > 0 && !(await store.closeOrdered(batch, results))) throw LEASE_LOST
  }
  claimed.crashHook('batch: order ended')
  if (order.is_adopted) batch.progress.is_ordered = undefined // what it did not have may wait again
  if (!(await saveOrder(claimed, order, undefined))) throw LEASE_LOST
  log.info('order of a batch ended', { batch_id: batch.batch_id, provider: order.provider, order: order.id })
  await fileStore.remove(orderKeyOf(batch.batch_id, order))
}

/** The last order of a restored batch ends the lines of all: the file of another one may have been removed since the backup. */
async function* linesOf(claimed: ClaimedBatch, order: BatchVendorOrder): AsyncGenerator<number[]> {
  const { progress, total } = claimed.batch
  if (!progress.restored || (await hasLines(claimed, order))) yield* linesInOrder(claimed, order)
  if (!progress.restored || (progress.orders ?? []).length > 1) return
  for (let at = 1; at <= total; at += PART_LINES)
    yield Array.from({ length: Math.min(PART_LINES, total - at + 1) }, (_, index) => at + index)
}

/** Each like the response to a call: translated, counted and charged, whatever its token may do by now. */
async function readResults(
  claimed: ClaimedBatch,
  order: BatchVendorOrder,
  results: AsyncGenerator<VendorResult>,
  current: Caller | undefined,
): Promise<void> {
  const { batch, store } = claimed
  const unstored = await unstoredResults(claimed)
  const { token_id, project_id } = batch
  const caller: Caller = {
    ...(current ?? { token_id, ...(project_id !== null && { project_id }) }),
    mayUseModel: () => true,
    mayUseFamily: () => true,
  }

  async function resultOf(line: BatchLine, result: VendorResult): Promise<LineResult> {
    if (result.is === 'not executed') {
      const code =
        result.why === 'errored' ? 'batch_failed' : `batch_${result.why === 'expired' ? 'expired' : 'cancelled'}`
      return uncalledResult(batch, line, { outcome: result.why, code, message: result.message })
    }
    const { provider, key, model } = order
    const text = (await readInput(claimed, line.offset, line.offset + line.bytes)).toString('utf8')
    return readLineResult(claimed, { line, text, caller, result: { ...result, provider, key, model } })
  }

  async function storeSome(some: Map<number, VendorResult>): Promise<void> {
    if (order.is_adopted && !(await store.order(batch, [...some.keys()]))) throw LEASE_LOST
    const lines = await store.ordered(batch.batch_id, [...some.keys()])
    const read = await Promise.all(
      lines.map(async (line) => ({
        line: line.line,
        result: await resultOf(line, some.get(line.line) as VendorResult),
      })),
    )
    if (read.length === 0) return
    claimed.crashHook('batch: order results read')
    if (!(await store.closeOrdered(batch, read))) throw LEASE_LOST
    claimed.crashHook('batch: order results stored')
    for (const { result } of read) unstored.add(result)
    await unstored.store()
  }

  let some = new Map<number, VendorResult>()
  for await (const result of results) {
    if (!result.id.startsWith(order.mark)) continue
    some.set(Number(result.id.slice(order.mark.length)), result)
    if (some.size < RESULTS_AT_ONCE) continue
    await storeSome(some)
    some = new Map()
  }
  await storeSome(some)
}
