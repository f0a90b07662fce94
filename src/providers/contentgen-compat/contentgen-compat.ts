/** Kind `contentgen-compat`: Gemini's own API, and every vendor or runtime that speaks as it does. */
import { matchesGlob } from '../../kit/glob.ts'
import { isRecord, parseJson } from '../../kit/json.ts'
import type { ChatChunk, ChatCompletion } from '../../protocols/canonical.ts'
import {
  type AnswerReader,
  type ContentgenFaults,
  createAnswerReader,
} from '../../protocols/contentgen/upstream/answer.ts'
import { failureOf, refusalOf } from '../../protocols/contentgen/upstream/error.ts'
import { passthroughBody } from '../../protocols/contentgen/upstream/passthrough.ts'
import { createBodyEncoder, modelPath } from '../../protocols/contentgen/upstream/request.ts'
import { readEvents } from '../../protocols/contentgen/upstream/stream.ts'
import { ended, wholeOf } from '../../protocols/contentgen/upstream/whole.ts'
import { objectIn } from '../../protocols/event-payload.ts'
import { fallbackOf, namedText } from '../../protocols/upstream.ts'
import { GatewayError } from '../../spec/error.ts'
import { createRequestMedia, type Media } from '../media.ts'
import { type ModelPage, readPages } from '../model-list.ts'
import type { ChatCall, DiscoveredModel, PassthroughProvider, Provider } from '../provider.ts'
import type { UpstreamResponse } from '../upstream/transport-response.ts'
import { createUpstream, type UpstreamParts } from '../upstream/upstream.ts'
import type { ContentgenSettings } from './settings.ts'

type ContentgenParts = UpstreamParts & { settings: ContentgenSettings; media?: Media }

export function createContentgenCompat(parts: ContentgenParts): Provider {
  const { id, settings, clock } = parts
  const { media } = parts
  const write = createBodyEncoder(settings, media && (() => createRequestMedia(media)))
  const upstream = createUpstream(parts, { errorFromResponse: refusalOf, errorFromBody: failureOf })

  const faultsOf = (model: string, answer: UpstreamResponse): ContentgenFaults => ({
    ...upstream.faultsOf(model, answer),
    blocked: (reason) =>
      new GatewayError(
        'content_policy_violation',
        `The upstream "${id}" refused the prompt for its content (${reason}).`,
      ),
  })

  const namedOf = (call: ChatCall) => fallbackOf('resp_', call, clock)

  const readerOf = (call: ChatCall, faults: ContentgenFaults): AnswerReader =>
    createAnswerReader({ fallback: namedOf(call), faults, one_call: call.request.parallel_tool_calls === false })

  function send(body: string, { call, stream }: { call: ChatCall; stream: boolean }, signal: AbortSignal) {
    const method = stream ? 'streamGenerateContent?alt=sse' : 'generateContent'
    return upstream.request({ path: `${addressOf(call.model)}:${method}`, body, call, stream }, signal)
  }

  const ask = async (call: ChatCall, signal: AbortSignal, stream: boolean) =>
    send(await write.answer(call, signal), { call, stream }, signal)

  /** The chunks of an answer that came in one piece, which may be the list of a stream's events. */
  function chunksOf(text: string, call: ChatCall, faults: ContentgenFaults): ChatChunk[] {
    const payload = parseJson(text)
    if (payload === undefined) throw faults.notUnderstood('answered with something that is not JSON')
    const reader = readerOf(call, faults)
    const pieces = ended(Array.isArray(payload) ? payload : [payload])
    const chunks = pieces.flatMap((piece) => reader.take(objectIn(piece, faults)))
    if (chunks.length === 0) throw faults.notUnderstood('answered with JSON that holds no answer')
    return [...chunks, ...reader.end()]
  }

  async function whole(call: ChatCall, signal: AbortSignal): Promise<ChatCompletion> {
    const answer = await ask(call, signal, false)
    return wholeOf(chunksOf(await answer.text(), call, faultsOf(call.model, answer)), namedOf(call))
  }

  async function* chunks(call: ChatCall, signal: AbortSignal): AsyncGenerator<ChatChunk[]> {
    yield* chunksIn(await ask(call, signal, true), call)
  }

  function chunksIn(answer: UpstreamResponse, call: ChatCall): AsyncGenerator<ChatChunk[]> {
    const faults = faultsOf(call.model, answer)
    return upstream.readStreamOrWhole(answer, {
      events: () => readEvents(answer, readerOf(call, faults), faults),
      whole: async () => chunksOf(await answer.text(), call, faults),
    })
  }

  async function countTokens(call: ChatCall, signal: AbortSignal): Promise<number> {
    const body = await write.count(call, signal)
    const answer = await upstream.request({ path: `${addressOf(call.model)}:countTokens`, body, call }, signal)
    return upstream.readTokenCount(answer, 'totalTokens')
  }

  const pageAt = (token: string | undefined, signal: AbortSignal) => {
    const at = token === undefined ? '' : `&pageToken=${encodeURIComponent(token)}`
    return upstream.list(`/models?pageSize=1000${at}`, readModelPage, signal)
  }

  const passthrough: PassthroughProvider = {
    dialect: 'contentgen-compat',
    async send(call, stream, signal) {
      const answer = await send(JSON.stringify(passthroughBody(call, settings)), { call, stream }, signal)
      return upstream.toPassthroughResponse(answer, call, stream ? chunksIn : undefined)
    },
  }
  return {
    id,
    kind: 'contentgen-compat',
    chat: { complete: whole, chunks, countTokens },
    ...(settings.passthrough ? { passthrough } : {}),
    listModels: (signal) => readPages((token) => pageAt(token, signal), settings.chat_models),
  }
}

/** A model's place as a path, with nothing in it that could mean another one. */
const addressOf = (model: string): string => `/${modelPath(model).split('/').map(encodeURIComponent).join('/')}`

/** Chat models by their shape, whose answers are images. */
const DRAWING = ['gemini-*image*', '*nano-banana*']

/** Those that answer at all; undefined for something that is no such list. */
function readModelPage(payload: unknown): ModelPage | undefined {
  if (!isRecord(payload)) return undefined
  // The vendor writes an empty list by leaving it out.
  const { models: list = Object.keys(payload).length === 0 ? [] : undefined } = payload
  if (!Array.isArray(list)) return undefined
  const models = list.filter(isRecord).flatMap(({ name, supportedGenerationMethods: methods }): DiscoveredModel[] => {
    const model = namedText(name)?.replace(/^models\//, '') // its place there, which is added again for a question
    const answers = !Array.isArray(methods) || methods.includes('generateContent')
    const embeds = Array.isArray(methods) && methods.includes('embedContent')
    if (model === undefined || !(answers || embeds)) return []
    if (!answers) return [{ model, families: ['embeddings'] }]
    return [DRAWING.some((glob) => matchesGlob(glob, model)) ? { model, families: ['image-generation'] } : { model }]
  })
  return { models, next: namedText(payload.nextPageToken) }
}
