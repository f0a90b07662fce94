/** The errors of a call that no target has answered. */
import type { Target } from '../providers/provider.ts'
import { GatewayError } from '../spec/error.ts'

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
  new GatewayError('upstream_timeout', `The upstream "${provider.id}" sent nothing within ${ms / 1000} s.`)
