/** Calls one line of a batch as a request of its route, and decides what its response means for the line. */
import { createLineCheck, MOST_LINE_BYTES } from '../../calls/batch-lines.ts'
import { STOPPED } from '../../jobs/job-loop.ts'
import { isRecord, parseJson, parseRequestJson } from '../../kit/json.ts'
import { linesOf } from '../../kit/json-lines.ts'
import type { BatchExchange, CallRoute, LineResponse } from '../../protocols/shared/batch-exchange.ts'
import type { BatchEstimate } from '../../spec/batch.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Caller } from '../../spec/token.ts'
import type { Batch, BatchLine, BatchPause, BatchTokens, LineResult } from '../../store/batches/batch-store.ts'
import type { FileRow } from '../../store/files/file-row.ts'
import type { BatchParts, ClaimedBatch } from './parts.ts'

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

type Answer = { status: number; text: string; body: unknown; headers: LineResponse['headers']; request_id: string }

/** `text`: as it stands in the input. */
type OrderedLine = { line: BatchLine; text: string; caller: Caller }

/** `signal`: of the run. */
export async function callLine(
  call: CallRoute,
  { batch, line, text, caller, signal }: OrderedLine & { batch: Batch; signal: AbortSignal },
): Promise<Called> {
  const request_id = requestIdOf(batch, line)
  const request = requestOf(batch, line, text)
  if (!request) return { is: 'ended', result: uncalledResult(batch, line, UNREADABLE) }
  const response = await call({ ...request, signal, caller })
  const { status, headers, text: answered } = response
  const answer = { status, text: oneLine(answered), body: parseJson(answered), headers, request_id }
  return meaningOf(answer, { batch, line, isStopping: signal.aborted })
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
  const { code, message } = errorOf(parseJson(answered))
  if (code === 'shutting_down') throw STOPPED
  if (!LATER.includes(code) || code === 'no_available_channel') return undefined
  return { code, message, until_ms: Math.round(clock.now() + waitOf(headers, { code, attempts: 0 })) }
}

/** The first lines are priced each as a call; the others by their length. */
const PRICED_LINES = 1_000
const NANO = 1e9

/** Nothing is sent. */
export async function estimateBatch(
  { files, catalogue, call, currency }: BatchParts,
  { batch, file, caller, signal }: { batch: Batch; file: FileRow; caller: Caller; signal: AbortSignal },
): Promise<BatchEstimate> {
  const { api, endpoint } = batch
  const lines = createLineCheck({ api, endpoint, caller, catalogue })
  const sums = { input_tokens: 0, output_tokens: 0, lowest: 0, highest: 0 }
  let [total, valid, valid_bytes, priced, priced_bytes] = [0, 0, 0, 0, 0]
  let isKnown = true
  for await (const piece of linesOf(await files.read(file), { max_line_bytes: MOST_LINE_BYTES }))
    for (const raw of piece) {
      signal.throwIfAborted()
      total++
      if (lines.check(raw) === undefined) continue
      valid++
      valid_bytes += raw.length
      if (priced === PRICED_LINES) continue
      priced++
      priced_bytes += raw.length
      const exchange: BatchExchange = { entry_id: '', estimates: true }
      const request = requestOf(batch, raw, new TextDecoder().decode(raw.bytes))
      if (request) await call({ ...request, signal, caller, exchange })
      // What its route refuses costs nothing.
      const { input_tokens = 0, output_tokens = 0, lowest = 0, highest = 0 } = exchange.estimated ?? {}
      sums.input_tokens += input_tokens
      sums.output_tokens += output_tokens
      isKnown &&= lowest !== null && highest !== null
      sums.lowest += lowest ?? 0
      sums.highest += highest ?? 0
    }
  const { problems } = lines.found()
  const scale = priced_bytes === 0 ? 0 : valid_bytes / priced_bytes
  const amount = (nano: number) => (isKnown ? Math.round(nano * scale) / NANO : null)
  return {
    object: 'batch.estimate',
    endpoint,
    request_counts: { total, invalid: total - valid },
    errors: problems.length > 0 ? { object: 'list', data: problems } : null,
    usage: {
      input_tokens: Math.round(sums.input_tokens * scale),
      most_output_tokens: Math.round(sums.output_tokens * scale),
    },
    cost: { lowest: amount(sums.lowest), highest: amount(sums.highest), currency: currency() },
  }
}

