/** The model catalogue: which models exist, who may use them, their lifecycle status, and their targets. */
import type { RetiredPolicy } from '../config/config.ts'
import type { ModelCache } from '../config/schema/cache-schema.ts'
import type {
  Capabilities,
  EmbeddingLimits,
  ImageLimits,
  Limits,
  SpeechLimits,
} from '../config/schema/limits-schema.ts'
import { familiesOfName } from '../config/schema/model-names.ts'
import type { FallbackReason, RoutingConfig } from '../config/schema/routing-schema.ts'
import type { ModelConfig } from '../config/schema/schema.ts'
import type { ThreeDLimits, VideoLimits } from '../config/schema/task-schema.ts'
import { type Clock, unixSeconds } from '../kit/clock.ts'
import type { Revision } from '../kit/revision.ts'
import { servesFamily } from '../providers/families.ts'
import type { Target } from '../providers/provider.ts'
import type { CallFamily, EndpointFamily } from '../spec/endpoint-family.ts'
import { GatewayError } from '../spec/error.ts'
import type { Model } from '../spec/model.ts'
import type { PriceVersion } from '../spec/price.ts'
import type { Caller } from '../spec/token.ts'
import { type Alias, createAliases } from './aliases.ts'
import { type Life, lifeDates, livingSuccessor, statusAt } from './lifecycle.ts'
import { isUsable, publicModel } from './listed-model.ts'
import { familyNotAllowed, notAllowed, notFound, quoted, retired, wrongFamily } from './model-errors.ts'
import { nearModel } from './near-names.ts'

export type CatalogueModel = Life & {
  id: string
  created: number
  /** The declared families that at least one of its targets serves. */
  families: EndpointFamily[]
  targets: Target[]
  routing: RoutingConfig
  /** By date; undefined: not known. */
  prices: readonly PriceVersion[] | undefined
  /** Undefined: responses are cached only where the request asks for it. */
  cache: ModelCache | undefined
  has_native_batches: boolean // batches of its vendor execute its lines of batches
  /** Names of the guards of its calls. */
  guards: readonly string[]
  /** Ids of other models, by the reason for which they serve a call. */
  fallbacks: Partial<Record<FallbackReason, readonly string[]>>
  limits: Limits
  /** The context length in tokens, input and output together; undefined: not known. */
  context_tokens: number | undefined
  /** Extra request fields that it accepts (specification 2.3). */
  fields: ReadonlySet<string>
  capabilities: Capabilities
  embeddings: EmbeddingLimits
  video: VideoLimits
  /** Limits of its 3D models. */
  three_d: ThreeDLimits
  images: ImageLimits
  speech: SpeechLimits
  /** How many days its files are kept; undefined: the default. */
  keep_days: number | undefined
  when_retired: RetiredPolicy
}

/** The model that serves a call, and the one that was requested: they differ for an alias and where a retired model redirects. */
export type Chosen = { model: CatalogueModel; requested: CatalogueModel }

export type Catalogue = {
  /** Of what is decided by the catalogue: increased with each change of it, and by others with a change of what they decide. */
  readonly revision: Revision
  /** The models that the caller may use, by id, each with the families that it may use. */
  list(caller: Caller): Model[]
  /** One model by its id or by the part after the provider's prefix. Throws model_not_found, ambiguous_model. */
  find(name: string, caller: Caller): Model
  /** The context length and the maximum output of a listed model, where they are known. */
  sizesOf(id: string): { context_tokens: number | undefined; max_tokens: number | undefined }
  /**
   * The model that serves a request of this family. Throws why it cannot be served. Without a name it is the first of
   * the list that serves the family, is not retired, and may be used by the caller.
   */
  require(name: string | undefined, family: CallFamily, caller: Caller): Chosen
  /** The model that serves requests of this family under this full id, for work that was accepted before; undefined: none. */
  serving(id: string, family: EndpointFamily): CatalogueModel | undefined
  /** Whether this provider serves a model that the caller may use. */
  hasProvider(id: string, caller: Caller): boolean
  /** Replaces all models and aliases in one step. */
  replace(rows: CatalogueModel[], aliases?: readonly Alias[]): void
  /** When a model has another status than at this time, in unix seconds; infinite: never. */
  changesAfter(now: number): number
  /** The models that no target serves from now on, by the operator; their fallbacks do. */
  disable(ids: ReadonlySet<string>): void
}

type RowParts = {
  id: string
  config: ModelConfig
  targets: Target[]
  prices?: CatalogueModel['prices']
  created: number
  when_retired: RetiredPolicy
}

