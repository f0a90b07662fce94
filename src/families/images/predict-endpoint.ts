/** Images in the contentgen form: `POST /v1beta/models/{model}:predict`. */
import Type from 'typebox'
import { fieldsIn, predictRequest, withPath } from '../../protocols/contentgen/client/predict.ts'
import { ContentgenError, contentgenErrorBody } from '../../spec/contentgen-error.ts'
import { invalidValue } from '../../spec/error.ts'
import { MODEL_REQUEST_ERRORS, UPSTREAM_ERRORS } from '../../spec/error-lists.ts'
import { text, titled } from '../../spec/fields.ts'
import { MODEL_PARAMETER } from '../../spec/operation.ts'
import type { ImageEndpoint, ImageInput, Images } from './images.ts'
import { parseImageRequest } from './parse.ts'
import { base64Of } from './stream-writer.ts'

/** Canonical field -> the client's path. */
const FIELDS = {
  prompt: 'instances[0].prompt',
  n: 'parameters.sampleCount',
  aspect_ratio: 'parameters.aspectRatio',
  negative_prompt: 'parameters.negativePrompt',
  seed: 'parameters.seed',
  output_format: 'parameters.outputOptions.mimeType',
  output_compression: 'parameters.outputOptions.compressionQuality',
}

/** Input images have paths of their own, `sampleImageSize` no counterpart, and `storageUri` is a place of the vendor's. */
const REFUSED = [
  'instances[0].image',
  'instances[0].referenceImages',
  'parameters.sampleImageSize',
  'parameters.storageUri',
]

const Prediction = Type.Object({
  bytesBase64Encoded: Type.String(),
  mimeType: Type.String(),
  prompt: text('As the provider has revised it.'),
})

export const imagePredictEndpoint = (family: Images['whole']): ImageEndpoint => ({
  path: '/v1beta/models/{model}:predict',
  operation: {
    summary: 'Create images, in the contentgen shape',
    description: 'Parameters that only tune are ignored.',
    tag: 'Images',
    params: MODEL_PARAMETER,
    request: predictRequest('ImagePredictRequest', {
      instance: '`prompt`.',
      parameters:
        '`sampleCount`, `aspectRatio`, `negativePrompt`, `seed`, and `outputOptions` with `mimeType` and `compressionQuality`.',
    }),
    response: titled('ImagePredictions', { predictions: Type.Array(Prediction) }),
    errors: [...MODEL_REQUEST_ERRORS, 'content_policy_violation', ...UPSTREAM_ERRORS],
    example: { instances: [{ prompt: 'A lighthouse in fog' }], parameters: { sampleCount: 1 } },
  },
  encodeError: contentgenErrorBody,
  errorSchema: ContentgenError,
  family,
  endpoint: 'image-generation',
  decode(body, { params }): ImageInput {
    try {
      const { output_format: type, ...fields } = fieldsIn(body, { fields: FIELDS, media: [], refused: REFUSED })
      const output_format = type === undefined ? {} : { output_format: formatOf(type) }
      return {
        request: parseImageRequest({ ...fields, ...output_format, model: params.model ?? '' }),
        operation: 'generate',
      }
    } catch (thrown) {
      throw withPath(thrown, FIELDS)
    }
  },
  encode: ({ answer }) => ({
    predictions: answer.files.map(({ bytes, content_type, revised_prompt }) => ({
      bytesBase64Encoded: base64Of(bytes),
      mimeType: content_type,
      ...(revised_prompt === undefined ? {} : { prompt: revised_prompt }),
    })),
  }),
  errorForClient: (error) => withPath(error, FIELDS),
})

const TYPES = ['image/png', 'image/jpeg', 'image/webp']

function formatOf(type: unknown): string {
  if (typeof type === 'string' && TYPES.includes(type)) return type.replace('image/', '')
  throw invalidValue('output_format', `"output_format" must be one of ${TYPES.join(', ')}.`)
}
