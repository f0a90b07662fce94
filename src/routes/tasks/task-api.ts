/** What the faces of tasks over HTTP share: taking an order on, and telling a task. */

import type { ServerSettings } from '../../config/config.ts'
import { bodyLimits } from '../../http/body.ts'
import type { Context, Route } from '../../http/context.ts'
import { bodyOf } from '../../http/form-fields.ts'
import { fieldOf, readJsonOrForm } from '../../http/multipart.ts'
import { queryOf } from '../../http/query.ts'
import type { Clock } from '../../kit/clock.ts'
import { modelHeaders } from '../../models/lifecycle.ts'
import type { Outputs } from '../../outputs/outputs.ts'
import type { Pipeline } from '../../pipeline/pipeline.ts'
import { type ErrorCode, MODEL_REQUEST_ERRORS } from '../../spec/error.ts'
import type { Task } from '../../spec/task.ts'
import { TaskErrorBody } from '../../spec/task-error.ts'
import { isEnded } from '../../tasks/lifecycle.ts'
import type { FamilyRequest, TaskFamily } from '../../tasks/order-kinds.ts'
import { ORDER_FORM } from '../../tasks/parse-order.ts'
import type { Order } from '../../tasks/submit.ts'
import { encodeTaskError } from '../../tasks/task-response.ts'
import type { Tasks } from '../../tasks/tasks.ts'
import { parseIdempotencyKey, parseWait, requestBaseUrl } from './request-parameters.ts'

export type TaskApiParts = {
  tasks: Pick<Tasks, 'submit' | 'find' | 'findAny' | 'wait' | 'list' | 'cancel' | 'remove' | 'retryAfter' | 'health'>
  pipeline: Pick<Pipeline, 'authorize'>
  outputs: Pick<Outputs, 'link' | 'verify' | 'open'>
  /** Read at each request: a reload changes them. */
  settings: ServerSettings
  clock: Clock
}

/** Where one sort of tasks is spoken of, and whose tasks are seen there. */
export type TaskApi = {
  /** `/v1/video/generations`: a task is below it, by its id. */
  path: string
  /** The name of the id in the path. */
  id: string
  tag: string
  /** What its tasks make, in a sentence: `video`. */
  thing: string
  families: readonly TaskFamily[]
}

/** The error format of the task APIs. */
export const TASK_ERROR_FORMAT: Pick<Route, 'encodeError' | 'errorSchema'> = {
  encodeError: encodeTaskError,
  errorSchema: TaskErrorBody,
}

/** A task's words change, and are for one client only. */
const NO_STORE = { 'cache-control': 'no-store' }

/** Parses the order and submits it. */
export async function parseAndSubmit<F extends TaskFamily>(
  parts: TaskApiParts,
  context: Context,
  { family, parse }: { family: F; parse(body: unknown): Extract<FamilyRequest, { family: F }>['request'] },
): Promise<SubmittedTask> {
  const { pipeline, settings, clock } = parts
  const limits = bodyLimits(settings, clock, 'media')
  const posted = await readJsonOrForm(context.request, limits)
  // An order that is repeated with its key gets its task, whatever has become of the model.
  if (!context.request.headers.has('idempotency-key'))
    pipeline.authorize(context, { family, model: fieldOf(posted, 'model') })
  return submitOrder(parts, context, { family, request: parse(bodyOf(posted, ORDER_FORM)) } as FamilyRequest)
}

/** The headers tell of its model, and whether it is an old one. */
type SubmittedTask = { task: Task; headers: Record<string, string> }

/** Submits an order that was parsed before. */
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

/** One task of the caller's, held back while nothing changes if the client asks for that. */
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

/** With links as they are made now: the operator may have moved the gateway since the order. */
export const withBase = (task: Task, { base_url }: ServerSettings): Task =>
  base_url === undefined ? task : { ...task, base_url: base_url.replace(/\/+$/, '') }

export const ORDER_ERRORS: ErrorCode[] = [...MODEL_REQUEST_ERRORS, 'idempotency_key_reused']

export const RETRY_HEADERS = {
  'retry-after': 'Seconds after which asking again makes sense; absent once the task has ended.',
}

export const ORDER_HEADERS = {
  ...RETRY_HEADERS,
  'idempotent-replayed': '`true` when the Idempotency-Key is known, and this is the task that was made for it.',
}
