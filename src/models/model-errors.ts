/** The errors of a request for a model that cannot serve it. */
import type { CallFamily } from '../spec/endpoint-family.ts'
import { type ErrorCode, GatewayError } from '../spec/error.ts'
import type { Life } from './lifecycle.ts'

export const notAllowed = (name: string) =>
  new GatewayError('model_not_allowed', `This token may not use the model "${name}".`, { param: 'model' })

export const familyNotAllowed = (family: CallFamily) =>
  new GatewayError('model_not_allowed', `This token may not send ${family} requests.`, { param: 'model' })

export function retired(model: Pick<Life, 'replaced_by'> & { id: string }): GatewayError {
  const next = model.replaced_by === undefined ? 'It has no named successor.' : `Use "${model.replaced_by}" instead.`
  return new GatewayError('model_retired', `The model "${model.id}" is retired. ${next}`, {
    param: 'model',
    ...(model.replaced_by === undefined ? {} : { replaced_by: model.replaced_by }),
  })
}

export function wrongFamily(model: { id: string; families: readonly CallFamily[] }, family: CallFamily): GatewayError {
  const can = model.families.length === 0 ? 'it answers none' : `it answers: ${model.families.join(', ')}`
  return new GatewayError('unsupported_endpoint', `The model "${model.id}" takes no ${family} requests; ${can}.`, {
    param: 'model',
  })
}

export const quoted = (name: string) => (name.length <= 200 ? JSON.stringify(name) : 'of that (very long) name')

/** `meant`: a model that is named nearly so. */
export function notFound(name: string, meant: string | undefined): GatewayError {
  const hint = meant === undefined ? '.' : `; did you mean "${meant}"?`
  const message = `There is no model ${quoted(name)}${hint} GET /v1/models lists the models of this token.`
  return new GatewayError('model_not_found', message, { param: 'model' })
}

export const refuse = (code: ErrorCode, param: string, message: string) => new GatewayError(code, message, { param })

export const unsupported = ({ id }: { id: string }, param: string) =>
  refuse('unsupported_parameter', param, `The model "${id}" takes no "${param}".`)

export const missing = ({ id }: { id: string }, param: string) =>
  refuse('missing_required_parameter', param, `"${param}" is required by the model "${id}".`)

const LONGEST_PROMPT = 32_000

/** Counts code points, not UTF-16 code units; only texts near the limit are counted. */
export function checkPrompt(id: string, limits: { prompt_characters?: number }, param: string, text = ''): void {
  const { prompt_characters: most = LONGEST_PROMPT } = limits
  const length = text.length <= most || text.length > 2 * most ? text.length : [...text].length
  if (length <= most) return
  throw refuse('invalid_value', param, `"${param}" may have at most ${most} characters for the model "${id}".`)
}
