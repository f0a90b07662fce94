/** The routes of the model catalogue (specification, section 4), in the list format of the client. */
import Type, { type TSchema } from 'typebox'
import type { Context, Route } from '../../http/context.ts'
import { queryOf } from '../../http/request-parts.ts'
import { encodeMessagesError } from '../../protocols/messages/client/error.ts'
import { ContentgenError, contentgenErrorBody } from '../../spec/contentgen-error.ts'
import { isAddedFamily } from '../../spec/endpoint-family.ts'
import { errorBody, type GatewayError } from '../../spec/error.ts'
import { parameter } from '../../spec/fields.ts'
import { type Model, ModelList, Model as ModelSchema } from '../../spec/model.ts'
import type { Operation } from '../../spec/operation.ts'
import type { Catalogue } from '../catalogue.ts'
import {
  ContentgenModel,
  ContentgenModelList,
  contentgenFormat,
  type Listed,
  type ListFormat,
  MOST_A_PAGE,
  messagesFormat,
} from './model-lists.ts'

/** What the document says of a pair of paths, where it shows them. */
type Shown = { list: Partial<Operation>; one: Partial<Operation>; errorSchema?: TSchema }
type EncodeError = NonNullable<Route['encodeError']>

/** What the document says of the contentgen paths, whose format does not depend on headers. */
const CONTENTGEN = {
  errorSchema: ContentgenError,
  list: {
    summary: 'List the models, in the contentgen shape',
    description: 'In pages, if `pageSize` asks for them.',
    query: {
      pageSize: parameter('Default: all.', Type.Integer({ minimum: 1, maximum: MOST_A_PAGE })),
      pageToken: parameter('The `nextPageToken` of the page before.'),
    },
    response: ContentgenModelList,
    links: [
      { at: '/models/0/displayName', to: ['GET /v1beta/models/{model}'] },
      { at: '/nextPageToken', to: ['GET /v1beta/models'], parameter: 'pageToken' },
    ],
  },
  one: { summary: 'Retrieve one model, in the contentgen shape', response: ContentgenModel },
}

type ModelParts = {
  catalogue: Catalogue
  /** Read for each answer, so that a reload applies. */
  settings: { families: 'all' | 'specified' }
}

export function modelRoutes({ catalogue, settings }: ModelParts): Route[] {
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

  const shown = (model: Model): Model =>
    settings.families === 'all'
      ? model
      : { ...model, supported_endpoint_types: model.supported_endpoint_types.filter((one) => !isAddedFamily(one)) }

  function list({ caller, request }: Context): Response {
    const models = catalogue.list(caller)
    const [format] = formatOf(request) ?? []
    if (format) return Response.json(format.list(models.map(withSizes), queryOf(request)))
    return Response.json({ success: true, object: 'list', data: models.map(shown) } satisfies ModelList)
  }

  function retrieve({ params, caller, request }: Context): Response {
    const found = catalogue.find(params.model ?? '', caller)
    const [format] = formatOf(request) ?? []
    return Response.json(format ? format.one(withSizes(found)) : shown(found))
  }

  /** The example of an error in the document has no request. */
  const encoderFor = (shown: Shown | undefined): EncodeError =>
    shown?.errorSchema
      ? (error, id, request) => (request ? encodeError(error, id, request) : contentgenErrorBody(error))
      : encodeError
  const common = (shown: Shown | undefined): Omit<Route, 'path' | 'operation' | 'handle'> => ({
    method: 'GET',
    ...(shown ? {} : { hidden: true }),
    ...(shown?.errorSchema ? { errorSchema: shown.errorSchema } : {}),
    encodeError: encoderFor(shown),
  })
  const routes = (path: string, shown: Shown | undefined): Route[] => [
    {
      ...common(shown),
      path,
      operation: {
        summary: 'List the models available to the token',
        description:
          'Clients that send `anthropic-version` get the list in the messages format, those that send `x-goog-api-key` or `?key=` in the contentgen format, each with its own pagination.',
        tag: 'Models',
        response: ModelList,
        links: [{ at: '/data/0/id', to: ['GET /v1/models/{model}'] }],
        errors: ['invalid_value'],
        ...shown?.list,
      },
      handle: list,
    },
    {
      ...common(shown),
      path: `${path}/:model{.+}`,
      operation: {
        summary: 'Retrieve one model',
        description: 'By its full id or by the part after the provider prefix; a slash may be raw or `%2F`.',
        tag: 'Models',
        params: { model: 'Model id, with or without the provider prefix.' },
        response: ModelSchema,
        errors: ['model_not_found', 'model_not_allowed', 'ambiguous_model'],
        ...shown?.one,
      },
      handle: retrieve,
    },
  ]
  return [
    ...routes('/v1/models', { list: {}, one: {} }),
    ...routes('/v1beta/models', CONTENTGEN),
    ...routes('/v1alpha/models', undefined),
  ]
}
