/** Decodes an image request; errors name the field and the rule. */
import { checker } from '../../kit/checker.ts'
import { knownMembers } from '../../protocols/shared/request-error.ts'
import { invalidValue } from '../../spec/error.ts'
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
  const fields = knownMembers(ImageRequest, check, body)
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
