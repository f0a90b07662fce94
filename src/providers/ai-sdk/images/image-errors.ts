/** Errors of images behind a package, and whether the order was accepted. */
import { isRecord } from '../../../kit/json.ts'
import { scrub } from '../../../protocols/shared/provider-error.ts'
import { holdsError } from '../../../protocols/shared/upstream.ts'
import { GatewayError } from '../../../spec/error.ts'
import { POLICY_WORDING } from '../../orders/order-messages.ts'
import type { AdapterParts } from '../../settings.ts'
import { createPackageErrors, type UpstreamResponse } from '../errors.ts'
import type { ImageResult, ImageVendor } from './image-family.ts'

type Request = {
  model: string
  /** The order was accepted before, so this response is only to a query. */
  isAccepted: boolean
}

export type ImageErrors = ReturnType<typeof createImageErrors>

type ErrorParts = Pick<AdapterParts, 'id' | 'clock' | 'log'> & { vendor: ImageVendor }

export function createImageErrors(parts: ErrorParts) {
  const { id, vendor } = parts
  const errors = createPackageErrors(parts)
  const upstream = `The upstream "${id}"`

  /** The vendor has ended its work without an image: final, since no other response follows. */
  function failed({ fail_code, reason }: NonNullable<ImageResult['failure']>): GatewayError {
    const message = scrub(reason)
    const isPolicy = fail_code === 'content_policy_violation' || (!fail_code && POLICY_WORDING.test(message))
    return isPolicy
      ? new GatewayError('content_policy_violation', message || `${upstream} refused the content.`, {
          fail_code: 'content_policy_violation',
        })
      : new GatewayError(
          'bad_upstream_response',
          `${upstream} failed${message ? `: ${message}` : ' without a reason.'}`,
          {
            fail_code: fail_code ?? 'generation_failed',
          },
        )
  }

  return {
    logged: errors.logged,
    logIgnored: errors.logIgnored,
    unreadable: errors.unreadable,
    /** The error that a response is; undefined: it is none. */
    inResponse(response: UpstreamResponse, { model, isAccepted }: Request): GatewayError | undefined {
      const { status, payload } = response
      const order_kind = isAccepted ? undefined : vendor.kind
      const errorClass = vendor.classifyError?.(payload, status)
      const rejected = errors.rejected(response, { model, errorClass, order_kind, isSynchronous: true })
      if (rejected) return rejected
      const { images, failure } = vendor.read?.(payload, status) ?? {}
      if (failure) return failed(failure)
      // Of status 2xx: no vendor documents that nothing was accepted.
      if (images === undefined && isRecord(payload) && holdsError(payload)) return errors.inBody(payload, model)
      return images?.length === 0
        ? new GatewayError('bad_upstream_response', `${upstream} returned no image.`, { fail_code: 'no_output' })
        : undefined
    },
    /** The package did not accept the request. */
    unsent: (thrown: unknown) =>
      errors.unsent(thrown, {
        own: { name: `metadata.${vendor.kind}`, param: 'metadata' },
        fieldOf: (option) => Object.entries(vendor.options ?? {}).find(([, name]) => name === option)?.[0],
        code: 'unsupported_value',
        accepted: 'no',
      }),
  }
}
