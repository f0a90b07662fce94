/** What an import would change: each setting of each model, held against what models.dev says of it. */
import type { Tree } from '../config/edit-yaml.ts'
import { nearest } from '../config/nearest.ts'
import type { ModelConfig } from '../config/schema.ts'
import { matchesGlob } from '../kit/glob.ts'
import { type Facts, type ModelsDev, readRow } from './models-import-data.ts'
import { isChatName, type Pairing, type Unpaired } from './models-import-vendors.ts'

/** In the source of prices, it says that an import may bring them up to date. */
const SOURCE = 'models.dev'

export type Value = string | number | boolean
export type Setting = {
  path: string[]
  change: 'new' | 'changed' | 'kept'
  from?: Value
  /** Of what is kept: what models.dev says. Of what is changed: left out when the setting is taken away. */
  to?: Value
  /** Of what is kept, where it is not that the operator wrote it. */
  why?: string
}

export type PlannedModel = {
  id: string
  provider: string
  /** The row of models.dev: its vendor, and its name there. */
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
  /** Globs over ids and over the vendors' own names; none is all. */
  only: readonly string[]
  overwrite: boolean
  /** Only models that are written already. */
  existing: boolean
}

type Draft = PlanParts & {
  plan: Plan
  isAsked(...names: string[]): boolean
  /** Undefined for a row that cannot be right; that is told at the end. */
  factsOf(vendor: string, model: string, row: unknown): Facts | undefined
}

