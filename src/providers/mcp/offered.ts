/** Keeps what an MCP server offers: asks for it anew after a time, when it has changed, and before a call of a tool. */
import type { Client, Prompt, Resource, ResourceTemplateType, Tool } from '@modelcontextprotocol/client'
import { type Clock, pause } from '../../kit/clock.ts'
import { memberOf } from '../../kit/json.ts'
import { GatewayError } from '../../spec/error.ts'
import type { UpstreamLimits } from './upstream-fetch.ts'

/** What a server offers; empty lists where it has none. */
export type McpOffer = {
  tools: Tool[]
  prompts: Prompt[]
  resources: Resource[]
  templates: ResourceTemplateType[]
  completes: boolean
  instructions: string | undefined
  title: string
}

type OfferedParts = {
  name: string
  limits: UpstreamLimits
  clock: Clock
  /** Rejects while lists wait after a failure. */
  connect(): Promise<Client>
  isConnected(): boolean
  isClosed(): boolean
  /** It has answered. */
  onListed(): void
  /** What it offers is not what it was. */
  onChanged(): void
  /** Whether its connection was lost, and is dropped. */
  isLost(client: Client, thrown: unknown): Promise<boolean>
  /** It has not answered. `pauses`: it is asked for lists again after a time. */
  failed(thrown: unknown, pauses: boolean): GatewayError
}

/** Servers that announce no changes are asked again after it. */
const FRESH_MILLISECONDS = 60_000
/** Before a call of a tool, a server is asked for its tools again after it: it may change them without a word. */
const CALL_FRESH_MILLISECONDS = 5_000
/** A server that announces changes without end is not asked more often. */
const CHANGE_MILLISECONDS = 1_000
/** Changes that follow each other are announced after 1 s, 2 s, 4 s, ...: a list may be another one each time. */
const MAX_ANNOUNCE_MILLISECONDS = 300_000
/** Names of prompts and resources begin so where they are allowed, limited and counted; no tool is offered by such a one. */
const RESERVED = /^(prompts|resources)\//
/** More is cut off: clients cannot use thousands of tools. */
const MAX_OFFERED = 1_000

