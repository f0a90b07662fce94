/** What goes wrong with texts behind a package, on our sheet: the wire's last answer is worth more than the package's word. */
import type { Clock } from '../../../kit/clock.ts'
import { isRecord, parseJson } from '../../../kit/json.ts'
import { errorFromResponse, errorInResponse, holdsError } from '../../../protocols/provider-error.ts'
import { GatewayError } from '../../../spec/error.ts'
import type { Wire } from '../../upstream/transport-fetch.ts'
import type { EmbeddingWords } from './vendor.ts'

type FaultParts = { provider: string; model: string; clock: Clock; words: EmbeddingWords }

/** Whatever a package's method threw. */
export function faultOf(thrown: unknown, wire: Wire, parts: FaultParts): GatewayError {
  if (wire.failure) return wire.failure
  if (thrown instanceof GatewayError) return thrown
  const { response: answer } = wire
  if (!answer) return unsent(thrown, parts)
  const { provider, model, clock } = parts
  const { status, headers } = answer
  const payload = parseJson(answer.text)
  const said = { provider, model, payload, clock }
  if (status >= 300) return errorFromResponse({ ...said, status, headers })
  if (isRecord(payload) && holdsError(payload)) return errorInResponse(said)
  return new GatewayError(
    'bad_upstream_response',
    `The upstream "${provider}" answered with something that could not be read.`,
    // Packages put the whole request into their errors, so nothing but the name goes on.
    { upstream_status: status, cause: nameOf(thrown) },
  )
}

const nameOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.name : typeof thrown)

/** Nothing was sent: the package would not take the request. */
function unsent(thrown: unknown, { provider, model, words }: FaultParts): GatewayError {
  const issues = issuesOf(thrown)
  for (const [param, option] of [
    ['dimensions', words.dimensions],
    ['input_type', words.input_type?.option],
  ] as const) {
    const issue = issues.find(({ path }) => path === option)
    if (!issue) continue
    const message = `"${param}" is not one that the model "${model}" of "${provider}" takes: ${issue.message}.`
    return new GatewayError('invalid_value', message, { param })
  }
  return new GatewayError('internal_error', `The request for "${provider}" could not be written.`, {
    cause: nameOf(thrown),
  })
}

/** What the package's schema of its options said. */
function issuesOf(thrown: unknown): { path: string; message: string }[] {
  const cause = thrown instanceof Error && isRecord(thrown.cause) ? (thrown.cause.cause ?? thrown.cause) : undefined
  const issues = isRecord(cause) && Array.isArray(cause.issues) ? cause.issues.filter(isRecord) : []
  return issues.map(({ path, message }) => ({
    path: Array.isArray(path) ? path.join('.') : '',
    message: String(message).slice(0, 200),
  }))
}
