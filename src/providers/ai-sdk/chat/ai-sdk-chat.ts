/** One adapter for every vendor of chat models that has an AI SDK package with `doGenerate` and `doStream`. */
import { unixSeconds } from '../../../kit/clock.ts'
import { createGuardedFetch } from '../../../kit/guarded-fetch.ts'
import { parseJson } from '../../../kit/json.ts'
import type { ChatChunk, ChatCompletion } from '../../../protocols/canonical.ts'
import { errorFromResponse } from '../../../protocols/provider-error.ts'
import { GatewayError } from '../../../spec/error.ts'
import { createMedia } from '../../media.ts'
import { readModelList } from '../../model-list.ts'
import type { ChatCall, DiscoveredModel, Provider } from '../../provider.ts'
import { asFetch, createTransportFetch } from '../../upstream/transport-fetch.ts'
import { accountOf, isOwn, moved } from '../account.ts'
import type { AiSdkParts } from '../vendor.ts'
import { answerOf, type Named } from './answer.ts'
import { eagerly } from './eagerly.ts'
import { createChatFaults, isUnknownEvent } from './fault.ts'
import { isWorthDryRun, refuseWarned } from './meaning.ts'
import { createPartReader } from './parts.ts'
import { optionsOf } from './request.ts'
import type { CallOptions, ChatVendor, PackageWarning } from './vendor.ts'

/** Packages look into the process's environment for a key when they are given none. */
const UNUSED_KEY = 'gatehouse-has-no-key'
/** Model names, anywhere, that are of another trade than chat. */
const CHAT_MODELS = {
  include: ['*'],
  exclude: ['*embed*', '*whisper*', '*tts*', '*rerank*', '*moderation*', '*transcribe*', '*image*', '*video*', '*ocr*'],
  // Where the same provider makes them: elsewhere they are left out again.
  others: ['image-generation' as const, 'moderations' as const],
}