export function catalogueModel({ id, config, targets, prices, created, when_retired }: RowParts): CatalogueModel {
  const declared = config.families ?? familiesOfName(targets[0]?.model ?? id)
  return {
    id,
    created: config.created ?? created,
    families: declared.filter((family) => targets.some(({ provider }) => servesFamily(provider, family))),
    targets,
    // Of its own: two models may have one object where the file has an anchor, and calls are shared by this object.
    routing: { ...config.routing },
    prices,
    cache: config.cache,
    has_native_batches: config.batch === 'native' && targets.some(({ provider }) => provider.batches !== undefined),
    guards: config.guards ?? [],
    fallbacks: Array.isArray(config.fallbacks)
      ? { unavailable: config.fallbacks, context_length: config.fallbacks }
      : (config.fallbacks ?? {}),
    limits: config.limits ?? {},
    context_tokens: config.context_tokens,
    fields: new Set(config.fields ?? []),
    capabilities: config.capabilities ?? {},
    embeddings: config.embeddings ?? {},
    video: config.video ?? {},
    three_d: config.three_d ?? {},
    images: config.images ?? {},
    speech: config.speech ?? {},
    keep_days: config.keep_days,
    status: config.status,
    deprecated_at: config.deprecated_at,
    retired_at: config.retired_at,
    replaced_by: config.replaced_by,
    when_retired: config.when_retired ?? when_retired,
  }
}

