/** Decodes an embeddings request in the contentgen shape; errors name the client's fields. */
import Type from 'typebox'
import { checker } from '../../kit/checker.ts'
import { diagnose } from '../../kit/diagnose.ts'
import { assertObject, refusalOf, withParam } from '../../protocols/shared/request-error.ts'
import type { EmbeddingRequest } from '../../spec/embedding-request.ts'
import { GatewayError, invalidValue } from '../../spec/error.ts'
import { text, titled } from '../../spec/fields.ts'

const Content = Type.Object({
  parts: Type.Array(Type.Record(Type.String(), Type.Unknown()), { minItems: 1, description: 'Texts; joined.' }),
  role: Type.Optional(Type.String()),
})
const options = {
  outputDimensionality: Type.Optional(Type.Integer({ minimum: 1, maximum: 65_536 })),
  taskType: text('Such as `RETRIEVAL_QUERY` or `RETRIEVAL_DOCUMENT`.'),
  title: Type.Optional(Type.String()),
}
export const EmbedContentRequest = titled('EmbedContentRequest', {
  content: Content,
  model: Type.Optional(Type.String()),
  ...options,
})
type EmbedContentRequest = Type.Static<typeof EmbedContentRequest>

export const BatchEmbedRequest = titled('BatchEmbedContentsRequest', {
  requests: Type.Array(EmbedContentRequest, { minItems: 1, maxItems: 100_000 }),
})

const checkOne = checker(EmbedContentRequest)
const checkBatch = checker(BatchEmbedRequest)

type Options = { model: string; isBatch: boolean }

/** `null` is absent, unknown fields are ignored. Throws GatewayError naming the client's field. */
export function parseContents(body: unknown, { model, isBatch }: Options): EmbeddingRequest {
  assertObject(body)
  const given = withoutNulls(body)
  const requests = requestsIn(isBatch ? { ...given, requests: listed(given.requests) } : given, isBatch)
  const place = (index: number, field: string) => (isBatch ? `requests[${index}].${field}` : field)
  const texts = requests.map(({ content }, index) => textOf(content.parts, place(index, 'content')))
  const dimensions = shared(requests, 'outputDimensionality', place)
  const input_type = shared(requests, 'taskType', place)
  return {
    model,
    input: texts,
    ...(dimensions === undefined ? {} : { dimensions }),
    ...(input_type === undefined ? {} : { input_type }),
  }
}

function requestsIn(body: Record<string, unknown>, isBatch: boolean): EmbedContentRequest[] {
  if (isBatch) {
    if (checkBatch.Check(body)) return body.requests
    throw refusalOf(diagnose(BatchEmbedRequest, body))
  }
  if (checkOne.Check(body)) return [body]
  throw refusalOf(diagnose(EmbedContentRequest, body))
}

/** Alternative spellings, which other parsers of this family accept as well. */
const OTHER_NAMES: Record<string, string> = { output_dimensionality: 'outputDimensionality', task_type: 'taskType' }

function withoutNulls(value: object): Record<string, unknown> {
  const members = Object.entries(value).filter(([name, member]) => member !== null && name !== '__proto__')
  return Object.fromEntries(members.map(([name, member]) => [OTHER_NAMES[name] ?? name, member]))
}

const listed = (requests: unknown): unknown =>
  Array.isArray(requests)
    ? requests.map((one) => (typeof one === 'object' && one !== null && !Array.isArray(one) ? withoutNulls(one) : one))
    : requests

function textOf(parts: Record<string, unknown>[], place: string): string {
  const texts = parts.map((part, index) => {
    if (typeof part.text === 'string') return part.text
    const [field = 'text'] = Object.keys(part)
    const param = `${place}.parts[${index}].${field}`
    throw new GatewayError('unsupported_value', `"${param}" cannot be embedded: only "text" is supported.`, { param })
  })
  const text = texts.join('\n')
  if (text !== '') return text
  const param = `${place}.parts`
  throw invalidValue(param, `"${param}" must hold a text of at least 1 character.`)
}

/** One upstream call has one dimension and one task type. */
function shared<Field extends 'outputDimensionality' | 'taskType'>(
  requests: EmbedContentRequest[],
  field: Field,
  place: (index: number, field: string) => string,
): EmbedContentRequest[Field] | undefined {
  const first = requests[0]?.[field]
  const other = requests.findIndex((request) => request[field] !== first)
  if (other === -1) return first
  const param = place(other, field)
  throw new GatewayError('unsupported_value', `"${param}" must be the same in all "requests" of one batch.`, { param })
}

const CLIENT_NAMES: Record<string, string> = { dimensions: 'outputDimensionality', input_type: 'taskType' }

/** The same error with the client's name of the field. */
export function errorForClient(error: GatewayError, isBatch: boolean): GatewayError {
  const { param } = error.detail
  if (param === undefined) return error
  const [, index] = /^input\[(\d+)\]/.exec(param) ?? []
  const inBatch = isBatch ? 'requests[0].' : ''
  const named = CLIENT_NAMES[param] ? inBatch + CLIENT_NAMES[param] : undefined
  const content = index === undefined ? undefined : isBatch ? `requests[${index}].content` : 'content'
  const field = named ?? content
  return field === undefined ? error : withParam(error, param, field)
}
