/** Plans an import: compares each setting of each model with the data of models.dev. */
import { isDeepStrictEqual } from 'node:util'
import type { Entries, Tree } from '../../config/edit/edit-yaml.ts'
import type { ModelConfig } from '../../config/schema/schema.ts'
import { matchesGlob } from '../../kit/glob.ts'
import { nearest } from '../../kit/nearest.ts'
import { type Facts, FIGURES, type ModelsDev, readRow } from './models-import-data.ts'
import { isChatName, type Pairing, type Unpaired } from './models-import-vendors.ts'

/** The `source` of prices that an import may update. */
const SOURCES: readonly unknown[] = ['models.dev', 'LiteLLM'] satisfies ModelsDev['name'][]

export type Value = string | number | boolean | Entries
export type Setting = {
  path: string[]
  change: 'new' | 'changed' | 'kept'
  from?: Value
  /** For `kept`: the value of models.dev. For `changed`: absent when the setting is removed. */
  to?: Value
  /** Why a setting is kept, if not because the operator wrote it. */
  why?: string
}

export type PlannedModel = {
  id: string
  provider: string
  /** The row of models.dev: its vendor and its name. */
  vendor: string
  model: string
  change: 'new' | 'changed' | 'none'
  settings: Setting[]
}

export type Plan = {
  models: PlannedModel[]
  unknown: { id: string; provider: string; meant?: string }[]
  skipped: { id: string; why: string }[]
  providers: Unpaired[]
}

type PlanParts = {
  models: Record<string, ModelConfig>
  pairings: Pairing[]
  unpaired: Unpaired[]
  data: ModelsDev
  /** Globs over ids and the vendors' names; none means all. */
  only: readonly string[]
  overwrite: boolean
  /** Only models that are in the file. */
  existing: boolean
}

type Draft = PlanParts & {
  plan: Plan
  isRequested(...names: string[]): boolean
  /** Undefined for an invalid row, which is reported at the end. */
  factsOf(vendor: string, model: string, row: unknown): Facts | undefined
}

/** Throws an Error with every problem of the requested rows. */
export function planImport(parts: PlanParts): Plan {
  const { only, data } = parts
  const plan: Plan = { models: [], unknown: [], skipped: [], providers: parts.unpaired }
  const problems = new Set<string>()
  const draft: Draft = {
    ...parts,
    plan,
    isRequested: (...names) => only.length === 0 || only.some((glob) => names.some((name) => matchesGlob(glob, name))),
    factsOf(vendor, model, row) {
      const read = readRow(vendor, model, row)
      if ('facts' in read) return read.facts
      for (const problem of read.problems) problems.add(problem)
      return undefined
    },
  }
  planWritten(draft)
  if (!parts.existing) planNew(draft)
  if (problems.size > 0) throw new Error(problemsText(data.source, [...problems]))
  plan.models.sort((a, b) => (a.id < b.id ? -1 : 1))
  return plan
}

/** The models in the file, by any id. */
function planWritten({ plan, models, pairings, data, overwrite, isRequested, factsOf }: Draft): void {
  for (const [id, config] of Object.entries(models)) {
    if (config.alias_of !== undefined) continue
    const target = targetOf(id, config, pairings)
    if (!target || !isRequested(id, target.model)) continue
    const { pairing, model } = target
    const { provider, vendor } = pairing
    if (target.isShared) {
      plan.skipped.push({ id, why: 'it has several targets, which may differ' })
    } else if (!vendor.rows.has(model)) {
      const meant = nearest(model, [...vendor.rows.keys()])
      plan.unknown.push({ id, provider, ...(meant === undefined ? {} : { meant }) })
    } else {
      const facts = factsOf(vendor.id, model, vendor.rows.get(model))
      if (!facts) continue
      const settings = settingsOf(facts, { config, overwrite, data })
      const change = settings.some((setting) => setting.change !== 'kept') ? 'changed' : 'none'
      plan.models.push({ id, provider, vendor: vendor.id, model, change, settings })
    }
  }
}

/** The other chat models of the vendors. */
function planNew({ plan, models, pairings, data, isRequested, factsOf }: Draft): void {
  for (const { provider, config, vendor } of pairings) {
    for (const [model, row] of vendor.rows) {
      const id = `${provider}/${model}`
      if (Object.hasOwn(models, id) || !isRequested(id, model)) continue
      const skip = (why: string) => void plan.skipped.push({ id: NAME.test(model) ? id : JSON.stringify(id), why })
      if (!NAME.test(model)) skip('its name is not a valid id')
      else if (!isChatName(model, config)) skip('its name is not one of a chat model of this provider')
      else {
        const facts = factsOf(vendor.id, model, row)
        if (facts && !(isTextModel(facts) && facts.is_chat)) skip('its input and output are not both text')
        if (!facts || !isTextModel(facts) || !facts.is_chat) continue
        const settings = settingsOf(facts, { config: {}, overwrite: false, data })
        plan.models.push({ id, provider, vendor: vendor.id, model, change: 'new', settings })
      }
    }
  }
}

/** Visible ASCII without empty parts: valid in the configuration, and safe on a terminal. */
const NAME = /^[\x21-\x2e\x30-\x7e]+(\/[\x21-\x2e\x30-\x7e]+)*$/

