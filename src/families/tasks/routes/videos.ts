/** The same tasks in the chat-compatible video API. */
import type { Context, Route } from '../../../http/context.ts'
import { queryOf } from '../../../http/request-parts.ts'
import type { Link } from '../../../spec/operation.ts'
import { Video, VideoDeleted, VideoList } from '../../../spec/video.ts'
import { VideoCreate } from '../../../spec/video-create.ts'
import { VIDEO_FAMILIES } from '../order-kinds.ts'
import { parseVideo } from '../parse-order.ts'
import { encodeVideo, encodeVideoList } from '../video-response.ts'
import { IDEMPOTENCY_KEY_HEADER, PAGE_PARAMETERS, parsePage, WAIT_PARAMETER } from './request-parameters.ts'
import {
  linkToNextPage,
  ORDER_ERRORS,
  ORDER_HEADERS,
  parseAndSubmit,
  RETRY_HEADERS,
  readTask,
  TASK_ERROR_FORMAT,
  type TaskApi,
  type TaskApiParts,
  taskHeaders,
} from './task-api.ts'

export const VIDEOS: TaskApi = {
  path: '/v1/videos',
  id: 'video_id',
  tag: 'Videos, chat-compatible',
  thing: 'video',
  families: VIDEO_FAMILIES,
}
/** From a response with the id of a video, at this JSON pointer. */
const linksTo = (at: string): Link[] => [
  { at, to: ['GET /v1/videos/{video_id}', 'DELETE /v1/videos/{video_id}', 'GET /v1/videos/{video_id}/content'] },
]
const VIDEO_ID = { video_id: 'The id of the video; the `task_id` of a task is the same.' }

export function videosRoutes(parts: TaskApiParts): Route[] {
  return [createRoute(parts), listRoute(parts), retrieveRoute(parts), deleteRoute(parts)]
}

const createRoute = (parts: TaskApiParts): Route => ({
  ...TASK_ERROR_FORMAT,
  method: 'POST',
  path: VIDEOS.path,
  operation: {
    summary: 'Create a video',
    description: 'Also accepts the fields of `POST /v1/video/generations`, as JSON or as a form.',
    tag: VIDEOS.tag,
    request: VideoCreate,
    files: ['input_reference', 'image', 'last_image', 'images', 'video'],
    headers: IDEMPOTENCY_KEY_HEADER,
    response: Video,
    responseHeaders: ORDER_HEADERS,
    links: linksTo('/id'),
    errors: ORDER_ERRORS,
    example: {
      model: 'sandbox/text-to-video',
      prompt: 'A paper boat on a pond, early morning',
      seconds: '4',
      size: '1280x720',
    },
  },
  async handle(context) {
    const { task, headers } = await parseAndSubmit(parts, context, { family: 'chatcompat-video', parse: parseVideo })
    return Response.json(encodeVideo(task), { headers })
  },
})

const retrieveRoute = (parts: TaskApiParts): Route => ({
  ...TASK_ERROR_FORMAT,
  method: 'GET',
  path: `${VIDEOS.path}/:video_id`,
  operation: {
    summary: 'Retrieve a video',
    description:
      'Poll until the status is `completed` or `failed`; or use `wait` to get the response when the video changes.',
    tag: VIDEOS.tag,
    params: VIDEO_ID,
    query: WAIT_PARAMETER,
    response: Video,
    responseHeaders: RETRY_HEADERS,
    links: linksTo('/id'),
    errors: ['task_not_exist'],
  },
  async handle(context) {
    const task = await readTask(parts, context, VIDEOS)
    return Response.json(encodeVideo(task), { headers: taskHeaders(parts, task) })
  },
})

const listRoute = (parts: TaskApiParts): Route => ({
  ...TASK_ERROR_FORMAT,
  method: 'GET',
  path: VIDEOS.path,
  operation: {
    summary: "List the token's videos",
    description: 'One page, the newest first unless `order` says otherwise.',
    tag: VIDEOS.tag,
    query: PAGE_PARAMETERS,
    response: VideoList,
    links: [...linksTo('/data/0/id'), linkToNextPage(VIDEOS, '/last_id')],
    errors: ['invalid_value'],
  },
  async handle({ request, caller }) {
    const listing = await parts.tasks.list(caller, { families: VIDEO_FAMILIES, ...parsePage(queryOf(request)) })
    return Response.json(encodeVideoList(listing), { headers: { 'cache-control': 'no-store' } })
  },
})

const deleteRoute = (parts: TaskApiParts): Route => ({
  ...TASK_ERROR_FORMAT,
  method: 'DELETE',
  path: `${VIDEOS.path}/:video_id`,
  operation: {
    summary: 'Delete a video and its files',
    description: 'An unfinished video is rejected: cancel it first.',
    tag: VIDEOS.tag,
    params: VIDEO_ID,
    response: VideoDeleted,
    errors: ['task_not_exist', 'task_not_ended'],
  },
  async handle(context) {
    const id = videoIdOf(context)
    await parts.tasks.remove(id, context.caller, VIDEO_FAMILIES)
    return Response.json({ id, object: 'video.deleted', deleted: true } satisfies VideoDeleted)
  },
})

const videoIdOf = ({ params }: Context): string => params.video_id ?? ''
