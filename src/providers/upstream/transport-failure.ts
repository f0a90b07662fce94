/** Errors for failed connections; what a runtime throws never leaves this file, since it may hold the URL. */
import type { Timeouts } from '../../config/schema/schema.ts'
import { InflateError } from '../../kit/inflate.ts'
import { GatewayError } from '../../spec/error.ts'
import { acceptanceAfterFailure } from '../orders/acceptance.ts'

/** The error of a request whose caller has disconnected: the caller's own reason if it has one (the gateway is stopping). */
export function clientClosed(signal: Pick<AbortSignal, 'aborted' | 'reason'>): GatewayError {
  return signal.reason instanceof GatewayError
    ? signal.reason
    : new GatewayError('client_closed_request', 'The client disconnected before the response was complete.')
}

export const timedOut = (provider: string, what: string) =>
  new GatewayError('upstream_timeout', `The upstream "${provider}" timed out: ${what}.`)

export const tooLarge = (provider: string, limit: number) =>
  new GatewayError('bad_upstream_response', `The upstream "${provider}" answered with more than ${limit} bytes.`)

export function errorCodeOf(thrown: unknown): string {
  if (typeof thrown !== 'object' || thrown === null) return 'unknown'
  const code = 'code' in thrown ? thrown.code : undefined
  return typeof code === 'string' ? code : thrown instanceof Error ? thrown.name : 'unknown'
}

/** Codes of a connection that was never established: nothing was sent. After any other, the provider may have the request. */
const NEVER_CONNECTED =
  /^(ECONNREFUSED|ENOTFOUND|EAI_|EHOSTUNREACH|ENETUNREACH|ENETDOWN|EADDRNOTAVAIL|ETIMEDOUT|EPROTO|ECONNABORTED|ConnectionRefused|FailedToOpenSocket|ERR_TLS|ERR_SSL|CERT|UNABLE_TO|DEPTH_ZERO|SELF_SIGNED|HOSTNAME_MISMATCH|ERR_INVALID_URL)/

/** `thrown` never leaves this function whole: runtimes put the full URL into such errors. */
export function failedToSend(provider: string, thrown: unknown): GatewayError {
  const code = errorCodeOf(thrown)
  if (NEVER_CONNECTED.test(code)) {
    return new GatewayError(
      'upstream_unreachable',
      `No connection to the upstream "${provider}" (${code}).`,
      acceptanceAfterFailure(code) === 'not accepted' ? { accepted: 'no' } : {},
    )
  }
  return new GatewayError(
    'bad_upstream_response',
    `The upstream "${provider}" closed the connection before it answered (${code}).`,
  )
}

/** The same error for a request of which nothing was sent. */
export const neverSent = (error: GatewayError) =>
  new GatewayError(error.code, error.message, { ...error.detail, accepted: 'no' })

export function failedToRead(
  { provider, stream }: { provider: string; stream: boolean },
  thrown: unknown,
): GatewayError {
  if (thrown instanceof GatewayError) return thrown
  if (thrown instanceof InflateError) {
    return new GatewayError('bad_upstream_response', `The upstream "${provider}" sent a body that ${thrown.message}.`)
  }
  return new GatewayError(
    stream ? 'upstream_cut' : 'bad_upstream_response',
    `The upstream "${provider}" closed the connection in the middle of its response (${errorCodeOf(thrown)}).`,
  )
}

export const notAccepted = ({ provider, timeouts }: { provider: string; timeouts: Timeouts }) =>
  new GatewayError(
    'upstream_unreachable',
    `The upstream "${provider}" did not accept a connection within ${timeouts.connect_seconds} s.`,
  )

export const notRecorded = (thrown: unknown) =>
  neverSent(
    thrown instanceof GatewayError
      ? thrown
      : new GatewayError('internal_error', 'The order was not sent, since it could not be recorded.', {
          cause: thrown,
        }),
  )
