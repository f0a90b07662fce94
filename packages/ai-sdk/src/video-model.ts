/** Videos for the AI SDK: started, polled, or both in one call. */
import type {
  JSONObject,
  SharedV4ProviderMetadata,
  Experimental_VideoModelV4VideoData as VideoData,
  Experimental_VideoModelV4 as VideoModelV4,
} from '@ai-sdk/provider'
import { failureText } from './errors.ts'
import { describe, download, needsOwnDownload } from './outputs.ts'
import { type ModelParts, PROVIDER, type TaskRules } from './settings.ts'
import { createKeys, createTaskClient, failureOf, type Task, taskIdIn } from './tasks.ts'
import { videoRequest } from './video-request.ts'

/** A video model with every optional method of the AI SDK. */
export type VideoModel = VideoModelV4 &
  Required<Pick<VideoModelV4, 'doGenerate' | 'doStart' | 'doStatus' | 'handleWebhookOption'>>

export function createVideoModel({ connection, modelId, rules }: ModelParts & { rules: TaskRules }): VideoModel {
  const tasks = createTaskClient({ connection, path: '/video/generations', rules })
  const keyOf = createKeys()
  const response = (headers: Record<string, string> | undefined) => ({ timestamp: new Date(), modelId, headers })

  async function start(options: Parameters<VideoModel['doStart']>[0]) {
    const { headers, abortSignal } = options
    const { body, warnings } = videoRequest({ modelId, options })
    const ordered = await tasks.order({ body, key: keyOf(options), headers, abortSignal })
    return { ...ordered, warnings }
  }

  async function dataOf(url: string, abortSignal: AbortSignal | undefined): Promise<VideoData> {
    const { videoData } = rules
    if (videoData === 'binary' || (videoData === 'auto' && needsOwnDownload(connection, url))) {
      const { data, mediaType = DEFAULT_TYPE } = await download(connection, { url, abortSignal })
      return { type: 'binary', data, mediaType }
    }
    const { mediaType = DEFAULT_TYPE } = await describe(connection, url)
    return { type: 'url', url, mediaType }
  }

  async function resultOf(task: Task, abortSignal: AbortSignal | undefined) {
    const urls = task.outputs ?? []
    const videos = await Promise.all(urls.map((url) => dataOf(url, abortSignal)))
    return { videos, providerMetadata: metadataOf(task) }
  }

  return {
    specificationVersion: 'v4',
    provider: `${PROVIDER}.video`,
    modelId,
    // The AI SDK then orders one by one; for a model that generates several at once, the call sets `maxVideosPerCall`.
    maxVideosPerCall: undefined,
    async doGenerate(options) {
      const { headers, abortSignal } = options
      const { value, warnings } = await start(options)
      const finished = await tasks.follow({ taskId: value.taskId, headers, abortSignal })
      return {
        ...(await resultOf(finished.value, abortSignal)),
        warnings,
        response: response(finished.responseHeaders),
      }
    },
    async doStart(options) {
      const { value, responseHeaders, warnings } = await start(options)
      return {
        operation: { task_id: value.taskId },
        warnings,
        providerMetadata: { [PROVIDER]: { taskId: value.taskId } },
        response: response(responseHeaders),
      }
    },
    async doStatus({ operation, headers, abortSignal }) {
      const waitSeconds = rules.statusWaitSeconds
      const { value: task, responseHeaders } = await tasks.poll({
        taskId: taskIdIn(operation),
        waitSeconds,
        headers,
        abortSignal,
      })
      const finished = { providerMetadata: metadataOf(task), response: response(responseHeaders) }
      if (task.status === 'FAILURE') return { status: 'error', error: failureText(failureOf(task)), ...finished }
      if (task.status !== 'SUCCESS') return { status: 'pending', ...finished }
      return { status: 'completed', ...(await resultOf(task, abortSignal)), warnings: [], response: finished.response }
    },
    async handleWebhookOption({ webhook }) {
      const { url, received } = await webhook()
      // An object without `then`: the AI SDK awaits its member later.
      return { webhookUrl: url, received }
    },
  }
}

const DEFAULT_TYPE = 'video/mp4'

/** `videos` has a place for each video, and the AI SDK joins those of several calls. */
function metadataOf(task: Task): SharedV4ProviderMetadata {
  const { task_id: taskId, status, progress, submit_time, finish_time } = task
  const finished: JSONObject = { taskId, status }
  if (progress) finished.progress = progress
  if (submit_time) finished.submitTime = submit_time
  if (finish_time) finished.finishTime = finish_time
  if (status === 'FAILURE') {
    const { failCode, failReason } = failureOf(task)
    Object.assign(finished, { failCode, failReason })
  }
  if (status === 'SUCCESS') finished.videos = (task.outputs ?? []).map((url) => ({ taskId, url }))
  return { [PROVIDER]: finished }
}
