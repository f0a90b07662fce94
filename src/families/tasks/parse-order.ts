/** Parses requests for videos and 3D models, as JSON or as a form (specification 2.5). */
import { checker } from '../../kit/checker.ts'
import { diagnose } from '../../kit/diagnose.ts'
import { isRecord } from '../../kit/json.ts'
import { assertObject, knownMembers, refusalOf } from '../../protocols/shared/request-error.ts'
import { GatewayError, invalidValue } from '../../spec/error.ts'
import type { FormFields } from '../../spec/operation.ts'
import { ThreeDRequest } from '../../spec/three-d-request.ts'
import { VideoCreate } from '../../spec/video-create.ts'
import type { VideoRequest } from '../../spec/video-request.ts'

/** The types of the fields in a form, where every value is text. */
export const ORDER_FORM: FormFields = {
  numbers: ['duration', 'n', 'seed', 'target_polycount'],
  booleans: ['audio_enable', 'texture', 'pbr'],
  objects: ['metadata'],
  lists: ['images'],
  files: ['image', 'last_image', 'images', 'video', 'input_reference'],
}
const checkVideo = checker(VideoCreate)
const KNOWN = new Set(Object.keys(VideoCreate.properties))

/** `null` counts as absent; unknown fields are ignored. Throws GatewayError with the field and its allowed values. */
export function parseVideo(body: unknown): VideoRequest {
  assertObject(body)
  const fields = withoutNulls(body, KNOWN)
  if (isRecord(fields.input_reference)) fields.input_reference = withoutNulls(fields.input_reference)
  if (!checkVideo.Check(fields)) throw refusalOf(diagnose(VideoCreate, fields))
  const { input_reference, ...request } = fields
  return input_reference === undefined ? request : withReference(request, input_reference)
}

const withoutNulls = (object: object, known?: ReadonlySet<string>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(object).filter(([name, value]) => value !== null && (known === undefined || known.has(name))),
  )

/** The `input_reference` of the chat-compatible API becomes the first frame, or the video to start from. */
function withReference(request: VideoRequest, reference: NonNullable<VideoCreate['input_reference']>): VideoRequest {
  const { image_url, file_id } = typeof reference === 'string' ? { image_url: reference } : reference
  if (file_id !== undefined) {
    const message = '"input_reference.file_id" must be the id of one of your files here, without "image_url".'
    throw new GatewayError('unsupported_parameter', message, { param: 'input_reference.file_id' })
  }
  if (image_url === undefined) {
    const param = 'input_reference.image_url'
    throw new GatewayError('missing_required_parameter', `"${param}" is required.`, { param })
  }
  const field = /^data:video\//i.test(image_url) ? 'video' : 'image'
  if (request[field] !== undefined) {
    const message = `"input_reference" sets the same as "${field}". Send only one of them.`
    throw invalidValue('input_reference', message)
  }
  return { ...request, [field]: image_url }
}

const checkThreeD = checker(ThreeDRequest)

/** `null` counts as absent; unknown fields are ignored. Throws GatewayError with the field and its allowed values. */
export const parseThreeD = (body: unknown): ThreeDRequest => knownMembers(ThreeDRequest, checkThreeD, body)
