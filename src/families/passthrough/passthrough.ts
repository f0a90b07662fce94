/** Calls to paths of a provider by name: which of them a caller may send, and a call that passes the answer as it arrives. */
import type { Gate, Plan } from '../../calls/call.ts'
import type { StreamFamily } from '../../calls/family.ts'
import type { Plans } from '../../calls/plan.ts'
import { byWeight, newShare, type Share } from '../../calls/routing/shares.ts'
import type { Config } from '../../config/config.ts'
import type { PassthroughPath } from '../../config/schema/passthrough-schema.ts'
import type { Clock } from '../../kit/clock.ts'
import { type CatalogueModel, catalogueModel } from '../../models/catalogue.ts'
import { compiledPrices } from '../../models/prices.ts'
import type { Supplied, Supply } from '../../models/supply.ts'
import { keyedTargets } from '../../providers/keyed-targets.ts'
import type { Provider, Target } from '../../providers/provider.ts'
import type { DirectCall } from '../../providers/upstream/direct.ts'
import type { UpstreamResponse } from '../../providers/upstream/upstream-request.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Caller } from '../../spec/token.ts'
import { type AnswerMeter, createAnswerMeter, unitsOf } from './answer-usage.ts'
import { matchesPath } from './path-patterns.ts'

const MAX_RESPONSE_BYTES = 100 * 1024 * 1024
const MAX_SECONDS = 600

/** An entry of `passthrough_paths`, and what stands for a model in the pipeline: it is in no catalogue. */
export type PassthroughRule = { config: PassthroughPath; model: CatalogueModel; keys: readonly Key[] }

/** A key of the provider. Its health is that of all paths by name, and not that of models. */
type Key = { readonly target: Target; readonly weight: number; readonly share: Share; readonly health: KeyHealth }
/** By the steady clock: until then another key is used, where there is one. */
type KeyHealth = { avoided_until: number }

export type PassthroughPaths = {
  /** The entry that fits a request. Throws `unknown_url` where there is none, `model_not_allowed` where it is of others. */
  find(provider_id: string, request: { method: string; segments: readonly string[] }, caller: Caller): PassthroughRule
  planFor(rule: PassthroughRule, caller: Caller): Plan
}

export type PassthroughPathParts = {
  supply: Pick<Supply, 'find'>
  config(): Pick<Config, 'ledger'>
  gates: readonly Gate[]
  plans: Pick<Plans, 'gatesOf' | 'guardsOf'>
}

export function createPassthroughPaths({ supply, config, gates, plans }: PassthroughPathParts): PassthroughPaths {
  /** Made anew when the provider is. */
  const made = new WeakMap<Supplied, PassthroughRule[]>()
  const healths = new WeakMap<Provider, KeyHealth>()

  function keyOf(target: Target): Key {
    const health = healths.getOrInsertComputed(target.provider, () => ({ avoided_until: 0 }))
    return { target, weight: target.weight ?? 1, share: newShare(), health }
  }

  function rulesOf(provider_id: string): PassthroughRule[] {
    const supplied = supply.find(provider_id)
    if (!supplied) return []
    const { passthrough_paths = [] } = supplied.config
    return made.getOrInsertComputed(supplied, () =>
      passthrough_paths.map((path) => ruleOf(provider_id, path, supplied)),
    )
  }

  function ruleOf(provider_id: string, path: PassthroughPath, supplied: Supplied): PassthroughRule {
    const { prices } = compiledPrices(path, config().ledger)
    const targets = keyedTargets({ model: path.path, prices }, supplied)
    const id = `passthrough/${provider_id}`
    return {
      config: path,
      keys: targets.map(keyOf),
      model: catalogueModel({ id, config: {}, targets, prices, created: 0, when_retired: 'refuse' }),
    }
  }

  return {
    find(provider_id, { method, segments }, caller) {
      const rule = rulesOf(provider_id).find(
        ({ config: { path, methods } }) =>
          (methods as readonly string[]).includes(method) && matchesPath(path, segments),
      )
      if (!rule) {
        throw new GatewayError('unknown_url', 'No provider is configured to serve this method and path by name.')
      }
      if (mayCall(rule.config, caller)) return rule
      throw new GatewayError('model_not_allowed', 'This token may not call this path of the provider by name.')
    },
    planFor: ({ model }, caller) => ({
      model,
      requested: model,
      name: model.id,
      family: 'passthrough',
      gates: plans.gatesOf(caller, model),
      guards: plans.guardsOf(caller, model),
      has_fallbacks: false,
      has_conditions: false,
      has_limited_targets: model.targets.some(({ provider }) =>
        gates.some((gate) => gate.limitsProvider?.(provider.id)),
      ),
      is_plain: false,
      headers: {},
    }),
  }
}

/** A token that is limited to models or families is not limited to them here, so that it must be named itself. */
function mayCall({ tokens, projects }: PassthroughPath, { token_id, project_id, is_limited }: Caller): boolean {
  if (tokens?.includes(token_id)) return true
  if (is_limited) return false
  if (tokens === undefined && projects === undefined) return true
  return project_id !== undefined && projects?.includes(project_id) === true
}

