/** Images in OpenRouter's form: `POST /v1/images`. https://openrouter.ai/docs/guides/overview/multimodal/image-generation */
import Type from 'typebox'
import { checker } from '../../kit/checker.ts'
import { diagnose } from '../../kit/diagnose.ts'
import { isRecord } from '../../kit/json.ts'
import { refusalOf, withParam } from '../../protocols/shared/request-error.ts'
import { GatewayError } from '../../spec/error.ts'
import { MODEL_REQUEST_ERRORS, UPSTREAM_ERRORS } from '../../spec/error-lists.ts'
import { list, titled } from '../../spec/fields.ts'
import { ImageRequest, type ImageUsage } from '../../spec/image-request.ts'
import type { ImageEndpoint, ImageInput, Images } from './images.ts'
import { parseImageRequest } from './parse.ts'
import { base64Of } from './stream-writer.ts'

/** Fields that mean the same here and there. */
const SAME = [
  'model',
  'prompt',
  'n',
  'size',
  'aspect_ratio',
  'quality',
  'background',
  'output_format',
  'output_compression',
  'seed',
  'user',
] as const

const References = Type.Object({
  input_references: list(
    Type.Object({
      type: Type.Literal('image_url'),
      image_url: Type.Object({ url: Type.String({ minLength: 1, description: 'An http(s) URL or a data URI.' }) }),
    }),
    { minItems: 1 },
    'Images to edit.',
  ),
})
const check = checker(References)

const Answer = titled('OpenRouterImages', {
  created: Type.Integer(),
  data: Type.Array(
    Type.Object({
      b64_json: Type.String(),
      media_type: Type.String(),
      revised_prompt: Type.Optional(Type.String()),
    }),
  ),
  usage: Type.Optional(
    Type.Object({
      prompt_tokens: Type.Integer(),
      completion_tokens: Type.Integer(),
      total_tokens: Type.Integer(),
    }),
  ),
})

export const openRouterImagesEndpoint = (family: Images['whole'], now: () => number): ImageEndpoint => ({
  path: '/v1/images',
  operation: {
    summary: 'Create or edit images, in the OpenRouter shape',
    description: 'With `input_references` the images are edited, otherwise created. Other fields are ignored.',
    tag: 'Images',
    request: titled('OpenRouterImageRequest', {
      ...Type.Pick(ImageRequest, [...SAME]).properties,
      ...References.properties,
    }),
    response: Answer,
    errors: [...MODEL_REQUEST_ERRORS, 'content_policy_violation', ...UPSTREAM_ERRORS],
    example: { model: 'sandbox/image', prompt: 'A lighthouse in fog', size: '1024x1024' },
  },
  contents: 'media',
  family,
  endpoint: 'image-generation',
  decode,
  encode: ({ answer: { files, usage } }) => ({
    created: now(),
    data: files.map(({ bytes, content_type, revised_prompt }) => ({
      b64_json: base64Of(bytes),
      media_type: content_type,
      ...(revised_prompt === undefined ? {} : { revised_prompt }),
    })),
    ...(usage ? { usage: encodeUsage(usage) } : {}),
  }),
  errorForClient: withReferences,
})

/** Throws GatewayError that names the field and its rule. */
function decode(body: unknown): ImageInput {
  if (!isRecord(body)) return { request: parseImageRequest(body), operation: 'generate' }
  if (body.stream === true)
    throw unsupported('stream', 'images arrive in one response; POST /v1/images/generations has streams')
  if (body.resolution != null) throw unsupported('resolution', 'use "size"')
  const { input_references } = body
  const given: unknown = input_references == null ? {} : { input_references }
  if (!check.Check(given)) throw refusalOf(diagnose(References, given))
  const image = given.input_references?.map(({ image_url }) => image_url.url)
  const fields = Object.fromEntries(SAME.map((name) => [name, body[name] ?? null]))
  const request = parseImageRequest({ ...fields, ...(image ? { image } : {}), response_format: 'b64_json' })
  return { request, operation: image ? 'edit' : 'generate' }
}

const unsupported = (param: string, rule: string) =>
  new GatewayError('unsupported_parameter', `"${param}" is not supported: ${rule}.`, { param })

const encodeUsage = ({ input_tokens, output_tokens, total_tokens }: ImageUsage) => ({
  prompt_tokens: input_tokens,
  completion_tokens: output_tokens,
  total_tokens,
})

/** Errors about an input image name the client's field. */
function withReferences(error: GatewayError): GatewayError {
  const { param = '' } = error.detail
  const place = /^image(\[\d+\])?$/.exec(param)
  return place ? withParam(error, param, `input_references${place[1] ?? ''}`) : error
}
