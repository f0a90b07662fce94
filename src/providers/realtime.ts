/** The contract of providers of realtime sessions: a connection over which events go both ways, in the provider's own API. */

/** Whose events they are: of OpenAI's Realtime API, or of Google's Live API. They are never translated. */
export type RealtimeApi = 'openai' | 'gemini'

type RealtimeCall = {
  /** The provider's own name of the model. */
  model: string
  /** One of those that the provider has. */
  api: RealtimeApi
  request_id: string
}

export type RealtimeListener = {
  /** One event, as text, without the secrets of the provider. */
  message(text: string): void
  /** Called once; not after `close`. */
  closed(code: number, reason: string): void
}

export type RealtimeConnection = {
  send(text: string): void
  /** Bytes that were sent and have not left yet. */
  buffered(): number
  close(): void
}

export type RealtimeProvider = {
  apis: readonly RealtimeApi[]
  /** Rejects with GatewayError where no connection is made; at once when `signal` is aborted. */
  connect(call: RealtimeCall, listener: RealtimeListener, signal: AbortSignal): Promise<RealtimeConnection>
}
