/** Routes to read, list and cancel tasks of any family, as the specification defines them (2.7). */
import type { Route } from '../../../http/context.ts'
import { jsonResponse } from '../../../http/live.ts'
import { queryOf } from '../../../http/request-parts.ts'
import { TaskAnswer, TaskList } from '../../../spec/task.ts'
import { encodeTask, encodeTaskList } from '../task-response.ts'
import { PAGE_PARAMETERS, parsePage, parseStatuses, STATUS_PARAMETER, WAIT_PARAMETER } from './request-parameters.ts'
import {
  linksFor,
  linksToTask,
  linkToNextPage,
  RETRY_HEADERS,
  readTask,
  TASK_ERROR_FORMAT,
  type TaskApi,
  type TaskApiParts,
  taskHeaders,
} from './task-api.ts'

export const readRoutes = (parts: TaskApiParts, api: TaskApi): Route[] => [
  listRoute(parts, api),
  statusRoute(parts, api),
  cancelRoute(parts, api),
]

const idOf = ({ id }: TaskApi) => ({ [id]: 'The identifier that was returned when the task was created.' })

const statusRoute = (parts: TaskApiParts, api: TaskApi): Route => ({
  ...TASK_ERROR_FORMAT,
  method: 'GET',
  path: `${api.path}/:${api.id}`,
  operation: {
    summary: 'Retrieve a task',
    description:
      'Poll every 3 to 5 seconds, or after `retry-after`, until the status is SUCCESS or FAILURE; or use `wait` to get the response when the task changes. The links in `outputs` need no token and expire; each response has new ones.',
    tag: api.tag,
    params: idOf(api),
    query: WAIT_PARAMETER,
    response: TaskAnswer,
    responseHeaders: RETRY_HEADERS,
    links: linksToTask(api, '/data/task_id'),
    errors: ['task_not_exist'],
  },
  async handle(context) {
    const task = await readTask(parts, context, api)
    const headers = taskHeaders(parts, task)
    return jsonResponse(encodeTask(task, linksFor(parts, context)), { context, clock: parts.clock, headers })
  },
})

const listRoute = (parts: TaskApiParts, api: TaskApi): Route => ({
  ...TASK_ERROR_FORMAT,
  method: 'GET',
  path: api.path,
  operation: {
    summary: `List the token's tasks: ${api.thing}s`,
    description: 'One page, the newest first unless `order` says otherwise.',
    tag: api.tag,
    query: { ...STATUS_PARAMETER, ...PAGE_PARAMETERS },
    response: TaskList,
    links: [...linksToTask(api, '/data/tasks/0/task_id'), linkToNextPage(api, '/data/next_cursor')],
    errors: ['invalid_value'],
  },
  async handle(context) {
    const { request, caller } = context
    const query = queryOf(request)
    const statuses = parseStatuses(query)
    const filter = { families: api.families, ...parsePage(query), ...(statuses ? { statuses } : {}) }
    const { tasks, has_more } = await parts.tasks.list(caller, filter)
    const list = encodeTaskList({ tasks, has_more }, linksFor(parts, { request }))
    return jsonResponse(list, { context, clock: parts.clock, headers: { 'cache-control': 'no-store' } })
  },
})

const cancelRoute = (parts: TaskApiParts, api: TaskApi): Route => ({
  ...TASK_ERROR_FORMAT,
  method: 'POST',
  path: `${api.path}/:${api.id}/cancel`,
  operation: {
    summary: 'Cancel a task',
    description:
      'Stores the request and returns the task unchanged. The task ends as FAILURE with the fail_code `canceled`; the order is canceled at the provider where the provider supports it. An ended task does not change.',
    tag: api.tag,
    params: idOf(api),
    response: TaskAnswer,
    responseHeaders: RETRY_HEADERS,
    links: linksToTask(api, '/data/task_id'),
    errors: ['task_not_exist'],
  },
  async handle(context) {
    const { params, caller, note } = context
    const task = await parts.tasks.cancel(params[api.id] ?? '', caller, api.families)
    note.model = task.model
    const answer = encodeTask(task, linksFor(parts, context), messageOf(task.status))
    return Response.json(answer, { headers: taskHeaders(parts, task) })
  },
})

const messageOf = (status: string): string =>
  status === 'SUCCESS' || status === 'FAILURE' ? 'The task had already ended.' : 'The task is being canceled.'
