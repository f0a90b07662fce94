/** The routes of batches: `/v1/batches` in the form of the OpenAI API, `/v1/messages/batches` in that of the Messages API. */
import Type, { type TSchema } from 'typebox'
import {
  BATCH_ENDPOINTS,
  familyOf,
  MESSAGES_BODY,
  MESSAGES_ENDPOINT,
  receiveRequests,
} from '../../calls/batch-lines.ts'
import type { ServerSettings } from '../../config/config.ts'
import { isJson, wrongType } from '../../http/body.ts'
import { bodyReader } from '../../http/checked-body.ts'
import type { Context, Route } from '../../http/context.ts'
import { streamElements } from '../../http/json-elements.ts'
import type { Clock } from '../../kit/clock.ts'
import type { Catalogue } from '../../models/catalogue.ts'
import type { FileStore } from '../../outputs/outputs.ts'
import { encodeMessagesError, messagesErrorStatus } from '../../protocols/messages/client/error.ts'
import { MessagesError } from '../../protocols/messages/client/schema.ts'
import {
  BatchCreate,
  BatchEstimate,
  BatchList,
  BatchObject,
  MessageBatchCreate,
  MessageBatchDeleted,
  MessageBatchList,
  MessageBatchObject,
} from '../../spec/batch.ts'
import { type ErrorCode, GatewayError } from '../../spec/error.ts'
import type { Operation } from '../../spec/operation.ts'
import type { Batch, BatchApi } from '../../store/batches/batch-store.ts'
import { type Files, WRITE_SECONDS } from '../files/files.ts'
import { invalid, limitIn } from '../files/routes/file-formats.ts'
import { requestBaseUrl } from '../tasks/routes/request-parameters.ts'
import { type Batches, batchView, messageBatchView } from './batches.ts'
import { inputKeyOf } from './parts.ts'

export type BatchRouteParts = {
  batches: Batches
  files: Pick<Files, 'find'>
  fileStore: FileStore
  catalogue: Catalogue
  settings: ServerSettings
  clock: Clock
}

type Dialect = {
  api: BatchApi
  path: string
  id: string
  noun: string
  most_listed: number
  pages: { after: string; before?: string }
  view(batch: Batch): { id: string }
  headers: readonly string[]
  schemas: { one: TSchema; list: TSchema }
  errors: Pick<Route, 'encodeError' | 'errorStatus' | 'errorSchema'>
}

const HEADERS = ['x-gatehouse-user', 'x-gatehouse-session', 'x-gatehouse-cache', 'x-gatehouse-timeout']

const OPENAI: Dialect = {
  api: 'openai',
  path: '/v1/batches',
  id: 'batch_id',
  noun: 'batch',
  most_listed: 100,
  pages: { after: 'after' },
  view: batchView,
  headers: HEADERS,
  schemas: { one: BatchObject, list: BatchList },
  errors: {},
}

const MESSAGES: Dialect = {
  api: 'anthropic',
  path: '/v1/messages/batches',
  id: 'message_batch_id',
  noun: 'message batch',
  most_listed: 1_000,
  pages: { after: 'after_id', before: 'before_id' },
  view: messageBatchView,
  headers: [...HEADERS, 'anthropic-version', 'anthropic-beta'],
  schemas: { one: MessageBatchObject, list: MessageBatchList },
  errors: { encodeError: encodeMessagesError, errorStatus: messagesErrorStatus, errorSchema: MessagesError },
}

const CREATE_ERRORS: ErrorCode[] = [
  'invalid_json',
  'invalid_type',
  'invalid_value',
  'missing_required_parameter',
  'model_not_allowed',
  'request_too_large',
  'request_timeout',
  'unsupported_media_type',
  'rate_limit_exceeded',
  'storage_unavailable',
]
const FIND_ERRORS: ErrorCode[] = ['batch_not_found', 'storage_unavailable']
const FILE = 'file-gh0mp3x1a2bABCDEFGHIJKLMNO'
const PARAMS = { model: 'sandbox/general', max_tokens: 100, messages: [{ role: 'user', content: 'Hello' }] }

