/** Errors of the Responses API: the error of a failed response, with the client's field names. */
import type { ErrorCode, GatewayError } from '../../../spec/error.ts'
import { type ClientFields, errorTranslator, places } from '../../shared/request-error.ts'

/** The gateway's code -> the code that clients look for. Other codes only separate client errors from server errors. */
const FAILURE_CODES: { [code in ErrorCode]?: string } = {
  rate_limit_exceeded: 'rate_limit_exceeded',
  insufficient_quota: 'insufficient_quota',
  context_length_exceeded: 'context_length_exceeded',
  server_is_overloaded: 'server_is_overloaded',
  invalid_api_key: 'invalid_api_key',
}

export function failureOf({ code, status, message }: GatewayError): { code: string; message: string } {
  return { code: FAILURE_CODES[code] ?? (status < 500 ? 'invalid_prompt' : 'server_error'), message }
}

/**
 * The members of an `error` event, as JSON without braces. Some clients stop at this event and read its own members or
 * those of `error`.
 */
export function errorFields(error: GatewayError): string {
  const failure = { ...failureOf(error), param: error.detail.param ?? null }
  return JSON.stringify({ ...failure, error: { type: error.type, ...failure } }).slice(1, -1)
}

/** The event that ends a stream of stored events before the response has ended. */
export const errorEvent = (error: GatewayError, sequence_number: number): string =>
  `event: error\ndata: {"type":"error","sequence_number":${sequence_number},${errorFields(error)}}\n\n`

/** Canonical field -> the client's field, where they differ. */
const CLIENT_FIELDS: ClientFields = {
  messages: 'input',
  max_tokens: 'max_output_tokens',
  max_completion_tokens: 'max_output_tokens',
  response_format: 'text.format',
  verbosity: 'text.verbosity',
  reasoning_effort: 'reasoning.effort',
  reasoning_summary: 'reasoning.summary',
  logprobs: 'include',
  web_search: 'tools',
  web_search_options: 'tools',
}

/** Kinds of parts, as error messages quote them. */
const CLIENT_PARTS = [
  ['"text"', '"input_text"'],
  ['"image_url"', '"input_image"'],
  ['"file"', '"input_file"'],
] as const

export const errorForClient = errorTranslator({
  fields: CLIENT_FIELDS,
  parts: CLIENT_PARTS,
  inMessage({ message, part, isPart, rest }) {
    const found = isPart ? part : message
    const place = found && places.get(found)
    // Content that is one text has no members.
    return place?.endsWith(']') && (isPart || rest === '.content') ? `${place}${rest}` : place
  },
})
