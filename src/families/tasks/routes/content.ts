/** Serves the files of a task: to the token of the task, or to the holder of a signed link. */
import Type from 'typebox'
import type { Context, Route } from '../../../http/context.ts'
import { fileResponse } from '../../../http/file-response.ts'
import { isFilesHost } from '../../../http/files-host.ts'
import { presentedSecret, queryOf } from '../../../http/request-parts.ts'
import { unixSeconds } from '../../../kit/clock.ts'
import { endingOf } from '../../../kit/file-type.ts'
import { headerValue } from '../../../kit/header-value.ts'
import { GatewayError, invalidValue } from '../../../spec/error.ts'
import { parameter } from '../../../spec/fields.ts'
import type { Parameter } from '../../../spec/operation.ts'
import type { Task, TaskOutput } from '../../../spec/task.ts'
import { isEnded } from '../lifecycle.ts'
import { TASK_ERROR_FORMAT, type TaskApi, type TaskApiParts } from './task-api.ts'

type FileApi = TaskApi & {
  /** The accepted values of the `variant` query, if any. */
  variants?: readonly string[]
  /** The media types of its responses. */
  media: string[]
}

const QUERY: Record<string, Parameter> = {
  index: parameter('The index of the file, if the task has several. Default 0.', Type.Integer({ minimum: 0 })),
  // Text, since without a signature it is not read.
  expires: parameter('The expiry of a signed link, in Unix seconds.'),
  signature: parameter('The signature of a signed link, which needs no token.'),
}

export function contentRoute({ tasks, outputs, settings, clock }: TaskApiParts, api: FileApi): Route {
  const idIn = ({ params }: Context) => params[api.id] ?? ''

  /** Whether the link in the query is valid; undefined if the query has no link. */
  function linkOf(context: Context): 'valid' | 'expired' | 'forged' | undefined {
    const query = queryOf(context.request)
    const signature = query.get('signature')
    if (signature === null) return undefined
    // A proxy or cache might read the other of two.
    if (Object.keys(QUERY).some((name) => query.getAll(name).length > 1)) return 'forged'
    const link = { task_id: idIn(context), index: indexOf(query.get('index')), expires: query.get('expires') ?? '' }
    return outputs.verify({ ...link, signature })
  }

  /** Throws task_not_exist, link_expired. */
  async function taskFor(context: Context): Promise<Task> {
    const { caller } = context
    const link = linkOf(context)
    if (link === 'valid') {
      const task = await tasks.findAny(idIn(context), api.families)
      if (task) return task
      throw new GatewayError('task_not_exist', 'There is no such task any more. It may have been deleted.')
    }
    if (caller.token_id !== '') return tasks.find(idIn(context), caller, api.families)
    const reason = link === 'expired' ? 'has expired' : 'is not one of this gateway, or was changed'
    throw new GatewayError(
      'link_expired',
      `This link ${reason}. Retrieve the task, which has a new link in each response, or send the token.`,
    )
  }

  /** The response to a link may be cached as long as the link is valid; with a token it is revalidated with its etag. */
  function cacheControl(context: Context, task: Task): string {
    if (linkOf(context) !== 'valid') return 'private, no-cache'
    const ends = [Number(queryOf(context.request).get('expires')), task.outputs_expire_at ?? Number.POSITIVE_INFINITY]
    return `private, max-age=${Math.max(0, Math.min(...ends) - unixSeconds(clock))}`
  }

  const isExpired = ({ outputs_expire_at }: Task) =>
    outputs_expire_at !== null && outputs_expire_at <= unixSeconds(clock)

  return {
    ...TASK_ERROR_FORMAT,
    method: 'GET',
    path: `${api.path}/:${api.id}/content`,
    serves_files: true,
    // If a token is sent with an invalid link, the token decides.
    public(context) {
      const link = linkOf(context)
      return link === 'valid' || (link !== undefined && presentedSecret(context.request) === undefined)
    },
    operation: {
      summary: `Download the ${api.thing} file of a task`,
      description:
        'With the token, or with a link of `outputs`, which needs no token until it expires. Supports range requests.',
      tag: api.tag,
      params: { [api.id]: 'The `task_id` of the task.' },
      query: { ...variantOf(api), ...QUERY },
      headers: {
        Range: parameter('One part, such as `bytes=0-1023`.'),
        'If-Range': parameter('The `etag` of the file to which the part belongs.'),
        'If-None-Match': parameter('The `etag` of the cached file.'),
      },
      media: api.media,
      responseHeaders: {
        'accept-ranges': 'Always `bytes`.',
        'content-disposition': 'The name of the file.',
        etag: 'The version of the file.',
      },
      otherResponses: {
        206: 'The requested part; `content-range` has its position.',
        302: 'A redirect: the file is at the provider, or is served on a separate host.',
        304: 'The cached file is current.',
      },
      errors: ['task_not_exist', 'output_not_found', 'link_expired', 'range_not_satisfiable'],
    },
    async handle(context) {
      const query = queryOf(context.request)
      checkVariant(query, api)
      const index = indexOf(context.params.index ?? query.get('index'))
      const task = await taskFor(context)
      context.note.model = task.model
      const output = outputOf(task, index, api)
      if (output.key === undefined) return movedTo(output)
      if (settings.files_base_url !== undefined && !isFilesHost(context.request, settings)) {
        const { task_id } = task
        return movedTo({ url: outputs.link({ base_url: settings.files_base_url, path: api.path, task_id, index }) })
      }
      const file = await outputs.open(output.key)
      if (!file) throw isExpired(task) ? removed(task) : missing(task)
      const filename = filenameOf(task, index, file.content_type)
      return fileResponse(context.request, file, { filename, cache_control: cacheControl(context, task) })
    },
  }
}

