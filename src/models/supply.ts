/** Where models come from: the configuration, the sandbox, and discovery; merged into the catalogue. */
import { checkSuccessors } from '../config/check/successors.ts'
import type { Config } from '../config/config.ts'
import type { ModelConfig, ProviderConfig, TargetConfig } from '../config/schema/schema.ts'
import { type Clock, unixSeconds } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import { discoverProviders, probeLocal } from '../providers/discover.ts'
import type { ProviderHealth } from '../providers/health.ts'
import { createHealthMonitors, type Probed, type ProbeParts } from '../providers/health-monitors.ts'
import {
  type FoundProvider,
  type KeyedProvider,
  keyedTargets,
  keyNamed,
  nameOfKey,
  withKey,
} from '../providers/keyed-targets.ts'
import type { Media } from '../providers/media.ts'
import { presetModels } from '../providers/preset-models.ts'
import type { DiscoveredModel, Provider, Target } from '../providers/provider.ts'
import { createProvider } from '../providers/registry.ts'
import { SANDBOX_MODELS } from '../providers/sandbox.ts'
import type { Transport } from '../providers/upstream/transport.ts'
import {
  emptyListWarning,
  keyWarnings,
  type ProviderWarning,
  servingProviders,
  unusedWarnings,
} from '../providers/warnings.ts'
import type { ModelStore } from '../store/store.ts'
import type { Alias } from './aliases.ts'
import { type Catalogue, type CatalogueModel, catalogueModel } from './catalogue.ts'
import { compiledPrices } from './prices.ts'
import { createUnpricedReport } from './unpriced.ts'

/** A provider, and where it came from. */
export type Found = {
  id: string
  kind: string
  found_by: 'file' | 'built in' | 'environment' | 'loopback'
  models: number
  /** Its list of models could not be read. */
  is_failing?: true
}

export type Supplied = {
  /** With the first key. */
  provider: Provider
  config: ProviderConfig
  found_by: Found['found_by']
  /** The same provider with each of its keys; empty where it has only one. */
  keys: KeyedProvider[]
}

type KeySettings = Omit<ProviderConfig, 'key'> & { key?: string | undefined }

type SupplyParts = {
  environment: Record<string, string | undefined>
  clock: Clock
  log: Log
  manual: () => Promise<{ name: string; text: string }[]>
  catalogue: Catalogue
  media: Media
  seen: ModelStore
  transport: Transport
  /** A provider that its probes had found unhealthy works again. Undefined: no provider is probed. */
  onRecovered: ((health: ProviderHealth) => void) | undefined
}

export type Supply = {
  /** Applies a configuration in one step; throws, and changes nothing, if its parts are inconsistent. */
  apply(config: Config): Promise<void>
  /** Discovers local runtimes and the models of providers, in the background. */
  discover(): Promise<Found[]>
  providers(): Found[]
  find(id: string): Supplied | undefined
  /** Every model as it is configured, whether or not it is disabled at run time. */
  models(): readonly CatalogueModel[]
  /** A provider with the key of this name; without one, with the first of its keys that may call the model. */
  withKey(id: string, model: string, key: string | null): FoundProvider | undefined
  /** The configuration of a provider. With the name of a key, `key` is that one; undefined where it is not configured. */
  settingsWithKey(id: string, key: string | null): KeySettings | undefined
  close(): Promise<void>
}

/** Model discovery at start is optional and must not take long. */
const LIST_MODELS_MILLISECONDS = 10_000
const AGAIN_MILLISECONDS = 30_000

