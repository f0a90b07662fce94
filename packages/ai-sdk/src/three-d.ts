/** 3D models. The AI SDK has no such interface, so this one follows its style. */
import { APICallError, type JSONObject, type SharedV4ProviderOptions } from '@ai-sdk/provider'
import { convertUint8ArrayToBase64, detectMediaType, retryWithExponentialBackoff } from '@ai-sdk/provider-utils'
import { type CallParts, ownFields } from './http.ts'
import { type Downloaded, describe, download, extensionOf } from './outputs.ts'
import { type ModelParts, PROVIDER, rulesOf, type TaskSettings } from './settings.ts'
import { createKeys, createTaskClient, failureOf, type Task, taskIdIn } from './tasks.ts'

export type ThreeDFormat = 'glb' | 'obj' | 'fbx' | 'usdz' | 'stl'

/** A URL, a data URI or base64, or the bytes of an image. */
export type ThreeDImage = string | URL | Uint8Array | ArrayBuffer

export type ThreeDCallOptions = CallParts & {
  prompt?: string | undefined
  image?: ThreeDImage | undefined
  /** The same object from several sides: front, left, back, right. */
  images?: ThreeDImage[] | undefined
  /** Default `glb`. */
  format?: ThreeDFormat | undefined
  texture?: boolean | undefined
  pbr?: boolean | undefined
  targetPolycount?: number | undefined
  negativePrompt?: string | undefined
  seed?: number | undefined
  /** Receives a signed POST when the task has ended. */
  webhookUrl?: string | undefined
  /** `gatehouse`: further fields of the request. */
  providerOptions?: SharedV4ProviderOptions | undefined
}

export type ThreeDFile = {
  /** A signed link, which needs no token until it expires. */
  url: string
  /** The extension of its name: `glb`; `png` and others for images. */
  format: string
  mediaType: string
  filename: string | undefined
  download(options?: { abortSignal?: AbortSignal | undefined }): Promise<Downloaded>
}

type WithResponse = { response: { timestamp: Date; modelId: string; headers: Record<string, string> | undefined } }

/** The first file is in the requested format; the files that it needs follow, and a preview image comes last. */
export type ThreeDResult = WithResponse & { taskId: string; file: ThreeDFile; files: ThreeDFile[] }

export type ThreeDStatus =
  | (WithResponse & { status: 'pending'; taskId: string; progress: string })
  | (WithResponse & { status: 'completed'; taskId: string; files: ThreeDFile[] })
  | (WithResponse & { status: 'error'; taskId: string; failCode: string; failReason: string })

export type ThreeDModel = {
  readonly provider: string
  readonly modelId: string
  /** Orders. The `operation` is JSON: it may be stored, and polled by another process. */
  start(options: ThreeDCallOptions): Promise<WithResponse & { operation: { task_id: string } }>
  status(options: CallParts & { operation: unknown }): Promise<ThreeDStatus>
  /** Orders, and waits. Throws TaskFailedError, TaskTimeoutError, APICallError. */
  generate(options: ThreeDGenerateOptions): Promise<ThreeDResult>
}

export type ThreeDGenerateOptions = ThreeDCallOptions &
  Pick<TaskSettings, 'pollIntervalMs' | 'timeoutMs' | 'cancelOnAbort'> & {
    /** How often an order that may not have arrived is sent again; the gateway runs it only once. Default 2. */
    maxRetries?: number | undefined
  }

/** Orders a 3D model, and waits for it. */
export const generateThreeD = ({
  model,
  ...options
}: ThreeDGenerateOptions & { model: ThreeDModel }): Promise<ThreeDResult> => model.generate(options)

type ThreeDParts = ModelParts & { settings: (TaskSettings | undefined)[] }

export function createThreeDModel({ connection, modelId, settings }: ThreeDParts): ThreeDModel {
  const keyOf = createKeys()
  const client = (own?: TaskSettings) =>
    createTaskClient({ connection, path: '/3d/generations', rules: rulesOf(...settings, own) })
  const tasks = client()
  const response = (headers: Record<string, string> | undefined) => ({ timestamp: new Date(), modelId, headers })

  async function start(options: ThreeDCallOptions) {
    const { headers, abortSignal } = options
    const body = threeDRequest(modelId, options)
    const { value, responseHeaders } = await tasks.order({ body, key: keyOf(options), headers, abortSignal })
    return { operation: { task_id: value.taskId }, response: response(responseHeaders) }
  }

  async function fileOf(url: string): Promise<ThreeDFile> {
    const { mediaType = 'application/octet-stream', filename } = await describe(connection, url)
    const format = extensionOf(filename) || (mediaType.split('/')[1] ?? '')
    return { url, format, mediaType, filename, download: (options) => download(connection, { url, ...options }) }
  }
  const filesOf = (task: Task) => Promise.all((task.outputs ?? []).map(fileOf))

  return {
    provider: `${PROVIDER}.3d`,
    modelId,
    start,
    async status({ operation, headers, abortSignal }) {
      const taskId = taskIdIn(operation)
      const waitSeconds = rulesOf(...settings).statusWaitSeconds
      const { value: task, responseHeaders } = await tasks.poll({ taskId, waitSeconds, headers, abortSignal })
      const finished = { taskId, response: response(responseHeaders) }
      if (task.status === 'FAILURE') return { status: 'error', ...failureOf(task), ...finished }
      if (task.status === 'SUCCESS') return { status: 'completed', files: await filesOf(task), ...finished }
      return { status: 'pending', progress: task.progress ?? '', ...finished }
    },
    async generate(options) {
      const { headers, abortSignal, maxRetries = 2, pollIntervalMs, timeoutMs, cancelOnAbort } = options
      const waiting = client({ pollIntervalMs, timeoutMs, cancelOnAbort })
      const retry = retryWithExponentialBackoff({
        maxRetries,
        initialDelayInMs: rulesOf(...settings, { pollIntervalMs }).pollIntervalMs,
        shouldRetry: (error) => APICallError.isInstance(error) && error.isRetryable,
        createRetryError: ({ errors }) => errors.at(-1),
        ...(abortSignal === undefined ? {} : { abortSignal }),
      })
      const { operation } = await retry(() => start(options))
      const finished = await waiting.follow({ taskId: operation.task_id, headers, abortSignal })
      const files = await filesOf(finished.value)
      const [file] = files
      if (file === undefined) throw new Error(`The task ${operation.task_id} has no files any more.`)
      return { taskId: operation.task_id, file, files, response: response(finished.responseHeaders) }
    },
  }
}

/** The body of the order. `providerOptions.gatehouse` takes precedence over the other options. */
export function threeDRequest(modelId: string, options: ThreeDCallOptions): JSONObject {
  const { prompt, image, images, format, texture, pbr, targetPolycount, negativePrompt, seed, webhookUrl } = options
  return {
    prompt,
    image: image === undefined ? undefined : textOf(image),
    images: images?.map(textOf),
    format,
    texture,
    pbr,
    target_polycount: targetPolycount,
    negative_prompt: negativePrompt,
    seed,
    callback_url: webhookUrl,
    ...ownFields(options.providerOptions),
    model: modelId,
  }
}

function textOf(image: ThreeDImage): string {
  if (typeof image === 'string') return image
  if (image instanceof URL) return image.href
  const data = image instanceof Uint8Array ? image : new Uint8Array(image)
  const type = detectMediaType({ data, topLevelType: 'image' }) ?? 'image/png'
  return `data:${type};base64,${convertUint8ArrayToBase64(data)}`
}
