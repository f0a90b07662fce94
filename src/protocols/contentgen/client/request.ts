/** Decodes a generateContent request. Errors name the client's field and the values it may have. */
import type { TSchema } from 'typebox'
import { checker } from '../../../kit/checker.ts'
import { isRecord } from '../../../kit/json.ts'
import { GatewayError, invalidValue, missingField } from '../../../spec/error.ts'
import type { ChatRequest } from '../../shared/canonical.ts'
import { assertObject, places } from '../../shared/request-error.ts'
import { fieldsOf } from './fields.ts'
import { historyOf, systemText } from './history.ts'
import { minimalRequestOf, refuseInvalid } from './minimal-request.ts'
import { normaliseNames } from './names.ts'
import { ContentgenRequest, CountTokensRequest } from './schema.ts'
import { toolsOf } from './tools.ts'

const checkRequest = checker(ContentgenRequest)
const checkCount = checker(CountTokensRequest)

type ParsedRequest = { request: ChatRequest; shows_thoughts: boolean; refusal?: GatewayError }

/** The decoded request, or a minimal one if only a provider of this protocol can serve it. */
export function parseOrMinimal(body: unknown, model: string): ParsedRequest {
  try {
    const clientRequest = checkedRequest(body)
    // The canonical request has no field for it: it only selects what the response shows.
    const shows_thoughts = clientRequest.generationConfig?.thinkingConfig?.includeThoughts === true
    return { request: requestOf(clientRequest, model), shows_thoughts }
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown
    return { request: minimalRequestOf(body, model), shows_thoughts: false, refusal: thrown }
  }
}

/**
 * Treats `null` as absent and ignores unknown fields. Throws GatewayError with the client's field and its allowed
 * values.
 */
export function parseContentgen(body: unknown, model = ''): ChatRequest {
  return requestOf(checkedRequest(body), model)
}

const checkedRequest = (body: unknown) => checked(body, ContentgenRequest, checkRequest) as ContentgenRequest

/** Decodes a token-count request, which holds contents or a whole request. */
export function parseCount(body: unknown, model: string): ChatRequest {
  const { generateContentRequest, contents, ...clientRequest } = checked(body, CountTokensRequest, checkCount)
  if (isRecord(generateContentRequest)) return requestOf(generateContentRequest as ContentgenRequest, model)
  if (contents !== undefined) return requestOf({ ...clientRequest, contents } as ContentgenRequest, model)
  throw missingField('contents')
}

function checked(body: unknown, schema: TSchema, check: { Check(value: unknown): boolean }): Record<string, unknown> {
  const clientRequest = normaliseNames(body)
  assertObject(clientRequest)
  refuseInvalid(clientRequest, schema, check)
  return clientRequest
}

function requestOf(clientRequest: ContentgenRequest, model: string): ChatRequest {
  const { contents, systemInstruction } = clientRequest
  const system = systemInstruction ? systemText(systemInstruction) : ''
  const before = system === '' ? [] : [{ role: 'system' as const, content: system }]
  for (const message of before) places.set(message, 'systemInstruction')
  const history = historyOf(contents)
  if (history.length === 0) throw invalidValue('contents', '"contents" must not be empty.')
  const messages = [...before, ...history]
  return { model, messages, ...toolsOf(clientRequest), ...fieldsOf(clientRequest) }
}
