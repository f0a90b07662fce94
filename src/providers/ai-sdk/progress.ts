/** What a vendor says of a task: its own words first, since packages leave out much, then its package's. */
import { GatewayError } from '../../spec/error.ts'
import type { RemoteOutput, TaskProgress } from '../provider.ts'
import { type Account, moved } from './account.ts'
import type { AiSdkVendor, Said, VideoModelStatus } from './vendor.ts'
import { failed } from './words.ts'

type ProgressParts = {
  vendor: AiSdkVendor
  account: Account
  answer: { status: number; headers: Headers; payload: unknown }
  /** Set where the answer is a refusal. */
  refusal: GatewayError | undefined
  /** What the package made of the answer; undefined: it threw. */
  result: VideoModelStatus | undefined
}

export function progressOf(parts: ProgressParts): TaskProgress {
  const { vendor, account, answer, refusal, result } = parts
  const said = vendor.read?.(answer.payload, answer.status) ?? {}
  if (said.failure) return failed({ account, ...said.failure })
  if (said.isPending) return pending(said, answer.headers)
  if (refusal) throw refusal
  const outputs = said.outputs ?? (result?.status === 'completed' ? result.videos.flatMap(outputOf) : undefined)
  if (outputs) return { status: 'SUCCESS', outputs: outputs.map((output) => reachable(output, parts)) }
  if (result?.status === 'error' && !vendor.callsAnyFaultAnError) return failed({ account, reason: result.error })
  if (result?.status === 'pending') return pending(said, answer.headers)
  throw new GatewayError(
    'bad_upstream_response',
    `The upstream "${account.id}" answered with something that says nothing of the task.`,
    { upstream_status: answer.status },
  )
}

function pending({ status, progress }: Said, headers: Headers): TaskProgress {
  const wait = Number(headers.get('retry-after') ?? Number.NaN)
  return {
    ...(status ? { status } : {}),
    ...(progress === undefined ? {} : { progress: Math.min(100, Math.max(0, Math.floor(progress))) }),
    ...(wait > 0 ? { retry_after_seconds: Math.ceil(wait) } : {}),
  }
}

type Made = Extract<VideoModelStatus, { status: 'completed' }>['videos'][number]

function outputOf(video: Made): RemoteOutput[] {
  if (video.type === 'url') return [{ url: video.url, content_type: video.mediaType }]
  if (video.type === 'base64') return [bytesOutput(video.data, video.mediaType)]
  if (video.type === 'binary') return [bytesOutput(Buffer.from(video.data), video.mediaType)]
  return []
}

/** A video whose bytes came with the answer. */
export function bytesOutput(data: string | Uint8Array<ArrayBuffer>, content_type: string): RemoteOutput {
  return {
    content_type,
    async open() {
      const bytes = typeof data === 'string' ? Buffer.from(data, 'base64') : data
      return new Blob([bytes]).stream()
    },
  }
}

/** Where the operator wants the vendor to be asked. */
function reachable(output: RemoteOutput, { vendor, account }: ProgressParts): RemoteOutput {
  if (!('url' in output)) return output
  const inline = /^data:([^;,]+)(?:;[^,]*)?,/.exec(output.url.slice(0, 200)) // small files may come within the answer
  if (inline) return bytesOutput(output.url.slice(inline[0].length), inline[1] ?? 'video/mp4')
  return { ...output, url: moved(output.url, vendor.home, account.base_url) }
}
