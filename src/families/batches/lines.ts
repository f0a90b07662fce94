/** The lines of a batch: checked, read where they lie, called as requests of their route, and what their responses mean. */
import { createLineCheck, MOST_LINE_BYTES } from '../../calls/batch-lines.ts'
import { errorOf, fromBody, requestIdOf, resultOf, UNREADABLE, uncalledResult } from '../../calls/batch-results.ts'
import { LEASE_LOST, STOPPED } from '../../jobs/job-loop.ts'
import { collectAfter } from '../../kit/collect-garbage.ts'
import { freeBytes } from '../../kit/free-bytes.ts'
import { linesOf } from '../../kit/json-lines.ts'
import type { BatchExchange, CallRoute, LineResponse } from '../../protocols/shared/batch-exchange.ts'
import type { VendorResult } from '../../providers/batches/batch-provider.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Caller } from '../../spec/token.ts'
import type {
  Batch,
  BatchLine,
  BatchPause,
  BatchVendorOrder,
  LineResult,
  NewLine,
} from '../../store/batches/batch-store.ts'
import { isNearLimit } from '../shared/call-headers.ts'
import { type ClaimedBatch, fail, inputStream, REVOKED, secondsOf, unstoredResults } from './parts.ts'

const LINES_PER_WRITE = 1_000
const LINES_PER_READ = 100
/** Lines that lie together are read together, up to this size. */
const READ_BYTES = 256 * 1024

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
async function readInput(claimed: ClaimedBatch, first: number, end: number): Promise<Buffer> {
  collectAfter(end - first)
  const pieces = await Array.fromAsync(await inputStream(claimed, { first, last: end - 1 }))
  const whole = Buffer.concat(pieces)
  pieces.forEach(freeBytes)
  return whole
}

/**
 * `ended`: the line has its result. `later`: nothing was sent, and the batch pauses. `interrupted`: the process is being
 * stopped, and the outcome is unknown. `revoked`: the token is not valid any more.
 */
type Called =
  | { is: 'ended'; result: LineResult; busy_ms?: number | undefined }
  | { is: 'later'; code: string; message: string; wait_ms: number | undefined }
  | { is: 'interrupted' }
  | { is: 'revoked' }

/** Errors after which the same request may succeed later, and that say that no provider has done anything for it. */
const LATER: readonly string[] = [
  'rate_limit_exceeded',
  'insufficient_quota',
  'server_is_overloaded',
  'storage_unavailable',
  'no_available_channel',
  'upstream_unreachable',
]
/** Those that last until somebody does something. */
const SLOW: readonly string[] = ['insufficient_quota']
/** After this many attempts such an error is the result, unless it is of a limit or a budget. */
const MOST_ATTEMPTS = 10

/** `text`: as it stands in the input. */
type OrderedLine = { line: BatchLine; text: string; caller: Caller }

/** `signal`: of the run. */
export async function callLine(
  call: CallRoute,
  { batch, line, text, caller, signal }: OrderedLine & { batch: Batch; signal: AbortSignal },
): Promise<Called> {
  const request = requestOf(batch, line, text)
  if (!request) return { is: 'ended', result: uncalledResult(batch, line, UNREADABLE) }
  const response = await call({ ...request, signal, caller })
  return meaningOf(response, { batch, line, isStopping: signal.aborted })
}

/** Gets the request of a line as its vendor gets it, into `exchange`. The result: why no line may be collected now. */
export async function collectLine(
  claimed: ClaimedBatch,
  { line, text, caller, exchange }: OrderedLine & { exchange: BatchExchange },
): Promise<BatchPause | undefined> {
  const { batch, clock, signal } = claimed
  const request = requestOf(batch, line, text)
  if (!request) return undefined
  const { headers, text: answered } = await claimed.call({ ...request, signal, caller, exchange })
  if (exchange.collected) return undefined
  signal.throwIfAborted()
  const { code, message } = errorOf(answered)
  if (code === 'shutting_down') throw STOPPED
  if (!LATER.includes(code) || code === 'no_available_channel') return undefined
  return { code, message, until_ms: Math.round(clock.now() + waitOf(headers, { code, attempts: 0 })) }
}

/** What lasts until somebody does something, and loses nothing: the result is read again. */
const UNREAD: readonly string[] = [...LATER, 'model_not_found', 'model_not_allowed', 'model_retired', 'invalid_api_key']

