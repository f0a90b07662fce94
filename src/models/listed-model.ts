/** A model of the catalogue as a caller sees it in the list of models. */
import type { EndpointFamily } from '../spec/endpoint-family.ts'
import { type Model, ownerOf } from '../spec/model.ts'
import type { Caller } from '../spec/token.ts'
import { type Life, statusAt } from './lifecycle.ts'

/** As much of a model of the catalogue as the list shows. */
type ListedModel = Life & { id: string; created: number; families: readonly EndpointFamily[] }

const familiesFor = ({ families }: ListedModel, caller: Caller): EndpointFamily[] =>
  families.filter((family) => caller.mayUseFamily(family))

/** Whether the caller may use one of its families; one that nobody can use is shown as it is. */
export const isUsable = (model: ListedModel, caller: Caller): boolean =>
  model.families.length === 0 || familiesFor(model, caller).length > 0

export function publicModel(model: ListedModel, caller: Caller, now: number): Model {
  const shown: Model = {
    id: model.id,
    object: 'model',
    created: model.created,
    owned_by: ownerOf(model.id),
    supported_endpoint_types: familiesFor(model, caller),
    status: statusAt(model, now),
  }
  if (model.deprecated_at !== undefined) shown.deprecated_at = model.deprecated_at
  if (model.retired_at !== undefined) shown.retired_at = model.retired_at
  if (model.replaced_by !== undefined) shown.replaced_by = model.replaced_by
  return shown
}
