/** A model of the catalogue as clients see it (specification, sections 2.1 and 3.1). */
import Type from 'typebox'
import { EndpointFamily } from './endpoint-family.ts'
import { integer, text, titled } from './fields.ts'

export const MODEL_STATUSES = ['active', 'deprecated', 'retired'] as const
export type ModelStatus = (typeof MODEL_STATUSES)[number]

export const Model = titled('Model', {
  id: Type.String({ description: 'The name to use in requests.' }),
  object: Type.Literal('model'),
  created: Type.Integer({
    description: 'Unix time at which the model entered the catalogue; unchanged by restarts.',
  }),
  owned_by: Type.String({ description: 'The part of `id` before the first `/`, or the whole `id`.' }),
  supported_endpoint_types: Type.Array(EndpointFamily, {
    description: 'The endpoint families of the model. Further families may follow: skip those that you do not know.',
  }),
  status: Type.Enum([...MODEL_STATUSES], { description: 'Its state.' }),
  deprecated_at: integer('Unix time of deprecation. Omitted when empty.'),
  retired_at: integer('Unix time of retirement. Omitted when empty.'),
  replaced_by: text('Model id of the successor: the first of the chain that is not retired. Omitted when empty.'),
})
export type Model = Type.Static<typeof Model>

export const ModelList = titled('ModelList', {
  success: Type.Boolean(),
  object: Type.Literal('list'),
  data: Type.Array(Model),
})
export type ModelList = Type.Static<typeof ModelList>

/** The `owned_by` of a model id: the part before the first `/`; the whole id if it has none. */
export function ownerOf(id: string): string {
  const slash = id.indexOf('/')
  return slash === -1 ? id : id.slice(0, slash)
}
