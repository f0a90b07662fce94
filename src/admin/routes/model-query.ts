/** Reads the filters and the order of the admin API's list of models. */
import Type from 'typebox'
import type { CatalogueModel } from '../../models/catalogue.ts'
import { isEnding, statusAt } from '../../models/lifecycle.ts'
import { ENDPOINT_FAMILIES } from '../../spec/endpoint-family.ts'
import { invalidValue } from '../../spec/error.ts'
import { orNull, parameter, titled } from '../../spec/fields.ts'
import type { Parameter } from '../../spec/operation.ts'
import { FLAG, readText, textParameter } from './list.ts'
import { knownOf } from './model-view.ts'

const STATUSES = ['active', 'deprecated', 'retired']
const ORDERS = ['id', 'context', 'output', 'price', 'status']
const SIGNED_ORDERS = ORDERS.flatMap((order) => [order, `-${order}`])

export const MODEL_PARAMETERS: Record<string, Parameter> = {
  q: textParameter('Only models with this text in their id, in any case.'),
  provider: parameter('Only models with a target of this provider.'),
  family: parameter('Only models of one of these families, separated by commas.'),
  status: parameter('Only `active`, `deprecated` or `retired` ones; several are separated by commas.'),
  ending: parameter('`true`: only models that are deprecated, or will be deprecated or retired. Default: all.', FLAG),
  counts: parameter('`true`: the answer has `counts`. Default: it is null.', FLAG),
  order: parameter(
    'Default `id`. Price: of output tokens, or of an image. `-`: the highest first.',
    Type.Enum(SIGNED_ORDERS),
  ),
}

/** Whether a model fits the filters of a query. Throws invalid_value. */
export function modelFilter(query: URLSearchParams, now: number): (model: CatalogueModel) => boolean {
  const [text, provider] = [readText(query).toLowerCase(), query.get('provider')]
  const [families, statuses] = [readSome('family', query, ENDPOINT_FAMILIES), readSome('status', query, STATUSES)]
  const [ending = 'false'] = readSome('ending', query, ['true', 'false']) ?? []
  return (model) =>
    model.id.toLowerCase().includes(text) &&
    (provider === null || model.targets.some((target) => target.provider.id === provider)) &&
    (!families || model.families.some((family) => families.includes(family))) &&
    (!statuses || statuses.includes(statusAt(model, now))) &&
    (ending === 'false' || isEnding(model, now))
}

const Tally = Type.Record(Type.String(), Type.Integer({ minimum: 0 }))
export const ModelCounts = orNull(
  titled('ModelCounts', { family: Tally, status: Tally }),
  'How many models each value of these filters would leave, with the other filters as they are.',
)

/** Null where the query does not ask for them. Throws invalid_value. */
export function modelCounts(models: readonly CatalogueModel[], query: URLSearchParams, now: number) {
  if (readSome('counts', query, ['true', 'false'])?.includes('true') !== true) return null
  const fittingWithout = (filter: string) => {
    const others = new URLSearchParams(query)
    others.delete(filter)
    return models.filter(modelFilter(others, now))
  }
  return {
    family: tally(fittingWithout('family').flatMap(({ families }) => families)),
    status: tally(fittingWithout('status').map((model) => statusAt(model, now))),
  }
}

function tally(values: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const value of values) counts[value] = (counts[value] ?? 0) + 1
  return counts
}

/** The values of a parameter; undefined: it is not given. Throws invalid_value. */
function readSome(param: string, query: URLSearchParams, known: readonly string[]): string[] | undefined {
  const values = query.get(param)?.split(',')
  const other = values?.find((value) => !known.includes(value))
  if (other === undefined) return values
  const text = `"${param}" is "${other.slice(0, 50)}"; it must be one of ${known.join(', ')}.`
  throw invalidValue(param, text)
}

/** The value by which it is placed, and its id. */
type Place = readonly string[]

/** The order that a query asks for. Throws invalid_value. */
export function modelOrder(query: URLSearchParams, now: number) {
  const [given = 'id'] = readSome('order', query, SIGNED_ORDERS) ?? []
  const [sign, order] = given.startsWith('-') ? [-1, given.slice(1)] : [1, given]
  function rankOf(model: CatalogueModel): number {
    if (order === 'id') return 0
    if (order === 'status') return STATUSES.indexOf(statusAt(model, now))
    const { context_tokens, max_output_tokens, price } = knownOf(model, now)
    if (order === 'context') return context_tokens ?? 0
    return order === 'output' ? (max_output_tokens ?? 0) : (price?.output ?? price?.image ?? 0)
  }
  return {
    placeOf: (model: CatalogueModel): Place => [String(rankOf(model)), model.id],
    compare: ([value, id = '']: Place, [other, other_id = '']: Place): number =>
      sign * (Number(value) - Number(other) || (id === other_id ? 0 : id < other_id ? -1 : 1)),
  }
}
