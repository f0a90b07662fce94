/** Lists of MCP servers and addresses of changed resources, as guards of the answers of their caller let them pass. */
import type { Call } from '../../calls/call.ts'
import { CallGuards } from '../../calls/guards/call-guards.ts'
import { type GuardedText, jsonAt } from '../../calls/guards/content.ts'
import { asks, type Guard, type GuardResult } from '../../calls/guards/guard.ts'
import type { GuardPlan, Guards } from '../../calls/guards/guards.ts'
import type { Clock } from '../../kit/clock.ts'
import type { McpOffer, McpUpstream } from '../../providers/mcp/upstream.ts'
import type { Caller } from '../../spec/token.ts'
import { RESOURCES, toolId } from './names.ts'

/** One request for a list, of all servers. */
export type Listing = {
  caller: Caller
  /** Where a guard checks it. */
  call(): Call
  /** What the guards have decided. */
  results: GuardResult[]
}
type Entry<Item> = { item: Item; isUsable: boolean; texts: GuardedText[] }
type Group<Item> = { guards: readonly Guard[]; plan: GuardPlan; entries: Entry<Item>[] }

/** A guard that asks gets so much of a list at a time, and is asked so often. */
const MAX_ASKED_CHARACTERS = 50_000
const MAX_QUESTIONS = 20
/** What such a guard has said of an entry that is used. */
const KNOWN_MILLISECONDS = 60_000
const MAX_KNOWN = 1_000
/** Changed, they would name nothing: their entry is left out. */
const NAMES: readonly string[] = ['name', 'uri', 'uriTemplate']

/** Of one entry, within its call. */
export type EntryCheck = (upstream: Pick<McpUpstream, 'name' | 'offer'>, call: Call) => Promise<void>

export const resourceAt =
  (address: string) =>
  ({ resources, templates }: McpOffer) =>
    resources.find(({ uri }) => uri === address) ?? templates.find(({ uriTemplate }) => uriTemplate === address)

export type GuardedLists = ReturnType<typeof createGuardedLists>

export function createGuardedLists({ guards, clock }: { guards: Pick<Guards, 'planOf'>; clock: Clock }) {
  /** By token and guards: until when an entry has passed a guard that asks. */
  const asked = new WeakMap<object, Map<string, number>>()
  const planOf = (caller: Caller, server: string, name: string) =>
    guards.planOf(caller, { id: toolId(server, name), guards: [] })

  const lists = {
    /** Whether a list of the caller would have this entry. `name`: by which guards know it. */
    async shows(item: object, { server, name }: Record<'server' | 'name', string>, call: Call): Promise<boolean> {
      const { caller, guards: own } = call
      if (!own?.readsAnswer) return true
      const listing = { caller, results: own.results, call: () => call }
      const check = async () => (await lists.passed([item], { server, nameOf: () => name, listing })).length > 0
      if (!own.asksAboutAnswer) return check()
      const known = asked.getOrInsertComputed(item, () => new Map())
      const key = JSON.stringify([caller.token_id, own.fingerprint])
      if (clock.steady() < (known.get(key) ?? 0)) return true
      if (known.size >= MAX_KNOWN) known.clear()
      const passes = await check()
      if (passes) known.set(key, clock.steady() + KNOWN_MILLISECONDS)
      return passes
    },

    /** Throws `missing` where a list of the caller would not have what is found; what is in no list is not checked. */
    check:
      (name: string, find: (offer: McpOffer) => object | undefined, missing: Error): EntryCheck =>
      async (upstream, call) => {
        if (!call.guards?.readsAnswer) return
        const item = find(await upstream.offer())
        if (item && !(await lists.shows(item, { server: upstream.name, name }, call))) throw missing
      },

    /** Those that no guard blocks, changed where one replaces. `items` stay as they are. */
    async passed<Item extends object>(
      items: readonly Item[],
      /** `nameOf`: by which guards know an entry. */
      { server, nameOf, listing }: { server: string; nameOf(item: Item): string; listing: Listing },
    ): Promise<readonly Item[]> {
      const groups = new Map<string, Group<Item>>()
      const entries = items.map((item) => {
        const plan = planOf(listing.caller, server, nameOf(item))
        const own = plan?.guardsWith(undefined) ?? []
        if (!plan || own.length === 0) return { item, isUsable: true, texts: [] }
        const entry = entryOf(item)
        const key = own.map(({ name }) => name).join()
        groups.getOrInsertComputed(key, () => ({ guards: own, plan, entries: [] })).entries.push(entry)
        return entry
      })
      if (groups.size === 0) return items
      for (const group of groups.values()) await checkGroup(group, listing)
      return entries.filter(({ isUsable }) => isUsable).map(({ item }) => item)
    },

    /** The address to announce: the changed one if it passes, else the one that the caller has subscribed to. */
    async changedAddress(
      caller: Caller,
      { server, changed, subscribed }: Record<'server' | 'changed' | 'subscribed', string>,
    ) {
      const plan = changed === subscribed ? undefined : planOf(caller, server, RESOURCES)
      if (!plan) return changed
      const call = { request_id: '', caller, signal: AbortSignal.any([]) }
      const checks = new CallGuards(plan.guardsWith(undefined), { ...plan, call, results: [] })
      const one = { text: changed }
      // Of a server that announces changes without end nobody is asked.
      const passes = !checks.asksAboutAnswer && (!checks.readsAnswer || (await checks.checkOutput([one])))
      return passes && one.text === changed ? changed : subscribed
    },
  }
  return lists
}

