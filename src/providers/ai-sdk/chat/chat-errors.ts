/** Errors of a chat call through a package: what the response itself says is preferred to what the package throws. */
import { isRecord, type JsonRecord, parseJson } from '../../../kit/json.ts'
import { holdsError } from '../../../protocols/shared/upstream.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { AdapterParts } from '../../settings.ts'
import type { Wire } from '../../upstream/transport-fetch.ts'
import { createPackageErrors, issuesIn, nameOf } from '../errors.ts'
import type { ChatVendor } from './chat-family.ts'

export function createChatErrors(
  parts: Pick<AdapterParts, 'id' | 'clock' | 'log'> & { vendor: Pick<ChatVendor, 'kind'> },
) {
  const errors = createPackageErrors(parts)
  const upstream = `The upstream "${parts.id}"`
  const field = `provider_options.${parts.vendor.kind}`
  const fields = { own: { name: field, param: field } }

  /** A response that ended without a finish reason. */
  function cut(wire: Wire, model: string, raw?: string): GatewayError {
    const error = wire.failure ?? errors.inResponse(wire, model)
    if (error) return error
    if (wire.response?.text) return errors.unreadable(undefined, wire.response.status)
    return raw === undefined
      ? new GatewayError('upstream_cut', `${upstream} ended its response without a finish reason.`)
      : new GatewayError('bad_upstream_response', `${upstream} aborted its response.`)
  }

  /** An error of the vendor as its package passes it on: its message decides, then the status that the package guessed. */
  function passedOn(error: unknown, model: string): GatewayError | undefined {
    const payload = payloadOf(error)
    if (payload === undefined) return undefined
    const byMessage = errors.inBody(payload, model)
    const status = isRecord(error) && typeof error.statusCode === 'number' ? error.statusCode : 0
    return byMessage.code === 'bad_upstream_response' && status >= 400
      ? errors.rejected({ status, headers: new Headers(), payload }, { model, isSynchronous: true })
      : byMessage
  }

  /** The package did not accept the request, by a type of error of its own. */
  function unsupported(thrown: unknown): GatewayError | undefined {
    const name = nameOf(thrown)
    if (isRecord(thrown) && name === 'AI_UnsupportedFunctionalityError') {
      const what = 'functionality' in thrown ? String(thrown.functionality).slice(0, 200) : 'a part of it'
      const message = `${upstream} does not support this in "messages": ${what}.`
      return new GatewayError('unsupported_value', message, { param: 'messages' })
    }
    return /^AI_(InvalidArgument|TypeValidation|InvalidPrompt)Error$/.test(name)
      ? errors.invalidOptions(issuesIn(thrown) ?? [], fields)
      : undefined
  }

  return {
    cut,
    logged: errors.logged,
    logIgnored: errors.logIgnored,
    /** Whatever a package's method threw. */
    thrown(thrown: unknown, wire: Wire, model: string): GatewayError {
      const isOurs = wire.failure || thrown instanceof GatewayError
      const known = isOurs || wire.response ? undefined : unsupported(thrown)
      const error = known ?? errors.known(thrown, wire, { model, fields })
      if (error) return error
      // Some packages read the first event of a stream, and throw its error.
      const isCall = isRecord(thrown) && thrown.name === 'AI_APICallError' && isRecord(thrown.data)
      const first = isCall ? passedOn(thrown, model) : undefined
      // A package that fails at the very end of a body has found half an event there.
      return first ?? (wire.isAtEnd ? cut(wire, model) : errors.unreadable(thrown, wire.response?.status))
    },
    /** An error that came as a part of a stream. */
    inStream(error: unknown, wire: Wire, model: string): GatewayError {
      if (wire.failure) return wire.failure
      if (error instanceof GatewayError) return error
      // Without data this is how a package reports a stream that ended without a finish reason.
      if (isRecord(error) && error.name === 'AI_InvalidResponseDataError' && error.data === undefined) {
        return cut(wire, model)
      }
      return passedOn(error, model) ?? errors.unreadable(error, wire.response?.status)
    },
  }
}

/**
 * An event of a kind that the package does not know yet is skipped. One that holds a piece of the answer is not, since
 * text would be missing.
 */
export function isUnknownEvent(error: unknown): boolean {
  if (!isRecord(error) || error.name !== 'AI_TypeValidationError' || !isRecord(error.value)) return false
  const { type } = error.value
  return typeof type === 'string' && !type.includes('delta') && !holdsError(error.value)
}

/** The vendor's error that a package put into its stream; undefined: it is an error of the package itself. */
function payloadOf(error: unknown): unknown {
  if (typeof error === 'string') return { error: { message: error } }
  if (!isRecord(error)) return undefined
  const { name, data, value, responseBody, message, type, code } = error
  // Of an event that the package's schema does not know.
  if (name === 'AI_TypeValidationError') return isRecord(value) && holdsError(value) ? value : undefined
  if (name === 'AI_JSONParseError') return undefined
  const found = [data, typeof responseBody === 'string' ? parseJson(responseBody) : undefined].find(
    (one): one is JsonRecord => isRecord(one) && holdsError(one),
  )
  return found ?? { error: { message, type, code } }
}
