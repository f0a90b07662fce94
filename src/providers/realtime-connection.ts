/** Connects to the realtime API of a provider over a WebSocket: where it is, by the kind of the provider, and with its key. */
import type { ProviderKind } from '../config/schema/provider-kinds.ts'
import { GatewayError } from '../spec/error.ts'
import { contentgenSettings } from './contentgen-compat/contentgen-settings.ts'
import type { RealtimeApi, RealtimeConnection, RealtimeProvider } from './realtime.ts'
import { type AdapterParts, azureSettings, type ProviderSettings, settingsOf } from './settings.ts'

type RealtimeAddress = Pick<ProviderSettings, 'headers' | 'timeouts'> & {
  api: RealtimeApi
  /** Of the WebSocket, for a model by the provider's own name. */
  urlOf(model: string): string
}

type ConnectParts = Pick<AdapterParts, 'id' | 'clock' | 'log'> & {
  /** Removes the secrets of the provider. */
  scrub(text: string): string
}

/** Longer than any event of a provider: whole audio comes in many. */
const MAX_EVENT_CHARACTERS = 32 * 1024 * 1024
/** After this a provider that does not answer a close loses the connection. */
const CLOSE_MILLISECONDS = 5_000

export function connectTo(
  { id, clock, log, scrub }: ConnectParts,
  { api, headers, timeouts, urlOf }: RealtimeAddress,
): RealtimeProvider {
  return {
    apis: [api],
    connect({ model, request_id }, listener, signal) {
      const { promise, resolve, reject } = Promise.withResolvers<RealtimeConnection>()
      const decoder = new TextDecoder()
      // The runtime's own: a second argument of the standard has no headers.
      const options = { headers: { 'user-agent': 'gatehouse', ...headers, 'x-request-id': request_id } }
      const socket = new WebSocket(urlOf(model), options as unknown as string[]) as WebSocket & { terminate(): void }
      socket.binaryType = 'arraybuffer'
      let isOpen = false
      let isOver = false

      function close(code: number): void {
        socket.close(code)
        socket.addEventListener(
          'close',
          clock.after(CLOSE_MILLISECONDS, () => socket.terminate()),
        )
      }
      function end(): void {
        isOver = true
        cancel()
        signal.removeEventListener('abort', abort)
      }
      function fail(error: GatewayError): void {
        if (isOver) return
        end()
        close(1000)
        reject(error)
      }
      const abort = () =>
        fail(
          signal.reason instanceof GatewayError
            ? signal.reason
            : new GatewayError('client_closed_request', 'The client has left.'),
        )
      const cancel = clock.after(timeouts.connect_seconds * 1000, () =>
        fail(
          new GatewayError(
            'upstream_unreachable',
            `The upstream "${id}" opened no realtime session within ${timeouts.connect_seconds} s.`,
          ),
        ),
      )
      if (signal.aborted) abort()
      else signal.addEventListener('abort', abort)

      const connection = (): RealtimeConnection => ({
        send: (text: string) => socket.send(text),
        buffered: () => socket.bufferedAmount,
        close() {
          isOver = true
          close(1000)
        },
      })

      socket.onopen = () => {
        if (isOver) return
        isOpen = true
        cancel()
        signal.removeEventListener('abort', abort)
        resolve(connection())
      }
      socket.onmessage = ({ data }) => {
        if (isOver) return
        const text = typeof data === 'string' ? data : decoder.decode(data as ArrayBuffer)
        if (text.length > MAX_EVENT_CHARACTERS) close(1009)
        else listener.message(scrub(text))
      }
      socket.onclose = ({ code, reason }) => {
        if (isOver) return
        if (isOpen) {
          isOver = true
          listener.closed(code, scrub(reason))
          return
        }
        log.warn('upstream failed', { provider: id, error: 'upstream_unreachable', reason: `close code ${code}` })
        fail(new GatewayError('upstream_unreachable', `The upstream "${id}" opened no realtime session.`))
      }
      socket.onerror = () => {} // `close` follows
      return promise
    },
  }
}

const asWebSocket = (url: string): string => url.replace(/^http/, 'ws')

/** Google's own path, by the version of the API. */
export const geminiLivePath = (version: string): string =>
  `/ws/google.ai.generativelanguage.${version}.GenerativeService.BidiGenerateContent`

/** Undefined: the kind has none. */
export function realtimeAddress(kind: ProviderKind, parts: AdapterParts): RealtimeAddress | undefined {
  if (kind === 'chatcompat' || kind === 'responses-compat') {
    const settings = settingsOf(parts)
    const url = asWebSocket(settings.base_url)
    return { api: 'openai', ...settings, urlOf: (model) => `${url}/realtime?model=${encodeURIComponent(model)}` }
  }
  if (kind === 'contentgen-compat') {
    const settings = contentgenSettings(parts)
    const url = asWebSocket(new URL(settings.base_url).origin) + geminiLivePath('v1beta')
    // Vertex AI has another API.
    return settings.cloud ? undefined : { api: 'gemini', ...settings, urlOf: () => url }
  }
  return kind === 'azure' ? azureAddress(parts) : undefined
}

/** https://learn.microsoft.com/azure/ai-foundry/openai/how-to/realtime-audio-websockets */
function azureAddress(parts: AdapterParts): RealtimeAddress {
  const { api_version, ...settings } = azureSettings(parts)
  const url = asWebSocket(settings.base_url)
  return {
    api: 'openai',
    ...settings,
    urlOf: (model) =>
      api_version === 'v1'
        ? `${url}/v1/realtime?model=${encodeURIComponent(model)}`
        : `${url}/realtime?api-version=${encodeURIComponent(api_version)}&deployment=${encodeURIComponent(model)}`,
  }
}