const isTextModel = ({ input, output }: Facts): boolean =>
  (input?.includes('text') ?? true) && (output?.includes('text') ?? true)

function targetOf(id: string, { targets }: ModelConfig, pairings: Pairing[]) {
  const slash = id.indexOf('/')
  const all = targets ?? [{ provider: id.slice(0, Math.max(0, slash)), model: id.slice(slash + 1) }]
  for (const { provider, model } of all) {
    const pairing = pairings.find((one) => one.provider === provider)
    if (pairing) return { pairing, model, isShared: all.length > 1 }
  }
  return undefined
}

type HeldAgainst = { config: ModelConfig; overwrite: boolean; data: Pick<ModelsDev, 'name' | 'as_of'> }

function settingsOf(facts: Facts, held: HeldAgainst): Setting[] {
  const { config, overwrite } = held
  const out: Setting[] = []
  const propose = (path: string[], have: Value | undefined, to: Value | undefined, obstacle?: string) => {
    if (to === undefined || have === to) return
    if (obstacle !== undefined)
      out.push({ path, change: 'kept', ...(have === undefined ? {} : { from: have }), to, why: obstacle })
    else if (have === undefined) out.push({ path, change: 'new', to })
    else out.push({ path, change: overwrite ? 'changed' : 'kept', from: have, to })
  }
  propose(['created'], config.created, facts.created)
  if (facts.deprecated && config.status !== 'retired') {
    const isDated = config.deprecated_at !== undefined || config.retired_at !== undefined
    propose(['status'], config.status, 'deprecated', isDated ? 'the file has its lifecycle dates' : undefined)
  }
  propose(['context_tokens'], config.context_tokens, facts.context_tokens)
  const range = config.limits?.max_tokens
  propose(
    ['limits', 'max_tokens', 'maximum'],
    range?.maximum,
    facts.output_tokens,
    rangeObstacle(range, facts.output_tokens),
  )
  for (const [name, can] of capabilitiesOf(facts)) {
    if (!can) propose(['capabilities', name], config.capabilities?.[name], false)
  }
  return [...out, ...priceSettings(facts.prices, held)]
}

function rangeObstacle(
  range: { minimum?: number; default?: number } | undefined,
  maximum: number | undefined,
): string | undefined {
  const own = Math.max(range?.minimum ?? 0, range?.default ?? 0)
  return maximum !== undefined && own > maximum ? `your minimum or default of ${own} is higher` : undefined
}

type Capability = keyof NonNullable<ModelConfig['capabilities']>

const capabilitiesOf = ({ input, output, tools, json_schema }: Facts): [Capability, boolean][] => [
  ['image_input', input?.includes('image') ?? true],
  ['audio_input', input?.includes('audio') ?? true],
  ['file_input', input?.includes('pdf') ?? true],
  ['tools', tools ?? true],
  ['json_schema', json_schema ?? true],
  ['audio_output', output?.includes('audio') ?? true],
]

const PRICE_NAMES = ['currency', ...FIGURES, 'tiers'] as const

/** Prices change together: figures of two sources must not be mixed. */
function priceSettings(figures: Facts['prices'], { config, overwrite, data }: HeldAgainst): Setting[] {
  // Prices of several dates are a history that only the operator knows.
  if (!figures || Array.isArray(config.prices)) return []
  const have: Partial<Record<string, unknown>> | undefined = config.prices
  const next: Partial<Record<string, Value>> = { currency: 'USD', ...figures, source: data.name, as_of: data.as_of }
  const own: typeof have = have && { ...have, currency: have.currency ?? 'USD' }
  if (own && PRICE_NAMES.every((name) => isDeepStrictEqual(own[name], next[name]))) return []
  const isStored = have !== undefined && !SOURCES.includes(have.source) && !overwrite
  const out: Setting[] = []
  for (const name of [...PRICE_NAMES, 'source', 'as_of']) {
    const to = next[name]
    const from = have?.[name] as Value | undefined
    if (isDeepStrictEqual(from, to)) continue
    if (isStored && (to === undefined || name === 'source' || name === 'as_of')) continue
    if (isStored && name === 'currency' && from === undefined) continue
    const values = { ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) }
    out.push({ path: ['prices', name], change: isStored ? 'kept' : from === undefined ? 'new' : 'changed', ...values })
  }
  return out
}

/** The new and changed settings, as members of the model. */
export function treeOf({ settings }: PlannedModel): Tree {
  const tree: Tree = {}
  for (const { path, change, to } of settings) if (change !== 'kept') setIn(tree, path, to)
  return tree
}

function setIn(tree: Tree, [name = '', ...rest]: string[], value: Value | undefined): void {
  if (rest.length === 0) {
    tree[name] = value
    return
  }
  const inner = tree[name]
  const own: Tree = typeof inner === 'object' && !Array.isArray(inner) ? (inner as Tree) : {}
  tree[name] = own
  setIn(own, rest, value)
}

/** Enough to recognise the problem of the data. */
const MAX_PROBLEMS = 20

function problemsText(source: string, problems: string[]): string {
  const more = problems.length > MAX_PROBLEMS ? [`... and ${problems.length - MAX_PROBLEMS} more`] : []
  const lines = [...problems.slice(0, MAX_PROBLEMS), ...more].map((line) => `  ${line}`)
  return `${source} has invalid rows; nothing was changed (--only selects rows):\n${lines.join('\n')}`
}
