/** The responses dialect's errors: what a response says of its failure, and the client's own names of fields. */
import type { ErrorCode, GatewayError } from '../../../spec/error.ts'
import { type ClientFields, errorTranslator } from '../../request-error.ts'

/** Our code -> the word that clients of responses look for; where there is none, by whose fault it was. */
const FAILURE_CODES: { [code in ErrorCode]?: string } = {
  rate_limit_exceeded: 'rate_limit_exceeded',
  insufficient_quota: 'insufficient_quota',
  context_length_exceeded: 'context_length_exceeded',
  server_is_overloaded: 'server_is_overloaded',
}

export function failureOf({ code, status, message }: GatewayError): { code: string; message: string } {
  return { code: FAILURE_CODES[code] ?? (status < 500 ? 'invalid_prompt' : 'server_error'), message }
}

/** The house's field -> the client's, where they differ. */
const CLIENT_FIELDS: ClientFields = {
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

/** Kinds of parts, as a message quotes them. */
const CLIENT_PARTS = [
  ['"text"', '"input_text"'],
  ['"image_url"', '"input_image"'],
  ['"file"', '"input_file"'],
] as const

/** The same error with the place that the client knows. */
export const errorForClient = errorTranslator({
  fields: CLIENT_FIELDS,
  parts: CLIENT_PARTS,
  inMessage({ message, part, isPart, rest }, places) {
    const found = isPart ? part : message
    const place = found && places.get(found)
    // What is one text has nothing within it.
    return place?.endsWith(']') && (isPart || rest === '.content') ? `${place}${rest}` : place
  },
})
