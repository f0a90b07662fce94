/** The progress of a task: by the vendor's own response, since packages leave out much, then by the package's result. */
import { scrub } from '../../../protocols/shared/provider-error.ts'
import { GatewayError } from '../../../spec/error.ts'
import { POLICY_WORDING } from '../../orders/order-messages.ts'
import type { RemoteOutput, TaskProgress } from '../../provider.ts'
import type { UpstreamResponse } from '../errors.ts'
import type { VideoFamily, VideoModelStatus, VideoStatus } from './video-family.ts'

type ProgressParts = {
  /** The operator's name of the provider. */
  id: string
  vendor: Pick<VideoFamily, 'read' | 'hasUnreliableErrors'>
  response: UpstreamResponse
  /** Set where the response is an error. */
  error: GatewayError | undefined
  /** What the package made of the response; undefined: it threw. */
  result: VideoModelStatus | undefined
  /** A URL as the configured `base_url` has it. */
  reroute(url: string): string
}

export function progressOf(parts: ProgressParts): TaskProgress {
  const { id, vendor, response, error, result } = parts
  const status = vendor.read?.(response.payload, response.status) ?? {}
  if (status.failure) return failed(id, status.failure)
  if (status.isPending) return pending(status, response.headers)
  if (error) throw error
  const outputs = status.outputs ?? (result?.status === 'completed' ? result.videos.flatMap(outputOf) : undefined)
  if (outputs) return { status: 'SUCCESS', outputs: outputs.map((output) => rerouted(output, parts)) }
  if (result?.status === 'error' && !vendor.hasUnreliableErrors) return failed(id, { reason: result.error })
  if (result?.status === 'pending') return pending(status, response.headers)
  throw new GatewayError('bad_upstream_response', `The upstream "${id}" returned a response without a task status.`, {
    upstream_status: response.status,
  })
}

function failed(id: string, { fail_code, reason }: NonNullable<VideoStatus['failure']>): TaskProgress {
  const message = scrub(reason)
  return {
    status: 'FAILURE',
    fail_code: fail_code ?? (POLICY_WORDING.test(message) ? 'content_policy_violation' : 'generation_failed'),
    fail_reason: message || `The upstream "${id}" failed without a reason.`,
  }
}

function pending({ status, progress }: VideoStatus, headers: Headers): TaskProgress {
  const wait = Number(headers.get('retry-after') ?? Number.NaN)
  return {
    ...(status ? { status } : {}),
    ...(progress === undefined ? {} : { progress: Math.min(100, Math.max(0, Math.floor(progress))) }),
    ...(wait > 0 ? { retry_after_seconds: Math.ceil(wait) } : {}),
  }
}

type PackageVideo = Extract<VideoModelStatus, { status: 'completed' }>['videos'][number]

function outputOf(video: PackageVideo): RemoteOutput[] {
  if (video.type === 'url') return [{ url: video.url, content_type: video.mediaType }]
  if (video.type === 'base64') return [bytesOutput(video.data, video.mediaType)]
  if (video.type === 'binary') return [bytesOutput(Buffer.from(video.data), video.mediaType)]
  return []
}

/** A video whose bytes came with the response. */
export function bytesOutput(data: string | Uint8Array<ArrayBuffer>, content_type: string): RemoteOutput {
  return {
    content_type,
    async open() {
      const bytes = typeof data === 'string' ? Buffer.from(data, 'base64') : data
      return new Blob([bytes]).stream()
    },
  }
}

/** At the URL that the operator configured. */
function rerouted(output: RemoteOutput, { reroute }: ProgressParts): RemoteOutput {
  if (!('url' in output)) return output
  const inline = /^data:([^;,]+)(?:;[^,]*)?,/.exec(output.url.slice(0, 200)) // small files may come in the response
  if (inline) return bytesOutput(output.url.slice(inline[0].length), inline[1] ?? 'video/mp4')
  return { ...output, url: reroute(output.url) }
}
