/** Kind `chatcompat`: any vendor or runtime that speaks the OpenAI chat API over HTTP, another Gatehouse included. */
import { type Clock, unixSeconds } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import { createSseParser, type SseEvent, SseTooLong } from '../kit/sse.ts'
import type { ChatChunk, ChatCompletion } from '../spec/chat-completion.ts'
import { GatewayError } from '../spec/error.ts'
import { chunksOf, createFold, normaliseWhole } from './chatcompat-answer.ts'
import { type ChunkNormaliser, createChunkNormaliser } from './chatcompat-chunk.ts'
import { errorInAnswer, holdsError, refusalToError } from './chatcompat-error.ts'
import { isRecord } from './chatcompat-json.ts'
import { readModelList } from './chatcompat-models.ts'
import { createBodyWriter } from './chatcompat-request.ts'
import type { ChatcompatSettings } from './chatcompat-settings.ts'
import type { ChatCall, DiscoveredModel, Provider } from './provider.ts'
import type { Transport } from './transport.ts'
import type { UpstreamAnswer } from './transport-answer.ts'

type ChatcompatParts = { id: string; settings: ChatcompatSettings; transport: Transport; clock: Clock; log: Log }

export function createChatcompat({ id, settings, transport, clock, log }: ChatcompatParts): Provider {
  const writeBody = createBodyWriter(settings)
  const chatUrl = `${settings.base_url}/chat/completions`
  const upstream = `The upstream "${id}"`

  /** Sends a call and hands back an answer of status 2xx; everything else is thrown. */
  async function ask(call: ChatCall, signal: AbortSignal, stream: boolean): Promise<UpstreamAnswer> {
    const answer = await transport.send({
      provider: id,
      url: chatUrl,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: stream ? 'text/event-stream' : 'application/json',
        // A compressed stream arrives in lumps, when the compressor's buffer is full.
        ...(stream ? { 'accept-encoding': 'identity' } : {}),
        'user-agent': 'gatehouse',
        'x-request-id': call.request_id,
        ...settings.headers,
      },
      body: writeBody(call, stream),
      signal,
      timeouts: settings.timeouts,
      stream,
    })
    if (answer.status >= 200 && answer.status < 300) return answer
    throw await refused(answer, call.model)
  }

  async function refused(answer: UpstreamAnswer, model: string | undefined): Promise<GatewayError> {
    const { status, headers } = answer
    const text = await answer.excerpt()
    const payload = parseJson(text)
    const error = refusalToError({ provider: id, model, status, headers, payload, secrets: settings.secrets, clock })
    if (error.status >= 500)
      log.warn('upstream refused', { provider: id, model, upstream_status: status, error: error.code })
    return error
  }

  const inAnswer = (payload: unknown, model: string | undefined): GatewayError => {
    const error = errorInAnswer({ provider: id, model, payload, secrets: settings.secrets, clock })
    log.warn('upstream failed in its answer', { provider: id, model, error: error.code })
    return error
  }

  const notUnderstood = (what: string, upstream_status?: number) =>
    new GatewayError(
      'bad_upstream_response',
      `${upstream} ${what}.`,
      upstream_status === undefined ? {} : { upstream_status },
    )

  const fallbackOf = (call: ChatCall) => ({
    id: `chatcmpl-${call.request_id}`,
    model: call.model,
    created: unixSeconds(clock),
  })

  /** One answer from the text of its body, which some vendors stream although it was not asked for. */
  function readWhole(text: string, call: ChatCall): ChatCompletion {
    const payload = parseJson(text)
    if (isRecord(payload) || Array.isArray(payload)) {
      const body = Array.isArray(payload) ? payload[0] : payload
      if (!isRecord(body) || holdsError(body)) throw inAnswer(body, call.model)
      const answer = normaliseWhole(body, fallbackOf(call))
      if (answer) return answer
      throw notUnderstood('answered with JSON that is no chat completion')
    }
    // A stream begins with a field or a comment, perhaps after a BOM.
    if (!/^\uFEFF?\s*(data:|event:|:)/.test(text)) throw notUnderstood('answered with something that is not JSON')
    const parser = createSseParser()
    const reading = createReading(call)
    const step = reading.take([...parser.push(new TextEncoder().encode(text)), ...parser.end()])
    if (step.failure) throw step.failure
    const fold = createFold()
    for (const chunk of [...step.chunks, ...reading.end()]) fold.add(chunk)
    const answer = fold.whole()
    if (answer) return answer
    throw notUnderstood('answered with a stream that says nothing')
  }

  /** The state of one stream: events in, chunks out, and what its end means. */
  function createReading(call: ChatCall) {
    const normaliser: ChunkNormaliser = createChunkNormaliser(fallbackOf(call))
    let isDone = false
    return {
      /** What these events say. A failure comes after the chunks before it. At the end an event may be half there. */
      take(
        events: SseEvent[],
        atEnd = false,
      ): { chunks: ChatChunk[]; done: boolean; failure: GatewayError | undefined } {
        const chunks: ChatChunk[] = []
        for (const { event, data } of events) {
          // `data:` with nothing, or with a comment in the wrong place, is how some vendors keep a connection alive.
          if (data === '' || data.charCodeAt(0) === 58) continue
          if (data === '[DONE]' || data.trim() === '[DONE]') {
            isDone = true
            break
          }
          const payload = parseJson(data)
          if (payload === undefined && atEnd) continue
          const failure = isRecord(payload)
            ? event === 'error' || holdsError(payload) || hasHiddenError(payload)
              ? inAnswer(payload, call.model)
              : undefined
            : event === 'error'
              ? inAnswer(data, call.model)
              : notUnderstood('sent an event that is not a JSON object')
          if (failure) return { chunks, done: true, failure }
          const chunk = normaliser.take(payload as Record<string, unknown>)
          if (chunk) chunks.push(chunk)
        }
        return { chunks, done: isDone, failure: undefined }
      },
      /** The end of the body: nothing more, the finish that the vendor forgot, or the error that it is no end at all. */
      end(): ChatChunk[] {
        if (normaliser.isFinished()) return []
        if (!isDone) {
          throw new GatewayError('upstream_cut', `${upstream} ended its answer in the middle, without a finish.`)
        }
        if (!normaliser.hasBegun()) throw notUnderstood('answered with a stream that says nothing')
        const missing = normaliser.missingFinish()
        return missing ? [missing] : []
      },
    }
  }

  async function* readStream(answer: UpstreamAnswer, call: ChatCall): AsyncGenerator<ChatChunk[]> {
    const parser = createSseParser()
    const reading = createReading(call)
    for (;;) {
      const bytes = await answer.read()
      const { chunks, done, failure } = reading.take(bytes ? pushed(parser, bytes) : parser.end(), !bytes)
      if (chunks.length > 0) yield chunks
      if (failure) throw failure
      if (done || !bytes) break
    }
    const rest = reading.end()
    if (rest.length > 0) yield rest
  }

  const pushed = (parser: ReturnType<typeof createSseParser>, bytes: Uint8Array): SseEvent[] => {
    try {
      return parser.push(bytes)
    } catch (thrown) {
      if (thrown instanceof SseTooLong) throw notUnderstood(`sent ${thrown.message}`)
      throw thrown
    }
  }

  async function* chunks(call: ChatCall, signal: AbortSignal): AsyncGenerator<ChatChunk[]> {
    const answer = await ask(call, signal, true)
    let complete = false
    try {
      const type = answer.headers.get('content-type') ?? ''
      if (type.includes('text/html')) throw notUnderstood('answered with a web page', answer.status)
      // JSON in one piece instead of a stream; some vendors label it as a stream even so.
      const isWhole = /^[^;]*\bjson\b/.test(type) || (await startsLikeJson(answer))
      if (isWhole) yield chunksOf(readWhole(await answer.text(), call))
      else yield* readStream(answer, call)
      complete = true
    } finally {
      if (complete) answer.release()
      else answer.drop()
    }
  }

  return {
    id,
    kind: 'chatcompat',
    chat: {
      async whole(call, signal) {
        const answer = await ask(call, signal, false)
        return readWhole(await answer.text(), call)
      },
      chunks,
    },
    async listModels(signal): Promise<DiscoveredModel[]> {
      const answer = await transport.send({
        provider: id,
        url: `${settings.base_url}/models`,
        method: 'GET',
        headers: { accept: 'application/json', 'user-agent': 'gatehouse', ...settings.headers },
        signal,
        timeouts: settings.timeouts,
        stream: false,
      })
      if (answer.status < 200 || answer.status >= 300) throw await refused(answer, undefined)
      const models = readModelList(parseJson(await answer.text()), settings.chat_models)
      if (models) return models
      throw notUnderstood('answered with something that is no list of models', answer.status)
    },
  }
}

/** Groq puts an error of a running stream beside the choices. */
const hasHiddenError = (payload: Record<string, unknown>): boolean =>
  payload.x_groq !== undefined && isRecord(payload.x_groq) && holdsError(payload.x_groq)

/** The parsed text; undefined where it is not JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Whether the body's first byte that is not white space opens a JSON object; no event stream begins so. */
async function startsLikeJson(answer: UpstreamAnswer): Promise<boolean> {
  const first = (await answer.peek())?.find((byte) => byte > 32) // 9, 10, 13 and 32 are white space
  return first === 123
}
