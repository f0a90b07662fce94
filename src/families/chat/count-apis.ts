/** How each client API counts the tokens of a prompt. */
import Type from 'typebox'
import type { Clock } from '../../kit/clock.ts'
import { isRecord } from '../../kit/json.ts'
import { parseCount as parseContentgenCount } from '../../protocols/contentgen/client/request.ts'
import { CountTokensRequest } from '../../protocols/contentgen/client/schema.ts'
import { encodeMessagesError, messagesErrorStatus } from '../../protocols/messages/client/error.ts'
import { minimalRequestOf } from '../../protocols/messages/client/minimal-request.ts'
import { messagesPassthrough } from '../../protocols/messages/client/passthrough.ts'
import { parseCount as parseMessagesCount } from '../../protocols/messages/client/request.ts'
import { CountRequest, MessagesError } from '../../protocols/messages/client/schema.ts'
import { ResponsesRequest } from '../../protocols/responses/client/schema.ts'
import { ContentgenError, contentgenErrorBody } from '../../spec/contentgen-error.ts'
import { titled } from '../../spec/fields.ts'
import { MODEL_PARAMETER } from '../../spec/operation.ts'
import type { FileInputs } from '../files/file-inputs.ts'
import { contentgenCountFiles, messagesFiles } from '../files/file-references.ts'
import type { Conversations } from './conversations.ts'
import type { CountApi } from './count-tokens.ts'
import { responsesDialect } from './dialects/responses.ts'
import type { StoredResponses } from './stored-responses.ts'

const DESCRIPTION = 'By the vendor where it can be asked, else an estimate, in which media count by rules of thumb.'

const MessagesCount = titled('MessagesCount', { input_tokens: Type.Integer({ minimum: 0 }) })
const CountTokensAnswer = titled('CountTokensResponse', { totalTokens: Type.Integer({ minimum: 0 }) })
const ResponsesCount = titled('ResponsesCount', {
  object: Type.Literal('response.input_tokens'),
  input_tokens: Type.Integer({ minimum: 0 }),
})

/** Agents call it before each long request. */
export const messagesCount: CountApi = {
  family: 'messages-compat',
  path: '/v1/messages/count_tokens',
  operation: {
    summary: 'Count the tokens of a message',
    description: DESCRIPTION,
    tag: 'Chat',
    request: CountRequest,
    nested_nulls: true,
    response: MessagesCount,
    example: { model: 'sandbox/general', messages: [{ role: 'user', content: 'What is Gatehouse?' }] },
  },
  files: messagesFiles,
  parse: (body) => parseMessagesCount(body),
  passthrough: {
    ...messagesPassthrough,
    // A request for a count has no output limit.
    minimalRequest: (body) => minimalRequestOf(isRecord(body) ? { ...body, max_tokens: 1 } : body),
  },
  encode: (tokens) => ({ input_tokens: tokens }),
  encodeError: encodeMessagesError,
  errorStatus: messagesErrorStatus,
  errorSchema: MessagesError,
}

export const contentgenCount: CountApi = {
  family: 'contentgen-compat',
  path: '/v1beta/models/{model}:countTokens',
  operation: {
    summary: 'Count the tokens of contents',
    description: DESCRIPTION,
    tag: 'Chat',
    params: MODEL_PARAMETER,
    request: CountTokensRequest,
    nested_nulls: true,
    response: CountTokensAnswer,
    example: { contents: [{ role: 'user', parts: [{ text: 'What is Gatehouse?' }] }] },
  },
  files: contentgenCountFiles,
  parse: (body, { params }) => parseContentgenCount(body, params.model ?? ''),
  encode: (tokens) => ({ totalTokens: tokens }),
  encodeError: contentgenErrorBody,
  errorSchema: ContentgenError,
}

/** Counts the previous responses of the conversation too. */
export function responsesCount(parts: {
  storedResponses: StoredResponses
  conversations: Conversations
  fileInputs: FileInputs
  clock: Clock
}): CountApi {
  const { family, path, operation, parse, read } = responsesDialect(parts)
  return {
    family,
    path: `${path}/input_tokens`,
    operation: {
      summary: 'Count the tokens of a response',
      description: DESCRIPTION,
      tag: operation.tag,
      request: ResponsesRequest,
      nested_nulls: true,
      response: ResponsesCount,
      errors: ['previous_response_not_found', 'conversation_not_found'],
      ...(operation.example === undefined ? {} : { example: operation.example }),
    },
    // Nothing is stored: only the encoder of a response does that, and a count has none.
    parse: async (body, request) => (await read?.(body, request))?.request ?? parse(body),
    encode: (tokens) => ({ object: 'response.input_tokens', input_tokens: tokens }),
  }
}
