/** What goes wrong with a call through a package, on our sheet: the wire's last answer is worth more than the package's word. */
import type { Clock } from '../../../kit/clock.ts'
import { isRecord, type JsonRecord, parseJson } from '../../../kit/json.ts'
import { errorFromResponse, errorInResponse, holdsError } from '../../../protocols/provider-error.ts'
import { GatewayError } from '../../../spec/error.ts'
import { orderError } from '../../orders/order-error.ts'
import type { Wire } from '../../upstream/transport-fetch.ts'
import type { ChatVendor } from './vendor.ts'

type FaultParts = { provider: string; vendor: ChatVendor; clock: Clock }

type ChatFaults = {
  /** Whatever a package's method threw. */
  thrown(thrown: unknown, wire: Wire, model: string): GatewayError
  /** An error that came as a part of a stream. */
  inStream(error: unknown, wire: Wire, model: string): GatewayError
  /** An answer that ended without an end. */
  cut(wire: Wire, model: string, raw?: string): GatewayError
}

export function createChatFaults({ provider, vendor, clock }: FaultParts): ChatFaults {
  const upstream = `The upstream "${provider}"`

  /** What the vendor said with its status, or with 200 where an answer was expected. */
  function heard({ response: answer }: Wire, model: string): GatewayError | undefined {
    if (!answer) return undefined
    const { status, headers, text } = answer
    const payload = parseJson(text)
    const meaning = vendor.judge?.(payload, status)
    if (status >= 300 || meaning !== undefined) {
      // Chat costs nothing when it is refused: what is said of orders does not count here.
      const error = orderError({ provider, model, status, headers, payload, errorClass: meaning, clock })
      return error.code === 'insufficient_quota' || error.code === 'model_not_found'
        ? errorFromResponse({ provider, model, status: meaning === 402 ? 402 : status, headers, payload, clock })
        : error
    }
    const body = Array.isArray(payload) ? payload[0] : payload
    return isRecord(body) && holdsError(body) ? inAnswer(body, model) : undefined
  }

  const inAnswer = (payload: unknown, model: string) => errorInResponse({ provider, model, payload, clock })

  const notUnderstood = (thrown: unknown, { response: answer }: Wire) =>
    new GatewayError('bad_upstream_response', `${upstream} answered with something that could not be read.`, {
      ...(answer ? { upstream_status: answer.status } : {}),
      cause: nameOf(thrown),
    })

  function cut(wire: Wire, model: string, raw?: string): GatewayError {
    if (wire.failure) return wire.failure
    const said = heard(wire, model)
    if (said) return said
    if (wire.response?.text) return notUnderstood(undefined, wire)
    return raw === undefined
      ? new GatewayError('upstream_cut', `${upstream} ended its answer in the middle, without a finish.`)
      : new GatewayError('bad_upstream_response', `${upstream} broke its answer off by itself.`)
  }

  /** An error of the vendor's as its package hands it on: its own words first, then the status that the package guessed. */
  function told(error: unknown, model: string): GatewayError | undefined {
    const payload = payloadOf(error)
    if (payload === undefined) return undefined
    const byWords = inAnswer(payload, model)
    const status = isRecord(error) && typeof error.statusCode === 'number' ? error.statusCode : 0
    return byWords.code === 'bad_upstream_response' && status >= 400
      ? errorFromResponse({ provider, model, status, headers: undefined, payload, clock })
      : byWords
  }

  return {
    thrown(thrown, wire, model) {
      if (wire.failure) return wire.failure
      if (thrown instanceof GatewayError) return thrown
      if (!wire.response) return unsent(thrown, vendor, provider)
      const said = heard(wire, model)
      // Some packages wait for the first words of a stream, and throw what came instead.
      const isCall = isRecord(thrown) && thrown.name === 'AI_APICallError' && isRecord(thrown.data)
      const inWords = said ?? (isCall ? told(thrown, model) : undefined)
      // A package that complains of a body's very end has found half an event there.
      return inWords ?? (wire.isAtEnd ? cut(wire, model) : notUnderstood(thrown, wire))
    },
    inStream(error, wire, model) {
      if (wire.failure) return wire.failure
      if (error instanceof GatewayError) return error
      // With no data it is the package's word for a stream that ended without a finish.
      if (isRecord(error) && error.name === 'AI_InvalidResponseDataError' && error.data === undefined)
        return cut(wire, model)
      return told(error, model) ?? notUnderstood(error, wire)
    },
    cut,
  }
}

/**
 * An event of a kind that the package does not know yet: passed over. One that carries a piece of the answer is not,
 * since words would be missing.
 */
export function isUnknownEvent(error: unknown): boolean {
  if (!isRecord(error) || error.name !== 'AI_TypeValidationError' || !isRecord(error.value)) return false
  const { type } = error.value
  return typeof type === 'string' && !type.includes('delta') && !holdsError(error.value)
}

/** The error that a package put into its stream, as the vendor wrote it; undefined: it is the package's own complaint. */
function payloadOf(error: unknown): unknown {
  if (typeof error === 'string') return { error: { message: error } }
  if (!isRecord(error)) return undefined
  const { name, data, value, responseBody, message, type, code } = error
  // Of an event that the package's schema does not know.
  if (name === 'AI_TypeValidationError') return isRecord(value) && holdsError(value) ? value : undefined
  if (name === 'AI_JSONParseError') return undefined
  const said = [data, typeof responseBody === 'string' ? parseJson(responseBody) : undefined].find(
    (one): one is JsonRecord => isRecord(one) && holdsError(one),
  )
  return said ?? { error: { message, type, code } }
}

/** Packages put the whole request into their errors, so nothing but the name goes on. */
const nameOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.name : typeof thrown)

/** Nothing was sent: the package would not take the request. */
function unsent(thrown: unknown, { kind }: ChatVendor, provider: string): GatewayError {
  const name = thrown instanceof Error ? thrown.name : ''
  if (thrown instanceof Error && name === 'AI_UnsupportedFunctionalityError') {
    const what = 'functionality' in thrown ? String(thrown.functionality).slice(0, 200) : 'a part of it'
    return new GatewayError(
      'unsupported_parameter',
      `The upstream "${provider}" cannot take this in "messages": ${what}.`,
      {
        param: 'messages',
      },
    )
  }
  if (/^AI_(InvalidArgument|TypeValidation|InvalidPrompt)Error$/.test(name)) {
    const param = `provider_options.${kind}`
    return new GatewayError('invalid_value', `"${param}" was not understood: ${faultsOf(thrown)}.`, { param })
  }
  return new GatewayError('internal_error', `The request for "${provider}" could not be written.`, {
    cause: nameOf(thrown),
  })
}

/** The names of the members at fault; their values may be large or private. */
function faultsOf(thrown: unknown): string {
  const cause = thrown instanceof Error && isRecord(thrown.cause) ? (thrown.cause.cause ?? thrown.cause) : undefined
  const issues = isRecord(cause) && Array.isArray(cause.issues) ? cause.issues.filter(isRecord) : []
  const faults = issues.map((issue) => `${Array.isArray(issue.path) ? issue.path.join('.') : ''}: ${issue.message}`)
  return (faults.join('; ') || 'its members do not fit together').slice(0, 300)
}
