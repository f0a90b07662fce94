/**
 * Approved tools: a tool may be used as its description and schemas were approved. One that a server changes afterwards is off
 * until it is approved again.
 */
import type { McpSettings } from '../../config/config.ts'
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import { canonicalJson } from '../../kit/json.ts'
import type { Log } from '../../kit/log.ts'
import { sha256 } from '../../kit/secret.ts'
import type { McpOffer, McpUpstream } from '../../providers/mcp/upstream.ts'
import type { McpToolStore, SeenTool } from '../../store/admin/mcp-tool-store.ts'

type ApprovalsParts = {
  store: Pick<McpToolStore, 'list' | 'see'>
  settings(): McpSettings
  clock: Clock
  log: Log
}

export type Approvals = {
  /** The names of the tools that are approved as they are offered. */
  of(upstream: McpUpstream, offer: McpOffer): Promise<ReadonlySet<string>>
}

/** What another process has approved counts after it. */
const FRESH_MILLISECONDS = 2_000
/** Longer ones are never approved. */
const MAX_DEFINITION_CHARACTERS = 64 * 1024
/** A server that invents names without end fills no table. */
const MAX_ROWS = 5_000
/** Where each person has rows of their own, which nothing that others are offered fills or changes. */
const MAX_PERSON_ROWS = 1_000
const BY_CONFIGURATION = 'configuration'

type Known = { until: number; approved: ReadonlySet<string> }

export function createApprovals({ store, settings, clock, log }: ApprovalsParts): Approvals {
  /** People may be offered different tools by one server. */
  const known = new WeakMap<McpOffer, Known>()

  async function look({ name, config, pinned_as }: McpUpstream, { tools }: McpOffer): Promise<ReadonlySet<string>> {
    const server = pinned_as ?? name
    const most = pinned_as === undefined ? MAX_ROWS : MAX_PERSON_ROWS
    const rows = new Map((await store.list(server)).map((row) => [row.tool, row]))
    const offered = tools.map((tool) => seenTool(server, tool, unixSeconds(clock)))
    const fitting = offered.filter(({ definition }) => definition.length <= MAX_DEFINITION_CHARACTERS)
    const fresh = fitting.filter(({ tool }) => !rows.has(tool)).slice(0, Math.max(0, most - rows.size))
    const changed = fitting.filter(({ tool, hash }) => rows.has(tool) && rows.get(tool)?.hash !== hash)
    const isAuto = (config?.approve ?? settings().approve) === 'auto'
    if (fresh.length + changed.length > 0)
      await store.see([...fresh, ...changed], isAuto ? BY_CONFIGURATION : undefined)
    for (const { tool, hash } of changed) {
      if (rows.get(tool)?.approved_hash === hash) continue
      log.warn('mcp tool changed', { server: name, tool, why: 'it is off until it is approved again' })
    }
    const isApproved = ({ tool, hash }: SeenTool) =>
      rows.has(tool) ? rows.get(tool)?.approved_hash === hash : isAuto && fresh.some((one) => one.tool === tool)
    return new Set(fitting.filter(isApproved).map(({ tool }) => tool))
  }

  return {
    async of(upstream, offer) {
      // The built-in server changes with the gateway only.
      if (upstream.config === undefined) return new Set(offer.tools.map(({ name }) => name))
      const found = known.get(offer)
      if (found && clock.steady() < found.until) return found.approved
      const approved = await look(upstream, offer)
      known.set(offer, { until: clock.steady() + FRESH_MILLISECONDS, approved })
      return approved
    },
  }
}

function seenTool(server: string, tool: McpOffer['tools'][number], seen_at: number): SeenTool {
  const definition = canonicalJson(tool)
  return { server, tool: tool.name, hash: sha256(definition), definition, seen_at }
}
