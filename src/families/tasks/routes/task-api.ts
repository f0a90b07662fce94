/** Shared by the task routes: submitting an order and reading a task. */
import type { Pipeline } from '../../../calls/pipeline.ts'
import type { ServerSettings } from '../../../config/config.ts'
import { bodyLimits } from '../../../http/body.ts'
import type { Context, Route } from '../../../http/context.ts'
import { bodyOf } from '../../../http/form-fields.ts'
import type { Posted } from '../../../http/multipart.ts'
import { fieldOf, readJsonOrForm } from '../../../http/multipart.ts'
import { queryOf } from '../../../http/request-parts.ts'
import type { Clock } from '../../../kit/clock.ts'
import { modelHeaders } from '../../../models/lifecycle.ts'
import type { Outputs } from '../../../outputs/outputs.ts'
import type { ErrorCode } from '../../../spec/error.ts'
import { MODEL_REQUEST_ERRORS } from '../../../spec/error-lists.ts'
import type { Link, Operation } from '../../../spec/operation.ts'
import { type Task, TaskCreated } from '../../../spec/task.ts'
import { TaskErrorBody } from '../../../spec/task-error.ts'
import { readUserFields } from '../../shared/call-options.ts'
import { isEnded } from '../lifecycle.ts'
import type { FamilyRequest, TaskFamily } from '../order-kinds.ts'
import { ORDER_FORM } from '../parse-order.ts'
import type { Order } from '../submit.ts'
import { encodeTaskCreated, encodeTaskError } from '../task-response.ts'
import type { Tasks } from '../tasks.ts'
import { IDEMPOTENCY_KEY_HEADER, parseIdempotencyKey, parseWait, requestBaseUrl } from './request-parameters.ts'

export type TaskApiParts = {
  tasks: Pick<Tasks, 'submit' | 'find' | 'findAny' | 'wait' | 'list' | 'cancel' | 'remove' | 'retryAfter' | 'health'>
  pipeline: Pick<Pipeline, 'authorize'>
  outputs: Pick<Outputs, 'link' | 'verify' | 'open'>
  /** An order with the data of the files of its caller that it names. */
  withFiles(body: unknown, client: Pick<Context, 'caller' | 'hold'>): unknown
  /** Read at each request: a reload changes them. */
  settings: ServerSettings
  clock: Clock
}

/** One API of tasks: its path, and the families whose tasks it shows. */
export type TaskApi = {
  /** `/v1/video/generations`: tasks are below it, by id. */
  path: string
  /** The name of the id in the path. */
  id: string
  tag: string
  /** What its tasks generate, for sentences: `video`. */
  thing: string
  families: readonly TaskFamily[]
  /** Where its files are served, as the document names it. Default: below the task. */
  files?: string
}

/** The error format of the task APIs. */
export const TASK_ERROR_FORMAT: Pick<Route, 'encodeError' | 'errorSchema'> = {
  encodeError: encodeTaskError,
  errorSchema: TaskErrorBody,
}

/** A task changes, and is for one client only. */
const NO_STORE = { 'cache-control': 'no-store' }

type OrderForm<F extends TaskFamily> = {
  family: F
  parse(body: unknown): Extract<FamilyRequest, { family: F }>['request']
}

/** The body of an order for a model that the caller may use. */
export async function readOrder(parts: TaskApiParts, context: Context, family: TaskFamily): Promise<Posted> {
  const posted = await readJsonOrForm(context.request, bodyLimits(context, 'media', parts))
  if (posted.kind === 'json') context.noteFields(posted.value)
  readUserFields(context, fieldOf(posted, 'user'), fieldOf(posted, 'safety_identifier'))
  // A repeated order with a known key gets its task, whatever has become of the model.
  if (!context.request.headers.has('idempotency-key'))
    parts.pipeline.authorize(context, { family, model: fieldOf(posted, 'model') })
  return posted
}

/** Parses the order and submits it. */
export async function parseAndSubmit<F extends TaskFamily>(
  parts: TaskApiParts,
  context: Context,
  { family, parse }: OrderForm<F>,
): Promise<SubmittedTask> {
  const posted = await readOrder(parts, context, family)
  const body = await parts.withFiles(bodyOf(posted, ORDER_FORM), context)
  return submitOrder(parts, context, { family, request: parse(body) } as FamilyRequest)
}

