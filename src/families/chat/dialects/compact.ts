/**
 * `POST /v1/responses/compact`: the user's messages of a conversation, and one item in place of the rest.
 * https://developers.openai.com/api/reference/resources/responses/methods/compact
 * It is a response to the same input with a `compaction_trigger`, so that a provider without this path serves it too.
 */
import Type from 'typebox'
import { foundText } from '../../../kit/diagnose.ts'
import { isRecord, type JsonRecord, parseJson } from '../../../kit/json.ts'
import { pick } from '../../../kit/pick.ts'
import { isSummaryItem, remainingItems } from '../../../protocols/responses/client/compaction.ts'
import { itemId } from '../../../protocols/responses/client/items.ts'
import { type InputItem, ResponsesAnswer, ResponsesRequest } from '../../../protocols/responses/client/schema.ts'
import type { ResponseEncoder } from '../../../protocols/shared/protocol.ts'
import { GatewayError } from '../../../spec/error.ts'
import { titled } from '../../../spec/fields.ts'
import type { StoredResponses } from '../stored-responses.ts'
import type { Dialect } from './dialect.ts'

const { properties } = ResponsesRequest
const CompactRequest = titled('ResponsesCompactRequest', {
  ...pick(properties, 'model', 'input', 'instructions', 'previous_response_id', 'prompt_cache_key', 'service_tier'),
})
const CompactAnswer = titled('ResponsesCompaction', {
  id: Type.String(),
  object: Type.Literal('response.compaction'),
  created_at: Type.Integer(),
  output: Type.Array(Type.Record(Type.String(), Type.Unknown()), {
    description: 'The messages of the user, and a `compaction` item.',
  }),
  usage: ResponsesAnswer.properties.usage,
})

export function compactDialect(responses: Dialect, storedResponses: StoredResponses): Dialect {
  const { defer: _, has_routing_fields: __, read, ...shared } = responses
  return {
    ...shared,
    path: '/v1/responses/compact',
    operation: {
      summary: 'Compact a conversation',
      description: 'Its `output` is the input of the next response, in place of the conversation. Nothing is stored.',
      tag: 'Chat',
      request: CompactRequest,
      nested_nulls: true,
      response: CompactAnswer,
      errors: ['previous_response_not_found'],
      example: { model: 'sandbox/general', input: 'What is Gatehouse?' },
    },
    parse: (body) => responses.parse(requestOf(body)),
    async read(body, call) {
      if (!read) throw new Error('The dialect of responses has no read.')
      const request = requestOf(body)
      const exchange = await read(request, call)
      const { previous_response_id: previous } = request
      const before =
        typeof previous === 'string' ? (await storedResponses.conversation(previous, call.caller.token_id)).items : []
      const users = remainingItems([...before, ...(request.input as InputItem[])]).filter(isUserMessage)
      const compacted = (response: unknown) => compactionOf(response, users)
      const { passthrough } = exchange
      return {
        ...exchange,
        writer(head, limited, request_id): ResponseEncoder {
          const encoder = exchange.writer(head, limited, request_id)
          return { ...encoder, whole: (answer, usage) => compacted(encoder.whole(answer, usage)) }
        },
        ...(passthrough && {
          passthrough: {
            ...passthrough,
            whole(text, parts) {
              const answer = passthrough.whole(text, parts)
              const { usage: counted, choices } = answer
              return { usage: counted, choices, encode: (usage) => compacted(parseJson(String(answer.encode(usage)))) }
            },
          },
        }),
      }
    },
  }
}

/** The request of the response that compacts. */
function requestOf(body: unknown): JsonRecord {
  if (!isRecord(body)) throw new GatewayError('invalid_type', `The body must be a JSON object, not ${foundText(body)}.`)
  const { conversation, background: _, ...request } = body
  if (conversation !== undefined && conversation !== null) {
    const message = '"conversation" is not supported here: send its items as "input".'
    throw new GatewayError('unsupported_parameter', message, { param: 'conversation' })
  }
  const { input = [] } = body
  const items = typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : (input ?? [])
  // A wrong type is reported by the decoder of responses.
  if (!Array.isArray(items)) return request
  if (items.length === 0 && (body.previous_response_id ?? null) === null) {
    const message = '"input" is required without "previous_response_id": there is no conversation to compact.'
    throw new GatewayError('missing_required_parameter', message, { param: 'input' })
  }
  return { ...request, input: [...items, { type: 'compaction_trigger' }], store: false, stream: false }
}

const isUserMessage = (item: InputItem): boolean => 'role' in item && item.role === 'user'

function compactionOf(response: unknown, users: InputItem[]): JsonRecord {
  const { id, created_at, output, usage } = isRecord(response) ? response : {}
  const summaries = Array.isArray(output) ? (output as InputItem[]).filter(isSummaryItem) : []
  if (summaries.length === 0) {
    throw new GatewayError('bad_upstream_response', 'The provider answered without a compaction of the conversation.')
  }
  const messages = users.map((item, index) => ({
    id: itemId(String(id), 'msg', `in${index}`),
    status: 'completed',
    ...item,
    type: 'message',
    ...('content' in item && typeof item.content === 'string'
      ? { content: [{ type: 'input_text', text: item.content }] }
      : {}),
  }))
  return { id, object: 'response.compaction', created_at, output: [...messages, ...summaries], usage }
}