function variantOf({ variants }: FileApi): Record<string, Parameter> {
  if (!variants) return {}
  return { variant: parameter(`Only \`${variants.join('`, `')}\`.`, Type.Enum([...variants])) }
}

function checkVariant(query: URLSearchParams, { variants }: FileApi): void {
  const variant = query.get('variant')
  if (!variants || variant === null || variants.includes(variant)) return
  const message = `"variant" must be "${variants.join('" or "')}": thumbnails and sprite sheets are not available.`
  throw invalidValue('variant', message)
}

function indexOf(given: string | null): number {
  const text = given ?? '0'
  if (/^\d+$/.test(text)) return Number(text)
  throw invalidValue('index', '"index" must be an integer from 0.')
}

const notFound = (message: string, detail: GatewayError['detail'] = {}) =>
  new GatewayError('output_not_found', message, detail)

function outputOf(task: Task, index: number, { thing }: TaskApi): TaskOutput {
  if (!isEnded(task)) throw notFound(`The ${thing} is not ready: the task is ${task.status}, ${task.progress}%.`)
  if (task.status === 'FAILURE') {
    const reason = `The task failed with ${task.fail_code}: ${task.fail_reason}`
    throw notFound(reason, task.fail_code === '' ? {} : { fail_code: task.fail_code })
  }
  const output = task.outputs[index]
  if (output) return output
  if (task.outputs.length === 0) throw removed(task)
  const last = task.outputs.length - 1
  throw notFound(`The task has ${task.outputs.length} file(s): "index" goes from 0 to ${last}, and ${index} is none.`, {
    param: 'index',
  })
}

const removed = ({ outputs_expire_at }: Task) =>
  notFound(
    outputs_expire_at === null
      ? 'The file of this task is no longer available.'
      : `The file of this task is no longer available: it expired at ${isoTime(outputs_expire_at)}.`,
    { fail_code: 'output_expired' },
  )

/** The gateway has not removed it: no `fail_code` says that it has expired. */
function missing({ outputs_expire_at }: Task): GatewayError {
  const end = outputs_expire_at === null ? '' : `, which would have kept it until ${isoTime(outputs_expire_at)}`
  return notFound(
    `The file of this task is missing where the gateway stores files${end}: something else has deleted or moved it. Ask the operator to restore it, or submit a new task.`,
  )
}

const isoTime = (seconds: number): string => new Date(seconds * 1000).toISOString()

/** A redirect to a file that is not served here. */
function movedTo({ url }: Pick<TaskOutput, 'url'>): Response {
  if (url === undefined) throw notFound('The task has no file.')
  return new Response(null, { status: 302, headers: { location: headerValue(url), 'cache-control': 'no-store' } })
}

const filenameOf = ({ task_id }: Task, index: number, content_type: string): string =>
  `${task_id}${index === 0 ? '' : `-${index}`}.${endingOf(content_type) ?? 'bin'}`
