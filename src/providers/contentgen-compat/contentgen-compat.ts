/** Kind `contentgen-compat`: Gemini's own API, and every vendor or runtime with the same API. */
import type { Abortable } from '../../kit/abortable.ts'
import { matchesGlob } from '../../kit/glob.ts'
import { isRecord, parseJsonKeeping } from '../../kit/json.ts'
import {
  type AnswerReader,
  type ContentgenFaults,
  createAnswerReader,
} from '../../protocols/contentgen/upstream/answer.ts'
import { ARGUMENTS } from '../../protocols/contentgen/upstream/candidate.ts'
import { failureOf, refusalOf } from '../../protocols/contentgen/upstream/error.ts'
import { passthroughBody } from '../../protocols/contentgen/upstream/passthrough.ts'
import { createBodyEncoder, modelPath } from '../../protocols/contentgen/upstream/request.ts'
import { createChunkDecoder } from '../../protocols/contentgen/upstream/stream.ts'
import { ended, wholeOf } from '../../protocols/contentgen/upstream/whole.ts'
import type { ChatChunk, ChatCompletion } from '../../protocols/shared/canonical.ts'
import { objectIn } from '../../protocols/shared/chunk-stream.ts'
import { type Faults, fallbackOf, namedText } from '../../protocols/shared/upstream.ts'
import { GatewayError } from '../../spec/error.ts'
import { createRequestMedia, type Media } from '../media.ts'
import { type ModelPage, readPages } from '../model-list.ts'
import type { ChatCall, DiscoveredModel, PassthroughProvider, Provider } from '../provider.ts'
import { createUpstream, type UpstreamParts } from '../upstream/upstream.ts'
import type { ContentgenSettings } from './contentgen-settings.ts'

type ContentgenParts = UpstreamParts & { settings: ContentgenSettings; media?: Media }

export function createContentgenCompat(parts: ContentgenParts): Provider {
  const { id, settings, clock } = parts
  const { media } = parts
  const encoder = createBodyEncoder(settings, media && (() => createRequestMedia(media)))
  const upstream = createUpstream(parts, { errorFromResponse: refusalOf, errorFromBody: failureOf })

  const withBlocked = (faults: Faults): ContentgenFaults => ({
    inAnswer: (payload) => faults.inAnswer(payload),
    notUnderstood: (what, status) => faults.notUnderstood(what, status),
    cut: () => faults.cut(),
    blocked: (reason) =>
      new GatewayError(
        'content_policy_violation',
        `The upstream "${id}" refused the prompt for its content (${reason}).`,
      ),
  })

  const fallbackFor = (call: ChatCall) => fallbackOf('resp_', call, clock)

  const createReader = (call: ChatCall, faults: ContentgenFaults): AnswerReader =>
    createAnswerReader({ fallback: fallbackFor(call), faults, one_call: call.request.parallel_tool_calls === false })

  function send(body: string, { call, stream }: { call: ChatCall; stream: boolean }, signal: Abortable) {
    const method = stream ? 'streamGenerateContent?alt=sse' : 'generateContent'
    return upstream.request({ path: `${pathOf(call.model)}:${method}`, body, call, stream }, signal)
  }

  const request = async (call: ChatCall, signal: AbortSignal, stream: boolean) =>
    send(await encoder.answer(call, signal), { call, stream }, signal)

  /** The chunks of a response that is one JSON document: a response, or the list of a stream's events. */
  function chunksOf(text: string, call: ChatCall, faults: ContentgenFaults): ChatChunk[] {
    const payload = parseJsonKeeping(text, ARGUMENTS)
    if (payload === undefined) throw faults.notUnderstood('answered with something that is not JSON')
    const reader = createReader(call, faults)
    const payloads = ended(Array.isArray(payload) ? payload : [payload])
    const chunks = payloads.flatMap((item) => reader.take(objectIn(item, faults)))
    if (chunks.length === 0) throw faults.notUnderstood('answered with JSON that contains no response')
    return [...chunks, ...reader.end()]
  }

  async function complete(call: ChatCall, signal: AbortSignal): Promise<ChatCompletion> {
    const response = await request(call, signal, false)
    return wholeOf(
      chunksOf(await response.text(), call, withBlocked(upstream.faultsOf(call.model, response))),
      fallbackFor(call),
    )
  }

  function reading(call: ChatCall, plain: Faults) {
    const faults = withBlocked(plain)
    return {
      decoder: () => createChunkDecoder(createReader(call, faults), faults),
      whole: (text: string) => chunksOf(text, call, faults),
    }
  }

  const chunks = (call: ChatCall, signal: AbortSignal) =>
    upstream.chunks(() => request(call, signal, true), call, reading)

  async function countTokens(call: ChatCall, signal: AbortSignal): Promise<number> {
    const body = await encoder.count(call, signal)
    const response = await upstream.request({ path: `${pathOf(call.model)}:countTokens`, body, call }, signal)
    return upstream.readTokenCount(response, 'totalTokens')
  }

  const pageAt = (token: string | undefined, signal: AbortSignal) => {
    const query = token === undefined ? '' : `&pageToken=${encodeURIComponent(token)}`
    return upstream.list(`/models?pageSize=1000${query}`, readModelPage, signal)
  }

  const passthrough: PassthroughProvider = {
    dialect: 'contentgen-compat',
    async send(call, stream, signal) {
      const response = await send(JSON.stringify(passthroughBody(call, settings)), { call, stream }, signal)
      return stream ? upstream.streamToPass(response, call, reading) : response
    },
    faultsOf: upstream.faultsOf,
  }
  return {
    id,
    kind: 'contentgen-compat',
    chat: { complete, chunks, countTokens },
    ...(settings.passthrough ? { passthrough } : {}),
    listModels: (signal) => readPages((token) => pageAt(token, signal), settings.chat_models),
  }
}

/** The path of a model; encoded, so that a name cannot select another path. */
const pathOf = (model: string): string => `/${modelPath(model).split('/').map(encodeURIComponent).join('/')}`

/** Models with the chat API that return images. */
const IMAGE_MODELS = ['gemini-*image*', '*nano-banana*']

/** One page of the model list, without models that neither generate nor embed; undefined if the payload is not one. */
function readModelPage(payload: unknown): ModelPage | undefined {
  if (!isRecord(payload)) return undefined
  // The vendor omits an empty list.
  const { models: list = Object.keys(payload).length === 0 ? [] : undefined } = payload
  if (!Array.isArray(list)) return undefined
  const models = list.filter(isRecord).flatMap(({ name, supportedGenerationMethods: methods }): DiscoveredModel[] => {
    const model = namedText(name)?.replace(/^models\//, '') // the prefix, which requests add again
    const generates = !Array.isArray(methods) || methods.includes('generateContent')
    const embeds = Array.isArray(methods) && methods.includes('embedContent')
    if (model === undefined || !(generates || embeds)) return []
    if (!generates) return [{ model, families: ['embeddings'] }]
    return [
      IMAGE_MODELS.some((glob) => matchesGlob(glob, model)) ? { model, families: ['image-generation'] } : { model },
    ]
  })
  return { models, next: namedText(payload.nextPageToken) }
}
