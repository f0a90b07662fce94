/** What the body of a chat request asks of its routing: `models` and `provider`, as OpenRouter has them. */
import Type from 'typebox'
import type { Call, Plan } from '../../calls/call.ts'
import type { ServerSettings } from '../../config/config.ts'
import { checker } from '../../kit/checker.ts'
import { diagnose } from '../../kit/diagnose.ts'
import { isRecord, type JsonRecord, memberOf } from '../../kit/json.ts'
import type { Catalogue } from '../../models/catalogue.ts'
import { refusalOf } from '../../protocols/shared/request-error.ts'
import type { Provider } from '../../providers/provider.ts'
import type { EndpointFamily } from '../../spec/endpoint-family.ts'
import { GatewayError } from '../../spec/error.ts'
import { ROUTING_FIELDS } from '../../spec/routing-fields.ts'
import { mayChooseRouting, notPermitted } from './call-options.ts'
import { namesIn, parsePreferences } from './provider-field.ts'

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
  if (!isRecord(body) || !plan || !(hasField(body, 'models') || hasField(body, 'provider'))) return body
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
function takes(field: string, provider: Provider, family: EndpointFamily): boolean {
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
