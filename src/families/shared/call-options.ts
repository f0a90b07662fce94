/** What the headers of a request ask of its routing and of the response cache, and whom it is for. */
import type { CacheDirective, Call, CallOptions } from '../../calls/call.ts'
import type { ServerSettings } from '../../config/config.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Caller } from '../../spec/token.ts'
import { readSessionHeader, readUserHeader, SESSION_HEADER, USER_HEADER } from './end-user.ts'

const TIMEOUT_HEADER = 'x-gatehouse-timeout'
const NO_FALLBACK_HEADER = 'x-gatehouse-no-fallback'
const TAGS_HEADER = 'x-gatehouse-tags'
export const CACHE_HEADER = 'x-gatehouse-cache'
export const SIMILARITY_HEADER = 'x-gatehouse-cache-similarity'

/** As `routing.deadline_seconds`. */
const MAX_TIMEOUT_SECONDS = 86_400
const SECONDS = /^\d{1,5}(\.\d{1,3})?$/
const MAX_TAGS = 16
/** Safe in a log line, and as text of the configuration. */
const TAG = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,63}$/

type Request = { header(name: string): string | null }

/**
 * Keeps the options on the call; none where the request has no such header. Throws `invalid_value` that names the header,
 * and `unsupported_parameter` for one that the operator does not permit.
 */
export function readCallOptions(
  call: Pick<Call, 'request_id' | 'options' | 'end_user' | 'session' | 'caller'> & Request,
  settings: Pick<ServerSettings, 'caller_routing'>,
): void {
  readUserHeader(call, call.header(USER_HEADER))
  readSessionHeader(call, call.header(SESSION_HEADER))
  const timeout = call.header(TIMEOUT_HEADER)
  const noFallback = call.header(NO_FALLBACK_HEADER)
  const tags = call.header(TAGS_HEADER)
  const cache = call.header(CACHE_HEADER)
  if (timeout === null && noFallback === null && tags === null && cache === null) return
  if (!mayChooseRouting(call.caller, settings)) {
    if (timeout !== null) throw notPermitted(`The header ${TIMEOUT_HEADER}`)
    if (noFallback !== null) throw notPermitted(`The header ${NO_FALLBACK_HEADER}`)
  }
  const options: CallOptions = {}
  if (timeout !== null) options.timeout_ms = timeoutOf(timeout)
  if (noFallback !== null && isSet(noFallback)) options.no_fallback = true
  if (tags !== null) options.tags = tagsOf(tags)
  if (cache !== null) options.cache = directiveOf(cache)
  call.options = options
}

/** Whether the operator lets the requests of the caller choose their routing. */
export function mayChooseRouting(
  { token_id, project_id }: Pick<Caller, 'token_id' | 'project_id'>,
  { caller_routing: allowed }: Pick<ServerSettings, 'caller_routing'>,
): boolean {
  if (typeof allowed === 'boolean') return allowed
  return allowed.includes(token_id) || (project_id !== undefined && allowed.includes(project_id))
}

function timeoutOf(text: string): number {
  const seconds = SECONDS.test(text) ? Number(text) : Number.NaN
  if (seconds > 0 && seconds <= MAX_TIMEOUT_SECONDS) return Math.round(seconds * 1000)
  throw invalid(TIMEOUT_HEADER, `must be a number of seconds above 0 and at most ${MAX_TIMEOUT_SECONDS}, such as 2.5`)
}

function isSet(text: string): boolean {
  const value = text.toLowerCase()
  if (value === '1' || value === 'true') return true
  if (value === '0' || value === 'false') return false
  throw invalid(NO_FALLBACK_HEADER, 'must be 1 or true, or 0 or false')
}

function tagsOf(text: string): string[] {
  const tags = new Set(text.split(',').map((tag) => tag.trim()))
  if (tags.size > MAX_TAGS) throw invalid(TAGS_HEADER, `may name at most ${MAX_TAGS} tags, not ${tags.size}`)
  for (const tag of tags) {
    if (TAG.test(tag)) continue
    throw invalid(
      TAGS_HEADER,
      'must be a list of tags, separated by commas; a tag has 1 to 64 letters, digits and . _ : / -, and begins with a letter or digit',
    )
  }
  return [...tags]
}

function directiveOf(text: string): CacheDirective {
  if (text === 'on' || text === 'off' || text === 'refresh') return text
  throw invalid(CACHE_HEADER, 'must be on, off or refresh')
}

const invalid = (header: string, rule: string) => new GatewayError('invalid_value', `The header ${header} ${rule}.`)

/** `what`: a header or a field, with which the caller asks for a routing of its own. */
export const notPermitted = (what: string, param?: string) =>
  new GatewayError(
    'unsupported_parameter',
    `${what} is not supported: the operator of this gateway does not let this request choose its routing.`,
    param === undefined ? {} : { param },
  )
