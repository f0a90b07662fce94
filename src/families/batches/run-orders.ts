/** Takes the orders of a batch to its vendors: created once, polled, and their results read like responses to calls. */
import { LEASE_LOST } from '../../jobs/job-loop.ts'
import type { BatchProvider, VendorResult } from '../../providers/batches/batch-provider.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Caller } from '../../spec/token.ts'
import type { BatchLine, BatchVendorOrder, LineResult } from '../../store/batches/batch-store.ts'
import { readLineResult, UNKNOWN, uncalledResult } from './call-line.ts'
import { collectOrders, hasLines, linesInOrder, orderKeyOf, orderStream, saveOrder } from './collect-orders.ts'
import { type ClaimedBatch, PART_BYTES, saveProgress, storeParts } from './parts.ts'
import { readInput } from './run-lines.ts'

/** `done`: vendors have nothing more to do. `until_ms`: when to look again; `isOver`: no further line may be called. */
export type Ordered = 'lost' | 'done' | { until_ms: number; isOver: boolean }

const FIRST_POLL_MILLISECONDS = 15_000
const LONGEST_POLL_MILLISECONDS = 300_000
const PAUSE_MILLISECONDS = 60_000
/** How far the clock of a vendor may differ. */
const SKEW_MILLISECONDS = 60_000
/** So long after a restore a vendor is asked what it has of a batch that is over. */
const SOUGHT_MILLISECONDS = 3_600_000
/** So long a list of a vendor may lack a batch that it has created. */
const LISTED_MILLISECONDS = 300_000
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
  const in_ms = (ms: number) => clock.now() + ms
  const fields = { batch_id: batch.batch_id, provider: order.provider, order: order.mark }
  const isLate = clock.now() >= batch.expires_at * 1000 + LATE_MILLISECONDS
  if (isLate) {
    await end(claimed, order, UNKNOWN)
    return Number.POSITIVE_INFINITY
  }
  const vendor = claimed.providerOf(order)?.batches
  if (!vendor) {
    log.warn('the provider of a batch is not configured', fields)
    return in_ms(PAUSE_MILLISECONDS)
  }
  try {
    const wait_ms = await advance(claimed, order, vendor, stepping)
    return wait_ms === undefined ? Number.POSITIVE_INFINITY : in_ms(wait_ms)
  } catch (thrown) {
    signal.throwIfAborted()
    if (!(thrown instanceof GatewayError) || thrown === LEASE_LOST) throw thrown
    log.warn('order of a batch failed', { ...fields, stage: order.stage, error: thrown.code, why: thrown.message })
    if (!isUnknowable(claimed, order, thrown, stepping.isOver)) return in_ms(PAUSE_MILLISECONDS)
    await end(claimed, order, UNKNOWN)
    return Number.POSITIVE_INFINITY
  }
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

/** In how many milliseconds to look again; undefined: it has ended. */
async function advance(
  claimed: ClaimedBatch,
  order: BatchVendorOrder,
  vendor: BatchProvider,
  { isOver, caller }: Stepping,
): Promise<number | undefined> {
  const { signal, clock, crashHook } = claimed
  const lines = () => orderStream(claimed, order)
  const save = async (change: Partial<BatchVendorOrder>) => {
    if (!(await saveOrder(claimed, order, change))) throw LEASE_LOST
  }
  if (claimed.batch.progress.restored && order.id === undefined && order.stage !== 'sent' && !order.is_sought) {
    const sought = await seek(claimed, order, vendor, isOver)
    if (sought === 'later' || (sought === 'unsure' && !isOver)) return PAUSE_MILLISECONDS
    if (sought !== 'known') {
      await end(claimed, order, UNKNOWN)
      return undefined
    }
    if (order.id === undefined && !(await hasLines(claimed, order))) {
      claimed.batch.progress.is_ordered = undefined
      await end(claimed, order, undefined)
      return undefined
    }
  }
  if (order.stage === 'sent') {
    const since = secondsBefore(order.sent_ms ?? 0)
    const found = await vendor.find({ ...order, uploaded: order.uploaded ?? null }, since, signal)
    if (typeof found === 'object') await save({ stage: 'created', id: found.id })
    else if (found !== 'absent' || clock.now() < (order.sent_ms ?? 0) + LISTED_MILLISECONDS) return PAUSE_MILLISECONDS
    else await save({ stage: 'uploaded' })
  }
  if (isOver && order.stage !== 'created') {
    await end(claimed, order, undefined)
    return undefined
  }
  if (order.stage === 'marked' || order.stage === 'stored') {
    const uploaded = await vendor.upload(order, lines, signal)
    crashHook('batch: order uploaded')
    await save({ stage: 'uploaded', uploaded })
  }
  if (order.stage === 'uploaded') {
    await save({ stage: 'sent', sent_ms: clock.now() })
    crashHook('batch: order sent')
    try {
      const id = await vendor.create(order, order.uploaded ?? null, lines, signal)
      crashHook('batch: order created')
      await save({ stage: 'created', id })
    } catch (thrown) {
      if (!(thrown instanceof GatewayError) || thrown.detail.accepted !== 'no') throw thrown
      if (thrown.code === 'server_is_overloaded') {
        await save({ stage: 'uploaded' })
        throw thrown
      }
      await end(claimed, order, { outcome: 'errored', code: thrown.code, message: thrown.message })
      return undefined
    }
  }
  return poll(claimed, order, vendor, { isOver, caller })
}

