/** Errors of the Messages API: the gateway's codes as its error types, with the client's field names. */
import type { ErrorCode, GatewayError } from '../../../spec/error.ts'
import { type ClientFields, errorTranslator, places } from '../../shared/request-error.ts'

const TYPE_OF_STATUS: Record<number, string> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  408: 'timeout_error',
  409: 'conflict_error',
  410: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  503: 'overloaded_error',
  504: 'timeout_error',
}
/** Codes for which the status is not specific enough. */
const TYPE_OF_CODE: { [code in ErrorCode]?: string } = { insufficient_quota: 'billing_error' }

const typeOf = ({ code, status }: GatewayError): string =>
  TYPE_OF_CODE[code] ?? TYPE_OF_STATUS[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error')

/** The status of this API for an overloaded model, which its clients handle in their own way; 503 is not in its list. */
const OVERLOADED = 529

export const messagesErrorStatus = ({ code, status }: GatewayError): number =>
  code === 'server_is_overloaded' ? OVERLOADED : status

/** Agents that compact their history recognise a prompt that is too long by this phrase. */
const TOO_LONG = 'prompt is too long'

const messageFor = ({ code, message }: GatewayError): string =>
  code !== 'context_length_exceeded' || message.toLowerCase().includes(TOO_LONG) ? message : `${TOO_LONG}: ${message}`

/**
 * The body of an error response, and the data of an error event. `details` holds what the API's format has no place
 * for.
 */
export function encodeMessagesError(error: GatewayError, request_id?: string) {
  const { param, replaced_by } = error.detail
  return {
    type: 'error',
    error: {
      type: typeOf(error),
      message: messageFor(error),
      details: {
        error_code: error.code,
        ...(param === undefined ? {} : { param }),
        ...(replaced_by === undefined ? {} : { replaced_by }),
      },
    },
    request_id: request_id ?? null,
  }
}

/** Canonical field -> the client's field, where they differ. */
const CLIENT_FIELDS: ClientFields = {
  max_completion_tokens: 'max_tokens',
  response_format: 'output_config.format',
  reasoning_effort: 'output_config.effort',
  reasoning_budget: 'thinking.budget_tokens',
  thinking_enabled: 'thinking.type',
  stop: 'stop_sequences',
  user: 'metadata.user_id',
  parallel_tool_calls: 'tool_choice.disable_parallel_tool_use',
  web_search: 'tools',
  web_search_options: 'tools',
}

/** Kinds of parts, as error messages quote them. */
const CLIENT_BLOCKS = [
  ['"image_url"', '"image"'],
  ['"file"', '"document"'],
] as const

export const errorForClient = errorTranslator({
  fields: CLIENT_FIELDS,
  parts: CLIENT_BLOCKS,
  inMessage({ message, part, isPart, rest }) {
    const found = isPart ? part : message
    const place = found && places.get(found)
    if (place === undefined) return message?.role === 'system' ? 'system' : undefined
    return `${place}${isPart || rest === '.content' ? rest : ''}`
  },
  elsewhere: (param) => param.replace('.function.', '.'),
})