export function createOffered({ name, limits, clock, connect, ...parts }: OfferedParts) {
  let offered: McpOffer | undefined
  let listing: Promise<McpOffer> | undefined
  let checking: { sent: number; offer: Promise<McpOffer> } | undefined
  let askedAt = Number.NEGATIVE_INFINITY
  let toolsAskedAt = Number.NEGATIVE_INFINITY
  let isRefreshing = false
  let announcedAt = Number.NEGATIVE_INFINITY
  let announceWait = CHANGE_MILLISECONDS
  let isAnnouncing = false

  const isFresh = () => parts.isConnected() && clock.steady() - askedAt < FRESH_MILLISECONDS

  async function offer(): Promise<McpOffer> {
    if (offered && isFresh()) return offered
    listing ??= ask().finally(() => {
      listing = undefined
    })
    return listing
  }

  /** Once more by a new connection where the server does not know the old one: it has executed nothing. */
  async function listed<Lists>(read: (client: Client) => Promise<Lists>, pauses: boolean): Promise<Lists> {
    const client = await connect()
    try {
      return await read(client)
    } catch (thrown) {
      if (!(await parts.isLost(client, thrown))) throw parts.failed(thrown, pauses)
    }
    const next = await connect()
    return await read(next).catch((thrown) => {
      throw parts.failed(thrown, pauses)
    })
  }

  async function listTools(client: Client, timeout: number, signal?: AbortSignal): Promise<Tool[]> {
    const sent = clock.steady()
    const has = client.getServerCapabilities()
    const options = { timeout, cacheMode: 'refresh' as const, ...(signal && { signal }) }
    const tools = has?.tools ? (await client.listTools(undefined, options)).tools : []
    // One that was sent later has answered before.
    if (offered && sent < toolsAskedAt) return offered.tools
    toolsAskedAt = sent
    // Of two of one name, only the first can be approved and called.
    return [...new Map(tools.toReversed().map((tool) => [tool.name, tool])).values()]
      .toReversed()
      .filter((tool) => !RESERVED.test(tool.name))
      .slice(0, MAX_OFFERED)
  }

  function keep(next: McpOffer): McpOffer {
    const hasChanged = JSON.stringify(offered) !== JSON.stringify(next)
    if (hasChanged || !offered) offered = next
    parts.onListed()
    if (hasChanged) announce()
    return offered
  }

  function announce(): void {
    const since = clock.steady() - announcedAt
    if (since < announceWait) {
      if (isAnnouncing) return
      isAnnouncing = true
      clock.after(announceWait - since, () => {
        isAnnouncing = false
        if (!parts.isClosed()) announce()
      })
      return
    }
    announceWait =
      since > 2 * MAX_ANNOUNCE_MILLISECONDS
        ? CHANGE_MILLISECONDS
        : Math.min(2 * announceWait, MAX_ANNOUNCE_MILLISECONDS)
    announcedAt = clock.steady()
    parts.onChanged()
  }

  /** Waits as long as for a call: a server that works on others may answer one by one. */
  async function checkTools(before: McpOffer): Promise<McpOffer> {
    const over = new AbortController()
    try {
      const reading = listed((client) => listTools(client, limits.call_ms, over.signal), false)
      return keep({ ...(offered ?? before), tools: await withinCall(reading) })
    } finally {
      over.abort()
    }
  }

  /** All pages of a list together may take as long as a call, and no longer than the caller waits. */
  async function withinCall<Result>(work: Promise<Result>, signal?: AbortSignal): Promise<Result> {
    const over = new AbortController()
    const ends = signal ? AbortSignal.any([signal, over.signal]) : over.signal
    const late = pause(clock, limits.call_ms, ends).then(() => {
      throw new GatewayError('upstream_timeout', `The MCP server "${name}" did not list its tools in time.`)
    })
    try {
      return await Promise.race([work, late])
    } finally {
      over.abort()
    }
  }

  async function offerAt(now: number): Promise<McpOffer> {
    const known = offered && isFresh() ? offered : await offer()
    if (now - toolsAskedAt < CALL_FRESH_MILLISECONDS) return known
    if (!checking || now - checking.sent >= CALL_FRESH_MILLISECONDS) {
      const mine = { sent: now, offer: checkTools(known) }
      checking = mine
      const ended = () => {
        if (checking === mine) checking = undefined
      }
      mine.offer.then(ended, ended)
    }
    return checking.offer
  }

  const ask = (): Promise<McpOffer> =>
    listed(async (client) => {
      const options = { timeout: limits.connect_ms, cacheMode: 'refresh' as const }
      const has = client.getServerCapabilities() ?? {}
      const prior = { prompts: [], resources: [], templates: [], ...offered }
      const [tools, prompts, resources, templates] = await Promise.all([
        listTools(client, limits.connect_ms),
        has.prompts ? client.listPrompts(undefined, options).then((list) => list.prompts, orElse(prior.prompts)) : [],
        has.resources
          ? client.listResources(undefined, options).then((list) => list.resources, orElse(prior.resources))
          : [],
        has.resources
          ? client
              .listResourceTemplates(undefined, options)
              .then((list) => list.resourceTemplates, orElse(prior.templates))
          : [],
      ])
      askedAt = clock.steady()
      return keep({
        tools,
        prompts: prompts.slice(0, MAX_OFFERED),
        resources: resources.slice(0, MAX_OFFERED),
        templates: templates.slice(0, MAX_OFFERED),
        completes: has.completions !== undefined,
        instructions: client.getInstructions(),
        title: client.getServerVersion()?.title ?? client.getServerVersion()?.name ?? name,
      })
    }, true)

  return {
    offer,
    async offerForCall(signal?: AbortSignal): Promise<McpOffer> {
      const now = clock.steady()
      if (offered && isFresh() && now - toolsAskedAt < CALL_FRESH_MILLISECONDS) return offered
      return await withinCall(offerAt(now), signal)
    },
    known: () => offered,
    /** Its connection has ended. */
    forget() {
      askedAt = Number.NEGATIVE_INFINITY
    },
    /** Asked for again, but not more than once a second. */
    changed(): void {
      if (isRefreshing) return
      isRefreshing = true
      askedAt = Math.min(askedAt, clock.steady() - FRESH_MILLISECONDS + CHANGE_MILLISECONDS)
      clock.after(CHANGE_MILLISECONDS, () => {
        isRefreshing = false
        if (!parts.isClosed()) offer().catch(() => {})
      })
    },
  }
}

const METHOD_NOT_FOUND = -32601

/** Many servers lack a method that they announce, most often that of templates. Otherwise what guards hide remains known. */
const orElse =
  <Item>(prior: Item[]) =>
  (thrown: unknown): Item[] =>
    memberOf(thrown, 'code') === METHOD_NOT_FOUND ? [] : prior