/** The result of a line that its vendor has executed. Throws GatewayError where it cannot be read now. */
async function readLineResult(
  { call, batch, signal, log }: ClaimedBatch,
  { line, text, caller, result }: OrderedLine & { result: NonNullable<BatchExchange['result']> },
): Promise<LineResult> {
  const exchange: BatchExchange = { entry_id: requestIdOf(batch, line), result }
  const request = requestOf(batch, line, text)
  const response = request && (await call({ ...request, signal, caller, exchange }))
  signal.throwIfAborted()
  if (response && exchange.is_read) return resultOf(batch, line, response)
  const { code, message } = errorOf(response?.text ?? '')
  if (code === 'shutting_down') throw STOPPED
  if (!response || response.status >= 500 || UNREAD.includes(code))
    throw new GatewayError('server_is_overloaded', `The result of line ${line.line} cannot be read now: ${message}`)
  // Its request is not valid any more, such as one that names a file which was deleted: better as the vendor has sent it than lost.
  const { entry_id: request_id } = exchange
  log.error('result of a batch line was not translated, and is in no ledger', { request_id, error: code })
  return { ...resultOf(batch, line, { status: result.status, text: result.body }), tokens: undefined }
}

const RESULTS_AT_ONCE = 64

/** Each like the response to a call: translated, counted and charged, whatever its token may do by now. */
export async function readResults(
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

type LineRequest = Pick<Parameters<CallRoute>[0], 'path' | 'headers' | 'body'>

export function requestOf(batch: Batch, line: Pick<BatchLine, 'line'>, text: string): LineRequest | undefined {
  const body = fromBody(batch.api, text, (read) => Buffer.from(JSON.stringify(read)))
  if (!body) return undefined
  const headers = {
    // By which its requests are found in the log; its client may have named another one.
    'x-gatehouse-session': batch.batch_id,
    ...batch.request.headers,
    'content-type': 'application/json',
    'content-length': String(body.length),
    'x-request-id': requestIdOf(batch, line),
  }
  return { path: batch.endpoint, headers, body }
}

type Meaning = { batch: Batch; line: BatchLine; isStopping: boolean }

function meaningOf(response: LineResponse, { batch, line, isStopping }: Meaning): Called {
  const { headers, text } = response
  const busy_ms = isNearLimit(headers, RESERVED) ? BUSY_MILLISECONDS : undefined
  const result = resultOf(batch, line, response)
  if (result.outcome === 'succeeded') return { is: 'ended', result, busy_ms }
  const { code, message } = errorOf(text)
  // Its call may have been sent, and its response is lost.
  if (isStopping || code === 'shutting_down') return { is: 'interrupted' }
  if (code === 'invalid_api_key' || code === 'project_disabled') return { is: 'revoked' }
  const retry = headers.get('x-should-retry')
  const mayRetry = LATER.includes(code) && (retry !== 'false' || SLOW.includes(code))
  const isLimit = code === 'rate_limit_exceeded' || SLOW.includes(code)
  if (mayRetry && (isLimit || line.attempts + 1 < MOST_ATTEMPTS)) {
    return { is: 'later', code, message, wait_ms: waitOf(headers, { code, attempts: line.attempts }) }
  }
  return { is: 'ended', result, busy_ms }
}

const BUDGET_MILLISECONDS = 600_000
const FIRST_MILLISECONDS = 2_000
const LONGEST_MILLISECONDS = 600_000

function waitOf(headers: LineResponse['headers'], { code, attempts }: { code: string; attempts: number }): number {
  const exact = Number(headers.get('retry-after-ms') ?? Number.NaN)
  const seconds = Number(headers.get('retry-after') ?? Number.NaN)
  const asked = Number.isFinite(exact) ? exact : seconds * 1000
  if (Number.isFinite(asked)) return Math.min(Math.max(asked, 100), LONGEST_MILLISECONDS)
  if (SLOW.includes(code)) return BUDGET_MILLISECONDS
  return Math.min(FIRST_MILLISECONDS * 2 ** Math.min(attempts, 10), LONGEST_MILLISECONDS)
}

/** A batch leaves this part of each limit to the other calls of its token. */
const RESERVED = 0.2
const BUSY_MILLISECONDS = 5_000