/** What lasts until somebody does something, and loses nothing: the result is read again. */
const UNREAD: readonly string[] = [...LATER, 'model_not_found', 'model_not_allowed', 'model_retired', 'invalid_api_key']

/** The result of a line that its vendor has executed. Throws GatewayError where it cannot be read now. */
export async function readLineResult(
  { call, batch, signal, log }: ClaimedBatch,
  { line, text, caller, result }: OrderedLine & { result: NonNullable<BatchExchange['result']> },
): Promise<LineResult> {
  const request_id = requestIdOf(batch, line)
  const exchange: BatchExchange = { entry_id: request_id, result }
  const request = requestOf(batch, line, text)
  const response = request && (await call({ ...request, signal, caller, exchange }))
  signal.throwIfAborted()
  const body = parseJson(response?.text ?? '')
  if (response && exchange.is_read) {
    const { status, headers } = response
    const read = resultOf(batch, line, { status, text: oneLine(response.text), body, headers, request_id })
    return read.outcome === 'succeeded' ? { ...read, tokens: tokensOf(body) } : read
  }
  const { code, message } = errorOf(body)
  if (code === 'shutting_down') throw STOPPED
  if (!response || response.status >= 500 || UNREAD.includes(code))
    throw new GatewayError('server_is_overloaded', `The result of line ${line.line} cannot be read now: ${message}`)
  // Its request is not valid any more, such as one that names a file which was deleted: better as the vendor has sent it than lost.
  log.error('result of a batch line was not translated, and is in no ledger', { request_id, error: code })
  const { headers } = response
  const raw = { status: result.status, text: oneLine(result.body), body: parseJson(result.body), headers, request_id }
  return resultOf(batch, line, raw)
}

/** The same for each attempt: by it the entries of the ledger and the lines are compared. */
export const requestIdOf = ({ batch_id }: Pick<Batch, 'batch_id'>, { line }: Pick<BatchLine, 'line'>): string =>
  `batch_req_${batch_id.replace(/^(msg)?batch_/, '')}_${line}`

type LineRequest = Pick<Parameters<CallRoute>[0], 'path' | 'headers' | 'body'>

