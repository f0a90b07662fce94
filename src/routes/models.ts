/** The routes of the model catalogue (specification, section 4), in the list format of the client. */
import type { Context, Route } from '../http/context.ts'
import { queryOf } from '../http/query.ts'
import type { Catalogue } from '../models/catalogue.ts'
import { encodeMessagesError } from '../protocols/messages/client/error.ts'
import { contentgenErrorBody } from '../spec/contentgen-error.ts'
import { errorBody, type GatewayError } from '../spec/error.ts'
import { type Model, ModelList, Model as ModelSchema } from '../spec/model.ts'
import { contentgenFormat, type Listed, type ListFormat, messagesFormat } from './model-lists.ts'

type EncodeError = NonNullable<Route['encodeError']>

export function modelRoutes({ catalogue }: { catalogue: Catalogue }): Route[] {
  /** The first format that matches the request is used; otherwise that of the specification. */
  const formats: [ListFormat, EncodeError][] = [
    [messagesFormat, encodeMessagesError],
    [contentgenFormat, contentgenErrorBody],
  ]
  const formatOf = (request: Request) => formats.find(([format]) => format.matches(request))

  const encodeError = (error: GatewayError, request_id?: string, request?: Request) => {
    const [, write = errorBody] = (request && formatOf(request)) ?? []
    return write(error, request_id)
  }

  const withSizes = (model: Model): Listed => ({ model, ...catalogue.sizesOf(model.id) })

  function list({ caller, request }: Context): Response {
    const models = catalogue.list(caller)
    const [format] = formatOf(request) ?? []
    if (format) return Response.json(format.list(models.map(withSizes), queryOf(request)))
    return Response.json({ success: true, object: 'list', data: models } satisfies ModelList)
  }

  function retrieve({ params, caller, request }: Context): Response {
    const found = catalogue.find(params.model ?? '', caller)
    const [format] = formatOf(request) ?? []
    return Response.json(format ? format.one(withSizes(found)) : found)
  }

  const routes = (path: string, hidden: boolean): Route[] => [
    {
      method: 'GET',
      path,
      ...(hidden ? { hidden } : {}),
      encodeError,
      operation: {
        summary: 'List the models available to the token',
        description:
          'Clients that send `anthropic-version` get the list in the messages format, those that send `x-goog-api-key` or `?key=` in the contentgen format, each with its own pagination.',
        tag: 'Models',
        response: ModelList,
        errors: ['invalid_value'],
      },
      handle: list,
    },
    {
      method: 'GET',
      path: `${path}/:model{.+}`,
      ...(hidden ? { hidden } : {}),
      encodeError,
      operation: {
        summary: 'Retrieve one model',
        description: 'By its full id or by the part after the provider prefix; a slash may be raw or `%2F`.',
        tag: 'Models',
        params: { model: 'Model id, with or without the provider prefix.' },
        response: ModelSchema,
        errors: ['model_not_found', 'model_not_allowed', 'ambiguous_model'],
      },
      handle: retrieve,
    },
  ]
  return ['/v1/models', '/v1beta/models', '/v1alpha/models'].flatMap((path) => routes(path, path !== '/v1/models'))
}
