/**
 * What the error of a call says about its target, whether another target may be tried after it, and the errors of a call
 * that no target has answered.
 */
import type { Target } from '../../providers/provider.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Outcome } from './target-state.ts'

/**
 * `until_answered`: the next target is tried after any failure that lies with the target.
 * `until_accepted`: only after one that has certainly not accepted the request (`detail.accepted: 'no'`), for
 * requests that are charged each time.
 */
export type AttemptPolicy = 'until_answered' | 'until_accepted'

export const mayTryNext = (error: unknown, policy: AttemptPolicy): error is GatewayError =>
  isFaultOfTarget(error) && (policy === 'until_answered' || error.detail.accepted === 'no')

/** Whether the target is broken, overloaded or unreachable; any other error would be the same at every target. */
export const isFaultOfTarget = (error: unknown): error is GatewayError =>
  error instanceof GatewayError && (error.status >= 500 || error.status === 429) && !OWN_ERRORS.has(error.code)

/** Errors of the gateway itself, although their status is that of a server error. */
const OWN_ERRORS: ReadonlySet<string> = new Set([
  'internal_error',
  'storage_unavailable',
  'shutting_down',
  'client_closed_request',
])

type Circumstances = {
  /** Whether the client has left, or the gateway stops. */
  isAborted: boolean
  /** Whether the target answered no other call either since this one was sent. */
  wasSilent: boolean
}

export function outcomeOf(error: unknown, { isAborted, wasSilent }: Circumstances): Outcome {
  // A client that leaves says nothing about the target: a breaker must not open because of it.
  if (isAborted || !(error instanceof GatewayError)) return { kind: 'neutral' }
  const { code, detail } = error
  const { upstream_status, retry_after } = detail
  switch (code) {
    case 'rate_limit_exceeded':
      return { kind: 'rate_limited', retry_after_ms: retry_after === undefined ? undefined : retry_after * 1000 }
    case 'upstream_auth':
      return { kind: 'refused' }
    case 'no_available_channel':
      // With a status: the account is out of credit. Without: the provider has no such family.
      return { kind: upstream_status === undefined ? 'neutral' : 'refused' }
    case 'upstream_unreachable':
      return { kind: 'failed', at_once: true }
    case 'upstream_timeout':
      return { kind: 'failed', at_once: wasSilent && upstream_status === undefined }
  }
  if (isFaultOfTarget(error)) return { kind: 'failed', at_once: false }
  // It understood the request and refused it: it works.
  return upstream_status === undefined ? { kind: 'neutral' } : { kind: 'ok', first_byte_ms: undefined }
}

export const noneAvailable = () =>
  new GatewayError('no_available_channel', 'No provider is available for this model.', { accepted: 'no' })

/** Whether no target was tried, because each is avoided. */
export const isNoneAvailable = (error: unknown): boolean =>
  error instanceof GatewayError &&
  error.code === 'no_available_channel' &&
  error.detail.accepted === 'no' &&
  error.detail.upstream_status === undefined

export const tooLate = () =>
  new GatewayError('upstream_timeout', 'The deadline of the request had passed before it could be sent.', {
    accepted: 'no',
  })

export const silentFor = ({ provider }: Target, ms: number) =>
  new GatewayError('upstream_timeout', `The upstream "${provider.id}" sent nothing within ${Math.round(ms) / 1000} s.`)