export type CreateParts<F extends TaskFamily> = {
  order: OrderForm<F>
  operation: Pick<Operation, 'summary' | 'description' | 'request' | 'files' | 'example'>
}

/** Submits an order, and answers with its task. */
export const createRoute = <F extends TaskFamily>(
  parts: TaskApiParts,
  api: TaskApi,
  { operation, order }: CreateParts<F>,
): Route => ({
  ...TASK_ERROR_FORMAT,
  method: 'POST',
  path: api.path,
  operation: {
    ...operation,
    tag: api.tag,
    headers: IDEMPOTENCY_KEY_HEADER,
    response: TaskCreated,
    links: linksToTask(api, '/data/task_id'),
    responseHeaders: ORDER_HEADERS,
    errors: ORDER_ERRORS,
  },
  async handle(context) {
    const { task, headers } = await parseAndSubmit(parts, context, order)
    return Response.json(encodeTaskCreated(task), { headers })
  },
})

/** The headers report its model, and whether it is to be retired. */
type SubmittedTask = { task: Task; headers: Record<string, string> }

export async function submitOrder(
  { tasks, settings, clock }: TaskApiParts,
  context: Context,
  request: FamilyRequest,
): Promise<SubmittedTask> {
  const idempotency_key = parseIdempotencyKey(context.request)
  const base_url = requestBaseUrl(context.request, settings)
  const order: Order = {
    ...request,
    call: context,
    base_url,
    ...(idempotency_key === undefined ? {} : { idempotency_key }),
  }
  const { task, replayed, chosen } = await tasks.submit(order)
  context.note.model = task.model
  const headers: Record<string, string> = {
    ...NO_STORE,
    ...(chosen ? modelHeaders(chosen, clock) : {}),
    ...(replayed ? { 'idempotent-replayed': 'true' } : {}),
    ...retryHeader(tasks, task),
  }
  return { task, headers }
}

/** One task of the caller; with `wait`, once it has changed. */
export async function readTask({ tasks }: TaskApiParts, context: Context, { id, families }: TaskApi): Promise<Task> {
  const { request, params, caller, signal, note } = context
  const seconds = parseWait(queryOf(request))
  const seen = await tasks.find(params[id] ?? '', caller, families)
  note.model = seen.model
  return seconds > 0 && !isEnded(seen) ? tasks.wait(seen, { seconds, signal, caller }) : seen
}

export const taskHeaders = ({ tasks }: TaskApiParts, task: Task): Record<string, string> => ({
  ...NO_STORE,
  ...retryHeader(tasks, task),
})

function retryHeader(tasks: Pick<Tasks, 'retryAfter'>, task: Task): Record<string, string> {
  return isEnded(task) ? {} : { 'retry-after': String(Math.max(1, Math.ceil(tasks.retryAfter(task)))) }
}

/** Links in a response lead to the configured address, or to the one at which its client reached the gateway. */
export const linksFor = ({ outputs, settings }: TaskApiParts, { request }: Pick<Context, 'request'>) => ({
  outputs,
  base_url: requestBaseUrl(request, settings),
})

/** From a response with the id of a task, at this JSON pointer, to the requests about the task. */
export const linksToTask = ({ path, id, files = `${path}/{${id}}/content` }: TaskApi, at: string): Link[] => [
  { at, to: [`GET ${path}/{${id}}`, `POST ${path}/{${id}}/cancel`, `GET ${files}`] },
]

/** From a page to the next one. */
export const linkToNextPage = ({ path }: TaskApi, at: string): Link => ({ at, to: [`GET ${path}`], parameter: 'after' })

export const ORDER_ERRORS: ErrorCode[] = [...MODEL_REQUEST_ERRORS, 'idempotency_key_reused', 'storage_quota_exceeded']

export const RETRY_HEADERS = {
  'retry-after': 'Seconds after which to poll again; absent once the task has ended.',
}

export const ORDER_HEADERS = {
  ...RETRY_HEADERS,
  'idempotent-replayed': '`true` if the Idempotency-Key is known and this is its first task.',
}