export function batchRoutes(parts: BatchRouteParts): Route[] {
  const { batches } = parts
  const read = bodyReader(BatchCreate, parts)
  return [
    route(OPENAI, 'POST', '', {
      summary: 'Create a batch',
      description:
        'The requests of an uploaded file are executed within a day, at low priority, each as one of its endpoint of the same token.',
      request: BatchCreate,
      response: Type.Union([BatchObject, BatchEstimate]),
      errors: ['file_not_found', ...CREATE_ERRORS],
      example: { input_file_id: FILE, endpoint: '/v1/chat/completions', completion_window: '24h' },
      links: [{ at: '/id', to: ['GET /v1/batches/{batch_id}', 'POST /v1/batches/{batch_id}/cancel'] }],
      handle: async (context) => create(context, await read(context), parts),
    }),
    ...sharedRoutes(OPENAI, batches),
    route(MESSAGES, 'POST', '', {
      summary: 'Create a message batch',
      description:
        'Its requests are executed within a day, at low priority, each as one of `/v1/messages` of the same token.',
      request: MessageBatchCreate,
      response: MessageBatchObject,
      errors: ['model_not_found', ...CREATE_ERRORS],
      example: { requests: [{ custom_id: 'first', params: PARAMS }] },
      links: [{ at: '/id', to: ['GET /v1/messages/batches/{message_batch_id}'] }],
      handle: (context) => createOfMessages(context, parts),
    }),
    ...sharedRoutes(MESSAGES, batches),
    route(MESSAGES, 'DELETE', '/:', {
      summary: 'Delete a message batch',
      description: 'With its results. Only a batch that has ended.',
      response: MessageBatchDeleted,
      errors: ['batch_not_ended', ...FIND_ERRORS],
      async handle({ params: { message_batch_id: id = '' }, caller }) {
        await batches.remove(id, 'anthropic', caller.token_id)
        return Response.json({ id, type: 'message_batch_deleted' })
      },
    }),
    route(MESSAGES, 'GET', '/:/results', {
      summary: 'Retrieve the results of a message batch',
      description: 'One line of JSON for each request, with its `custom_id`; not in the order of the requests.',
      media: ['application/x-jsonl'],
      errors: ['batch_not_ended', ...FIND_ERRORS],
      async handle({ params: { message_batch_id: id = '' }, caller }) {
        const batch = await batches.find(id, 'anthropic', caller.token_id)
        if (batch.progress.ended_at === undefined)
          throw new GatewayError('batch_not_ended', `The batch ${id} has not ended: it has no results yet.`)
        return new Response(await batches.results(batch), { headers: { 'content-type': 'application/x-jsonl' } })
      },
    }),
  ]
}

function sharedRoutes(dialect: Dialect, batches: Batches): Route[] {
  const { api, noun, id, view, schemas, most_listed, pages } = dialect
  const page = (where: string) => ({ description: `The batches ${where} this one.`, schema: Type.String() })
  return [
    route(dialect, 'GET', '', {
      summary: `List ${noun}es`,
      description: 'Those of the token, the newest first.',
      query: {
        limit: { description: 'Default 20.', schema: Type.Integer({ minimum: 1, maximum: most_listed }) },
        [pages.after]: page('after'),
        ...(pages.before && { [pages.before]: page('before') }),
      },
      response: schemas.list,
      errors: ['invalid_value', 'storage_unavailable'],
      handle: (context) => list(context, dialect, batches),
    }),
    route(dialect, 'GET', '/:', {
      summary: `Retrieve a ${noun}`,
      description: 'Its state, how many of its requests have ended, and where its results are once it has.',
      response: schemas.one,
      errors: FIND_ERRORS,
      handle: async ({ params, caller }) =>
        Response.json(view(await batches.find(params[id] ?? '', api, caller.token_id))),
    }),
    route(dialect, 'POST', '/:/cancel', {
      summary: `Cancel a ${noun}`,
      description:
        'Requests that are executed now end; the others are not executed. The results so far are kept. An ended batch stays as it is.',
      response: schemas.one,
      errors: FIND_ERRORS,
      handle: async ({ params, caller }) =>
        Response.json(view(await batches.cancel(params[id] ?? '', api, caller.token_id))),
    }),
  ]
}

type RouteRest = Omit<Operation, 'tag' | 'params'> & { handle: Route['handle'] }

/** `rest`: the path below that of the API, with a colon in place of the id. */
const route = (
  { path, id, noun, errors }: Dialect,
  method: Route['method'],
  rest: string,
  { handle, ...operation }: RouteRest,
): Route => ({
  method,
  path: path + rest.replace(':', `:${id}`),
  operation: { ...operation, ...(rest && { params: { [id]: `The id of a ${noun}.` } }), tag: 'Batches' },
  ...errors,
  handle,
})

