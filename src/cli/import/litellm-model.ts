/** Reads prices and defaults of a deployment of LiteLLM, which a model has once. */
import { isDeepStrictEqual } from 'node:util'
import type { Tree } from '../../config/edit/edit-yaml.ts'
import type { Draft, Members } from './imported.ts'

/** What a model has once, and another deployment has said already. */
export const ANOTHER = 'an earlier deployment of the model has another one, and the model has one'

/** `first`: the prices of the model by an earlier deployment. */
type PriceParts = { params: Members; info: Members; id: string; first: Tree | undefined }

const PRICES = {
  input_cost_per_token: 'input',
  output_cost_per_token: 'output',
  cache_read_input_token_cost: 'cached_input',
  cache_creation_input_token_cost: 'cache_write',
} as const

/** Callers pay the prices of the model, those of its first deployment; what another one costs is of its target. */
export function readPrices(draft: Draft, { params, info, id, first }: PriceParts): { model?: Tree; target?: Tree } {
  const prices: Tree = {}
  const places: [from: string, name: string][] = []
  for (const [name, to] of Object.entries(PRICES)) {
    const [own, shared] = [params.number(name), info.number(name)]
    const price = own ?? shared
    if (price === undefined || price < 0) continue
    prices[to] = Number((price * 1_000_000).toPrecision(12))
    places.push([(own === undefined ? info : params).at(name), to])
  }
  if (places.length === 0) return {}
  const isOther = first !== undefined && !isDeepStrictEqual(first, prices)
  for (const [from, to] of places) {
    if (isOther)
      draft.mapped(from, `models.${id}.targets[].prices.${to}`, 'callers pay what the first deployment costs')
    else draft.mapped(from, `models.${id}.prices.${to}, per million tokens`)
  }
  return isOther ? { target: prices } : { model: prices }
}

const DEFAULTS = ['max_tokens', 'temperature', 'top_p', 'frequency_penalty', 'presence_penalty']

type DefaultParts = { params: Members; id: string; first: Tree | undefined }

export function readDefaults(draft: Draft, { params, id, first }: DefaultParts): Tree {
  const limits: Tree = {}
  for (const name of DEFAULTS) {
    const value = params.number(name)
    if (value === undefined) continue
    limits[name] = { default: value }
    if (first?.[name] !== undefined && !isDeepStrictEqual(first[name], limits[name]))
      draft.dropped(params.at(name), ANOTHER)
    else draft.mapped(params.at(name), `models.${id}.limits.${name}.default`)
  }
  return Object.keys(limits).length === 0 ? {} : { limits }
}

/** The defaults of the first deployment that has one. */
export const bothLimits = ({ limits: next }: Tree, { limits: first }: Tree): Tree =>
  next && first ? { limits: { ...(next as Tree), ...(first as Tree) } } : {}
