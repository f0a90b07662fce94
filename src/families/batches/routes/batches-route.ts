/** The routes of `/v1/batches`, in the form of the OpenAI API, and what those of both APIs read from a request. */
import Type, { type TSchema } from 'typebox'
import type { ServerSettings } from '../../../config/config.ts'
import { bodyLimits, readJson } from '../../../http/body.ts'
import type { Context, Route } from '../../../http/context.ts'
import { checker } from '../../../kit/checker.ts'
import type { Clock } from '../../../kit/clock.ts'
import { diagnose } from '../../../kit/diagnose.ts'
import { isRecord } from '../../../kit/json.ts'
import { refusalOf } from '../../../protocols/shared/request-error.ts'
import { BatchCreate, BatchEstimate, BatchList, BatchObject } from '../../../spec/batch.ts'
import { type ErrorCode, GatewayError } from '../../../spec/error.ts'
import type { Operation, Parameter } from '../../../spec/operation.ts'
import type { Batch, BatchApi } from '../../../store/batches/batch-store.ts'
import type { Files } from '../../files/files.ts'
import { requestBaseUrl } from '../../tasks/routes/request-parameters.ts'
import type { Batches } from '../batches.ts'
import { batchView } from '../batches.ts'
import { BATCH_ENDPOINTS, familyOf } from '../validate.ts'

export type BatchRouteParts = {
  batches: Batches
  files: Pick<Files, 'find'>
  settings: ServerSettings
  clock: Clock
}

const ROOT = '/v1/batches'
const ONE = `${ROOT}/:batch_id`
const API = 'openai'
const MOST_LISTED = 100
const params = { batch_id: 'The id of a batch.' }
const QUERY: Record<string, Parameter> = {
  limit: { description: 'Default 20.', schema: Type.Integer({ minimum: 1, maximum: MOST_LISTED }) },
  after: { description: 'The batches after this one.', schema: Type.String() },
}
const CREATE_ERRORS: ErrorCode[] = [
  'invalid_json',
  'invalid_type',
  'invalid_value',
  'missing_required_parameter',
  'file_not_found',
  'model_not_allowed',
  'request_too_large',
  'request_timeout',
  'unsupported_media_type',
  'rate_limit_exceeded',
  'storage_unavailable',
]
const check = checker(BatchCreate)

export function batchRoutes({ batches, files, settings, clock }: BatchRouteParts): Route[] {
  async function create(context: Context): Promise<Response> {
    const { request, caller } = context
    const body = await readJson(request, bodyLimits(context, 'text', { settings, clock }))
    context.noteFields(body)
    const asked = parse(body)
    const { endpoint } = asked
    if (!(endpoint in BATCH_ENDPOINTS))
      throw invalid('endpoint', `must be one of ${Object.keys(BATCH_ENDPOINTS).join(', ')}`)
    const family = familyOf(endpoint)
    if (!caller.mayUseFamily(family))
      throw new GatewayError('model_not_allowed', `This token may not use the family "${family}".`, {
        param: 'endpoint',
      })
    const file = await files.find(asked.input_file_id, caller)
    if (file.purpose !== 'batch')
      throw invalid('input_file_id', `must be a file of purpose "batch"; this one has "${file.purpose}"`)
    const order: Parameters<Batches['create']>[0] = {
      batch_id: batches.newId(API),
      api: API,
      endpoint,
      caller,
      callback_url: asked.callback_url,
      request: {
        input_file_id: file.file_id,
        completion_window: asked.completion_window,
        headers: keptHeaders(context, API),
        base_url: requestBaseUrl(request, settings),
        metadata: asked.metadata ?? null,
        ...(asked.output_expires_after && { output_seconds: asked.output_expires_after.seconds }),
        ...(asked.exactly_once && { exactly_once: true }),
      },
      total: 0,
      file,
    }
    if (asked.dry_run) return Response.json(await batches.estimate(order, file, context.signal))
    await batches.assertMayCreate(caller.token_id)
    return Response.json(batchView(await batches.create(order)))
  }

  async function list(context: Context): Promise<Response> {
    const query = context.query()
    const { page, has_more } = await pageOf(batches, {
      api: API,
      token_id: context.caller.token_id,
      limit: readLimit(query.get('limit'), MOST_LISTED),
      after: query.get('after'),
    })
    const data = page.map(batchView)
    return Response.json({ object: 'list', data, ...idsOf(data), has_more })
  }

  return [
    route('POST', ROOT, {
      summary: 'Create a batch',
      description:
        'The requests of an uploaded file are executed within a day, at low priority, each as one of its endpoint of the same token.',
      request: BatchCreate,
      response: Type.Union([BatchObject, BatchEstimate]),
      errors: CREATE_ERRORS,
      example: {
        input_file_id: 'file-gh0mp3x1a2bABCDEFGHIJKLMNO',
        endpoint: '/v1/chat/completions',
        completion_window: '24h',
      },
      links: [{ at: '/id', to: ['GET /v1/batches/{batch_id}', 'POST /v1/batches/{batch_id}/cancel'] }],
      handle: create,
    }),
    route('GET', ROOT, {
      summary: 'List batches',
      description: 'Those of the token, the newest first.',
      query: QUERY,
      response: BatchList,
      errors: ['invalid_value', 'storage_unavailable'],
      handle: list,
    }),
    route('GET', ONE, {
      summary: 'Retrieve a batch',
      description: 'Its state, how many of its lines have ended, and its files once it has.',
      params,
      response: BatchObject,
      errors: ['batch_not_found', 'storage_unavailable'],
      handle: async ({ params: { batch_id = '' }, caller }) =>
        Response.json(batchView(await batches.find(batch_id, API, caller.token_id))),
    }),
    route('POST', `${ONE}/cancel`, {
      summary: 'Cancel a batch',
      description:
        'Requests that are executed now end; the others are not executed. The results so far are in the output file. An ended batch stays as it is.',
      params,
      response: BatchObject,
      errors: ['batch_not_found', 'storage_unavailable'],
      handle: async ({ params: { batch_id = '' }, caller }) =>
        Response.json(batchView(await batches.cancel(batch_id, API, caller.token_id))),
    }),
  ]
}

