/** Sends by the gateway's own HTTP/1.1 client, which knows whether a byte of a request has left. */
import type { Clock } from '../../kit/clock.ts'
import { createHttp1Client } from '../../kit/http1/client.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Sender } from './sender.ts'
import { errorCodeOf, failedToSend, neverSent, notAccepted, notRecorded } from './transport-failure.ts'

export function createSocketSender({ clock }: { clock: Clock }): Sender {
  const client = createHttp1Client({ clock })
  return async (request, { url, life, headers }) => {
    const { method, provider, timeouts, order, beforeSend, body } = request
    delete request.body // it lives longer
    if (life.reason) throw neverSent(life.reason)
    const call = client.send({
      url,
      method,
      headers,
      body,
      pool: `${provider} ${url.origin}`,
      connect_ms: timeouts.connect_seconds * 1000,
      ...(order && { is_single: true, beforeSend: beforeSend && (() => beforeSend().catch(refuse)) }),
    })
    life.onEnd = (reason) => call.abort(reason)
    try {
      const { status, headers: received, body: reader } = await call.response
      return { status, headers: received, body: () => reader, discard: () => void reader?.cancel() }
    } catch (thrown) {
      if (call.isSent()) throw thrown
      if (thrown instanceof GatewayError) throw neverSent(thrown)
      throw neverSent(errorCodeOf(thrown) === 'ETIMEDOUT' ? notAccepted(request) : failedToSend(provider, thrown))
    }
  }
}

const refuse = (thrown: unknown): never => {
  throw notRecorded(thrown)
}
