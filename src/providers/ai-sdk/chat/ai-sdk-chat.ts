/** One adapter for every vendor of chat models that has an AI SDK package with `doGenerate` and `doStream`. */
import { unixSeconds } from '../../../kit/clock.ts'
import { isRecord, type JsonRecord, parseJson } from '../../../kit/json.ts'
import type { ChatChunk, ChatCompletion } from '../../../protocols/shared/canonical.ts'
import { errorFromResponse } from '../../../protocols/shared/provider-error.ts'
import { GatewayError } from '../../../spec/error.ts'
import { readModelList } from '../../model-list.ts'
import type { ChatCall, DiscoveredModel, Provider } from '../../provider.ts'
import { asFetch, type PackageFetch } from '../../upstream/transport-fetch.ts'
import type { Connection } from '../connection.ts'
import { optionsOf } from './call-options.ts'
import { createChatErrors, isUnknownEvent } from './chat-errors.ts'
import type { CallOptions, ChatFamily, ChatModel } from './chat-family.ts'
import { completionOf, type ResponseIdentity } from './completion.ts'
import { readAhead } from './read-ahead.ts'
import { createPartReader } from './stream-parts.ts'
import { assertNotIgnored, needsDryRun } from './unsupported.ts'

/** Patterns in the names of models that are not for chat. */
const CHAT_MODELS = {
  include: ['*'],
  exclude: ['*embed*', '*whisper*', '*tts*', '*rerank*', '*moderation*', '*transcribe*', '*image*', '*video*', '*ocr*'],
  // Listed where the same provider serves them; elsewhere they are filtered out later.
  others: ['image-generation' as const, 'moderations' as const],
}

export function createAiSdkChat(connection: Connection<ChatFamily, ChatModel>): Pick<Provider, 'chat' | 'listModels'> {
  const { id, config, transport, clock, log, media, vendor, targetUrl, key } = connection
  const errors = createChatErrors({ id, clock, log, vendor })

  async function open({ model, request_id }: ChatCall, signal: AbortSignal, stream: boolean) {
    const { fetch, wire } = await connection.fetchFor({ model, signal, request_id, stream })
    const { noUsage } = vendor
    return { model: await connection.model(model, noUsage && !stream ? withUsage(fetch, noUsage) : fetch), wire }
  }

  /** Runs the package without sending anything, to learn what it would leave out; throws for what matters. */
  async function dryRun({ model, request }: ChatCall, options: CallOptions): Promise<void> {
    const silent = asFetch(async () => new Response('', { headers: { 'content-type': 'text/event-stream' } }))
    const sdk = await connection.model(model, silent)
    const started = await Promise.resolve(sdk.doStream(options)).catch(() => undefined)
    const reader = started?.stream.getReader()
    for (let next = await reader?.read(); next && !next.done; next = await reader?.read()) {
      if (next.value.type !== 'stream-start') continue
      for (const warning of next.value.warnings) assertNotIgnored(warning, request)
      break
    }
    await reader?.cancel()
  }

  async function prepare(call: ChatCall, signal: AbortSignal): Promise<CallOptions> {
    const options = await optionsOf(call, { vendor, config, media, signal })
    if (needsDryRun(call.request)) await dryRun(call, options)
    return options
  }

  const identityOf = (call: ChatCall): ResponseIdentity => ({
    vendor,
    id: `chatcmpl-${call.request_id}`,
    model: call.model,
    created: unixSeconds(clock),
  })

  async function complete(call: ChatCall, signal: AbortSignal): Promise<ChatCompletion> {
    const options = await prepare(call, signal)
    const { model, wire } = await open(call, signal, false)
    try {
      const generated = await model.doGenerate(options)
      errors.logIgnored(generated.warnings, call.model)
      const completion = completionOf(generated, identityOf(call))
      if (completion) return completion
      throw errors.cut(wire, call.model, generated.finishReason.raw ?? '')
    } catch (thrown) {
      throw errors.logged(errors.thrown(thrown, wire, call.model), call.model)
    }
  }

  async function* chunks(call: ChatCall, signal: AbortSignal): AsyncGenerator<ChatChunk[]> {
    const options = await prepare(call, signal)
    const { model, wire } = await open(call, signal, true)
    const reader = createPartReader(identityOf(call))
    try {
      const { stream } = await model.doStream(options)
      for await (const batch of readAhead(stream)) {
        const decoded: ChatChunk[] = []
        let failure: GatewayError | undefined
        for (const part of batch) {
          if (part.type === 'stream-start') errors.logIgnored(part.warnings, call.model)
          if (part.type === 'error' && !reader.isFinished() && !isUnknownEvent(part.error))
            failure ??= errors.inStream(part.error, wire, call.model)
          const chunk = failure ? undefined : reader.decode(part)
          if (chunk) decoded.push(chunk)
          if (!failure && part.type === 'finish' && !reader.isFinished()) {
            failure = errors.cut(wire, call.model, part.finishReason.raw)
          }
        }
        if (decoded.length > 0) yield decoded
        if (failure) throw failure
      }
      if (!reader.isFinished()) throw errors.cut(wire, call.model)
    } catch (thrown) {
      // After the finish reason, a broken connection is a normal end.
      if (reader.isFinished() && !signal.aborted) return
      throw errors.logged(errors.thrown(thrown, wire, call.model), call.model)
    }
  }

  async function listModels(signal: AbortSignal): Promise<DiscoveredModel[]> {
    const authorization = await vendor.authorize?.(signal)
    const response = await transport.send({
      provider: id,
      url: `${targetUrl}${vendor.modelsPath}`,
      method: 'GET',
      headers: {
        accept: 'application/json',
        'user-agent': 'gatehouse',
        ...(key ? { authorization: `Bearer ${key}` } : {}),
        ...connection.headers,
        ...authorization,
      },
      signal,
      timeouts: connection.timeouts,
      stream: false,
    })
    const { status, headers } = response
    if (status >= 300) {
      const payload = parseJson(await response.excerpt())
      throw errorFromResponse({ provider: id, model: undefined, status, headers, payload, clock })
    }
    const models = readModelList(parseJson(await response.text()), CHAT_MODELS)
    if (models) return models
    throw new GatewayError('bad_upstream_response', `The upstream "${id}" returned no list of models.`)
  }

  return { chat: { complete, chunks }, ...(vendor.modelsPath ? { listModels } : {}) }
}

/** A whole response without usage is still a response. */
const withUsage = (fetch: PackageFetch, usage: JsonRecord): PackageFetch =>
  asFetch(async (input, init) => {
    const response = await fetch(input, init)
    if (!response.ok) return response
    const { status, headers } = response
    const text = await response.text()
    const payload = parseJson(text)
    const isWithout = isRecord(payload) && !isRecord(payload.usage)
    return new Response(isWithout ? JSON.stringify({ ...payload, usage }) : text, { status, headers })
  })
