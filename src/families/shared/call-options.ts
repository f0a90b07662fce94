/** Reads what a request asks beside its content, in headers and body: its routing, the response cache, and whom it is for. */
import Type from 'typebox'
import type { CacheDirective, Call, CallOptions, Plan } from '../../calls/call.ts'
import type { ServerSettings } from '../../config/config.ts'
import { checker } from '../../kit/checker.ts'
import { diagnose } from '../../kit/diagnose.ts'
import { endUserName } from '../../kit/end-user-name.ts'
import { isRecord, type JsonRecord, memberOf } from '../../kit/json.ts'
import type { Catalogue } from '../../models/catalogue.ts'
import { refusalOf } from '../../protocols/shared/request-error.ts'
import type { Provider } from '../../providers/provider.ts'
import type { CallFamily } from '../../spec/endpoint-family.ts'
import { GatewayError } from '../../spec/error.ts'
import { ROUTING_FIELDS } from '../../spec/routing-fields.ts'
import type { Caller } from '../../spec/token.ts'
import { namesIn, parsePreferences } from './provider-field.ts'

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
function mayChooseRouting(
  { token_id, project_id }: Pick<Caller, 'token_id' | 'project_id'>,
  { caller_routing: allowed }: Pick<ServerSettings, 'caller_routing'>,
): boolean {
  if (typeof allowed === 'boolean') return allowed
  return allowed.includes(token_id) || (project_id !== undefined && allowed.includes(project_id))
}

function timeoutOf(text: string): number {
  const seconds = SECONDS.test(text) ? Number(text) : Number.NaN
  if (seconds > 0 && seconds <= MAX_TIMEOUT_SECONDS) return Math.round(seconds * 1000)
  const rule = `must be a number of seconds above 0 and at most ${MAX_TIMEOUT_SECONDS}, with up to 3 decimals`
  throw invalid(TIMEOUT_HEADER, `${rule}, such as 2.5`)
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
const notPermitted = (what: string, param?: string) =>
  new GatewayError(
    'unsupported_parameter',
    `${what} is not supported: the operator of this gateway does not let this request choose its routing.`,
    param === undefined ? {} : { param },
  )

const USER_HEADER = 'x-gatehouse-user'

const CONTROL = /\p{Cc}/u

type Named = Pick<Call, 'request_id' | 'end_user'>

const SESSION_HEADER = 'x-gatehouse-session'
const SESSION = /^[\x21-\x7e]{1,128}$/

/** From the header, which takes precedence. Throws invalid_value that names it. */
export function readUserHeader(call: Named, given: string | null): void {
  if (given === null) return
  const value = utf8Of(given)
  if (CONTROL.test(value)) {
    throw new GatewayError('invalid_value', `The header ${USER_HEADER} must not hold control characters.`)
  }
  name(call, value)
}

/** Throws invalid_value that names the header. */
function readSessionHeader(call: Pick<Call, 'session'>, given: string | null): void {
  if (given === null) return
  if (!SESSION.test(given)) {
    throw new GatewayError('invalid_value', `The header ${SESSION_HEADER} must have 1 to 128 visible ASCII characters.`)
  }
  call.session = given
}

/** For the request log. In the Messages API it names the end user, and nothing else. */
export function readMetadata(call: Pick<Call, 'request_id' | 'metadata'>, body: unknown, family: CallFamily): void {
  if (family === 'messages-compat' || !isRecord(body)) return
  const { metadata } = body
  if (isRecord(metadata)) call.metadata = metadata
}

/** From the field of the body that the protocol has for it, unless the header names one. */
export function readUserField(call: Named, body: unknown, family: CallFamily): void {
  if (call.end_user !== undefined || !isRecord(body)) return
  if (family === 'messages-compat') name(call, memberOf(body.metadata, 'user_id'))
  else readUserFields(call, body.user, body.safety_identifier)
}

/** The same for a body that may be a form. */
export function readUserFields(call: Named, user: unknown, safety_identifier: unknown): void {
  if (call.end_user !== undefined) return
  name(call, user)
  if (call.end_user === undefined) name(call, safety_identifier)
}

/** A value of another type is left to the parser, and an empty one names nobody. */
function name(call: Named, value: unknown): void {
  const end_user = typeof value === 'string' ? endUserName(value) : undefined
  if (end_user !== undefined) call.end_user = end_user
}

/** Headers arrive with one character for each byte; clients that send other than ASCII send UTF-8. */
function utf8Of(header: string): string {
  if (!/[\x80-\xff]/.test(header)) return header
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(header, 'latin1'))
  } catch {
    return header
  }
}

type RoutingFieldParts = {
  catalogue: Pick<Catalogue, 'require' | 'hasProvider'>
  settings: Pick<ServerSettings, 'caller_routing' | 'show_target'>
}

