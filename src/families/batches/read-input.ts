/** Reads the input of a batch: checks each line, and puts lines of models with native batches into orders, stored before anything is sent. */
import { createLineCheck, familyOf, MOST_LINE_BYTES } from '../../calls/batch-lines.ts'
import { LEASE_LOST } from '../../jobs/job-loop.ts'
import { collectAfter } from '../../kit/collect-garbage.ts'
import { freeBytes } from '../../kit/free-bytes.ts'
import { isRecord } from '../../kit/json.ts'
import { linesOf } from '../../kit/json-lines.ts'
import { streamOf } from '../../kit/stream-of.ts'
import type { BatchExchange, BatchTarget } from '../../protocols/shared/batch-exchange.ts'
import type { BatchProvider } from '../../providers/batches/batch-provider.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Caller } from '../../spec/token.ts'
import type { BatchLine, BatchPause, BatchVendorOrder, NewLine } from '../../store/batches/batch-store.ts'
import { collectLine, requestIdOf } from './call-line.ts'
import { type ClaimedBatch, fail, inputKeyOf, inputStream, REVOKED, saveProgress, secondsOf } from './parts.ts'

/** With more models the next ones wait. */
const MOST_ORDERS = 20
const LINES_PER_WRITE = 1_000
const TYPE = 'application/jsonl'

/** `pause`: a budget refuses more of them now. */
type Collected = 'lost' | { pause: BatchPause | undefined }

export const orderKeyOf = (batch_id: string, { mark, fence }: Pick<BatchVendorOrder, 'mark' | 'fence'>): string =>
  `batches/${batch_id}/order-${mark}-${fence}`

/** `release` gets what frees the budgets that hold the lines: they do until they were sent. */
export async function collectOrders(
  claimed: ClaimedBatch,
  caller: Caller,
  release: (() => void)[],
): Promise<Collected> {
  const { batch, fileStore } = claimed
  // What a process has left that died while it wrote.
  if (batch.progress.order_file !== undefined) await fileStore.remove(batch.progress.order_file)
  if (!(await copyInput(claimed))) return 'lost'
  for (const order of batch.progress.orders ?? [])
    if (order.stage === 'stored' && !(await markLines(claimed, order))) return 'lost'
  while (!batch.progress.is_ordered) {
    const orders = batch.progress.orders ?? []
    if (orders.length >= (isRecovering(batch.progress) ? 1 : MOST_ORDERS)) break
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

/** A restored batch has one at a time until one was certainly not created before: a line may be in another one than then. */
const isRecovering = ({ restored, is_recovered }: ClaimedBatch['batch']['progress']): boolean =>
  restored !== undefined && !is_recovered

/** Results are read long after the client may have deleted its file. */
async function copyInput(claimed: ClaimedBatch): Promise<boolean> {
  const { batch, files, fileStore, signal } = claimed
  const { input_file_id } = batch.request
  if (input_file_id === undefined || batch.progress.has_copy) return true
  const body = await files.read(await files.find(input_file_id, { token_id: batch.token_id }))
  await fileStore.write(inputKeyOf(batch.batch_id), { content_type: TYPE, body }, signal)
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
      const name = modelIn(batch.api, text)
      if (name === undefined || (group ? name !== group.name : !isNative(name))) continue
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
  await fileStore.write(key, { content_type: TYPE, body: streamOf(all()) }, signal)
  const { target, path } = group
  const order: BatchVendorOrder = { ...target, mark, fence, path, lines, bytes, stage: 'stored' }
  return { order, ...(pause && { pause }) }
}

/** Whether a model has them, as things are configured now. */
function nativeModels({ batch, catalogue }: ClaimedBatch, caller: Caller): (name: string) => boolean {
  const known = new Map<string, boolean>()
  return (name) => {
    if (!known.has(name))
      try {
        known.set(name, catalogue.require(name, familyOf(batch.endpoint), caller).model.has_native_batches)
      } catch (thrown) {
        if (!(thrown instanceof GatewayError)) throw thrown
        known.set(name, false)
      }
    return known.get(name) === true
  }
}

function modelIn(api: ClaimedBatch['batch']['api'], text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text)
    const body = isRecord(value) ? (api === 'openai' ? value.body : value.params) : undefined
    return isRecord(body) && typeof body.model === 'string' ? body.model : undefined
  } catch {
    return undefined
  }
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
  if (claimed.batch.progress.restored && !(await hasLines(claimed, order)))
    return saveOrder(claimed, order, { stage: 'marked' })
  for await (const numbers of linesInOrder(claimed, order))
    if (!(await claimed.store.order(claimed.batch, numbers))) return false
  return saveOrder(claimed, order, { stage: 'marked' })
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
    if (numbers.length < LINES_PER_WRITE) continue
    yield numbers
    numbers = []
  }
  if (numbers.length > 0) yield numbers
}

/** The id stands at the beginning of a line. */
const ID_BYTES = 200

