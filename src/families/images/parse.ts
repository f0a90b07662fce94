/** Decodes an image request; errors name the field and the rule. */
import { checker } from '../../kit/checker.ts'
import { diagnose, foundText } from '../../kit/diagnose.ts'
import { refusalOf } from '../../protocols/shared/request-error.ts'
import { GatewayError, invalidValue } from '../../spec/error.ts'
import { ImageRequest } from '../../spec/image-request.ts'
import type { FormFields } from '../../spec/operation.ts'

const check = checker(ImageRequest)

/** The types of the fields in a form. */
export const IMAGE_FORM: FormFields = {
  numbers: ['n', 'seed', 'partial_images', 'output_compression'],
  booleans: ['stream', 'async'],
  objects: ['metadata'],
  lists: ['image'],
  files: ['image', 'mask'],
}

/** `null` is absent; unknown fields are ignored. Throws GatewayError naming the field and what it may be. */
export function parseImageRequest(body: unknown): ImageRequest {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new GatewayError('invalid_type', `The body must be a JSON object, not ${foundText(body)}.`)
  }
  const known = Object.entries(body).filter(
    ([name, value]) => value !== null && Object.hasOwn(ImageRequest.properties, name),
  )
  const fields: unknown = Object.fromEntries(known)
  if (!check.Check(fields)) throw refusalOf(diagnose(ImageRequest, fields))
  checkCompanions(fields)
  return fields
}

/** Fields that require another field. */
function checkCompanions({ async: isAsync, stream, callback_url, partial_images }: ImageRequest): void {
  if (isAsync && stream) {
    throw invalidValue('stream', '"stream" and "async" cannot both be true: clients poll the state of a task.')
  }
  if (callback_url !== undefined && !isAsync) {
    throw invalidValue('callback_url', '"callback_url" needs "async": true; other responses are returned directly.')
  }
  if (partial_images !== undefined && partial_images > 0 && !stream) {
    throw invalidValue('partial_images', '"partial_images" needs "stream": true.')
  }
}