function requestOf(batch: Batch, line: Pick<BatchLine, 'line'>, text: string): LineRequest | undefined {
  const body = bodyOf(batch, text)
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

/** Undefined: it cannot be read. A line must not end the run of its batch, which would be repeated until it expires. */
function bodyOf({ api }: Batch, text: string): Buffer<ArrayBuffer> | undefined {
  try {
    const value = parseRequestJson(text)
    return Buffer.from(JSON.stringify(isRecord(value) ? (api === 'openai' ? value.body : value.params) : value))
  } catch {
    return undefined
  }
}

const UNREADABLE = { outcome: 'errored', code: 'invalid_json', message: 'This line cannot be read as JSON.' } as const

type Meaning = { batch: Batch; line: BatchLine; isStopping: boolean }

function meaningOf(answer: Answer, { batch, line, isStopping }: Meaning): Called {
  const busy_ms = reservedFor(answer.headers)
  const result = resultOf(batch, line, answer)
  if (result.outcome === 'succeeded')
    return { is: 'ended', result: { ...result, tokens: tokensOf(answer.body) }, busy_ms }
  const { code, message } = errorOf(answer.body)
  // Its call may have been sent, and its response is lost.
  if (isStopping || code === 'shutting_down') return { is: 'interrupted' }
  if (code === 'invalid_api_key' || code === 'project_disabled') return { is: 'revoked' }
  const retry = answer.headers.get('x-should-retry')
  const mayRetry = LATER.includes(code) && (retry !== 'false' || SLOW.includes(code))
  const isLimit = code === 'rate_limit_exceeded' || SLOW.includes(code)
  if (mayRetry && (isLimit || line.attempts + 1 < MOST_ATTEMPTS)) {
    return { is: 'later', code, message, wait_ms: waitOf(answer.headers, { code, attempts: line.attempts }) }
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

/** How long the batch should pause, because little is left of a limit. */
function reservedFor(headers: LineResponse['headers']): number | undefined {
  for (const unit of ['requests', 'tokens', 'input-tokens', 'output-tokens']) {
    const limit = headers.get(`x-ratelimit-limit-${unit}`) ?? headers.get(`anthropic-ratelimit-${unit}-limit`)
    const left = headers.get(`x-ratelimit-remaining-${unit}`) ?? headers.get(`anthropic-ratelimit-${unit}-remaining`)
    if (limit !== null && left !== null && Number(left) < RESERVED * Number(limit)) return BUSY_MILLISECONDS
  }
  return undefined
}

/** In the form of the OpenAI API or in that of the Messages API. */
function errorOf(body: unknown): { code: string; message: string } {
  const error = isRecord(body) ? body.error : undefined
  if (!isRecord(error)) return { code: '', message: '' }
  const details = isRecord(error.details) ? error.details : {}
  return { code: String(details.error_code ?? error.code ?? ''), message: String(error.message ?? '') }
}

function resultOf(batch: Batch, line: BatchLine, { status, text, body, request_id }: Answer): LineResult {
  const outcome = status >= 200 && status < 300 ? 'succeeded' : 'errored'
  // A body that is not JSON would break the file.
  const json = body === undefined ? JSON.stringify(text) : text
  const kind = outcome === 'succeeded' ? 'output' : 'error'
  const again = line.called_again ? ',"called_again":true' : ''
  const custom_id = JSON.stringify(line.custom_id)
  if (batch.api === 'openai') {
    const response = `{"status_code":${status},"request_id":${JSON.stringify(request_id)},"body":${json}}`
    const head = `{"id":${JSON.stringify(request_id)},"custom_id":${custom_id}`
    return { outcome, kind, text: `${head},"response":${response},"error":null${again}}` }
  }
  const result =
    outcome === 'succeeded' ? `{"type":"succeeded","message":${json}}` : `{"type":"errored","error":${json}}`
  return { outcome, kind, text: `{"custom_id":${custom_id},"result":${result}${again}}` }
}

export const UNKNOWN = {
  outcome: 'errored',
  code: 'outcome_unknown',
  message:
    'The gateway stopped while this request was executed. It may have been executed and charged; it was not repeated.',
} as const

type Reason = { outcome: 'errored' | 'canceled' | 'expired'; code: string; message: string }

/** The result of a line that is not called, or whose outcome is unknown. */
export function uncalledResult(batch: Batch, line: Pick<BatchLine, 'line' | 'custom_id'>, reason: Reason): LineResult {
  const { outcome, code, message } = reason
  const { custom_id } = line
  const error = { code, message }
  if (batch.api === 'openai') {
    const value = { id: requestIdOf(batch, line), custom_id, response: null, error }
    return { outcome, kind: 'error', text: JSON.stringify(value) }
  }
  const result =
    outcome === 'errored'
      ? {
          type: 'errored',
          error: { type: 'error', error: { type: 'api_error', message, details: { error_code: code } } },
        }
      : { type: outcome }
  return { outcome, kind: 'error', text: JSON.stringify({ custom_id, result }) }
}

const numberIn = (value: unknown, name: string): number => {
  const found = isRecord(value) ? value[name] : undefined
  return typeof found === 'number' && Number.isFinite(found) && found > 0 ? Math.floor(found) : 0
}

/** The usage of a response, in the names of any of the APIs. */
function tokensOf(body: unknown): BatchTokens | undefined {
  const usage = isRecord(body) ? body.usage : undefined
  if (!isRecord(usage)) return undefined
  const of = (...names: string[]) => names.reduce((found, name) => found || numberIn(usage, name), 0)
  return {
    input_tokens: of('input_tokens', 'prompt_tokens'),
    output_tokens: of('output_tokens', 'completion_tokens'),
    cached_tokens:
      of('cache_read_input_tokens') ||
      numberIn(usage.prompt_tokens_details ?? usage.input_tokens_details, 'cached_tokens'),
    reasoning_tokens: numberIn(usage.completion_tokens_details ?? usage.output_tokens_details, 'reasoning_tokens'),
  }
}

/** A text on one line: outside of its strings JSON may be broken over lines, and inside of them it cannot be. */
const oneLine = (json: string): string => (/[\r\n]/.test(json) ? json.replace(/[\r\n]+/g, ' ') : json)