async function checkGroup<Item>({ guards, plan, entries }: Group<Item>, { call, results }: Listing): Promise<void> {
  let isAway = false
  const ask: GuardPlan['ask'] = (question) =>
    plan.ask(question).catch((thrown) => {
      isAway = true
      throw thrown
    })
  const checksOf = (own: readonly Guard[]) => new CallGuards(own, { ...plan, ask, call: call(), results })
  const rules = checksOf(guards.filter((guard) => !asks(guard)))
  if (rules.readsAnswer)
    for (const entry of entries) if (!(await rules.checkOutput(entry.texts))) entry.isUsable = false
  const services = checksOf(guards.filter(asks))
  if (!services.asksAboutAnswer) return
  let left = MAX_QUESTIONS

  /** Halves what does not pass until it is known which entries do not. */
  async function askAbout(some: readonly Entry<Item>[]): Promise<void> {
    if (some.length === 0) return
    if (left-- > 0 && (await services.checkOutput(some.flatMap(({ texts }) => texts)))) return
    if (isAway) left = 0
    if (some.length === 1 || left <= 0) {
      for (const entry of some) entry.isUsable = false
      return
    }
    const half = some.length >> 1
    await askAbout(some.slice(0, half))
    await askAbout(some.slice(half))
  }
  for (const part of partsOf(entries.filter(({ isUsable }) => isUsable))) await askAbout(part)
}

function partsOf<Item>(entries: readonly Entry<Item>[]): Entry<Item>[][] {
  const parts: Entry<Item>[][] = []
  let left = 0
  for (const entry of entries) {
    const length = entry.texts.reduce((sum, { text }) => sum + text.length, 0)
    if (length > left) {
      parts.push([])
      left = MAX_ASKED_CHARACTERS
    }
    left -= length
    parts.at(-1)?.push(entry)
  }
  return parts
}

function entryOf<Item extends object>(item: Item): Entry<Item> {
  const own = { ...item } as Record<string, unknown>
  const entry: Entry<Item> = { item: own as Item, isUsable: true, texts: [] }
  entry.texts = Object.keys(own).flatMap((key) =>
    NAMES.includes(key)
      ? [
          {
            get text() {
              return String(own[key])
            },
            set text(_: string) {
              entry.isUsable = false
            },
          },
        ]
      : jsonAt(own, key),
  )
  return entry
}

/** In the request log, as a call of the family mcp, where a guard has decided anything but to let it pass. */
export function recordList(call: Call, model: string, results: GuardResult[], at: number): void {
  if (results.every(({ outcome }) => outcome === 'passed')) return
  call.record = { call, family: 'mcp', model, at, attempts: [], is_stream: false, error: undefined, guards: results }
}
