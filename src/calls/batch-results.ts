/** The lines of batches in the forms of the OpenAI API and the Messages API: the body of a request, and its result. */
import { asRecord, isRecord, memberOf, parseJson, parseRequestJson } from '../kit/json.ts'
import { usageOf } from '../protocols/shared/upstream.ts'
import type { Batch, BatchApi, BatchLine, BatchTokens, LineResult } from '../store/batches/batch-store.ts'

/**
 * What `read` makes of the body of a request. Undefined: it cannot be read. A line must not end the run of its batch, which
 * would be repeated until it expires.
 */
export function fromBody<T>(api: BatchApi, text: string, read: (body: Record<string, unknown>) => T): T | undefined {
  try {
    const value = parseRequestJson(text)
    const body = isRecord(value) ? (api === 'openai' ? value.body : value.params) : undefined
    return isRecord(body) ? read(body) : undefined
  } catch {
    return undefined
  }
}

/** The same for each attempt: by it the entries of the ledger and the lines are compared. */
export const requestIdOf = ({ batch_id }: Pick<Batch, 'batch_id'>, { line }: Pick<BatchLine, 'line'>): string =>
  `batch_req_${batch_id.replace(/^(msg)?batch_/, '')}_${line}`

/** Of a response in the form of the OpenAI API or in that of the Messages API. */
export function errorOf(text: string): { code: string; message: string } {
  const body = parseJson(text)
  const error = memberOf(body, 'error')
  if (!isRecord(error)) return { code: '', message: '' }
  const details = asRecord(error.details)
  return { code: String(details.error_code ?? error.code ?? ''), message: String(error.message ?? '') }
}

/** The result of a line by the response to it. */
export function resultOf(
  batch: Batch,
  line: BatchLine,
  { status, text }: { status: number; text: string },
): LineResult {
  const body = parseJson(text)
  // A body that is not JSON would break the file.
  const json = body === undefined ? JSON.stringify(text) : oneLine(text)
  const again = line.called_again ? ',"called_again":true' : ''
  const custom_id = JSON.stringify(line.custom_id)
  const id = JSON.stringify(requestIdOf(batch, line))
  const isSuccess = status >= 200 && status < 300
  const result = isSuccess ? `{"type":"succeeded","message":${json}}` : `{"type":"errored","error":${json}}`
  return {
    ...(isSuccess
      ? { outcome: 'succeeded', kind: 'output', tokens: tokensOf(body) }
      : { outcome: 'errored', kind: 'error' }),
    text:
      batch.api === 'openai'
        ? `{"id":${id},"custom_id":${custom_id},"response":{"status_code":${status},"request_id":${id},"body":${json}},"error":null${again}}`
        : `{"custom_id":${custom_id},"result":${result}${again}}`,
  }
}

/** A text on one line: outside of its strings JSON may be broken over lines, and inside of them it cannot be. */
const oneLine = (json: string): string => (/[\r\n]/.test(json) ? json.replace(/[\r\n]+/g, ' ') : json)

function tokensOf(body: unknown): BatchTokens | undefined {
  const usage = isRecord(body) ? usageOf(body.usage) : undefined
  return (
    usage && {
      input_tokens: usage.input_tokens,
      output_tokens: usage.output_tokens,
      cached_tokens: usage.prompt_tokens_details.cached_tokens,
      reasoning_tokens: usage.completion_tokens_details.reasoning_tokens,
    }
  )
}

/** Why a line has no response. */
export type Reason = { outcome: 'errored' | 'canceled' | 'expired'; code: string; message: string }

export const UNKNOWN = {
  outcome: 'errored',
  code: 'outcome_unknown',
  message:
    'The gateway stopped while this request was executed. It may have been executed and charged; it was not repeated.',
} as const

export const UNREADABLE = {
  outcome: 'errored',
  code: 'invalid_json',
  message: 'This line cannot be read as JSON.',
} as const

/** By how its batch ended; the codes are those of OpenAI. */
export const REASONS = {
  completed: { outcome: 'errored', code: 'internal_error', message: 'This request was not executed.' },
  cancelled: {
    outcome: 'canceled',
    code: 'batch_cancelled',
    message: 'This request was not executed because the batch was cancelled.',
  },
  expired: {
    outcome: 'expired',
    code: 'batch_expired',
    message: 'This request could not be executed before the completion window expired.',
  },
} as const

/** The result of a line that is not called, or whose outcome is unknown. */
export function uncalledResult(
  batch: Batch,
  { line, custom_id }: Pick<BatchLine, 'line' | 'custom_id'>,
  { outcome, code, message }: Reason,
): LineResult {
  const error = { type: 'error', error: { type: 'api_error', message, details: { error_code: code } } }
  const value =
    batch.api === 'openai'
      ? { id: requestIdOf(batch, { line }), custom_id, response: null, error: { code, message } }
      : { custom_id, result: { type: outcome, ...(outcome === 'errored' && { error }) } }
  return { outcome, kind: 'error', text: JSON.stringify(value) }
}