/** Throws an Error that names the provider when its configuration cannot work. */
export function createAiSdkChat(parts: AiSdkParts, vendor: ChatVendor): Provider {
  const { id, config, transport, clock, log } = parts
  const media = parts.media ?? createMedia({ guardedFetch: createGuardedFetch({ clock }) })
  const given = config.base_url === undefined ? {} : { base_url: vendor.chatUrl?.(config.base_url) ?? config.base_url }
  const account = accountOf({ ...parts, config: { ...config, ...given } }, vendor)
  const { base_url } = account
  const key = account.key || UNUSED_KEY
  const faults = createChatFaults({ provider: id, vendor, clock })

  /** The model of one call, and what it does on the wire. */
  async function open(name: string, signal: AbortSignal, stream: boolean) {
    const authorization = await vendor.authorize?.(signal)
    const { fetch, wire } = createTransportFetch({
      provider: id,
      transport,
      timeouts: account.timeouts,
      signal,
      isOrder: false,
      stream,
      route(asked) {
        const { url, headers } = vendor.send?.(asked, name) ?? asked
        const target = moved(url, vendor.home, base_url)
        if (!isOwn(target, account, vendor)) return undefined
        return { url: target, headers: { ...presented(headers), ...account.headers, ...authorization } }
      },
    })
    const make = await vendor.load({ key, fetch })
    return { model: make(name), wire }
  }

  /** Asks the package, with nobody to hear it, what of the request it would leave out; throws for what matters. */
  async function dryRun({ model, request }: ChatCall, options: CallOptions): Promise<void> {
    const make = await vendor.load({ key, fetch: asFetch(async () => new Response('', { headers: SILENT_STREAM })) })
    const started = await Promise.resolve(make(model).doStream(options)).catch(() => undefined)
    const reader = started?.stream.getReader()
    for (let next = await reader?.read(); next && !next.done; next = await reader?.read()) {
      if (next.value.type !== 'stream-start') continue
      for (const warning of next.value.warnings) refuseWarned(warning, request)
      break
    }
    await reader?.cancel()
  }

  async function prepare(call: ChatCall, signal: AbortSignal): Promise<CallOptions> {
    const options = await optionsOf(call, { vendor, config, media, signal })
    if (isWorthDryRun(call.request)) await dryRun(call, options)
    return options
  }

  const namedOf = (call: ChatCall): Named => ({
    vendor,
    id: `chatcmpl-${call.request_id}`,
    model: call.model,
    created: unixSeconds(clock),
  })

  /** What only tunes may be left out; the operator can see it. */
  function note(warnings: PackageWarning[], model: string): void {
    for (const warning of warnings) {
      const feature = 'feature' in warning ? warning.feature : warning.type
      log.debug('upstream request changed by its package', { provider: id, model, feature })
    }
  }

  function failed(error: GatewayError, model: string): GatewayError {
    if (error.status >= 500 && error.code !== 'internal_error') {
      const { upstream_status } = error.detail
      log.warn('upstream failed', { provider: id, model, error: error.code, upstream_status })
    }
    return error
  }

  async function whole(call: ChatCall, signal: AbortSignal): Promise<ChatCompletion> {
    const options = await prepare(call, signal)
    const { model, wire } = await open(call.model, signal, false)
    try {
      const generated = await model.doGenerate(options)
      note(generated.warnings, call.model)
      const answer = answerOf(generated, namedOf(call))
      if (answer) return answer
      throw faults.cut(wire, call.model, generated.finishReason.raw ?? '')
    } catch (thrown) {
      throw failed(faults.thrown(thrown, wire, call.model), call.model)
    }
  }

  async function* chunks(call: ChatCall, signal: AbortSignal): AsyncGenerator<ChatChunk[]> {
    const options = await prepare(call, signal)
    const { model, wire } = await open(call.model, signal, true)
    const reader = createPartReader(namedOf(call))
    try {
      const { stream } = await model.doStream(options)
      for await (const batch of eagerly(stream)) {
        const told: ChatChunk[] = []
        let failure: GatewayError | undefined
        for (const part of batch) {
          if (part.type === 'stream-start') note(part.warnings, call.model)
          if (part.type === 'error' && !reader.isFinished() && !isUnknownEvent(part.error))
            failure ??= faults.inStream(part.error, wire, call.model)
          const chunk = failure ? undefined : reader.take(part)
          if (chunk) told.push(chunk)
          if (!failure && part.type === 'finish' && !reader.isFinished()) {
            failure = faults.cut(wire, call.model, part.finishReason.raw)
          }
        }
        if (told.length > 0) yield told
        if (failure) throw failure
      }
      if (!reader.isFinished()) throw faults.cut(wire, call.model)
    } catch (thrown) {
      // Once the vendor has said why it ended, a connection that breaks is an end like another.
      if (reader.isFinished() && !signal.aborted) return
      throw failed(faults.thrown(thrown, wire, call.model), call.model)
    }
  }

  async function listModels(signal: AbortSignal): Promise<DiscoveredModel[]> {
    const authorization = await vendor.authorize?.(signal)
    const answer = await transport.send({
      provider: id,
      url: `${base_url}${vendor.models}`,
      method: 'GET',
      headers: {
        accept: 'application/json',
        'user-agent': 'gatehouse',
        ...(account.key ? { authorization: `Bearer ${account.key}` } : {}),
        ...account.headers,
        ...authorization,
      },
      signal,
      timeouts: account.timeouts,
      stream: false,
    })
    const { status, headers } = answer
    if (status >= 300) {
      const payload = parseJson(await answer.excerpt())
      throw errorFromResponse({ provider: id, model: undefined, status, headers, payload, clock })
    }
    const models = readModelList(parseJson(await answer.text()), CHAT_MODELS)
    if (models) return models
    throw new GatewayError('bad_upstream_response', `The upstream "${id}" answered with no list of models.`)
  }

  return { id, kind: vendor.kind, chat: { complete: whole, chunks }, ...(vendor.models ? { listModels } : {}) }
}

const SILENT_STREAM = { 'content-type': 'text/event-stream' }

const presented = (headers: Record<string, string>) =>
  Object.fromEntries(Object.entries(headers).filter(([, value]) => !value.includes(UNUSED_KEY)))