export function createSupply(given: SupplyParts): Supply {
  const { environment, clock, log, manual, catalogue, media, seen, transport, onRecovered } = given
  const reportUnpriced = createUnpricedReport(log)
  const stopped = new AbortController()
  let config: Config | undefined
  let supplied = new Map<string, Supplied>()
  let rows: CatalogueModel[] = []
  /** Provider id -> the models that it listed. */
  const discovered = new Map<string, DiscoveredModel[]>()
  /** The providers whose model list could not be read. */
  const failing = new Set<string>()
  let local: Record<string, ProviderConfig> = {}
  let lastChange: Promise<void> = Promise.resolve()
  const parts = { transport, clock, log, environment, manual, media }
  const create = (probed: Probed, quiet: ProbeParts) => createProvider({ ...parts, ...probed, ...quiet })
  const monitors = createHealthMonitors({ create, environment, clock, log, onRecovered })

  /** Changes to the catalogue are serialized. */
  function serialized(work: () => Promise<void>): Promise<void> {
    const mine = lastChange.then(work)
    lastChange = mine.catch(() => {})
    return mine
  }

  function supplyOf(next: Config): Map<string, Supplied> {
    const out = new Map<string, Supplied>()
    const add = (id: string, provider: ProviderConfig, found_by: Found['found_by']) => {
      if (out.has(id)) return
      const create = (config: ProviderConfig): Provider => {
        const created = createProvider({ id, config, timeouts: next.timeouts, ...parts })
        return config.health ? { ...created, health: () => monitors.of(id) } : created
      }
      const keys = (provider.keys ?? []).map(
        ({ key, name, weight = 1, models }, index): KeyedProvider => ({
          provider: create({ ...provider, key }),
          name: nameOfKey({ name }, index),
          weight,
          models,
        }),
      )
      const first = keys[0]?.provider ?? create(provider)
      monitors.check(id, provider, first)
      out.set(id, { provider: first, config: provider, found_by, keys })
    }
    for (const [id, provider] of Object.entries(next.providers)) add(id, provider, 'file')
    if (next.sandbox) add('sandbox', { kind: 'sandbox' }, 'built in')
    if (!next.discover) return out
    for (const [id, provider] of Object.entries(discoverProviders(environment))) add(id, provider, 'environment')
    for (const [id, provider] of Object.entries(local)) add(id, provider, 'loopback')
    return out
  }

  /** All models by id: the configuration wins over discovery. */
  function modelsOf(next: Config, supply: Map<string, Supplied>): Record<string, ModelConfig> {
    const found: Record<string, ModelConfig> = {}
    for (const [id, one] of supply) {
      if (!isDiscovered(one)) continue
      const known = presetModels(one.config.preset ?? '')
      // Until the provider has listed its models, and if it never does, its well-known models are served.
      const listed = discovered.get(id) ?? Object.keys(known).map((model): DiscoveredModel => ({ model }))
      for (const { model, created, families } of listed) {
        const described = { ...(families ? { families } : {}), ...(created === undefined ? {} : { created }) }
        found[`${id}/${model}`] = { ...known[model], ...described, targets: [{ provider: id, model }] }
      }
    }
    return { ...(next.sandbox ? SANDBOX_MODELS : {}), ...found, ...next.models }
  }

  async function fill(next: Config, supply: Map<string, Supplied>): Promise<void> {
    const { models, aliases } = withoutAliases(modelsOf(next, supply))
    const now = unixSeconds(clock)
    const [problem] = checkSuccessors({
      models: new Map(Object.entries(models)),
      now,
      // A model that discovery may find later.
      mayExist: (id) => isDiscovered(supply.get(id.slice(0, Math.max(0, id.indexOf('/'))))),
    })
    if (problem) throw new Error(`models.${problem.id}.replaced_by: ${problem.message}`)
    const created = await seen.firstSeen(Object.keys(models), now)
    const filled = Object.entries(models).map(([id, model]) => {
      const { prices, pricesOf } = compiledPrices(model, next.ledger)
      return catalogueModel({
        id,
        config: model,
        targets: targetsOf({ id, model, supply, pricesOf }),
        prices,
        created: created.get(id) ?? now,
        when_retired: next.when_retired,
      })
    })
    catalogue.replace(filled, aliases)
    rows = filled
    reportUnpriced(filled, now)
    supplied = supply
    config = next
    if (onRecovered && !stopped.signal.aborted) monitors.apply(probedOf(supply, next))
  }

  const report = (id: string, warnings: ProviderWarning[]) => {
    for (const { event, message } of warnings) log.warn(event, { provider: id, why: message })
  }

  /** Reports what is likely to be a mistake, once for each configuration that was applied. */
  function reportProviders({ models }: Config): void {
    const serving = servingProviders(models)
    for (const [id, one] of supplied) {
      report(id, keyWarnings(id, one.config, environment))
      if (one.found_by === 'file') report(id, unusedWarnings(one.provider, one.config, serving))
    }
  }

  /** All providers, those of the configuration first, with how many models each serves. */
  function providers(): Found[] {
    const served = new Map<string, number>()
    for (const { targets } of rows) {
      for (const id of new Set(targets.map(({ provider }) => provider.id))) served.set(id, (served.get(id) ?? 0) + 1)
    }
    return [...supplied].map(([id, { provider, found_by }]) => ({
      id,
      kind: provider.kind,
      found_by,
      models: served.get(id) ?? 0,
      ...(failing.has(id) ? { is_failing: true as const } : {}),
    }))
  }

  async function listModels(id: string, { listModels: list }: Provider): Promise<void> {
    if (!list) return
    const late = new AbortController()
    const cancel = clock.after(LIST_MODELS_MILLISECONDS, () => late.abort())
    try {
      discovered.set(id, await list(AbortSignal.any([stopped.signal, late.signal])))
      failing.delete(id)
    } catch (error) {
      failing.add(id)
      if (!stopped.signal.aborted) log.warn('model discovery failed', { provider: id, why: (error as Error).message })
    } finally {
      cancel()
    }
  }

  return {
    apply: (next) =>
      serialized(async () => {
        await fill(next, supplyOf(next))
        reportProviders(next)
      }),
    async discover() {
      if (config?.discover) local = await probeLocal({ transport, signal: stopped.signal })
      const supplies = config ? [...supplyOf(config)] : []
      const discoverable = supplies.filter(([, one]) => isDiscovered(one))
      await Promise.all(discoverable.map(([id, { provider }]) => listModels(id, provider)))
      await serialized(async () => {
        if (config && !stopped.signal.aborted) await fill(config, supplyOf(config))
      }).catch((error: Error) => {
        log.warn('discovered models are not served yet', { why: error.message })
        clock.after(AGAIN_MILLISECONDS, () => void this.discover())
      })
      const found = providers()
      for (const { id, models } of found) {
        const one = models === 0 && discovered.has(id) ? supplied.get(id) : undefined
        if (one) report(id, [emptyListWarning(one.provider)])
      }
      return found
    },
    providers,
    find: (id) => supplied.get(id),
    models: () => rows,
    withKey(id, model, key) {
      const found = supplied.get(id)
      return found && withKey(found, model, key)
    },
    settingsWithKey(id, key) {
      const found = supplied.get(id)?.config
      return found && key !== null ? { ...found, key: keyNamed(found, key) } : found
    },
    async close() {
      stopped.abort()
      monitors.stop()
      await lastChange
      await Promise.all(
        [...supplied.values()]
          .flatMap(({ provider, keys }) => [provider, ...keys.map((one) => one.provider)])
          .map((one) => one.close?.()),
      )
    },
  }
}

