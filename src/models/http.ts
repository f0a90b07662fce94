/** The model catalogue over HTTP (specification, section 4). */
import type { Context, Route } from '../http/context.ts'
import { type Model, ModelList, Model as ModelSchema } from '../spec/model.ts'
import type { Catalogue } from './catalogue.ts'

export function modelRoutes({ catalogue }: { catalogue: Catalogue }): { list: Route; retrieve: Route } {
  return {
    list: {
      method: 'GET',
      path: '/v1/models',
      operation: {
        summary: 'List the models available to the token',
        tag: 'Models',
        response: ModelList,
      },
      handle: ({ caller }: Context) =>
        Response.json({ success: true, object: 'list', data: catalogue.list(caller) } satisfies ModelList),
    },
    retrieve: {
      method: 'GET',
      path: '/v1/models/:model{.+}',
      operation: {
        summary: 'Retrieve one model',
        description: 'By its full id or by the part after the provider prefix; a slash may be raw or `%2F`.',
        tag: 'Models',
        params: { model: 'Model id, with or without the provider prefix.' },
        response: ModelSchema,
        errors: ['model_not_found', 'model_not_allowed', 'ambiguous_model'],
      },
      handle: ({ params, caller }: Context) => {
        const model: Model = catalogue.find(params.model ?? '', caller)
        return Response.json(model)
      },
    },
  }
}
