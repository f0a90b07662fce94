/** Google Vertex AI, by an express-mode key, an access token or credentials: Gemini, Veo, images and embeddings. */
import { type JsonRecord, recordsIn } from '../../../kit/json.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { RemoteOutput } from '../../provider.ts'
import { type AdapterParts, firstOf } from '../../settings.ts'
import type { UpstreamResponse } from '../../upstream/upstream-request.ts'
import type { ChatFamily } from '../chat/chat-family.ts'
import { type AiSdkVendor, vendor } from '../vendor-row.ts'
import { bytesOutput } from '../video/task-progress.ts'
import type { VideoFamily } from '../video/video-family.ts'
import { GEMINI_IMAGES } from './gemini-images.ts'
import { GOOGLE_EMBEDDINGS } from './google.ts'
import { createGoogleToken } from './google-token.ts'
import { classifyVeoError, readVeo, veoOptions } from './veo.ts'

const KEY_VARIABLES = ['GOOGLE_VERTEX_API_KEY', 'GOOGLE_VERTEX_ACCESS_TOKEN']
const EXPRESS_URL = 'https://aiplatform.googleapis.com/v1/publishers/google'
const STORAGE_URL = 'https://storage.googleapis.com'

/** Throws an Error that names the provider and says what would be right. */
export function googleVertex(parts: AdapterParts): AiSdkVendor {
  const { id, config, environment = {} } = parts
  const { project, location = 'us-central1', credentials, storage_url = STORAGE_URL } = config.options ?? {}
  const key = config.key ?? firstOf(environment, KEY_VARIABLES)
  const authorize = authorization(parts, key, credentials ?? environment.GOOGLE_APPLICATION_CREDENTIALS)
  if (authorize && (typeof project !== 'string' || typeof location !== 'string' || !/^[a-z0-9-]+$/.test(location))) {
    throw new Error(`providers.${id}.options needs project, and location where it is not us-central1`)
  }
  const baseUrl = authorize ? baseUrlOf(String(project), String(location)) : EXPRESS_URL

  return vendor({
    baseUrl,
    keyVariables: KEY_VARIABLES,
    needsNoKey: true,
    namespace: 'googleVertex',
    // With a key the package requests no token itself; `rewrite` removes it, and `authorize` adds our token.
    load: async ({ key: given, fetch }) =>
      (await import('@ai-sdk/google-vertex/edge')).createGoogleVertex({ apiKey: given, baseURL: baseUrl, fetch }),
    ...(authorize
      ? { authorize, rewrite: ({ url, headers: { 'x-goog-api-key': _, ...headers } }) => ({ url, headers }) }
      : {}),
    chat: { factory: (sdk) => sdk, ...CHAT },
    embeddings: {
      factory: (sdk) => sdk.embeddingModel,
      // The Gemini models accept one text in a call.
      maxInputs: (model) => (/^gemini-embedding/.test(model) ? 1 : 250),
      maxTokens: () => 20_000,
      ...GOOGLE_EMBEDDINGS,
    },
    images: { factory: (sdk) => sdk.image, ...GEMINI_IMAGES },
    video: {
      factory: (sdk) => sdk.video,
      ...VIDEO,
      read: (payload) =>
        readVeo(payload, (response) =>
          recordsIn(response.videos).flatMap((video) =>
            fileIn(video, { parts, storageUrl: String(storage_url), authorize }),
          ),
        ),
    },
  })
}

const CHAT: ChatFamily = {
  thinking: ({ budget, enabled }) => ({
    thinkingConfig: { thinkingBudget: budget ?? (enabled ? -1 : 0), includeThoughts: enabled },
  }),
  showReasoning: { thinkingConfig: { includeThoughts: true } },
  reasoningHistory: 'signed',
  signature: { origin: 'contentgen-compat', shown: 'thoughtSignature' },
  systemFirst: true,
  search: () => ({ tool: { type: 'provider', id: 'google.google_search', name: 'google_search', args: {} } }),
}

const VIDEO: VideoFamily = {
  acceptedResponse: { name: 'projects/p/locations/l/publishers/google/models/m/operations/id' },
  media: 'bytes',
  drops: ['video'],
  adaptOptions: veoOptions,
  classifyError: classifyVeoError,
}

type Authorize = (signal: AbortSignal) => Promise<Record<string, string>>

/** Undefined: an express-mode key needs nothing more. */
function authorization(parts: AdapterParts, key: string | undefined, credentials: unknown): Authorize | undefined {
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

function baseUrlOf(project: string, location: string): string {
  const hosts: Record<string, string> = {
    global: 'aiplatform.googleapis.com',
    eu: 'aiplatform.eu.rep.googleapis.com',
    us: 'aiplatform.us.rep.googleapis.com',
  }
  const host = hosts[location] ?? `${location}-aiplatform.googleapis.com`
  return `https://${host}/v1/projects/${encodeURIComponent(project)}/locations/${location}/publishers/google`
}

type FileParts = { parts: AdapterParts; storageUrl: string; authorize: Authorize | undefined }

/** The bytes come in the response, or are in a bucket of the operator, which needs the credentials. */
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
          `The bucket in which "${id}" stored the video responded with ${status}.`,
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