type RouteRest = Omit<Operation, 'tag'> & { response: TSchema; handle: Route['handle'] }

const route = (method: Route['method'], path: string, { handle, ...operation }: RouteRest): Route => ({
  method,
  path,
  operation: { ...operation, tag: 'Batches' },
  handle,
})

/** `null` is absent, unknown fields are ignored. Throws GatewayError that names the field and its rule. */
function parse(body: unknown): BatchCreate {
  if (!isRecord(body)) throw new GatewayError('invalid_type', 'The body must be a JSON object.')
  const given = Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null))
  if (!check.Check(given)) throw refusalOf(diagnose(BatchCreate, given))
  return given as BatchCreate
}

const invalid = (param: string, rule: string) => new GatewayError('invalid_value', `"${param}" ${rule}.`, { param })

/** Headers that apply to each request of a batch. */
const KEPT = ['x-gatehouse-user', 'x-gatehouse-tags', 'x-gatehouse-session', 'x-gatehouse-cache', 'x-gatehouse-timeout']
const KEPT_OF_API: Record<BatchApi, readonly string[]> = {
  openai: [],
  anthropic: ['anthropic-version', 'anthropic-beta'],
}
const TAGS = 'x-gatehouse-tags'
/** By which requests of batches are found in the request log, and routed where a target has such a condition. */
const TAG = 'batch'

export function keptHeaders(context: Context, api: BatchApi): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const name of [...KEPT, ...KEPT_OF_API[api]]) {
    const value = context.header(name)
    if (value !== null) headers[name] = value
  }
  const tags = headers[TAGS]?.split(',').map((tag) => tag.trim()) ?? []
  headers[TAGS] = [...new Set([...tags.slice(0, 15), TAG])].join(',')
  return headers
}

const DEFAULT_LIMIT = 20

export function readLimit(text: string | null, most: number): number {
  if (text === null) return DEFAULT_LIMIT
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= most) return limit
  throw new GatewayError('invalid_value', `"limit" must be an integer from 1 to ${most}.`, { param: 'limit' })
}

type Page = { api: BatchApi; token_id: string; limit: number; after?: string | null; before?: string | null }

/** The newest first. `after` and `before` are ids of batches of the list. Throws invalid_value for others. */
export async function pageOf(batches: Batches, { api, token_id, limit, after, before }: Page) {
  const place = async (name: string, batch_id: string) => {
    try {
      return await batches.find(batch_id, api, token_id)
    } catch (thrown) {
      if (!(thrown instanceof GatewayError)) throw thrown
      throw new GatewayError('invalid_value', `"${name}" must be the id of a batch of this list.`, { param: name })
    }
  }
  const own = { api, token_id, limit: limit + 1 }
  let found: Batch[]
  if (before) {
    const last = await place('before_id', before)
    found = await batches.list({ ...own, order: 'asc', after: last })
  } else {
    const first = after ? await place(api === 'openai' ? 'after' : 'after_id', after) : undefined
    found = await batches.list({ ...own, after: first })
  }
  const page = found.slice(0, limit)
  return { page: before ? page.reverse() : page, has_more: found.length > limit }
}

export const idsOf = <T extends { id: string }>(data: T[]) => ({
  first_id: data.at(0)?.id ?? null,
  last_id: data.at(-1)?.id ?? null,
})
