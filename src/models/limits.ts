/** The limits of one chat model: ranges, defaults, extra fields and capabilities (specification 2.3 and 8), as catalogue data. */
import Type from 'typebox'
import { RANGED_FIELDS } from '../config/limits-schema.ts'
import { checker } from '../kit/checker.ts'
import { diagnose, foundText, rangeText } from '../kit/diagnose.ts'
import { ChatRequest } from '../protocols/canonical.ts'
import { refusalOf } from '../protocols/request-error.ts'
import { EXTRA_FIELDS } from '../spec/chat-request.ts'
import { GatewayError } from '../spec/error.ts'
import type { ContentPart } from '../spec/message.ts'
import type { CatalogueModel } from './catalogue.ts'

const Extra = Type.Pick(ChatRequest, [...EXTRA_FIELDS])
const checkExtra = checker(Extra)

/**
 * The request fitted to this model: `max_completion_tokens` becomes `max_tokens`, defaults are filled in, extra fields of
 * other models are left out. Throws for a value outside the model's range and for a capability that it lacks.
 */
export function applyChatLimits(model: CatalogueModel, request: ChatRequest): ChatRequest {
  const fitted: ChatRequest = { ...request, model: model.id }
  const tokensField = request.max_completion_tokens === undefined ? 'max_tokens' : 'max_completion_tokens'
  const maxTokens = request.max_completion_tokens ?? request.max_tokens
  delete fitted.max_completion_tokens
  if (maxTokens !== undefined) fitted.max_tokens = maxTokens
  if (!request.stream) delete fitted.stream_options
  removeUnsupportedFields(model, fitted)
  if (model.fields.size > 0 && !checkExtra.Check(fitted)) throw refusalOf(diagnose(Extra, fitted))
  for (const field of RANGED_FIELDS) {
    const range = model.limits[field]
    if (!range) continue
    const value = fitted[field]
    if (value === undefined) {
      if (range.default !== undefined) fitted[field] = range.default
    } else if (value < (range.minimum ?? value) || value > (range.maximum ?? value)) {
      const param = field === 'max_tokens' ? tokensField : field
      const allowed = rangeText(range.minimum, range.maximum)
      throw new GatewayError(
        'invalid_value',
        `"${param}" must be ${allowed} for the model "${model.id}", not ${value}.`,
        { param },
      )
    }
  }
  assertCapabilities(model, fitted)
  return fitted
}

/** The extra fields of 2.3 mean nothing to a model that does not list them; they are ignored like unknown ones. */
function removeUnsupportedFields(model: CatalogueModel, fitted: ChatRequest): void {
  for (const field of EXTRA_FIELDS) {
    if (!model.fields.has(field)) delete fitted[field]
  }
  if (model.fields.has('web_search') && fitted.web_search_options !== undefined) {
    fitted.web_search ??= { enable: true, ...fitted.web_search_options }
    delete fitted.web_search_options
  }
}

const PART_ABILITY: Partial<Record<ContentPart['type'], 'image_input' | 'audio_input' | 'file_input'>> = {
  image_url: 'image_input',
  input_audio: 'audio_input',
  file: 'file_input',
}

function assertCapabilities(model: CatalogueModel, fitted: ChatRequest): void {
  const can = model.capabilities
  const refuse = (param: string, what: string) => {
    throw new GatewayError('unsupported_parameter', `The model "${model.id}" has no ${what}.`, { param })
  }
  if (can.tools === false && fitted.tools?.length) refuse('tools', 'tools')
  if (can.tools === false && fitted.functions?.length) refuse('functions', 'tools')
  if (can.multiple_choices === false && (fitted.n ?? 1) > 1) refuse('n', 'several choices: "n" must be 1')
  if (can.logprobs === false && fitted.logprobs) refuse('logprobs', 'log probabilities')
  if (can.audio_output === false && fitted.modalities?.includes('audio')) refuse('modalities', 'audio output')
  const format = fitted.response_format?.type
  if (can.json_object === false && format === 'json_object') refuse('response_format', 'JSON mode')
  if (can.json_schema === false && format === 'json_schema') refuse('response_format', 'structured output')
  for (const [i, message] of fitted.messages.entries()) {
    if (!Array.isArray(message.content)) continue
    for (const [j, part] of message.content.entries()) {
      const ability = PART_ABILITY[part.type]
      if (ability === undefined || can[ability] !== false) continue
      const param = `messages[${i}].content[${j}].type`
      const allowed = `"${param}" must be "text", not ${foundText(part.type)}`
      throw new GatewayError('unsupported_value', `The model "${model.id}" reads no such content: ${allowed}.`, {
        param,
      })
    }
  }
}
