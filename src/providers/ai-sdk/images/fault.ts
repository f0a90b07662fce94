/** What goes wrong with images behind a package, on our sheet, and what it says of the order. */
import type { Clock } from '../../../kit/clock.ts'
import { isRecord } from '../../../kit/json.ts'
import { errorInResponse, holdsError, scrub } from '../../../protocols/provider-error.ts'
import { GatewayError } from '../../../spec/error.ts'
import { orderError } from '../../orders/order-error.ts'
import { AGAINST_POLICY } from '../words.ts'
import type { ImageVendor, SaidOfImages } from './vendor.ts'

type Answer = { status: number; headers: Headers; payload: unknown }
type Asked = {
  model: string
  /** The order was answered well before this: what is refused now is only a question. */
  isTaken: boolean
}

export type ImageFaults = {
  /** The error that an answer is; undefined: it is none. */
  heard(answer: Answer, asked: Asked): GatewayError | undefined
  notUnderstood(status: number, thrown?: unknown): GatewayError
  /** The package would not take the request. */
  unsent(thrown: unknown): GatewayError
}

type FaultParts = { provider: string; vendor: ImageVendor; clock: Clock }

export function createImageFaults({ provider, vendor, clock }: FaultParts): ImageFaults {
  const upstream = `The upstream "${provider}"`

  /** The vendor has ended its work without an image: a definite answer, after which nothing comes. */
  function failed({ fail_code, reason }: NonNullable<SaidOfImages['failure']>): GatewayError {
    const said = scrub(reason)
    const isPolicy = fail_code === 'content_policy_violation' || (!fail_code && AGAINST_POLICY.test(said))
    return isPolicy
      ? new GatewayError('content_policy_violation', said || `${upstream} refused the content.`, {
          fail_code: 'content_policy_violation',
        })
      : new GatewayError('bad_upstream_response', `${upstream} failed${said ? `: ${said}` : ' without saying why.'}`, {
          fail_code: fail_code ?? 'generation_failed',
        })
  }

  return {
    heard({ status, headers, payload }, { model, isTaken }) {
      const meaning = vendor.judge?.(payload, status)
      if (status >= 300 || meaning !== undefined) {
        const said = { provider, model, status, headers, payload, errorClass: meaning, clock }
        return orderError({ ...said, order_kind: isTaken ? undefined : vendor.kind, isSynchronous: true })
      }
      const { images, failure } = vendor.read?.(payload, status) ?? {}
      if (failure) return failed(failure)
      if (images === undefined && isRecord(payload) && holdsError(payload)) {
        // Of status 2xx: that nothing was accepted is not documented of any of them.
        return errorInResponse({ provider, model, payload, clock })
      }
      return images?.length === 0
        ? new GatewayError('bad_upstream_response', `${upstream} answered with no image.`, { fail_code: 'no_output' })
        : undefined
    },
    notUnderstood: (upstream_status, thrown) =>
      new GatewayError('bad_upstream_response', `${upstream} answered with something that could not be read.`, {
        upstream_status,
        // Packages put the whole request into their errors, so nothing but the name goes on.
        cause: nameOf(thrown),
      }),
    unsent(thrown) {
      const issues = issuesIn(thrown)
      if (issues === undefined) {
        return new GatewayError('internal_error', `The request for "${provider}" could not be written.`, {
          accepted: 'no',
          cause: nameOf(thrown),
        })
      }
      const [first] = issues
      const field = Object.entries(vendor.options ?? {}).find(([, option]) => option === first?.path)?.[0]
      const faults = issues.map(({ path, message }) => `${path}: ${message}`).join('; ') || 'its members do not fit'
      return new GatewayError(
        field === undefined ? 'invalid_value' : 'unsupported_value',
        `${field === undefined ? `"metadata.${vendor.kind}"` : `"${field}"`} was not understood: ${faults.slice(0, 300)}.`,
        { param: field ?? 'metadata', accepted: 'no' },
      )
    },
  }
}

const nameOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.name : typeof thrown)

/** The names of the members at fault, as the package's schema of its options has them; their values may be private. */
function issuesIn(thrown: unknown): { path: string; message: string }[] | undefined {
  const cause = thrown instanceof Error && isRecord(thrown.cause) ? (thrown.cause.cause ?? thrown.cause) : undefined
  if (!isRecord(cause) || !Array.isArray(cause.issues)) return undefined
  return cause.issues.filter(isRecord).map(({ path, message }) => ({
    path: Array.isArray(path) ? path.join('.') : '',
    message: String(message),
  }))
}