/** The lines of an order that was backed up may have been removed since. */
export const hasLines = async ({ fileStore, batch }: ClaimedBatch, order: BatchVendorOrder): Promise<boolean> =>
  (await fileStore.open(orderKeyOf(batch.batch_id, order))) !== undefined

export async function orderStream({ fileStore, batch }: ClaimedBatch, order: BatchVendorOrder) {
  const file = await fileStore.open(orderKeyOf(batch.batch_id, order))
  if (!file) throw new Error(`The lines of an order of ${batch.batch_id} do not exist any more.`)
  return file.body()
}

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

/** Reads all lines, and stores where each lies. `lost`: the claim is. */
export async function validate(claimed: ClaimedBatch): Promise<'ready' | 'failed' | 'lost'> {
  const { batch, store, clock, crashHook } = claimed
  const read = await readLines(claimed)
  if (!read) return 'lost'
  if (read.problems.length > 0) return (await fail(claimed, batch, read)) ? 'failed' : 'lost'
  const { total, model, has_native } = read
  const found = { ...(model !== undefined && { model }), ...(!has_native && { is_ordered: true as const }) }
  const progress = { ...batch.progress, in_progress_at: secondsOf(clock.now()), ...found }
  // It was cancelled meanwhile where this is refused.
  const isSaved = await store.save(batch, { status: 'in_progress', progress, total })
  if (!isSaved && !(await store.save(batch, { progress, total }))) return 'lost'
  batch.progress = progress
  batch.status = isSaved ? 'in_progress' : 'cancelling'
  crashHook('batch: validated')
  return 'ready'
}

/** Undefined: the claim is lost. */
async function readLines(claimed: ClaimedBatch) {
  const { batch, store, catalogue, signal, crashHook } = claimed
  const { api, endpoint } = batch
  const failed = (code: string, message: string, param: string | null = null) => ({
    total: 0,
    problems: [{ code, message, param, line: null }],
    model: undefined,
    has_native: false,
  })
  const caller = await claimed.callerOf(batch.token_id)
  if (!caller) return failed(REVOKED.code, REVOKED.message)
  const input = await inputStream(claimed).catch((thrown) => {
    if (thrown instanceof GatewayError && thrown.code === 'file_not_found') return thrown
    throw thrown
  })
  if (input instanceof GatewayError) return failed(input.code, input.message, 'input_file_id')
  // Requests of the Messages API were checked when they arrived: a model that is gone since is the error of its line.
  const lines = createLineCheck({ api, endpoint, caller, catalogue, checks_models: api === 'openai' })
  let valid: NewLine[] = []
  const add = async (least: number): Promise<boolean> => {
    if (lines.found().problems.length > 0) valid = []
    if (valid.length < least) return true
    const some = valid
    valid = []
    if (!(await store.addLines(batch, some))) return false
    crashHook('batch: lines added')
    return true
  }
  for await (const piece of linesOf(input, { max_line_bytes: MOST_LINE_BYTES })) {
    signal.throwIfAborted()
    for (const raw of piece) {
      const custom_id = lines.check(raw)
      const { line, offset, length: bytes } = raw
      if (custom_id !== undefined) valid.push({ line, offset, bytes, custom_id })
    }
    if (!(await add(LINES_PER_WRITE))) return undefined
  }
  return (await add(1)) ? lines.found() : undefined
}

const LINES_PER_READ = 100
/** Lines that lie together are read together, up to this size. */
const READ_BYTES = 256 * 1024

/** The lines that wait, in order, each with its text. */
export async function* waitingLines(claimed: ClaimedBatch): AsyncGenerator<{ line: BatchLine; text: string }> {
  const { batch, store } = claimed
  let after = 0
  for (;;) {
    const page = await store.pending(batch.batch_id, after, LINES_PER_READ)
    for (let at = 0; at < page.length; ) {
      const first = page[at] as BatchLine
      let end = at + 1
      while (end < page.length && endOf(page[end]) - first.offset <= READ_BYTES) end++
      const some = page.slice(at, end)
      const bytes = await readInput(claimed, first.offset, endOf(some.at(-1)))
      for (const line of some) {
        const start = line.offset - first.offset
        yield { line, text: utf8.decode(bytes.subarray(start, start + line.bytes)) }
      }
      freeBytes(bytes)
      at = end
    }
    const last = page.at(-1)
    if (!last || page.length < LINES_PER_READ) return
    after = last.line
  }
}

/** Without a byte order mark, with which some programs begin a file. */
const utf8 = new TextDecoder()

const endOf = (line: BatchLine | undefined): number => (line ? line.offset + line.bytes : 0)

/** The bytes from this place up to that one. Throws `file_not_found` where the input is gone. */
export async function readInput(claimed: ClaimedBatch, first: number, end: number): Promise<Buffer> {
  collectAfter(end - first)
  const pieces = await Array.fromAsync(await inputStream(claimed, { first, last: end - 1 }))
  const whole = Buffer.concat(pieces)
  pieces.forEach(freeBytes)
  return whole
}
