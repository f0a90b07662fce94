/** Takes the orders of a batch to its vendors: created once, polled, and their results read like responses to calls. */
import { modelOf } from '../../calls/batch-lines.ts'
import { fromBody, REASONS, type Reason, requestIdOf, UNKNOWN, uncalledResult } from '../../calls/batch-results.ts'
import { LEASE_LOST } from '../../jobs/job-loop.ts'
import { streamOf } from '../../kit/stream-of.ts'
import type { BatchExchange, BatchTarget } from '../../protocols/shared/batch-exchange.ts'
import type { BatchProvider } from '../../providers/batches/batch-provider.ts'
import { placeOrder } from '../../providers/batches/place-order.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Caller } from '../../spec/token.ts'
import type { BatchPause, BatchVendorOrder } from '../../store/batches/batch-store.ts'
import { collectLine, readResults, waitingLines } from './lines.ts'
import {
  type ClaimedBatch,
  hasLines,
  inputKeyOf,
  JSONL,
  linesInOrder,
  orderKeyOf,
  orderStream,
  saveOrder,
  saveProgress,
} from './parts.ts'

/** `done`: vendors have nothing more to do. `until_ms`: when to look again; `isOver`: no further line may be called. */
export type Ordered = 'lost' | 'done' | { until_ms: number; isOver: boolean }

/** With more models the next ones wait. */
const MOST_ORDERS = 20
const PAUSE_MILLISECONDS = 60_000
/** So long after a restore a vendor is asked what it has of a batch that is over. */
const SOUGHT_MILLISECONDS = 3_600_000
/** So long after its window an order may still end; then its lines end as unknown. */
const LATE_MILLISECONDS = 2 * 86_400_000
const PART_LINES = 1_000

export async function runOrders(claimed: ClaimedBatch): Promise<Ordered> {
  const { batch, clock } = claimed
  const { progress } = batch
  if (batch.status === 'finalizing' || (progress.is_ordered && !progress.orders?.length)) return 'done'
  const caller = await claimed.callerOf(batch.token_id)
  const isOver = batch.status !== 'in_progress' || clock.now() >= batch.expires_at * 1000 || !caller
  const release: (() => void)[] = []
  try {
    let until_ms = Number.POSITIVE_INFINITY
    // One that is over is only looked for at its vendor.
    const mayCollect = !isOver || progress.restored !== undefined
    if (mayCollect && caller && !progress.is_ordered) {
      const collected = await collectOrders(claimed, caller, release).catch((thrown: unknown) => {
        if (isOver && thrown instanceof GatewayError && thrown.code === 'file_not_found') return { pause: undefined }
        throw thrown
      })
      if (collected === 'lost') return 'lost'
      if (!isOver && !(await saveProgress(claimed, { pause: collected.pause }))) return 'lost'
      if (!isOver && collected.pause) until_ms = collected.pause.until_ms
    }
    const orders = [...(batch.progress.orders ?? [])]
    for (const order of orders) {
      if (claimed.isClosing()) return { until_ms: clock.now(), isOver: true }
      until_ms = Math.min(until_ms, await step(claimed, order, { isOver, caller }))
    }
    if (until_ms !== Number.POSITIVE_INFINITY) return { until_ms, isOver: isOver || !batch.progress.is_ordered }
    const isDone = batch.progress.is_ordered || (isOver && (!mayCollect || orders.length === 0))
    return isDone ? 'done' : { until_ms: clock.now(), isOver: true }
  } finally {
    for (const free of release) free()
  }
}

/** `pause`: a budget refuses more of them now. */
type Collected = 'lost' | { pause: BatchPause | undefined }

/** `release` gets what frees the budgets that hold the lines: they do until they were sent. */
async function collectOrders(claimed: ClaimedBatch, caller: Caller, release: (() => void)[]): Promise<Collected> {
  const { batch, fileStore } = claimed
  // What a process has left that died while it wrote.
  if (batch.progress.order_file !== undefined) await fileStore.remove(batch.progress.order_file)
  if (!(await copyInput(claimed))) return 'lost'
  for (const order of batch.progress.orders ?? [])
    if (order.stage === 'stored' && !(await markLines(claimed, order))) return 'lost'
  while (!batch.progress.is_ordered) {
    const { orders = [], restored, is_recovered } = batch.progress
    // A restored batch has one at a time until one was certainly not created before: a line may be in another one than then.
    if (orders.length >= (restored && !is_recovered ? 1 : MOST_ORDERS)) break
    const found = await collectOne(claimed, caller, release)
    if (found.order) {
      const order_count = (batch.progress.order_count ?? 0) + 1
      const noted = { orders: [...orders, found.order], order_file: undefined, order_count }
      if (!(await saveProgress(claimed, noted))) return 'lost'
      claimed.crashHook('batch: order stored')
      if (!(await markLines(claimed, found.order))) return 'lost'
    }
    if (found.pause) return { pause: found.pause }
    if (!found.order && !(await saveProgress(claimed, { is_ordered: true }))) return 'lost'
    if (claimed.isClosing()) break
  }
  return { pause: undefined }
}