/** Throws an Error that tells every mistake in the rows that were asked for. */
export function planImport(parts: PlanParts): Plan {
  const { only, data } = parts
  const plan: Plan = { models: [], unknown: [], skipped: [], providers: parts.unpaired }
  const problems = new Set<string>()
  const draft: Draft = {
    ...parts,
    plan,
    isAsked: (...names) => only.length === 0 || only.some((glob) => names.some((name) => matchesGlob(glob, name))),
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

/** The models that the operator has written, by whatever name. */
function planWritten({ plan, models, pairings, data, overwrite, isAsked, factsOf }: Draft): void {
  for (const [id, config] of Object.entries(models)) {
    const target = targetOf(id, config, pairings)
    if (!target || !isAsked(id, target.model)) continue
    const { pairing, model } = target
    const { provider, vendor } = pairing
    if (target.isShared) {
      plan.skipped.push({ id, why: 'it has several targets, and what is true of one may not be of the others' })
    } else if (!vendor.rows.has(model)) {
      const meant = nearest(model, [...vendor.rows.keys()])
      plan.unknown.push({ id, provider, ...(meant === undefined ? {} : { meant }) })
    } else {
      const facts = factsOf(vendor.id, model, vendor.rows.get(model))
      if (!facts) continue
      const settings = settingsOf(facts, { config, overwrite, as_of: data.as_of })
      const change = settings.some((setting) => setting.change !== 'kept') ? 'changed' : 'none'
      plan.models.push({ id, provider, vendor: vendor.id, model, change, settings })
    }
  }
}

/** The chat models that the vendors have besides. */
function planNew({ plan, models, pairings, data, isAsked, factsOf }: Draft): void {
  for (const { provider, config, vendor } of pairings) {
    for (const [model, row] of vendor.rows) {
      const id = `${provider}/${model}`
      if (Object.hasOwn(models, id) || !isAsked(id, model)) continue
      const skip = (why: string) => void plan.skipped.push({ id: NAME.test(model) ? id : JSON.stringify(id), why })
      if (!NAME.test(model)) skip('no id may be like that')
      else if (!isChatName(model, config)) skip('by its name it is no chat model of this provider')
      else {
        const facts = factsOf(vendor.id, model, row)
        if (facts && !speaks(facts)) skip('it does not both take and give text')
        if (!facts || !speaks(facts)) continue
        const settings = settingsOf(facts, { config: {}, overwrite: false, as_of: data.as_of })
        plan.models.push({ id, provider, vendor: vendor.id, model, change: 'new', settings })
      }
    }
  }
}

/** Visible ASCII without empty parts: what the configuration takes, and a terminal shows as it is. */
const NAME = /^[\x21-\x2e\x30-\x7e]+(\/[\x21-\x2e\x30-\x7e]+)*$/

const speaks = ({ input, output }: Facts): boolean =>
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

type HeldAgainst = { config: ModelConfig; overwrite: boolean; as_of: string }

function settingsOf(facts: Facts, held: HeldAgainst): Setting[] {
  const { config, overwrite } = held
  const out: Setting[] = []
  const wish = (path: string[], have: Value | undefined, to: Value | undefined, obstacle?: string) => {
    if (to === undefined || have === to) return
    if (obstacle !== undefined)
      out.push({ path, change: 'kept', ...(have === undefined ? {} : { from: have }), to, why: obstacle })
    else if (have === undefined) out.push({ path, change: 'new', to })
    else out.push({ path, change: overwrite ? 'changed' : 'kept', from: have, to })
  }
  wish(['created'], config.created, facts.created)
  if (facts.deprecated && config.status !== 'retired') {
    const isDated = config.deprecated_at !== undefined || config.retired_at !== undefined
    wish(['status'], config.status, 'deprecated', isDated ? 'you wrote the dates of its life' : undefined)
  }
  wish(['context_tokens'], config.context_tokens, facts.context_tokens)
  const range = config.limits?.max_tokens
  wish(
    ['limits', 'max_tokens', 'maximum'],
    range?.maximum,
    facts.output_tokens,
    rangeObstacle(range, facts.output_tokens),
  )
  for (const [name, can] of capabilitiesOf(facts)) {
    if (!can) wish(['capabilities', name], config.capabilities?.[name], false)
  }
  return [...out, ...priceSettings(facts.prices, held)]
}

function rangeObstacle(
  range: { minimum?: number; default?: number } | undefined,
  maximum: number | undefined,
): string | undefined {
  const own = Math.max(range?.minimum ?? 0, range?.default ?? 0)
  return maximum !== undefined && own > maximum ? `your minimum or default of ${own} is above it` : undefined
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

/** Prices are one thing: figures of two sources side by side would be nobody's. */
function priceSettings(figures: Facts['prices'], { config, overwrite, as_of }: HeldAgainst): Setting[] {
  if (!figures) return []
  const have = config.prices
  const wanted = { currency: 'USD', ...figures }
  const names = ['currency', 'input', 'cached_input', 'output'] as const
  const own = have && { ...have, currency: have.currency ?? 'USD' }
  if (own && names.every((name) => own[name] === wanted[name as keyof typeof wanted])) return []
  const isKept = have !== undefined && have.source !== SOURCE && !overwrite
  const out: Setting[] = []
  for (const name of [...names, 'source', 'as_of'] as const) {
    const to: Value | undefined = { ...wanted, source: SOURCE, as_of }[name as keyof typeof wanted]
    const from = have?.[name]
    if (from === to || (isKept && (to === undefined || name === 'source' || name === 'as_of'))) continue
    if (isKept && name === 'currency' && from === undefined) continue
    const values = { ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) }
    out.push({ path: ['prices', name], change: isKept ? 'kept' : from === undefined ? 'new' : 'changed', ...values })
  }
  return out
}

/** The settings that are new or changed, as members of the model. */
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
  const own = typeof inner === 'object' ? inner : {}
  tree[name] = own
  setIn(own, rest, value)
}

/** Enough to see what is wrong with the data. */
const MOST_PROBLEMS = 20

function problemsText(source: string, problems: string[]): string {
  const more = problems.length > MOST_PROBLEMS ? [`... and ${problems.length - MOST_PROBLEMS} more`] : []
  const lines = [...problems.slice(0, MOST_PROBLEMS), ...more].map((line) => `  ${line}`)
  return `${source} holds what cannot be right; nothing was changed (--only leaves rows out):\n${lines.join('\n')}`
}
