/** The catalogue in the list formats of other clients (messages, contentgen). */
import Type from 'typebox'
import { pathOf, queryOf } from '../../http/request-parts.ts'
import { invalidValue } from '../../spec/error.ts'
import { text, titled } from '../../spec/fields.ts'
import type { Model } from '../../spec/model.ts'

/** A model, and its context length and maximum output, where they are configured. */
export type Listed = { model: Model; context_tokens: number | undefined; max_tokens: number | undefined }

export type ListFormat = {
  /** Whether the request comes from a client of this format. */
  matches(request: Request): boolean
  /** One page of the models, in their order. Throws GatewayError naming the parameter. */
  list(models: Listed[], query: URLSearchParams): unknown
  one(model: Listed): unknown
}

/** More than any catalogue has: a client that does not page gets all models. */
export const MOST_A_PAGE = 1000

const rfc3339 = (seconds: number): string => new Date(seconds * 1000).toISOString().replace('.000Z', 'Z')

/** Anthropic's list: `after_id`, `before_id`, `limit`; retired models only if `lifecycle` names them. */
export const messagesFormat: ListFormat = {
  matches: ({ headers }) => headers.has('anthropic-version'),
  one: messagesModel,
  list(models, query) {
    const requested = [...query.getAll('lifecycle'), ...query.getAll('lifecycle[]')]
    const statuses = requested.length > 0 ? requested : ['active', 'deprecated']
    const listed = models.filter(({ model }) => statuses.includes(model.status))
    const [after, before] = [query.get('after_id'), query.get('before_id')]
    const limit = limitOf(query, 'limit')
    const place = (param: string, id: string): number => {
      const at = listed.findIndex(({ model }) => model.id === id)
      if (at === -1) throw invalid(param, 'must be the id of a model of this list')
      return at
    }
    const from = after === null ? 0 : place('after_id', after) + 1
    const until = before === null ? listed.length : place('before_id', before)
    const start = before !== null && after === null ? Math.max(from, until - limit) : from
    const page = listed.slice(start, Math.min(until, start + limit)).map(messagesModel)
    const has_more = before !== null && after === null ? start > 0 : start + page.length < until
    return { data: page, has_more, first_id: page[0]?.id ?? null, last_id: page.at(-1)?.id ?? null }
  },
}

function messagesModel({ model, context_tokens, max_tokens }: Listed) {
  const { status, created, deprecated_at, retired_at } = model
  const isActive = status === 'active'
  return {
    type: 'model',
    id: model.id,
    display_name: model.id,
    created_at: rfc3339(created),
    lifecycle: status,
    deprecated_at: isActive || deprecated_at === undefined ? null : rfc3339(deprecated_at),
    retires_at: isActive || retired_at === undefined ? null : rfc3339(retired_at),
    max_input_tokens: context_tokens ?? null,
    max_tokens: max_tokens ?? null,
    capabilities: null,
    line: null,
  }
}

/** Gemini's list: `pageSize`, `pageToken`. Its key is in a header or in the query; its versions are paths. */
export const contentgenFormat: ListFormat = {
  matches(request) {
    if (request.headers.has('x-goog-api-key')) return true
    return queryOf(request).has('key') || /^\/v1(beta|alpha)\//.test(pathOf(request))
  },
  one: contentgenModel,
  list(models, query) {
    const size = limitOf(query, 'pageSize')
    const after = query.get('pageToken')
    const start = after === null || after === '' ? 0 : models.findIndex(({ model }) => model.id === after) + 1
    if (after && start === 0) throw invalid('pageToken', 'must be the `nextPageToken` of an earlier page')
    const page = models.slice(start, start + size)
    const last = page.at(-1)?.model.id
    const hasMore = start + page.length < models.length
    return { models: page.map(contentgenModel), ...(hasMore && last !== undefined ? { nextPageToken: last } : {}) }
  },
}

/** The method names of this family. */
const METHODS: { [family: string]: string[] } = {
  'contentgen-compat': ['generateContent', 'streamGenerateContent', 'countTokens'],
  embeddings: ['embedContent', 'batchEmbedContents'],
}

export const ContentgenModel = titled('ContentgenModel', {
  name: Type.String({ description: '`models/` and the id of the model.' }),
  version: Type.String(),
  displayName: Type.String(),
  description: Type.String({ description: 'Empty, unless the model is deprecated or retired.' }),
  inputTokenLimit: Type.Optional(Type.Integer()),
  outputTokenLimit: Type.Optional(Type.Integer()),
  supportedGenerationMethods: Type.Array(Type.String()),
})
export const ContentgenModelList = titled('ContentgenModelList', {
  models: Type.Array(ContentgenModel),
  nextPageToken: text('The `pageToken` of the next page, if there is one.'),
})

function contentgenModel({ model, context_tokens, max_tokens }: Listed): Type.Static<typeof ContentgenModel> {
  const { id, status, supported_endpoint_types } = model
  return {
    name: `models/${id}`,
    version: '001',
    displayName: id,
    description: status === 'active' ? '' : `This model is ${status}.`,
    ...(context_tokens === undefined ? {} : { inputTokenLimit: context_tokens }),
    ...(max_tokens === undefined ? {} : { outputTokenLimit: max_tokens }),
    supportedGenerationMethods: supported_endpoint_types.flatMap((family) => METHODS[family] ?? []),
  }
}

function limitOf(query: URLSearchParams, param: string): number {
  const text = query.get(param)
  if (text === null || text === '') return MOST_A_PAGE
  const limit = Number(text)
  if (!/^\d+$/.test(text) || limit < 1 || limit > MOST_A_PAGE) {
    throw invalid(param, `must be an integer from 1 to ${MOST_A_PAGE}, not ${JSON.stringify(text.slice(0, 40))}`)
  }
  return limit
}

const invalid = (param: string, rule: string) => invalidValue(param, `"${param}" ${rule}.`)
