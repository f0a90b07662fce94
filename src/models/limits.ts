/** The limits of one chat model: ranges, defaults, extra fields and capabilities (specification 2.3 and 8), as catalogue data. */
import Type from 'typebox'
import { type Capabilities, RANGED_FIELDS } from '../config/schema/limits-schema.ts'
import { checker } from '../kit/checker.ts'
import { diagnose, foundText, rangeText } from '../kit/diagnose.ts'
import { ChatRequest } from '../protocols/shared/canonical.ts'
import { refusalOf } from '../protocols/shared/request-error.ts'
import { EXTRA_FIELDS } from '../spec/chat-request.ts'
import { GatewayError, invalidValue } from '../spec/error.ts'
import type { ContentPart } from '../spec/message.ts'
import type { CatalogueModel } from './catalogue.ts'

const Extra = Type.Pick(ChatRequest, [...EXTRA_FIELDS])
const checkExtra = checker(Extra)

/** How requests are fitted to one model: only what it limits, lacks or does not take. */
type Fit = {
  /** The extra fields of 2.3 mean nothing to a model that does not list them: they are ignored like unknown ones. */
  ignored: readonly (typeof EXTRA_FIELDS)[number][]
  ranges: readonly (readonly [field: (typeof RANGED_FIELDS)[number], range: Range])[]
  lacking: readonly Ability[]
  lacks_media: boolean
}

type Range = NonNullable<CatalogueModel['limits'][(typeof RANGED_FIELDS)[number]]>

/** A reload makes new models. */
const fits = new WeakMap<CatalogueModel, Fit>()

function fitFor(model: CatalogueModel): Fit {
  let fit = fits.get(model)
  if (!fit) {
    fit = newFit(model)
    fits.set(model, fit)
  }
  return fit
}

const newFit = ({ fields, limits, capabilities }: CatalogueModel): Fit => ({
  ignored: EXTRA_FIELDS.filter((field) => !fields.has(field)),
  ranges: RANGED_FIELDS.flatMap((field) => (limits[field] ? [[field, limits[field]] as const] : [])),
  lacking: ABILITIES.filter(({ ability }) => capabilities[ability] === false),
  lacks_media: MEDIA_ABILITIES.some((ability) => capabilities[ability] === false),
})

/**
 * The request fitted to this model: `max_completion_tokens` becomes `max_tokens`, defaults are filled in, extra fields of
 * other models are left out. Throws for a value outside the model's range and for a capability that it lacks.
 */
export function applyChatLimits(model: CatalogueModel, request: ChatRequest): ChatRequest {
  const { ignored, ranges, lacking, lacks_media } = fitFor(model)
  const fitted: ChatRequest = { ...request, model: model.id }
  const maxTokens = request.max_completion_tokens ?? request.max_tokens
  if (request.max_completion_tokens !== undefined) delete fitted.max_completion_tokens
  if (maxTokens !== undefined) fitted.max_tokens = maxTokens
  if (!request.stream && request.stream_options !== undefined) delete fitted.stream_options
  for (const field of ignored) if (field in fitted) delete fitted[field]
  if (model.fields.size > 0) readExtraFields(model, fitted, request)
  for (const [field, range] of ranges) {
    const value = fitted[field]
    if (value === undefined) {
      if (range.default !== undefined) fitted[field] = range.default
    } else if (value < (range.minimum ?? value) || value > (range.maximum ?? value))
      throw outOfRange(model, { field, range, value, request })
  }
  for (const { param, what, isUsed } of lacking) {
    if (!isUsed(fitted)) continue
    throw new GatewayError('unsupported_parameter', `The model "${model.id}" has no ${what}.`, { param })
  }
  if (lacks_media) assertReadable(model, fitted)
  return fitted
}

type OutOfRange = { field: (typeof RANGED_FIELDS)[number]; range: Range; value: number; request: ChatRequest }

function outOfRange({ id }: CatalogueModel, { field, range, value, request }: OutOfRange): GatewayError {
  const isRenamed = field === 'max_tokens' && request.max_completion_tokens !== undefined
  const param = isRenamed ? 'max_completion_tokens' : field
  const allowed = rangeText(range.minimum, range.maximum)
  return invalidValue(param, `"${param}" must be ${allowed} for the model "${id}", not ${value}.`)
}

/** Of a model that takes some. */
function readExtraFields(model: CatalogueModel, fitted: ChatRequest, request: ChatRequest): void {
  if (model.fields.has('web_search') && fitted.web_search_options !== undefined) {
    fitted.web_search ??= { enable: true, ...fitted.web_search_options }
    delete fitted.web_search_options
  }
  if (!checkExtra.Check(fitted)) throw extraRefusal(fitted, request)
}

/** `web_search_options` are checked as `web_search`; the error has the name that the client sent. */
function extraRefusal(fitted: ChatRequest, { web_search }: ChatRequest): GatewayError {
  const problem = diagnose(Extra, fitted)
  const isOther = web_search === undefined && problem?.path[0] === 'web_search'
  return refusalOf(isOther ? { ...problem, path: ['web_search_options', ...problem.path.slice(1)] } : problem)
}

type Ability = {
  ability: keyof Capabilities
  param: string
  what: string
  isUsed(request: ChatRequest): boolean
}

/** What a model may lack, and how a request uses it; in the order in which it is checked. */
const ABILITIES: Ability[] = [
  { ability: 'tools', param: 'tools', what: 'tools', isUsed: ({ tools }) => !!tools?.length },
  { ability: 'tools', param: 'functions', what: 'tools', isUsed: ({ functions }) => !!functions?.length },
  {
    ability: 'multiple_choices',
    param: 'n',
    what: 'several choices: "n" must be 1',
    isUsed: ({ n = 1 }) => n > 1,
  },
  { ability: 'logprobs', param: 'logprobs', what: 'log probabilities', isUsed: ({ logprobs }) => !!logprobs },
  {
    ability: 'audio_output',
    param: 'modalities',
    what: 'audio output',
    isUsed: ({ modalities }) => !!modalities?.includes('audio'),
  },
  {
    ability: 'json_object',
    param: 'response_format',
    what: 'JSON mode',
    isUsed: ({ response_format }) => response_format?.type === 'json_object',
  },
  {
    ability: 'json_schema',
    param: 'response_format',
    what: 'structured output',
    isUsed: ({ response_format }) => response_format?.type === 'json_schema',
  },
]

const MEDIA_ABILITIES = ['image_input', 'audio_input', 'file_input'] as const

const PART_ABILITY: Partial<Record<ContentPart['type'], (typeof MEDIA_ABILITIES)[number]>> = {
  image_url: 'image_input',
  input_audio: 'audio_input',
  file: 'file_input',
}

/** Throws for a content part of a kind that the model does not read. */
function assertReadable(model: CatalogueModel, fitted: ChatRequest): void {
  for (const [i, message] of fitted.messages.entries()) {
    if (!Array.isArray(message.content)) continue
    for (const [j, part] of message.content.entries()) {
      const ability = PART_ABILITY[part.type]
      if (ability === undefined || model.capabilities[ability] !== false) continue
      const param = `messages[${i}].content[${j}].type`
      const allowed = `"${param}" must be "text", not ${foundText(part.type)}`
      throw new GatewayError('unsupported_value', `The model "${model.id}" reads no such content: ${allowed}.`, {
        param,
      })
    }
  }
}
