/** Videos in the specification's own words (2.5 to 2.7, section 4). */
import type { Context, Route } from '../http/context.ts'
import { TaskAnswer, TaskCreated, TaskList } from '../spec/task.ts'
import { VideoRequest } from '../spec/video-request.ts'
import { IDEMPOTENCY_KEY, PAGE, pageOf, queryOf, STATUS, statusesOf, WAIT } from './asking.ts'
import { taskAnswer, taskCreated, taskList } from './task-writer.ts'
import {
  FAMILY,
  type FaceParts,
  ORDER_ERRORS,
  ORDER_TOLD,
  RETRY_TOLD,
  readTask,
  takeOrder,
  taskHeaders,
  withBase,
} from './video-face.ts'

const TAG = 'Videos'
const PATH = '/v1/video/generations'
const TASK_ID = { task_id: 'The identifier that was returned when the task was created.' }

export function generationRoutes(parts: FaceParts): Route[] {
  return [createRoute(parts), listRoute(parts), statusRoute(parts), cancelRoute(parts)]
}

const createRoute = (parts: FaceParts): Route => ({
  ...FAMILY,
  method: 'POST',
  path: PATH,
  operation: {
    summary: 'Create a video',
    description:
      'Answers at once with a `task_id`, when the task is stored: from then on it is not lost. Whether the video could be made is told by the task. Which values a model takes, and its defaults, the refusal of any other value names.',
    tag: TAG,
    request: VideoRequest,
    files: ['image', 'last_image', 'images', 'video'],
    headers: IDEMPOTENCY_KEY,
    response: TaskCreated,
    tells: ORDER_TOLD,
    errors: ORDER_ERRORS,
    example: {
      model: 'sandbox/text-to-video',
      prompt: 'A paper boat on a pond, early morning',
      aspect_ratio: '16:9',
      duration: 4,
      size: '720p',
      audio_enable: false,
    },
  },
  async handle(context) {
    const { task, headers } = await takeOrder(parts, context, 'video-generation')
    return Response.json(taskCreated(task), { headers })
  },
})

const statusRoute = (parts: FaceParts): Route => ({
  ...FAMILY,
  method: 'GET',
  path: `${PATH}/:task_id`,
  operation: {
    summary: 'Ask for the state of a task',
    description:
      'Ask every 3 to 5 seconds until the status is SUCCESS or FAILURE, or when `retry-after` says; or let `wait` hold the answer until there is news. The links in `outputs` need no token, and expire; each answer has new ones.',
    tag: TAG,
    params: TASK_ID,
    query: WAIT,
    response: TaskAnswer,
    tells: RETRY_TOLD,
    errors: ['task_not_exist'],
  },
  async handle(context) {
    const task = await readTask(parts, context, taskIdOf(context))
    return Response.json(taskAnswer(withBase(task, parts.settings), parts.outputs), {
      headers: taskHeaders(parts, task),
    })
  },
})

const listRoute = (parts: FaceParts): Route => ({
  ...FAMILY,
  method: 'GET',
  path: PATH,
  operation: {
    summary: "List the token's tasks",
    tag: TAG,
    query: { ...STATUS, ...PAGE },
    response: TaskList,
    errors: ['invalid_value'],
  },
  async handle({ request, caller }) {
    const query = queryOf(request)
    const statuses = statusesOf(query)
    const { tasks, has_more } = await parts.tasks.list(caller, { ...pageOf(query), ...(statuses ? { statuses } : {}) })
    const listing = { tasks: tasks.map((task) => withBase(task, parts.settings)), has_more }
    return Response.json(taskList(listing, parts.outputs), { headers: { 'cache-control': 'no-store' } })
  },
})

const cancelRoute = (parts: FaceParts): Route => ({
  ...FAMILY,
  method: 'POST',
  path: `${PATH}/:task_id/cancel`,
  operation: {
    summary: 'Cancel a task',
    description:
      'Notes the wish, and answers with the task as it is. It ends as FAILURE with the fail_code `canceled`; the upstream is told where it can be told. A task that has ended stays as it is.',
    tag: TAG,
    params: TASK_ID,
    response: TaskAnswer,
    tells: RETRY_TOLD,
    errors: ['task_not_exist'],
  },
  async handle(context) {
    const task = await parts.tasks.cancel(taskIdOf(context), context.caller)
    context.note.model = task.model
    const answer = taskAnswer(withBase(task, parts.settings), parts.outputs, messageOf(task.status))
    return Response.json(answer, { headers: taskHeaders(parts, task) })
  },
})

const messageOf = (status: string): string =>
  status === 'SUCCESS' || status === 'FAILURE' ? 'The task had already ended.' : 'The task is being canceled.'

const taskIdOf = ({ params }: Context): string => params.task_id ?? ''
