/** The one place where an error of a package, or of the vendor behind it, becomes a `GatewayError`. */
import { isRecord, parseJson } from '../../kit/json.ts'
import { errorFromBody, scrub } from '../../protocols/shared/provider-error.ts'
import { holdsError } from '../../protocols/shared/upstream.ts'
import { GatewayError } from '../../spec/error.ts'
import { type ErrorClass, orderError } from '../orders/order-error.ts'
import type { AdapterParts } from '../settings.ts'
import type { Wire } from '../upstream/transport-fetch.ts'

export type UpstreamResponse = { status: number; headers: Headers; payload: unknown }

type Request = Omit<Parameters<typeof orderError>[0], keyof UpstreamResponse | 'provider' | 'clock' | 'errorClass'> & {
  errorClass?: ErrorClass | undefined
}

/** Who may be at fault for options that a package rejects. */
type OptionFields = {
  /** The field in which callers set the vendor's own options; absent: they cannot. */
  own?: { name: string; param: string }
  /** Our field for an option of the package. */
  fieldOf?(option: string): string | undefined
  /** The code for such a field. Default `invalid_value`. */
  code?: 'unsupported_value'
  /** Nothing was ordered. */
  accepted?: 'no'
}

type FailedCall = { model: string; fields: OptionFields }

export function createPackageErrors({ id, clock, log }: Pick<AdapterParts, 'id' | 'clock' | 'log'>) {
  const upstream = `The upstream "${id}"`

  /** A response that is an error by its status, or by what the vendor means by it. */
  const rejected = (response: UpstreamResponse, { errorClass, ...request }: Request) =>
    response.status >= 300 || errorClass !== undefined
      ? orderError({ provider: id, clock, ...response, ...request, errorClass })
      : undefined

  /** An error in a body of status 2xx, or in an event of a stream. */
  const inBody = (payload: unknown, model: string) => errorFromBody({ provider: id, model, payload, clock })

  /** The error that the last response is; undefined: it is none. */
  function inResponse({ response }: Wire, model: string): GatewayError | undefined {
    if (!response) return undefined
    const payload = parseJson(response.text)
    const error = rejected({ ...response, payload }, { model, isSynchronous: true })
    if (error) return error
    const body = Array.isArray(payload) ? payload[0] : payload
    return isRecord(body) && holdsError(body) ? inBody(body, model) : undefined
  }

  const unreadable = (thrown: unknown, upstream_status: number | undefined) =>
    new GatewayError('bad_upstream_response', `${upstream} returned a response that could not be read.`, {
      ...(upstream_status === undefined ? {} : { upstream_status }),
      cause: nameOf(thrown),
    })

  /** The package did not accept the vendor's own options. */
  function invalidOptions(issues: Issue[], { own, fieldOf, code, accepted }: OptionFields): GatewayError | undefined {
    const known = issues.find(({ path }) => fieldOf?.(path) !== undefined)
    const field = known && fieldOf?.(known.path)
    if (field === undefined && own === undefined) return undefined
    const text =
      issues.map(({ path, message }) => `${path}: ${message}`).join('; ') || 'its members do not fit together'
    return new GatewayError(
      (field === undefined ? undefined : code) ?? 'invalid_value',
      `"${field ?? own?.name}" was rejected for "${id}": ${scrub(text).slice(0, 300)}.`,
      { param: field ?? own?.param ?? '', ...(accepted ? { accepted } : {}) },
    )
  }

  /** Nothing was sent: the package did not accept the request. */
  function unsent(thrown: unknown, fields: OptionFields): GatewayError {
    const issues = issuesIn(thrown)
    const error = issues && invalidOptions(issues, fields)
    if (error) return error
    return new GatewayError('internal_error', `The request for "${id}" could not be created.`, {
      ...(fields.accepted ? { accepted: fields.accepted } : {}),
      cause: nameOf(thrown),
    })
  }

  /** Whatever the method of a package threw; undefined: the package could not read a response that is no error. */
  function known(thrown: unknown, wire: Wire, { model, fields }: FailedCall): GatewayError | undefined {
    if (wire.failure) return wire.failure
    if (thrown instanceof GatewayError) return thrown
    return wire.response ? inResponse(wire, model) : unsent(thrown, fields)
  }

  /** Logs a failure of the upstream; errors of the caller and of the gateway are logged elsewhere. */
  function logged(error: GatewayError, model: string): GatewayError {
    if (error.status >= 500 && error.code !== 'internal_error') {
      const { upstream_status } = error.detail
      log.warn('upstream failed', { provider: id, model, error: error.code, upstream_status })
    }
    return error
  }

  /** The operator can see what a package leaves out of a request. */
  function logIgnored(
    warnings: readonly ({ type: string } | { type: string; feature: string })[],
    model: string,
  ): void {
    for (const warning of warnings) {
      const feature = 'feature' in warning ? warning.feature : warning.type
      log.debug('upstream request changed by its package', { provider: id, model, feature })
    }
  }

  return {
    logIgnored,
    rejected,
    inBody,
    inResponse,
    unreadable,
    invalidOptions,
    unsent,
    known,
    logged,
    thrown: (thrown: unknown, wire: Wire, call: FailedCall) =>
      logged(known(thrown, wire, call) ?? unreadable(thrown, wire.response?.status), call.model),
  }
}

/** Packages put the whole request into their errors, so only the name is kept. */
export const nameOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.name : typeof thrown)

type Issue = { path: string; message: string }

/** What the package's schema of its options reports: names of members, never their values, which may be private. */
export function issuesIn(thrown: unknown): Issue[] | undefined {
  const cause = thrown instanceof Error && isRecord(thrown.cause) ? (thrown.cause.cause ?? thrown.cause) : undefined
  if (!isRecord(cause) || !Array.isArray(cause.issues)) return undefined
  return cause.issues.filter(isRecord).map(({ path, message }) => ({
    path: Array.isArray(path) ? path.join('.') : '',
    message: String(message),
  }))
}