type Planned = Pick<Plan, 'model' | 'family'>
type Calling = Pick<Call, 'caller' | 'options'> & { plan?: Planned | undefined }

const Field = Type.Object({ models: ROUTING_FIELDS.models })
const check = checker(Field)

/** The model of a body: without `model` it is the first of `models`. */
export function requestedModel(body: unknown): unknown {
  const model = memberOf(body, 'model') ?? undefined
  if (model !== undefined) return model
  const models = memberOf(body, 'models')
  return Array.isArray(models) ? models[0] : undefined
}

/**
 * Keeps on an authorized call what the fields ask for, and returns the body without them. Where each provider of the model
 * gets a field from the client, as OpenRouter may, one that names anything unknown here stays in the body.
 * Throws GatewayError that names the field and its rule, or the model that the caller may not use.
 */
export function takeRoutingFields(body: unknown, call: Calling, { catalogue, settings }: RoutingFieldParts): unknown {
  const { plan } = call
  const hasFields = isRecord(body) && (hasField(body, 'models') || hasField(body, 'provider'))
  return hasFields && plan ? withoutRoutingFields(body, { call, plan }, { catalogue, settings }) : body
}

function withoutRoutingFields(
  body: JsonRecord,
  { call, plan }: { call: Calling; plan: Planned },
  { catalogue, settings }: RoutingFieldParts,
): JsonRecord {
  const { model, family } = plan
  const mayForward = (field: string) => model.targets.every(({ provider }) => takes(field, provider, family))
  const rest: JsonRecord = { ...body, model: requestedModel(body) }
  if (!mayChooseRouting(call.caller, settings)) {
    const param = ['models', 'provider'].find((field) => hasField(body, field) && !mayForward(field))
    if (param === undefined) return rest
    throw notPermitted(`"${param}"`, param)
  }
  const options = { ...call.options }
  const listing = { call, plan, catalogue }
  const models = hasField(body, 'models') && otherModels(body.models, { ...listing, mayForward: mayForward('models') })
  if (models) {
    options.models = models
    delete rest.models
    // OpenRouter's older documentation sends this along with `models`; other providers reject it.
    if (rest.route === 'fallback') delete rest.route
  }
  const isKnown = settings.show_target ? (id: string) => catalogue.hasProvider(id, call.caller) : undefined
  if (hasField(body, 'provider') && !(mayForward('provider') && isForOthers(body.provider, isKnown))) {
    options.provider = parsePreferences(body.provider, isKnown)
    delete rest.provider
  }
  call.options = options
  return rest
}

/** Whether a provider gets the field as the client sends it: the operator forwards it, or the whole request passes through. */
function takes(field: string, provider: Provider, family: CallFamily): boolean {
  const { forwarded_fields, takes_routing_fields, passthrough, otherPassthroughs = [] } = provider
  if (family === 'chatcompat') return forwarded_fields?.includes(field) ?? false
  // One that names further models does not pass through, so that nobody reaches them by it.
  if (field === 'models' || !takes_routing_fields) return false
  return [passthrough, ...otherPassthroughs].some((one) => one?.dialect === family)
}

const hasField = (body: JsonRecord, name: string): boolean => body[name] !== undefined && body[name] !== null

/** Whether it is not about providers of the gateway. */
function isForOthers(field: unknown, isKnown: ((id: string) => boolean) | undefined): boolean {
  const names = namesIn(field)
  return !isKnown || names.length === 0 || names.some((name) => typeof name !== 'string' || !isKnown(name))
}

type Listing = {
  call: Calling
  plan: Planned
  mayForward: boolean
  catalogue: RoutingFieldParts['catalogue']
}

/** The models besides that of the call; undefined: the list is for its provider. */
function otherModels(
  models: unknown,
  { call: { caller }, plan, mayForward, catalogue }: Listing,
): string[] | undefined {
  const given: unknown = { models }
  if (!check.Check(given) || !given.models) {
    if (mayForward) return undefined
    throw refusalOf(diagnose(Field, given))
  }
  const seen = new Set([plan.model.id])
  const others: string[] = []
  let isForwarded = false
  for (const [index, name] of given.models.entries()) {
    try {
      const { model } = catalogue.require(name, plan.family, caller)
      if (!seen.has(model.id)) others.push(name)
      seen.add(model.id)
    } catch (thrown) {
      if (!(thrown instanceof GatewayError)) throw thrown
      // A later one may be known and not allowed to the caller, who must not reach it by this way.
      if (mayForward && thrown.code === 'model_not_found') isForwarded = true
      else throw new GatewayError(thrown.code, thrown.message, { ...thrown.detail, param: `models[${index}]` })
    }
  }
  return isForwarded ? undefined : others
}
