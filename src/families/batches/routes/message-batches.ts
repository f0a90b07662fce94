/** The routes of `/v1/messages/batches`, in the form of the Messages API. */
import Type, { type TSchema } from 'typebox'
import type { ServerSettings } from '../../../config/config.ts'
import { isJson, wrongType } from '../../../http/body.ts'
import type { Context, Route } from '../../../http/context.ts'
import type { Clock } from '../../../kit/clock.ts'
import type { Catalogue } from '../../../models/catalogue.ts'
import type { FileStore } from '../../../outputs/outputs.ts'
import { encodeMessagesError, messagesErrorStatus } from '../../../protocols/messages/client/error.ts'
import { MessagesError } from '../../../protocols/messages/client/schema.ts'
import { MessageBatchCreate, MessageBatchDeleted, MessageBatchList, MessageBatchObject } from '../../../spec/batch.ts'
import { type ErrorCode, GatewayError } from '../../../spec/error.ts'
import type { Operation, Parameter } from '../../../spec/operation.ts'
import { requestBaseUrl } from '../../tasks/routes/request-parameters.ts'
import type { Batches } from '../batches.ts'
import { messageBatchView } from '../batches.ts'
import { inputKeyOf } from '../parts.ts'
import { receiveRequests } from '../receive-requests.ts'
import { MESSAGES_ENDPOINT } from '../validate.ts'
import { idsOf, keptHeaders, pageOf, readLimit } from './batches-route.ts'

export type MessageBatchRouteParts = {
  batches: Batches
  fileStore: FileStore
  catalogue: Catalogue
  settings: ServerSettings
  clock: Clock
}

const ROOT = '/v1/messages/batches'
const ONE = `${ROOT}/:message_batch_id`
const API = 'anthropic'
const MOST_LISTED = 1_000
const params = { message_batch_id: 'The id of a message batch.' }
const QUERY: Record<string, Parameter> = {
  limit: { description: 'Default 20.', schema: Type.Integer({ minimum: 1, maximum: MOST_LISTED }) },
  after_id: { description: 'The batches after this one.', schema: Type.String() },
  before_id: { description: 'The batches before this one.', schema: Type.String() },
}
const CREATE_ERRORS: ErrorCode[] = [
  'invalid_json',
  'invalid_type',
  'invalid_value',
  'missing_required_parameter',
  'model_not_found',
  'model_not_allowed',
  'request_too_large',
  'request_timeout',
  'unsupported_media_type',
  'rate_limit_exceeded',
  'storage_unavailable',
]