const secondsBefore = (ms: number): number => Math.floor((ms - LISTED_MILLISECONDS) / 1000)

/** Whether the installation that was backed up has created it since. */
async function seek(
  claimed: ClaimedBatch,
  order: BatchVendorOrder,
  vendor: BatchProvider,
  isOver: boolean,
): Promise<'known' | 'later' | 'unsure' | 'hidden'> {
  const { batch, signal, clock } = claimed
  const { backup_ms, at_ms } = batch.progress.restored ?? { backup_ms: 0, at_ms: 0 }
  const sought = {
    mark: order.mark,
    until: Math.ceil((at_ms + SKEW_MILLISECONDS) / 1000),
    ...(order.stage === 'uploaded' && { uploaded: order.uploaded ?? null, lines: order.lines }),
  }
  const found = await vendor.find(sought, secondsBefore(backup_ms), signal)
  if (found === 'unsure' || found === 'hidden') return found
  if (found === 'absent' && clock.now() < at_ms + LISTED_MILLISECONDS) return 'later'
  if (found === 'absent') batch.progress[isOver ? 'is_ordered' : 'is_recovered'] = true // saved with the order
  const change = found === 'absent' ? {} : ({ stage: 'created', id: found.id, is_adopted: true } as const)
  if (!(await saveOrder(claimed, order, { ...change, is_sought: true }))) throw LEASE_LOST
  return 'known'
}

async function poll(
  claimed: ClaimedBatch,
  order: BatchVendorOrder,
  vendor: BatchProvider,
  { isOver, caller }: Stepping,
): Promise<number | undefined> {
  const { signal, crashHook, log, batch } = claimed
  const { id = '', polls = 0 } = order
  if (isOver && !order.is_cancelled) {
    // It may have ended meanwhile, which its state tells.
    await vendor
      .cancel(id, signal)
      .catch((thrown: unknown) => log.warn('batch not cancelled at its provider', { order: id, why: String(thrown) }))
    if (!(await saveOrder(claimed, order, { is_cancelled: true }))) throw LEASE_LOST
  }
  const state = polls === 0 && !isOver ? { is: 'running' as const } : await vendor.state(id, signal)
  crashHook('batch: order polled')
  if (state.is === 'running') {
    if (!(await saveOrder(claimed, order, { polls: polls + 1 }))) throw LEASE_LOST
    return Math.min(FIRST_POLL_MILLISECONDS * 1.5 ** Math.min(polls, 20), LONGEST_POLL_MILLISECONDS)
  }
  const results = vendor.results(id, signal, () => orderStream(claimed, order))
  await readResults(claimed, order, results, caller)
  const cancelled = { outcome: batch.status === 'cancelling' ? 'canceled' : 'expired', ...NOT_EXECUTED } as const
  const { problem } = state
  if (problem !== undefined) await end(claimed, order, { outcome: 'errored', code: 'batch_failed', message: problem })
  else if (order.is_adopted && (isOver || !order.is_cancelled)) await end(claimed, order, undefined)
  else await end(claimed, order, order.is_cancelled ? cancelled : UNKNOWN)
  return undefined
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
  const loose = await store.loose(batch.batch_id)
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
    for (const { result } of read) loose.bytes += result.text.length
    loose.lines += read.length
    if (loose.lines < PART_LINES && loose.bytes < PART_BYTES) return
    loose.lines = 0
    loose.bytes = 0
    await storeParts(claimed, { all: false })
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