/** Results are read long after the client may have deleted its file. */
async function copyInput(claimed: ClaimedBatch): Promise<boolean> {
  const { batch, files, fileStore, signal } = claimed
  const { input_file_id } = batch.request
  if (input_file_id === undefined || batch.progress.has_copy) return true
  const body = await files.read(await files.find(input_file_id, { token_id: batch.token_id }))
  await fileStore.write(inputKeyOf(batch.batch_id), { content_type: JSONL, body }, signal)
  return saveProgress(claimed, { has_copy: true })
}

type FoundOrder = { order?: BatchVendorOrder; pause?: BatchPause }
type Group = { name: string; target: BatchTarget; path: string; vendor: BatchProvider }

async function collectOne(claimed: ClaimedBatch, caller: Caller, release: (() => void)[]): Promise<FoundOrder> {
  const { batch, fileStore, signal } = claimed
  const { batch_id, fence, progress } = batch
  const mark = `gh${batch_id.replace(/^(msg)?batch_/, '')}x${progress.order_count ?? 0}_`
  let group: Group | undefined
  let pause: BatchPause | undefined
  let [lines, bytes] = [0, 0]
  const isNative = nativeModels(claimed, caller)

  async function* collected(): AsyncGenerator<Uint8Array> {
    for await (const { line, text } of waitingLines(claimed)) {
      if (claimed.isClosing()) return
      signal.throwIfAborted()
      const name = fromBody(batch.api, text, ({ model }) => model)
      if (typeof name !== 'string' || (group ? name !== group.name : !isNative(name))) continue
      const exchange: BatchExchange = { entry_id: requestIdOf(batch, line) }
      pause = await collectLine(claimed, { line, text, caller, exchange })
      if (pause) return
      const found = exchange.collected && groupOf(claimed, name, exchange.collected)
      // What cannot be collected is called by the gateway, which finds what is wrong with it.
      if (!exchange.collected || !found || (group && !isSame(group, found))) {
        exchange.release?.()
        continue
      }
      group ??= found
      const { path } = found
      const piece = Buffer.from(
        `${group.vendor.line({ id: `${mark}${line.line}`, path, body: exchange.collected.body })}\n`,
      )
      const { most } = group.vendor
      if (lines === most.lines || bytes + piece.length > most.bytes) {
        exchange.release?.()
        return
      }
      release.push(() => exchange.release?.())
      lines++
      bytes += piece.length
      yield piece
    }
  }

  const pieces = collected()
  const first = await pieces.next()
  if (first.done || !group) return { ...(pause && { pause }) }
  async function* all() {
    yield first.value as Uint8Array
    yield* pieces
  }
  const key = orderKeyOf(batch_id, { mark, fence })
  if (!(await saveProgress(claimed, { order_file: key }))) throw LEASE_LOST
  await fileStore.write(key, { content_type: JSONL, body: streamOf(all()) }, signal)
  const { target, path } = group
  const order: BatchVendorOrder = { ...target, mark, fence, path, lines, bytes, stage: 'stored' }
  return { order, ...(pause && { pause }) }
}

/** Whether a model has them, as things are configured now. */
function nativeModels({ batch, catalogue }: ClaimedBatch, caller: Caller): (name: string) => boolean {
  const known = new Map<string, boolean>()
  return (name) =>
    known.getOrInsertComputed(name, () => {
      const model = modelOf({ catalogue, caller }, batch.endpoint, name)
      return !(model instanceof GatewayError) && model.has_native_batches
    })
}

function groupOf(
  { providerOf }: ClaimedBatch,
  name: string,
  { provider, key, model, url }: NonNullable<BatchExchange['collected']>,
): Group | undefined {
  const target = { provider, key, model }
  const vendor = providerOf(target)?.batches
  const path = vendor?.pathOf(url)
  return vendor && path !== undefined ? { name, target, path, vendor } : undefined
}

const isSame = (one: Group, other: Group): boolean =>
  one.path === other.path && JSON.stringify(one.target) === JSON.stringify(other.target)

/** Its lines wait no more. After a crash it is done again, from what is stored. */
async function markLines(claimed: ClaimedBatch, order: BatchVendorOrder): Promise<boolean> {
  const isGone = claimed.batch.progress.restored && !(await hasLines(claimed, order))
  for await (const numbers of isGone ? [] : linesInOrder(claimed, order))
    if (!(await claimed.store.order(claimed.batch, numbers))) return false
  return saveOrder(claimed, order, { stage: 'marked' })
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
      if (!isOver) batch.progress.is_recovered = true
    },
    crashHook,
    warn: (event, why) => log.warn(event, { order: order.id, why }),
    clock,
    signal,
  })
  if (placed.is === 'later') return placed.wait_ms
  let reason: Reason | undefined
  if (placed.is === 'gone') batch.progress.is_ordered = undefined
  // What is not ordered yet may have been since the backup, in this order or in another one.
  else if (placed.is === 'unknown' || (placed.is === 'unsent' && progress.restored && !progress.is_ordered))
    reason = UNKNOWN
  else if (placed.is === 'unsent' && order.full && caller && status === 'in_progress')
    reason = { ...REASONS.expired, message: `${REASONS.expired.message} ${order.full.message}` }
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