export function messageBatchRoutes(parts: MessageBatchRouteParts): Route[] {
  const { batches, fileStore, settings } = parts
  const found = ({ params: { message_batch_id = '' }, caller }: Context) =>
    batches.find(message_batch_id, API, caller.token_id)

  async function create(context: Context): Promise<Response> {
    const { request, caller, signal } = context
    assertAllowed(context)
    const type = request.headers.get('content-type') ?? ''
    if (!isJson(type)) throw wrongType(type, 'application/json')
    await batches.assertMayCreate(caller.token_id)
    const batch_id = batches.newId(API)
    const receiving = { batch_id, caller, body: request.body, signal, pause_seconds: settings.body_seconds }
    const { rest, requests } = await receiveRequests(parts, receiving)
    const input_key = inputKeyOf(batch_id)
    try {
      const batch = await batches.create({
        batch_id,
        api: API,
        endpoint: MESSAGES_ENDPOINT,
        caller,
        callback_url: readText(rest.callback_url),
        request: {
          input_key,
          headers: keptHeaders(context, API),
          base_url: requestBaseUrl(request, settings),
          ...(readFlag(rest.exactly_once) && { exactly_once: true }),
        },
        total: requests,
      })
      return Response.json(messageBatchView(batch))
    } catch (thrown) {
      await fileStore.remove(input_key).catch(() => {})
      throw thrown
    }
  }

  async function list(context: Context): Promise<Response> {
    const query = context.query()
    const { page, has_more } = await pageOf(batches, {
      api: API,
      token_id: context.caller.token_id,
      limit: readLimit(query.get('limit'), MOST_LISTED),
      after: query.get('after_id'),
      before: query.get('before_id'),
    })
    const data = page.map(messageBatchView)
    return Response.json({ data, has_more, ...idsOf(data) })
  }

  async function results(context: Context): Promise<Response> {
    const batch = await found(context)
    if (batch.progress.ended_at === undefined)
      throw new GatewayError('batch_not_ended', `The batch ${batch.batch_id} has not ended: it has no results yet.`)
    return new Response(await batches.results(batch), { headers: { 'content-type': 'application/x-jsonl' } })
  }

  return [
    route('POST', ROOT, {
      summary: 'Create a message batch',
      description:
        'Its requests are executed within a day, at low priority, each as one of `/v1/messages` of the same token.',
      request: MessageBatchCreate,
      response: MessageBatchObject,
      errors: CREATE_ERRORS,
      example: {
        requests: [
          {
            custom_id: 'first',
            params: { model: 'sandbox/general', max_tokens: 100, messages: [{ role: 'user', content: 'Hello' }] },
          },
        ],
      },
      links: [{ at: '/id', to: ['GET /v1/messages/batches/{message_batch_id}'] }],
      handle: create,
    }),
    route('GET', ROOT, {
      summary: 'List message batches',
      description: 'Those of the token, the newest first.',
      query: QUERY,
      response: MessageBatchList,
      errors: ['invalid_value', 'storage_unavailable'],
      handle: list,
    }),
    route('GET', ONE, {
      summary: 'Retrieve a message batch',
      description: 'Its state, and how many of its requests have ended in which way.',
      params,
      response: MessageBatchObject,
      errors: ['batch_not_found', 'storage_unavailable'],
      handle: async (context) => Response.json(messageBatchView(await found(context))),
    }),
    route('POST', `${ONE}/cancel`, {
      summary: 'Cancel a message batch',
      description: 'Requests that are executed now end; the others are not executed. An ended batch stays as it is.',
      params,
      response: MessageBatchObject,
      errors: ['batch_not_found', 'storage_unavailable'],
      handle: async ({ params: { message_batch_id = '' }, caller }) =>
        Response.json(messageBatchView(await batches.cancel(message_batch_id, API, caller.token_id))),
    }),
    route('DELETE', ONE, {
      summary: 'Delete a message batch',
      description: 'With its results. Only a batch that has ended.',
      params,
      response: MessageBatchDeleted,
      errors: ['batch_not_found', 'batch_not_ended', 'storage_unavailable'],
      async handle({ params: { message_batch_id = '' }, caller }) {
        await batches.remove(message_batch_id, API, caller.token_id)
        return Response.json({ id: message_batch_id, type: 'message_batch_deleted' })
      },
    }),
    route('GET', `${ONE}/results`, {
      summary: 'Retrieve the results of a message batch',
      description: 'One line of JSON for each request, with its `custom_id`; not in the order of the requests.',
      params,
      media: ['application/x-jsonl'],
      errors: ['batch_not_found', 'batch_not_ended', 'storage_unavailable'],
      handle: results,
    }),
  ]
}

type RouteRest = Omit<Operation, 'tag'> & { response?: TSchema; handle: Route['handle'] }

const route = (method: Route['method'], path: string, { handle, ...operation }: RouteRest): Route => ({
  method,
  path,
  operation: { ...operation, tag: 'Batches' },
  encodeError: encodeMessagesError,
  errorStatus: messagesErrorStatus,
  errorSchema: MessagesError,
  handle,
})

function assertAllowed({ caller }: Context): void {
  if (!caller.mayUseFamily('messages-compat'))
    throw new GatewayError('model_not_allowed', 'This token may not use the Messages API.')
}

function readText(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value === 'string') return value
  throw new GatewayError('invalid_type', '"callback_url" must be a string.', { param: 'callback_url' })
}

/** Throws invalid_type. */
function readFlag(value: unknown): boolean {
  if (value === undefined || value === null || typeof value === 'boolean') return value === true
  throw new GatewayError('invalid_type', '"exactly_once" must be a boolean.', { param: 'exactly_once' })
}
