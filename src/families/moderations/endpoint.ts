/** `POST /v1/moderations`, in the OpenAI form. */
import Type, { type TSchema } from 'typebox'
import { checker } from '../../kit/checker.ts'
import { diagnose, foundText } from '../../kit/diagnose.ts'
import { assertObject, refusalOf } from '../../protocols/shared/request-error.ts'
import { type ErrorCode, GatewayError, invalidValue } from '../../spec/error.ts'
import { MODEL_REQUEST_ERRORS, UPSTREAM_ERRORS } from '../../spec/error-lists.ts'
import { MODERATION_INPUTS, ModerationAnswer, ModerationRequest } from '../../spec/moderation-request.ts'
import type { ModerationsEndpoint, ModerationsFamily } from './moderations.ts'

export const moderationsEndpoint = (family: ModerationsFamily): ModerationsEndpoint => ({
  path: '/v1/moderations',
  operation: {
    summary: 'Classify texts and images by what may be harmful in them',
    description: 'Without `model`, the first moderation model of the list that the token may use classifies them.',
    tag: 'Moderations',
    request: ModerationRequest,
    response: ModerationAnswer,
    example: { model: 'sandbox/moderation', input: ['A walk by the river', 'I will kill you'] },
    errors: MODERATION_ERRORS,
  },
  family,
  endpoint: 'moderations',
  decode: parseModerationRequest,
  encode: ({ answer: results, usage, model }, { request_id }): ModerationAnswer => ({
    id: request_id,
    model,
    results,
    usage,
  }),
})

/** The schema and its check for one form of `input`. */
function formOf(input: TSchema) {
  const schema = Type.Object({ ...ModerationRequest.properties, input })
  return { schema, check: checker(schema) }
}
const FORMS = {
  text: formOf(MODERATION_INPUTS.text),
  texts: formOf(MODERATION_INPUTS.texts),
  parts: formOf(MODERATION_INPUTS.parts),
}

/** `null` is absent, unknown fields are ignored. Throws GatewayError naming the field and what it may be. */
function parseModerationRequest(body: unknown): ModerationRequest {
  assertObject(body)
  const { input, model } = body
  const request = { ...(input == null ? {} : { input }), ...(model == null ? {} : { model }) }
  if (input != null && typeof input !== 'string' && !Array.isArray(input)) {
    const message = `"input" must be a string, an array of strings, or an array of parts, not ${foundText(input)}.`
    throw new GatewayError('invalid_type', message, { param: 'input' })
  }
  const form = !Array.isArray(input) ? FORMS.text : typeof input[0] === 'object' ? FORMS.parts : FORMS.texts
  if (!form.check.Check(request)) throw refusalOf(diagnose(form.schema, request))
  return withKnownParts(request as ModerationRequest)
}

/** Parts with their known members only: a provider receives nothing that was not validated. */
function withKnownParts({ input, ...rest }: ModerationRequest): ModerationRequest {
  if (typeof input === 'string' || typeof input[0] === 'string') return { ...rest, input }
  const parts = input.filter((item) => typeof item !== 'string')
  return {
    ...rest,
    input: parts.map((part, index) => {
      if (part.type === 'text') return { type: part.type, text: part.text }
      const { url } = part.image_url
      if (!isImageAddress(url)) throw notAnImage(`input[${index}].image_url.url`)
      return { type: part.type, image_url: { url } }
    }),
  }
}

/** The gateway does not fetch it: the provider does. */
function isImageAddress(url: string): boolean {
  if (/^data:/i.test(url)) return /^data:image\/[\w.+-]+;base64,[A-Za-z0-9+/_=-]+$/i.test(url)
  return /^https?:\/\//i.test(url) && URL.canParse(url)
}

const notAnImage = (param: string) =>
  invalidValue(param, `"${param}" must be an http or https address, or a data URI such as data:image/png;base64,....`)

const MODERATION_ERRORS: ErrorCode[] = [...MODEL_REQUEST_ERRORS, 'context_length_exceeded', ...UPSTREAM_ERRORS]