export function createCatalogue({ clock }: { clock: Clock }): Catalogue {
  const revision: Revision = { current: 0 }
  let byId = new Map<string, CatalogueModel>()
  let byShortName = new Map<string, CatalogueModel[]>()
  let aliases = createAliases([])
  let rows: readonly CatalogueModel[] = []
  let disabled: ReadonlySet<string> = new Set()
  let dates: readonly number[] = []

  function index(): void {
    revision.current++
    dates = lifeDates(rows)
    const served = rows.map((row) => (disabled.has(row.id) ? { ...row, targets: [] } : row))
    byId = new Map(served.map((row) => [row.id, row]))
    const prefixed = served.filter(({ id }) => id.includes('/'))
    byShortName = Map.groupBy(prefixed, ({ id }) => id.slice(id.indexOf('/') + 1))
  }

  /**
   * An exact id wins, be it of a model or an alias, then a short name, then the most specific pattern. `requested` of
   * an alias is the target under the requested id.
   */
  function resolve(name: string, caller: Caller): Chosen {
    const alias = byId.has(name)
      ? undefined
      : (aliases.exact(name) ?? (byShortName.has(name) ? undefined : aliases.matching(name)))
    if (alias) return resolveAlias(name, alias, caller)
    const model = resolveModel(name, caller)
    return { model, requested: withSuccessor(model) }
  }

  /**
   * The caller needs the right to use the target, or the alias itself: one of its patterns must match the key as the
   * operator wrote it. The requested id does not count, because a token for `acme/*` could otherwise reach any model
   * through the alias `*` by inventing an id of `acme`.
   */
  function resolveAlias(name: string, { key, alias_of }: Alias, caller: Caller): Chosen {
    if (!caller.mayUseModel(alias_of) && !caller.mayUseModel(key)) throw notAllowed(name)
    const model = byId.get(alias_of)
    if (model) return { model, requested: { ...withSuccessor(model), id: name } }
    throw new GatewayError(
      'model_not_found',
      `The model ${quoted(name)} is an alias of "${alias_of}", which does not exist now.`,
      { param: 'model' },
    )
  }

  function resolveModel(name: string, caller: Caller): CatalogueModel {
    const exact = byId.get(name)
    if (!exact) return resolveShortName(name, caller)
    if (caller.mayUseModel(exact.id)) return exact
    throw notAllowed(name)
  }

  function resolveShortName(name: string, caller: Caller): CatalogueModel {
    const fitting = byShortName.get(name) ?? []
    const allowed = fitting.filter((model) => caller.mayUseModel(model.id))
    const [only] = allowed
    if (only && allowed.length === 1) return only
    if (allowed.length > 1) {
      const names = allowed.map((model) => model.id).join(', ')
      throw new GatewayError('ambiguous_model', `"${name}" fits several models; name one of: ${names}.`, {
        param: 'model',
      })
    }
    throw fitting.length > 0 ? notAllowed(name) : notFound(name, nearModel(name, usableIds(caller)))
  }

  const visibleTo = (caller: Caller): CatalogueModel[] =>
    [...[...byId.values()].filter((model) => caller.mayUseModel(model.id)), ...listedAliases(caller)].filter((model) =>
      isUsable(model, caller),
    )

  /** For suggestions: nothing that the token may not use, and nothing retired. */
  const usableIds = (caller: Caller): string[] =>
    visibleTo(caller)
      .filter((model) => statusAt(model, unixSeconds(clock)) !== 'retired')
      .map(({ id }) => id)

  /** The model with the successor that clients are to use, which may be further along the chain. */
  function withSuccessor(model: CatalogueModel): CatalogueModel {
    if (model.replaced_by === undefined) return model
    const replaced_by = livingSuccessor(model, modelOf, unixSeconds(clock))
    return replaced_by === model.replaced_by ? model : { ...model, replaced_by }
  }

  function modelOf(name: string): CatalogueModel | undefined {
    const [only, ...others] = byShortName.get(name) ?? []
    return byId.get(name) ?? (others.length === 0 ? only : undefined)
  }

  function successor(model: CatalogueModel, caller: Caller): CatalogueModel {
    const seen = new Set([model.id])
    for (let next = model.replaced_by; next !== undefined && !seen.has(next); ) {
      seen.add(next)
      const found = resolveModel(next, caller)
      if (statusAt(found, unixSeconds(clock)) !== 'retired') return found
      next = found.replaced_by
    }
    throw retired(withSuccessor(model))
  }

  /** Patterns are not listed: there is no list of the ids that they match. */
  const listedAliases = (caller: Caller): CatalogueModel[] =>
    aliases.literal.flatMap(({ key, alias_of }) => {
      const model = byId.get(alias_of)
      return model && (caller.mayUseModel(alias_of) || caller.mayUseModel(key)) ? [{ ...model, id: key }] : []
    })

  /** Under its own id, or through an alias that the caller may use. */
  const mayReach = ({ id }: CatalogueModel, caller: Caller): boolean =>
    caller.mayUseModel(id) || aliases.all.some(({ key, alias_of }) => alias_of === id && caller.mayUseModel(key))

  function firstOf(family: CallFamily, caller: Caller): Chosen {
    if (!caller.mayUseFamily(family)) throw familyNotAllowed(family)
    let first: CatalogueModel | undefined
    for (const model of byId.values()) {
      if (first && first.id < model.id) continue
      if (!isOf(model, family) || !caller.mayUseModel(model.id)) continue
      if (statusAt(model, unixSeconds(clock)) !== 'retired') first = model
    }
    if (first) return { model: first, requested: first }
    const message = `This token may use no model that takes ${family} requests, so "model" cannot be left out.`
    throw new GatewayError('model_not_found', message, { param: 'model' })
  }

  function choose(name: string | undefined, family: CallFamily, caller: Caller): Chosen {
    if (name === undefined) return firstOf(family, caller)
    const { model: found, requested } = resolve(name, caller)
    const isRetired = statusAt(found, unixSeconds(clock)) === 'retired'
    if (isRetired && found.when_retired === 'refuse') throw retired(withSuccessor(found))
    const model = isRetired && found.when_retired === 'redirect' ? successor(found, caller) : found
    if (!isOf(model, family)) throw wrongFamily(model, family)
    if (!caller.mayUseFamily(family)) throw familyNotAllowed(family)
    return { model, requested }
  }

  return {
    revision,
    list: (caller) =>
      visibleTo(caller)
        .sort((a, b) => (a.id < b.id ? -1 : 1))
        .map((model) => publicModel(withSuccessor(model), caller, unixSeconds(clock))),
    find(name, caller) {
      const { requested } = resolve(name, caller)
      if (isUsable(requested, caller)) return publicModel(requested, caller, unixSeconds(clock))
      throw notAllowed(name)
    },
    sizesOf(id) {
      const alias = aliases.exact(id) ?? aliases.matching(id)
      const model = byId.get(id) ?? byId.get(alias?.alias_of ?? '')
      return { context_tokens: model?.context_tokens, max_tokens: model?.limits.max_tokens?.maximum }
    },
    require: choose,
    serving(id, family) {
      try {
        return choose(id, family, ANYONE).model
      } catch (error) {
        if (error instanceof GatewayError) return undefined
        throw error
      }
    },
    hasProvider: (id, caller) =>
      byId
        .values()
        .some((model) => model.targets.some(({ provider }) => provider.id === id) && mayReach(model, caller)),
    changesAfter: (now) => dates.find((date) => date > now) ?? Number.POSITIVE_INFINITY,
    replace(next, nextAliases = []) {
      aliases = createAliases(nextAliases)
      rows = next
      index()
    },
    disable(ids) {
      disabled = ids
      index()
    },
  }
}

const isOf = ({ families }: CatalogueModel, family: CallFamily): boolean => families.some((one) => one === family)

/** A caller whose right to use the model was checked before. */
const ANYONE: Caller = { token_id: '', mayUseModel: () => true, mayUseFamily: () => true }