type PassthroughInput = {
  rule: PassthroughRule
  call: Omit<DirectCall, 'request_id' | 'method'> & { method: PassthroughPath['methods'][number] }
  /** Aborted, with a GatewayError as reason, when the body of the request breaks a rule. */
  body_fault: AbortSignal
  /** Told of the answer before its first byte. */
  onAnswer(answer: Pick<UpstreamResponse, 'status' | 'headers'>): void
}

type Passthrough = StreamFamily<PassthroughInput, PassthroughInput, AnswerMeter>

export function createPassthrough({ clock }: { clock: Clock }): Passthrough {
  return {
    endpoint: () => 'passthrough',
    modelOf: ({ rule }) => rule.model.id,
    fit: (_model, input) => input,
    meter: ({ rule }) => createAnswerMeter(rule.config),
    estimate: ({ rule }) => ({ expected: unitsOf(rule.config.most ?? {}), most: unitsOf(rule.config.most ?? {}) }),
    policy: 'until_answered',
    // Its body is read once, and its failure says nothing about the models of the provider.
    is_hedged: false,
    is_observed: false,
    targets: ({ rule }) => inTurn(rule.keys, clock.steady()),
    async send({ provider }, { rule, call, body_fault, onAnswer }, { call: { request_id }, signal, meter }) {
      const { max_seconds = MAX_SECONDS, max_response_bytes = MAX_RESPONSE_BYTES } = rule.config
      if (!provider.direct) throw new GatewayError('no_available_channel', 'The provider has no paths by name.')
      const late = new AbortController()
      const cancel = clock.after(max_seconds * 1000, () =>
        late.abort(
          new GatewayError('upstream_timeout', `The call of "${provider.id}" took longer than ${max_seconds} s.`),
        ),
      )
      try {
        const ending = AbortSignal.any([signal, body_fault, late.signal])
        const response = await provider.direct.send({ ...call, request_id }, ending)
        const key = rule.keys.find(({ target }) => target.provider === provider)
        if (key) key.health.avoided_until = avoidedUntil(response, clock.steady())
        if (response.status === 401 || response.status === 407) throw refusedKey(provider.id, response)
        if (response.status > 599) throw unknownStatus(provider.id, response)
        meter.answered(response.status, response.headers.get('content-type') ?? '')
        onAnswer(response)
        return {
          parts: passing(response, { meter, max_response_bytes, provider_id: provider.id, cancel }),
          includesUsage: false,
          end: () => '',
        }
      } catch (thrown) {
        cancel()
        throw thrown
      }
    },
    // The form of the answer is not known: its connection is cut.
    encodeError(error) {
      throw error
    },
  }
}

/** The key whose turn it is first; where all are avoided, the one that is so for the shortest time. */
function inTurn(keys: readonly Key[], now: number): readonly Target[] {
  if (keys.length < 2) return keys.map(({ target }) => target)
  const free = keys.filter(({ health }) => health.avoided_until <= now)
  const sooner = (one: Key, other: Key) => (other.health.avoided_until < one.health.avoided_until ? other : one)
  const first = byWeight(free) ?? keys.reduce(sooner)
  return keys.map((key) => ({ ...key.target, ...(key === first ? { weight: 1, priority: 0 } : { priority: 1 }) }))
}

const REFUSED_MS = 300_000
const LIMITED_MS = 1_000
const LONGEST_LIMITED_MS = 120_000

function avoidedUntil({ status, headers }: Pick<UpstreamResponse, 'status' | 'headers'>, now: number): number {
  if (status === 401 || status === 407) return now + REFUSED_MS
  if (status !== 429) return 0
  const seconds = Number(headers.get('retry-after') ?? Number.NaN)
  return now + (seconds > 0 ? Math.min(seconds * 1000, LONGEST_LIMITED_MS) : LIMITED_MS)
}

/** Its text may quote a part of the key. */
function refusedKey(provider_id: string, response: UpstreamResponse): GatewayError {
  const { status } = response
  response.drop()
  return new GatewayError('upstream_auth', `The upstream "${provider_id}" rejected the credentials of the gateway.`, {
    upstream_status: status,
    accepted: 'no',
  })
}

/** RFC 9110, section 15: no response can be made with it. */
function unknownStatus(provider_id: string, response: UpstreamResponse): GatewayError {
  response.drop()
  return new GatewayError(
    'bad_upstream_response',
    `The upstream "${provider_id}" answered with status ${response.status}.`,
  )
}

type Passing = { meter: AnswerMeter; max_response_bytes: number; provider_id: string; cancel(): void }

async function* passing(
  response: UpstreamResponse,
  { meter, max_response_bytes, provider_id, cancel }: Passing,
): AsyncGenerator<Uint8Array> {
  let size = 0
  let isComplete = false
  try {
    for (let bytes = await response.read(); bytes; bytes = await response.read()) {
      size += bytes.length
      if (size > max_response_bytes) {
        throw new GatewayError(
          'bad_upstream_response',
          `The upstream "${provider_id}" answered with more than ${max_response_bytes} bytes.`,
        )
      }
      meter.passed(bytes)
      yield bytes
    }
    isComplete = true
    meter.ended()
  } finally {
    cancel()
    if (isComplete) response.release()
    else response.drop()
  }
}