async function create(context: Context, asked: BatchCreate, { batches, files, settings }: BatchRouteParts) {
  const { caller } = context
  const { endpoint } = asked
  if (!(endpoint in BATCH_ENDPOINTS))
    throw invalid('endpoint', `must be one of ${Object.keys(BATCH_ENDPOINTS).join(', ')}`)
  const family = familyOf(endpoint)
  if (!caller.mayUseFamily(family))
    throw new GatewayError('model_not_allowed', `This token may not use the family "${family}".`, { param: 'endpoint' })
  const file = await files.find(asked.input_file_id, caller)
  if (file.purpose !== 'batch')
    throw invalid('input_file_id', `must be a file of purpose "batch"; this one has "${file.purpose}"`)
  const batch: Parameters<Batches['create']>[0] = {
    batch_id: batches.newId('openai'),
    api: 'openai',
    endpoint,
    caller,
    callback_url: asked.callback_url,
    request: {
      ...requestOf(context, OPENAI, settings),
      input_file_id: file.file_id,
      completion_window: asked.completion_window,
      metadata: asked.metadata ?? null,
      ...(asked.output_expires_after && { output_seconds: asked.output_expires_after.seconds }),
      ...(asked.exactly_once && { exactly_once: true }),
    },
    total: 0,
    file,
  }
  if (asked.dry_run) return Response.json(await batches.estimate(batch, file, context.signal))
  await batches.assertMayCreate(caller.token_id)
  return Response.json(batchView(await batches.create(batch)))
}

async function createOfMessages(context: Context, parts: BatchRouteParts): Promise<Response> {
  const { batches, fileStore, settings, clock } = parts
  const { request, caller, signal } = context
  if (!caller.mayUseFamily('messages-compat'))
    throw new GatewayError('model_not_allowed', 'This token may not use the Messages API.')
  const type = request.headers.get('content-type') ?? ''
  if (!isJson(type)) throw wrongType(type, 'application/json')
  await batches.assertMayCreate(caller.token_id)
  const batch_id = batches.newId('anthropic')
  const times = { pause_seconds: settings.body_seconds, total_seconds: WRITE_SECONDS, clock }
  const requests = streamElements(request, { ...MESSAGES_BODY, ...times })
  const input_key = inputKeyOf(batch_id)
  const { rest, total } = await receiveRequests(parts, { key: input_key, caller, requests, signal })
  try {
    const callback_url = memberOf(rest, 'callback_url', 'string')
    const exactly_once = memberOf(rest, 'exactly_once', 'boolean') && ({ exactly_once: true } as const)
    const asked = { ...requestOf(context, MESSAGES, settings), input_key, ...exactly_once }
    const batch = { batch_id, api: 'anthropic', endpoint: MESSAGES_ENDPOINT, caller, callback_url, total } as const
    return Response.json(messageBatchView(await batches.create({ ...batch, request: asked })))
  } catch (thrown) {
    await fileStore.remove(input_key).catch(() => {})
    throw thrown
  }
}

type Types = { string: string; boolean: boolean }

function memberOf<T extends keyof Types>(body: Record<string, unknown>, param: string, type: T): Types[T] | undefined {
  const value = body[param] ?? undefined
  if (value === undefined || typeof value === type) return value as Types[T] | undefined
  throw new GatewayError('invalid_type', `"${param}" must be a ${type}.`, { param })
}

const TAGS = 'x-gatehouse-tags'

/** With the tag by which requests of batches are found in the request log, and routed where a target has such a condition. */
function requestOf(context: Context, { headers: kept }: Dialect, settings: ServerSettings) {
  const headers: Record<string, string> = {}
  for (const name of kept) {
    const value = context.header(name)
    if (value !== null) headers[name] = value
  }
  const tags = context.header(TAGS)?.split(',') ?? []
  headers[TAGS] = [...new Set([...tags.slice(0, 15).map((tag) => tag.trim()), 'batch'])].join(',')
  return { headers, base_url: requestBaseUrl(context.request, settings) }
}

async function list(context: Context, { api, pages, most_listed, view }: Dialect, batches: Batches) {
  const { token_id } = context.caller
  const query = context.query()
  const limit = limitIn(query, 20, most_listed)
  const place = async (name: string | undefined) => {
    const batch_id = name && query.get(name)
    if (!batch_id) return undefined
    return batches.find(batch_id, api, token_id).catch((thrown: unknown) => {
      if (!(thrown instanceof GatewayError)) throw thrown
      throw invalid(name, 'must be the id of a batch of this list')
    })
  }
  const last = await place(pages.before)
  const after = last ?? (await place(pages.after))
  // One more tells whether there are more.
  const found = await batches.list({ api, token_id, limit: limit + 1, after, ...(last && { order: 'asc' as const }) })
  const page = found.slice(0, limit)
  const data = (last ? page.reverse() : page).map(view)
  const ids = { first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null }
  return Response.json({ ...(api === 'openai' && { object: 'list' }), data, ...ids, has_more: found.length > limit })
}
