/** `POST /v1beta/models/{model}:generateContent` and its stream: the contentgen protocol over HTTP. */
import type { TSchema } from 'typebox'
import type { ClientRequest } from '../../../calls/endpoint.ts'
import { errorForClient } from '../../../protocols/contentgen/client/error.ts'
import { isEnumRequest } from '../../../protocols/contentgen/client/fields.ts'
import { contentgenPassthrough } from '../../../protocols/contentgen/client/passthrough.ts'
import { parseContentgen, parseOrMinimal } from '../../../protocols/contentgen/client/request.ts'
import { blockedAnswer, createContentgenEncoder, isBlocked } from '../../../protocols/contentgen/client/response.ts'
import { ContentgenAnswer, ContentgenRequest } from '../../../protocols/contentgen/client/schema.ts'
import type { ResponseHead } from '../../../protocols/shared/protocol.ts'
import { ContentgenError, contentgenErrorBody } from '../../../spec/contentgen-error.ts'
import { type GatewayError, invalidValue } from '../../../spec/error.ts'
import { MODEL_PARAMETER } from '../../../spec/operation.ts'
import { contentgenFiles } from '../../files/file-references.ts'
import type { Dialect, EncodedBody } from './dialect.ts'

type ContentgenMethod = 'generateContent' | 'streamGenerateContent'

/** A stream as one array: white space between its items has no meaning. */
const ARRAY = { content_type: 'application/json; charset=utf-8', keep_alive: '\n' }

const EXAMPLE = { contents: [{ role: 'user', parts: [{ text: 'What is Gatehouse?' }] }] }

/** The path names the model, and determines whether the response is a stream. */
export function contentgenDialect(method: ContentgenMethod): Dialect {
  const isStream = method === 'streamGenerateContent'
  return {
    family: 'contentgen-compat',
    id_prefix: '',
    path: `/v1beta/models/{model}:${method}`,
    operation: {
      summary: isStream ? 'Generate content as a stream' : 'Generate content',
      description: isStream
        ? 'With `?alt=sse` as server-sent events, each a piece of the answer; the last has `finishReason` and `usageMetadata`. Otherwise the pieces are the items of one JSON array.'
        : 'In the style of Gemini. Also without `models/`, and under `/v1` and `/v1alpha`.',
      tag: 'Chat',
      params: MODEL_PARAMETER,
      request: ContentgenRequest,
      nested_nulls: true,
      response: isStream ? ({ type: 'array', items: ContentgenAnswer } as TSchema) : ContentgenAnswer,
      ...(isStream ? { stream: ContentgenAnswer, query: { alt: ALT } } : {}),
      example: EXAMPLE,
    },
    exact: ['args', 'response'],
    files: contentgenFiles,
    parse: (body) => parseContentgen(body),
    read(body, clientRequest) {
      const { request, shows_thoughts, refusal } = parseOrMinimal(body, clientRequest.params.model ?? '')
      const form = isStream && !isSse(clientRequest) ? 'array' : 'events'
      const is_enum = isEnumRequest(request)
      const passthroughState = { hasStarted: false }
      return {
        request: isStream ? { ...request, stream: true } : request,
        writer: (head) => createContentgenEncoder({ head, shows_thoughts, form, is_enum, passthroughState }),
        ...(form === 'array' ? { framing: ARRAY } : {}),
        passthrough: contentgenPassthrough(passthroughState),
        ...(refusal ? { refusal } : {}),
      }
    },
    writer: (head) => createContentgenEncoder({ head, shows_thoughts: false, form: 'events' }),
    encodeError: contentgenErrorBody,
    errorSchema: ContentgenError,
    errorForClient,
    blocked: (error, head, request) =>
      isBlocked(error) ? blockedResponse(error, { head, method, request }) : undefined,
  }
}

type Blocked = { head: ResponseHead; method: ContentgenMethod; request: ClientRequest }

/** A prompt that the provider blocked before any output is a response of this protocol, not an error. */
function blockedResponse(error: GatewayError, { head: { id, model }, method, request }: Blocked): EncodedBody {
  const body = blockedAnswer(error, { id, model })
  if (method === 'generateContent') return { content_type: JSON_TYPE, text: JSON.stringify(body) }
  if (!isSse(request)) return { content_type: JSON_TYPE, text: JSON.stringify([body]) }
  return { content_type: 'text/event-stream; charset=utf-8', text: `data: ${JSON.stringify(body)}\n\n` }
}

const JSON_TYPE = 'application/json;charset=utf-8'

const ALT = {
  description: '`sse` for server-sent events.',
  schema: { type: 'string', enum: ['sse', 'json'] } as TSchema,
}

/** Google's API accepts `alt` with or without a `$`. */
function isSse(request: ClientRequest): boolean {
  const query = request.query()
  const alt = query.get('alt') ?? query.get('$alt') ?? 'json'
  if (alt === 'sse' || alt === 'json') return alt === 'sse'
  throw invalidValue('alt', '"alt" must be "sse" or "json".')
}
