/** Which fields and headers a token limited to some models or families may send to a vendor, beyond those the gateway sets. */
import { type AllowList, all, type ObjectShape, type Outside, outsideOf } from '../../kit/allow-list.ts'
import { camelCase } from '../../kit/camel-case.ts'
import { isRecord, type JsonRecord } from '../../kit/json.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Caller } from '../../spec/token.ts'
import type { Dialect, PassthroughRules, Provider } from '../provider.ts'
import { CHAT_COMPLETIONS } from './chat-completions.ts'
import { CONTENTGEN } from './contentgen.ts'
import { EXTRAS } from './extras.ts'
import { FILE_URL_OR_BASE64 } from './media-url.ts'
import { BETAS, MESSAGES } from './messages.ts'
import { CHAT_OPTIONS } from './options.ts'
import { RESPONSES } from './responses.ts'

const DEFAULT_RULES: PassthroughRules = { applies_to: 'limited_tokens', allow: [] }

type Vendor = Pick<Provider, 'id' | 'kind' | 'passthroughRules'>

/** The rules for what this caller may send to this vendor; undefined if there are none. The sandbox sends no requests. */
function rulesFor({ kind, passthroughRules: rules }: Vendor, { is_limited }: Caller): PassthroughRules | undefined {
  const isRestricted = kind !== 'sandbox' && (is_limited || rules?.applies_to === 'all_tokens')
  return isRestricted ? (rules ?? DEFAULT_RULES) : undefined
}

const BODIES: Record<Dialect, Omit<AllowList, 'besides'>> = {
  chatcompat: { shape: CHAT_COMPLETIONS },
  'messages-compat': { shape: MESSAGES },
  'chatcompat-response': { shape: RESPONSES },
  'contentgen-compat': { shape: CONTENTGEN, spelling: camelCase },
}

/** Throws `unsupported_parameter` if a body has a field that is not on the list of its dialect. */
export function assertBody(body: unknown, dialect: Dialect, vendor: Vendor, caller: Caller): void {
  const rules = rulesFor(vendor, caller)
  const outside = rules && outsideOf(body, { ...BODIES[dialect], besides: rules.allow })
  if (!outside) return
  const error = notAllowed(outside, vendor)
  if (dialect === 'chatcompat') throw error
  // The vendor's client libraries recover from this code: they send the whole conversation, without a thread.
  const isThread = dialect === 'messages-compat' && outside.path === 'thread'
  throw new FieldNotAllowed(isThread ? 'thread_unsupported_request' : error.code, error.message, error.detail)
}

/** The same check for `provider_options` of a chat request. */
export function assertOptions(options: unknown, vendor: Vendor, caller: Caller): void {
  const rules = rulesFor(vendor, caller)
  if (!rules || !isRecord(options)) return
  const { 'responses-compat': responsesOptions, ...others } = options
  const path = 'provider_options'
  throwIf(outsideOf(responsesOptions, { shape: RESPONSES, besides: rules.allow }, `${path}.responses-compat`), vendor)
  throwIf(outsideOf(others, { shape: CHAT_OPTIONS, besides: rules.allow, spelling: camelCase }, path), vendor)
}

/** The same check for an image, a video or a 3D order: its `metadata` and the addresses of its media. */
export function assertOrder({ metadata, ...order }: JsonRecord, vendor: Vendor, caller: Caller): void {
  const rules = rulesFor(vendor, caller)
  if (!rules) return
  throwIf(outsideOf(metadata, { shape: EXTRAS, besides: rules.allow, spelling: camelCase }, 'metadata'), vendor)
  throwIf(outsideOf(order, { shape: ORDER_MEDIA, besides: rules.allow }), vendor)
}

const ORDER_MEDIA: ObjectShape = {
  members: all(FILE_URL_OR_BASE64, 'image', 'images', 'last_image', 'video', 'mask'),
  others: 'data',
}

/** The headers that request features of the vendor, without the values that are not on a list. */
export function allowedHeaders(
  headers: Record<string, string>,
  vendor: Vendor,
  caller: Caller,
): Record<string, string> {
  const rules = rulesFor(vendor, caller)
  return rules ? onlyAllowed(headers, rules) : headers
}

function onlyAllowed(headers: Record<string, string>, rules: PassthroughRules): Record<string, string> {
  const allowed: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    const allowedValues = value
      .split(',')
      .map((item) => item.trim())
      .filter((item) => HEADERS[name]?.(item) || rules.allow.includes(`headers.${name}.${item}`))
    if (allowedValues.length > 0) allowed[name] = allowedValues.join(',')
  }
  return allowed
}

const BETA = /^([a-z0-9-]+?)-?(\d{4}-\d{2}-\d{2}|\d{8})$/ // `context-1m-2025-08-07`, `claude-code-20250219`
const HEADERS: Record<string, (value: string) => boolean> = {
  'anthropic-version': (value) => /^\d{4}-\d{2}-\d{2}$/.test(value),
  'anthropic-beta': (value) => BETAS.includes(BETA.exec(value)?.[1] ?? ''),
  'openai-beta': (value) => /^(responses=(v1|experimental)|assistants=v[12])$/.test(value),
}

/** How many allowed names an error lists. */
const MAX_LISTED = 40
const MAX_PATH_LENGTH = 300

function throwIf(outside: Outside | undefined, vendor: Vendor): void {
  if (outside) throw notAllowed(outside, vendor)
}

function notAllowed({ path, entry, type, allowed }: Outside, { id }: Vendor): GatewayError {
  const param = path.slice(0, MAX_PATH_LENGTH)
  const listed = allowed.slice(0, MAX_LISTED).join(', ')
  const hint = allowed.length === 0 ? '' : ` Allowed here: ${listed}${allowed.length > MAX_LISTED ? ', and more' : ''}.`
  return new GatewayError(
    'unsupported_parameter',
    `"${param}"${type === undefined ? '' : ` is "${type}", which`} is not allowed for a token that is limited to some ` +
      `models or families: it could reach another model of the provider "${id}". Leave it out.${hint} ` +
      `The operator can allow it: providers.${id}.passthrough.allow, "${entry.slice(0, MAX_PATH_LENGTH)}".`,
    { param, accepted: 'no' },
  )
}

/** Its `param` is already the path in the client's request. */
export class FieldNotAllowed extends GatewayError {}
