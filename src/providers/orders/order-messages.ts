/** The wording that order APIs share: how rejected content is recognised, and the messages that several kinds return. */
import { GatewayError } from '../../spec/error.ts'
import type { TaskProgress } from '../provider.ts'

/** How providers phrase that they rejected the content, in error messages and in the reasons of failed tasks. */
export const POLICY_WORDING =
  /moderat|content[ _-]?(polic|filter)|risk control|safety|sensitive|inappropriate|nsfw|prohibited|responsible ai|usage (polic|guidelines)|copyright|public figure|data_?inspection/i

export const CONTENT_REJECTED = 'The upstream rejected the content.'
export const EXPIRED = 'The task expired at the upstream.'

export const CANCELED_REASON = 'The task was canceled at the upstream.'

export const CANCELED: TaskProgress = {
  status: 'FAILURE',
  fail_code: 'canceled',
  fail_reason: CANCELED_REASON,
}

/** The stored operation of an order does not have the shape of this kind: the provider's kind was changed since. */
export const foreignOperation = () =>
  new GatewayError('internal_error', 'The stored order belongs to a provider of another kind.')

/** The error for a field that the provider would ignore although it changes the result. Nothing was sent. */
export const unsupportedField = (upstream: string, field: string) =>
  new GatewayError(
    'unsupported_parameter',
    `The upstream "${upstream}" does not support "${field}" with this model. Leave it out, or choose another model.`,
    { param: field, accepted: 'no' },
  )
