/** Google's cloud (Vertex AI), by an express key, an access token or credentials: Veo. */

import { isRecord, type JsonRecord } from '../../kit/json.ts'
import { GatewayError } from '../../spec/error.ts'
import type { RemoteOutput } from '../provider.ts'
import type { UpstreamResponse } from '../upstream/transport-response.ts'
import { createGoogleToken } from './google-token.ts'
import { bytesOutput } from './progress.ts'
import type { AiSdkParts, AiSdkVendor } from './vendor.ts'
import { judgeVeo, readVeo, writeVeo } from './veo.ts'

const KEY_ENV = ['GOOGLE_VERTEX_API_KEY', 'GOOGLE_VERTEX_ACCESS_TOKEN']
const EXPRESS_HOME = 'https://aiplatform.googleapis.com/v1/publishers/google'
const STORAGE_URL = 'https://storage.googleapis.com'

/** Throws an Error that names the provider and says what would be right. */
export function googleVertex(parts: AiSdkParts): AiSdkVendor {
  const { id, config, environment = {} } = parts
  const { project, location = 'us-central1', credentials, storage_url = STORAGE_URL } = config.options ?? {}
  const key = config.key ?? KEY_ENV.map((name) => environment[name]).find((value) => value)
  const authorize = authorization(parts, key, credentials ?? environment.GOOGLE_APPLICATION_CREDENTIALS)
  if (authorize && (typeof project !== 'string' || typeof location !== 'string' || !/^[a-z0-9-]+$/.test(location))) {
    throw new Error(`providers.${id}.options needs project, and location where it is not us-central1`)
  }
  const home = authorize ? homeOf(String(project), String(location)) : EXPRESS_HOME

  return {
    kind: 'google-vertex',
    home,
    key_env: KEY_ENV,
    needsNoKey: true,
    namespace: 'googleVertex',
    async load({ key: given, fetch }) {
      const { createGoogleVertex } = await import('@ai-sdk/google-vertex')
      // With a key the package asks for no token of its own making; `send` puts ours in its place.
      return createGoogleVertex({ apiKey: given, baseURL: home, fetch }).video
    },
    ...(authorize
      ? {
          authorize,
          send: ({ url, headers: { 'x-goog-api-key': _, ...headers } }) => ({ url, headers }),
        }
      : {}),
    accepted: { name: 'projects/p/locations/l/publishers/google/models/m/operations/id' },
    media: 'bytes',
    drops: ['video'],
    write: writeVeo,
    judge: judgeVeo,
    read: (payload) =>
      readVeo(payload, (response) =>
        (Array.isArray(response.videos) ? response.videos : [])
          .filter(isRecord)
          .flatMap((video) => fileIn(video, { parts, storageUrl: String(storage_url), authorize })),
      ),
  }
}

type Authorize = (signal: AbortSignal) => Promise<Record<string, string>>

/** Undefined: an express key is all that is needed. */
function authorization(parts: AiSdkParts, key: string | undefined, credentials: unknown): Authorize | undefined {
  const { id, config, timeouts } = parts
  if (key !== undefined && config.options?.project === undefined) return undefined
  if (key !== undefined) return async () => ({ authorization: `Bearer ${key}` })
  if (credentials === undefined || credentials === '') {
    throw new Error(
      `providers.${id} needs a key (of express mode; with options.project, an access token), or options.credentials: ` +
        'those of a service account, the path of their file, or "metadata"',
    )
  }
  const token = createGoogleToken({ ...parts, timeouts: { ...timeouts, ...config.timeouts }, credentials })
  return async (signal) => ({ authorization: `Bearer ${await token(signal)}` })
}

function homeOf(project: string, location: string): string {
  const hosts: Record<string, string> = {
    global: 'aiplatform.googleapis.com',
    eu: 'aiplatform.eu.rep.googleapis.com',
    us: 'aiplatform.us.rep.googleapis.com',
  }
  const host = hosts[location] ?? `${location}-aiplatform.googleapis.com`
  return `https://${host}/v1/projects/${encodeURIComponent(project)}/locations/${location}/publishers/google`
}

type FileParts = { parts: AiSdkParts; storageUrl: string; authorize: Authorize | undefined }

/** The bytes come with the answer, or lie in a bucket of the operator's, which only the credentials open. */
function fileIn(video: JsonRecord, { parts, storageUrl, authorize }: FileParts): RemoteOutput[] {
  const content_type = typeof video.mimeType === 'string' ? video.mimeType : 'video/mp4'
  if (typeof video.bytesBase64Encoded === 'string' && video.bytesBase64Encoded !== '') {
    return [bytesOutput(video.bytesBase64Encoded, content_type)]
  }
  const found = /^gs:\/\/([^/]+)\/(.+)$/.exec(String(video.gcsUri)) // bucket and object
  if (!found) return []
  const url = `${storageUrl}/${found[1]}/${found[2]?.split('/').map(encodeURIComponent).join('/')}`
  return [
    {
      content_type,
      async open(signal) {
        const { id, transport, timeouts, config } = parts
        const answer = await transport.send({
          provider: id,
          url,
          method: 'GET',
          headers: { 'user-agent': 'gatehouse', ...(await authorize?.(signal)) },
          signal,
          timeouts: { ...timeouts, ...config.timeouts },
          stream: true,
        })
        if (answer.status === 200) return streamOf(answer)
        answer.drop()
        const { status } = answer
        throw new GatewayError(
          status === 404 || status === 410 ? 'output_gone' : 'bad_upstream_response',
          `The bucket in which "${id}" has put the video answered with ${status}.`,
          { upstream_status: status },
        )
      },
    },
  ]
}

const streamOf = (answer: UpstreamResponse): ReadableStream<Uint8Array> =>
  new ReadableStream({
    async pull(controller) {
      const bytes = await answer.read()
      if (bytes) controller.enqueue(bytes)
      else controller.close()
    },
    cancel: () => answer.drop(),
  })