/** Whether the models of a provider are discovered: as configured; by default unless the provider is in the file. */
const isDiscovered = (one: Supplied | undefined): boolean =>
  one !== undefined && (one.config.discover ?? one.found_by !== 'file')

/** With the first key: one probe says whether the provider is there. */
const probedOf = (supply: Map<string, Supplied>, { timeouts }: Config): Probed[] =>
  [...supply].map(([id, { config }]) => {
    const key = config.keys?.[0]?.key ?? config.key
    return { id, timeouts, config: key === undefined ? config : { ...config, key } }
  })

function withoutAliases(all: Record<string, ModelConfig>): { models: Record<string, ModelConfig>; aliases: Alias[] } {
  const entries = Object.entries(all)
  return {
    models: Object.fromEntries(entries.filter(([, { alias_of }]) => alias_of === undefined)),
    aliases: entries.flatMap(([key, { alias_of }]) => (alias_of === undefined ? [] : [{ key, alias_of }])),
  }
}

type TargetParts = {
  id: string
  model: ModelConfig
  supply: Map<string, Supplied>
  pricesOf(target: Pick<TargetConfig, 'prices'>): Target['prices']
}

function targetsOf({ id, model, supply, pricesOf }: TargetParts): Target[] {
  const slash = id.indexOf('/')
  const targets = model.targets ?? [{ provider: id.slice(0, Math.max(0, slash)), model: id.slice(slash + 1) }]
  const inOrder =
    (model.routing?.strategy ?? 'priority') === 'priority' &&
    !targets.some(({ weight, priority }) => weight !== undefined || priority !== undefined)
  return targets.flatMap((target, index) => {
    const found = supply.get(target.provider)
    const routed = inOrder ? { ...target, priority: index } : target
    if (found) return keyedTargets({ ...routed, prices: pricesOf(target) }, found)
    const known = [...supply.keys()].join(', ')
    throw new Error(`models.${id}: there is no provider "${target.provider}"; there are: ${known}`)
  })
}
