/** Decodes requests of the methods `predict` and `predictLongRunning`: one instance, and the parameters of its output. */
import Type from 'typebox'
import { checker } from '../../../kit/checker.ts'
import { diagnose, foundText } from '../../../kit/diagnose.ts'
import { isRecord, type JsonRecord } from '../../../kit/json.ts'
import { GatewayError } from '../../../spec/error.ts'
import { presentMembers, refusalOf, refusedField, withParam } from '../../shared/request-error.ts'
import { standardBase64 } from './parts.ts'

const Members = Type.Record(Type.String(), Type.Unknown())

/** The schema of a body, with what its members may be. */
export const predictRequest = (title: string, { instance, parameters }: Record<'instance' | 'parameters', string>) =>
  Type.Object(
    {
      instances: Type.Array(Members, { minItems: 1, maxItems: 1, description: `Exactly one: ${instance}` }),
      parameters: Type.Optional(Type.Record(Type.String(), Type.Unknown(), { description: parameters })),
    },
    { title },
  )
const PlainRequest = predictRequest('PredictRequest', { instance: '', parameters: '' })
const check = checker(PlainRequest)

/** The client's path of each field: `n` is `parameters.sampleCount`. */
type PredictFields = Readonly<Record<string, string>>

type PredictForm = {
  fields: PredictFields
  /** Fields whose value is a medium. */
  media: readonly string[]
  /** Paths that would change the result, or where it is stored, and are not supported. */
  refused: readonly string[]
}

/** The fields of the request. `null` is absent, unknown members are ignored. Throws GatewayError with the client's path. */
export function fieldsIn(body: unknown, { fields, media, refused }: PredictForm): JsonRecord {
  const given: unknown = presentMembers(body)
  if (!check.Check(given)) throw refusalOf(diagnose(PlainRequest, given))
  const { instances, parameters = {} } = given
  const values = { 'instances[0]': instances[0] ?? {}, parameters }
  for (const path of refused) {
    if (valueAt(values, path) !== undefined) throw refusedField(path, 'is not supported: leave it out')
  }
  const request: JsonRecord = {}
  for (const [field, path] of Object.entries(fields)) {
    const value = valueAt(values, path)
    if (value !== undefined) request[field] = media.includes(field) ? mediaOf(value, path) : value
  }
  return request
}

/** `instances[0].image`, `parameters.outputOptions.mimeType`; undefined for `null` too. */
function valueAt(values: JsonRecord, path: string): unknown {
  let value: unknown = values
  for (const name of path.split('.')) value = isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined
  return value ?? undefined
}

/** A medium, or a list of them, as a data URI or an address. */
function mediaOf(value: unknown, at: string): string | string[] {
  if (Array.isArray(value))
    return value.map((one, index) => mediumOf(isRecord(one) && 'image' in one ? one.image : one, `${at}[${index}]`))
  return mediumOf(value, at)
}

function mediumOf(value: unknown, at: string): string {
  if (!isRecord(value))
    throw new GatewayError('invalid_type', `"${at}" must be an object, not ${foundText(value)}.`, { param: at })
  const inner = isRecord(value.inlineData) ? value.inlineData : value
  const data = inner.bytesBase64Encoded ?? inner.encodedVideo ?? inner.data
  const type = inner.mimeType ?? inner.encoding
  if (typeof data === 'string') {
    return typeof type === 'string' ? `data:${type};base64,${standardBase64(data)}` : standardBase64(data)
  }
  const address = inner.uri ?? inner.gcsUri ?? inner.fileUri
  if (typeof address === 'string') return address
  const message = `"${at}" must have "bytesBase64Encoded" with "mimeType", or "uri".`
  throw new GatewayError('missing_required_parameter', message, { param: at })
}

/** The same error with the client's path in place of the field. */
export function withPath<Thrown>(error: Thrown, fields: PredictFields): Thrown | GatewayError {
  if (!(error instanceof GatewayError)) return error
  const { param } = error.detail
  const [, field = '', rest = ''] = /^(\w+)(.*)$/.exec(param ?? '') ?? [] // the field, and the place in it
  const path = Object.hasOwn(fields, field) ? fields[field] : undefined
  if (param === undefined || path === undefined) return error
  return withParam(error, param, `${path}${rest}`)
}
