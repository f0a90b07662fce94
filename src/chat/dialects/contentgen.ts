/** The contentgen dialect: a client's JSON into the house's words, refused with the place and the rule. */

import type { TSchema } from 'typebox'
import { queryOf } from '../../http/query.ts'
import { checker } from '../../kit/checker.ts'
import { diagnose, foundText } from '../../kit/diagnose.ts'
import { isRecord } from '../../kit/json.ts'
import { refusalOf } from '../../models/refusal.ts'
import type { ChatRequest } from '../../spec/chat-request.ts'
import { ContentgenError, contentgenErrorBody } from '../../spec/contentgen-error.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Places } from './client-names.ts'
import { errorForClient } from './contentgen-error.ts'
import { fieldsOf } from './contentgen-fields.ts'
import { historyOf, systemText } from './contentgen-history.ts'
import { minimalRequestOf } from './contentgen-minimal.ts'
import { inOneSpelling } from './contentgen-names.ts'
import { contentgenPassthrough } from './contentgen-passthrough.ts'
import { ContentgenAnswer, ContentgenRequest, CountTokensRequest } from './contentgen-schema.ts'
import { toolsOf } from './contentgen-tools.ts'
import { blockedAnswer, createContentgenWriter } from './contentgen-writer.ts'
import type { Dialect, ResponseHead } from './dialect.ts'

const checkRequest = checker(ContentgenRequest)
const checkCount = checker(CountTokensRequest)

export type ContentgenMethod = 'generateContent' | 'streamGenerateContent'

/** Of a stream as one array: white space says nothing between its items. */
const ARRAY = { content_type: 'application/json; charset=utf-8', keep_alive: '\n' }

const EXAMPLE = { contents: [{ role: 'user', parts: [{ text: 'What is Gatehouse?' }] }] }
export const MODEL_PARAMETER = {
  model: 'Model id, with or without the provider prefix; its slash may be raw or `%2F`.',
}

/** Whether an answer comes whole or as a stream is said by the path, and so is the model. */
export function contentgenDialect(method: ContentgenMethod): Dialect {
  const places: Places = new WeakMap()
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
      response: isStream ? ({ type: 'array', items: ContentgenAnswer } as TSchema) : ContentgenAnswer,
      ...(isStream ? { stream: ContentgenAnswer, query: { alt: ALT } } : {}),
      example: EXAMPLE,
    },
    parse: (body) => parseContentgen(body, { model: '', places }),
    read(body, { params, request }) {
      const { made, shows_thoughts, refusal } = readOrMinimal(body, { model: params.model ?? '', places })
      const form = isStream && !isSse(request) ? 'array' : 'events'
      const passed = { hasBegun: false }
      return {
        request: isStream ? { ...made, stream: true } : made,
        writer: (head) => createContentgenWriter({ head, shows_thoughts, form, passed }),
        ...(form === 'array' ? { framing: ARRAY } : {}),
        passthrough: contentgenPassthrough(passed),
        ...(refusal ? { refusal } : {}),
      }
    },
    writer: (head) => createContentgenWriter({ head, shows_thoughts: false, form: 'events' }),
    writeError: contentgenErrorBody,
    errorSchema: ContentgenError,
    errorForClient: (error, request) => errorForClient(error, request, places),
    blocked: (error, head, request) =>
      error.code === 'content_policy_violation' ? blockedResponse(error, { head, method, request }) : undefined,
  }
}

type Blocked = { head: ResponseHead; method: ContentgenMethod; request: Request }

/** A prompt that the provider refused before its first word is an answer of this protocol, and no error. */
function blockedResponse(error: GatewayError, { head: { id, model }, method, request }: Blocked): Response {
  const body = blockedAnswer(error, { id, model })
  if (method === 'generateContent') return Response.json(body)
  if (!isSse(request)) return Response.json([body])
  const headers = { 'content-type': 'text/event-stream; charset=utf-8' }
  return new Response(`data: ${JSON.stringify(body)}\n\n`, { headers })
}

type Read = { made: ChatRequest; shows_thoughts: boolean; refusal?: GatewayError }

/** A request in the house's words, or its outline where only its own vendor can take it. */
function readOrMinimal(body: unknown, options: ParseOptions & { model: string }): Read {
  try {
    const clientRequest = checkedRequest(body)
    // The house has no word for it, since it only says what is told.
    const shows_thoughts = clientRequest.generationConfig?.thinkingConfig?.includeThoughts === true
    return { made: requestOf(clientRequest, options), shows_thoughts }
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown
    return { made: minimalRequestOf(body, options.model, options.places), shows_thoughts: false, refusal: thrown }
  }
}

const ALT = {
  description: '`sse` for server-sent events.',
  schema: { type: 'string', enum: ['sse', 'json'] } as TSchema,
}

/** The vendor takes `alt` with or without a `$`. */
export function isSse(request: Request): boolean {
  const query = queryOf(request)
  return (query.get('alt') ?? query.get('$alt')) === 'sse'
}

type ParseOptions = { model: string; places?: Places }

/** `null` is absent, and unknown fields are not looked at. Throws GatewayError naming the client's field and what it may be. */
export function parseContentgen(body: unknown, options: ParseOptions): ChatRequest {
  return requestOf(checkedRequest(body), options)
}

const checkedRequest = (body: unknown) => checked(body, ContentgenRequest, checkRequest) as ContentgenRequest

/** Of a question how many tokens a prompt has: the contents, or all of a request. */
export function parseCount(body: unknown, options: ParseOptions): ChatRequest {
  const { generateContentRequest, contents, ...clientRequest } = checked(body, CountTokensRequest, checkCount)
  if (isRecord(generateContentRequest)) return requestOf(generateContentRequest as ContentgenRequest, options)
  if (contents !== undefined) return requestOf({ ...clientRequest, contents } as ContentgenRequest, options)
  throw new GatewayError('missing_required_parameter', '"contents" is required.', { param: 'contents' })
}

function checked(body: unknown, schema: TSchema, check: { Check(value: unknown): boolean }): Record<string, unknown> {
  const clientRequest = inOneSpelling(body)
  if (!isRecord(clientRequest))
    throw new GatewayError('invalid_type', `The body must be a JSON object, not ${foundText(body)}.`)
  if (!check.Check(clientRequest)) throw refusalOf(diagnose(schema, clientRequest))
  return clientRequest
}

function requestOf(clientRequest: ContentgenRequest, { model, places = new WeakMap() }: ParseOptions): ChatRequest {
  const { contents, systemInstruction } = clientRequest
  const system = systemInstruction ? systemText(systemInstruction) : ''
  const before = system === '' ? [] : [{ role: 'system' as const, content: system }]
  for (const message of before) places.set(message, 'systemInstruction')
  const messages = [...before, ...historyOf(contents, places)]
  return { model, messages, ...toolsOf(clientRequest, places), ...fieldsOf(clientRequest) }
}
