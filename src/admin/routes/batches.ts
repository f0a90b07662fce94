/** The admin API's batches: list them, look at one, and cancel it. */
import Type from 'typebox'
import type { Context, Route } from '../../http/context.ts'
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import { BATCH_STATUSES, type BatchStatus, readBatchStatuses } from '../../spec/batch.ts'
import { invalidValue } from '../../spec/error.ts'
import { orNull, parameter, titled } from '../../spec/fields.ts'
import { type Batch, type BatchStore, waitingOf } from '../../store/batches/batch-store.ts'
import { placeNumber } from '../../store/page.ts'
import { objectIn, originOf } from './edit.ts'
import { listRoute, pageAnswer, readPage } from './list.ts'
import { adminRoute } from './route.ts'

type AdminBatchRouteParts = { batches: Pick<BatchStore, 'list' | 'find' | 'cancel'>; clock: Clock }

const AdminBatch = titled('AdminBatch', {
  object: Type.Literal('batch'),
  batch_id: Type.String(),
  token_id: Type.String(),
  project_id: orNull(Type.String()),
  api: Type.Enum(['openai', 'anthropic'], { description: 'The API by which it was created.' }),
  endpoint: Type.String({ description: 'The path that each of its lines calls.' }),
  model: orNull(Type.String(), 'Where all lines name the same.'),
  status: Type.Enum([...BATCH_STATUSES]),
  created_at: Type.Integer({ description: 'Unix seconds, as the other times.' }),
  expires_at: Type.Integer(),
  ended_at: orNull(Type.Integer(), 'Null: it has not ended.'),
  lines: Type.Object({
    total: Type.Integer(),
    succeeded: Type.Integer(),
    errored: Type.Integer(),
    canceled: Type.Integer(),
    expired: Type.Integer(),
  }),
  input_tokens: Type.Integer(),
  output_tokens: Type.Integer(),
  waiting: orNull(
    Type.Object({
      code: Type.String(),
      message: Type.String(),
      since_ms: Type.Optional(Type.Integer()),
      until_ms: Type.Integer(),
    }),
    'Why lines wait, and until when in unix milliseconds; `since_ms`: where the provider has no room for a batch of its own.',
  ),
  session: Type.String({ description: 'By which its requests are found: a filter of `GET /admin/v1/requests`.' }),
  input_file_id: orNull(Type.String(), 'Null: its requests were sent with it.'),
  output_file_id: orNull(Type.String(), 'The results that succeeded.'),
  error_file_id: orNull(Type.String(), 'All other results.'),
  vendor_batches: Type.Array(
    Type.Object({
      id: orNull(Type.String(), 'Null: not yet created.'),
      provider: Type.String(),
      lines: Type.Integer(),
    }),
    { description: 'At providers, which execute lines of it now.' },
  ),
  problems: Type.Array(
    Type.Object({
      code: Type.String(),
      message: Type.String(),
      line: orNull(Type.Integer(), 'Null: of the whole file.'),
    }),
    { description: 'Why it failed, or why lines were not executed.' },
  ),
})
export type AdminBatch = Type.Static<typeof AdminBatch>

const params = { batch_id: 'The id of a batch.' }

export function adminBatchRoutes({ batches, clock }: AdminBatchRouteParts): Route[] {
  const { found, projectOf } = objectIn('batch_id', 'batch', batches.find)

  async function list(context: Context): Promise<Response> {
    const query = context.query()
    const { limit, after } = readPage(query)
    const [status, token_id] = [query.get('status'), query.get('token_id')]
    const project_id = context.admin.project_id ?? query.get('project_id') ?? undefined
    const rows = await batches.list({
      limit: limit + 1,
      ...(after && { after: { created_at: placeNumber(after[0]), batch_id: after[1] ?? '' } }),
      ...(status !== null && { statuses: readStatuses(status) }),
      ...(token_id !== null && { token_id }),
      ...(project_id !== undefined && { project_id }),
    })
    return pageAnswer(rows, { limit, view, keyOf: (last) => [last.created_at, last.batch_id] })
  }

  async function cancel(context: Context): Promise<Response> {
    const before = await found(context)
    const audit = {
      ...originOf(context),
      at_ms: clock.now(),
      action: 'batch.cancel',
      object_type: 'batch',
      object_id: before.batch_id,
      project_id: before.project_id,
      before: { status: before.status },
      after: { status: 'cancelling' },
    }
    const at = { now: unixSeconds(clock), now_ms: clock.now(), audit }
    return Response.json(view((await batches.cancel(before.batch_id, at)) ?? before))
  }

  return [
    listRoute(['GET', '/admin/v1/batches', { right: 'read', project: 'own' }], {
      summary: 'List batches',
      description: 'The newest first. Who is bound to a project sees those of it.',
      query: {
        status: parameter(`Only these, separated by commas: ${BATCH_STATUSES.join(', ')}, or \`unfinished\`.`),
        token_id: parameter('Only batches of this token.'),
        project_id: parameter('Only batches of this project.'),
      },
      of: [AdminBatch, 'AdminBatchList'],
      errors: ['storage_unavailable'],
      handle: list,
    }),
    adminRoute(['GET', '/admin/v1/batches/:batch_id', { right: 'read', project: projectOf }], {
      summary: 'Look at a batch',
      description: 'Its state and its counts; not its requests.',
      params,
      response: AdminBatch,
      errors: ['storage_unavailable'],
      handle: async (context) => Response.json(view(await found(context))),
    }),
    adminRoute(['POST', '/admin/v1/batches/:batch_id/cancel', 'operate'], {
      summary: 'Cancel a batch',
      description: 'Lines that are executed now end; the others are not executed. An ended batch stays as it is.',
      params,
      response: AdminBatch,
      errors: ['storage_unavailable'],
      handle: cancel,
    }),
  ]
}

function view(batch: Batch): AdminBatch {
  const { batch_id, token_id, project_id, api, endpoint, status, created_at, expires_at, request, progress } = batch
  const { total, succeeded, errored, canceled, expired, input_tokens, output_tokens } = batch
  return {
    object: 'batch',
    batch_id,
    token_id,
    project_id,
    api,
    endpoint,
    model: progress.model ?? null,
    status,
    created_at,
    expires_at,
    ended_at: progress.ended_at ?? null,
    lines: { total, succeeded, errored, canceled, expired },
    input_tokens,
    output_tokens,
    waiting: waitingOf(progress) ?? null,
    session: request.headers['x-gatehouse-session'] ?? batch_id,
    input_file_id: request.input_file_id ?? null,
    output_file_id: progress.output_file_id ?? null,
    error_file_id: progress.error_file_id ?? null,
    vendor_batches: (progress.orders ?? []).map(({ id = null, provider, lines }) => ({ id, provider, lines })),
    problems: [
      ...(progress.reason ? [{ ...progress.reason, line: null }] : []),
      ...(progress.problems ?? []).map(({ code, message, line }) => ({ code, message, line })),
    ],
  }
}

function readStatuses(text: string): BatchStatus[] {
  const { statuses, unknown } = readBatchStatuses(text)
  if (unknown === undefined) return statuses
  const rule = `"status" may contain ${BATCH_STATUSES.join(', ')} and unfinished, not ${JSON.stringify(unknown.slice(0, 40))}.`
  throw invalidValue('status', rule)
}
