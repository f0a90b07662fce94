/** The MCP servers behind the gateway, and what of them a caller may see and use. */
import type { Config } from '../../config/config.ts'
import type { McpServerConfig } from '../../config/schema/mcp-schema.ts'
import type { Clock } from '../../kit/clock.ts'
import { matchesGlob } from '../../kit/glob.ts'
import { canonicalJson } from '../../kit/json.ts'
import type { Log } from '../../kit/log.ts'
import { createUpstream, type McpOffer, type McpUpstream } from '../../providers/mcp/upstream.ts'
import type { Transport } from '../../providers/upstream/transport.ts'
import type { Caller } from '../../spec/token.ts'
import type { Store } from '../../store/store.ts'
import { type Approvals, createApprovals } from './approvals.ts'
import { toolId } from './names.ts'

const SANDBOX_SERVER = 'sandbox'

export type McpServers = {
  /** By name; those that the caller may use. */
  of(caller: Caller): McpUpstream[]
  /** Undefined: there is none of this name that the caller may use. */
  find(name: string, caller: Caller): McpUpstream | undefined
  /** All, for the operator. */
  all(): McpUpstream[]
  /** The tools of a server that the caller may call, approved or not. */
  toolsOf(upstream: McpUpstream, offer: McpOffer, caller: Caller): McpOffer['tools']
  /** Whether the caller may use what a server has by this name: `prompts/<name>`, `resources/read`. */
  mayUse(upstream: McpUpstream, name: string, caller: Caller): boolean
  /** The names of those that are approved as they are. */
  approvedOf: Approvals['of']
  /** Connects with the settings as they are now; a server whose settings are the same keeps its connection. */
  apply(): void
  /** Called with the name of a server whose offer has changed. */
  onChange(listener: (server: string) => void): void
  close(): Promise<void>
}

type ServersParts = {
  config(): Pick<Config, 'mcp' | 'sandbox'>
  store: Pick<Store, 'mcpTools'>
  transport: Transport
  version: string
  clock: Clock
  log: Log
}

export function createMcpServers({ config, store, ...parts }: ServersParts): McpServers {
  const approvals = createApprovals({ ...parts, store: store.mcpTools, settings: () => config().mcp })
  let upstreams = new Map<string, { key: string; upstream: McpUpstream }>()
  const listeners: ((server: string) => void)[] = []

  function apply(): void {
    const { mcp, sandbox } = config()
    const configured: [string, McpServerConfig | undefined][] = mcp.enabled
      ? [...(sandbox ? [[SANDBOX_SERVER, undefined] as [string, undefined]] : []), ...Object.entries(mcp.servers)]
      : []
    const next: typeof upstreams = new Map()
    for (const [name, server] of configured.toSorted(([a], [b]) => (a < b ? -1 : 1))) {
      const key = canonicalJson(server ?? null)
      const old = upstreams.get(name)
      const onChanged = () => {
        for (const listener of listeners) listener(name)
      }
      next.set(
        name,
        old?.key === key ? old : { key, upstream: createUpstream({ ...parts, name, config: server, onChanged }) },
      )
    }
    const gone = [...upstreams.values()].filter((one) => ![...next.values()].includes(one))
    upstreams = next
    for (const { upstream } of gone) void upstream.close()
  }

  const isAllowed = ({ config: server }: McpUpstream, caller: Caller): boolean => {
    const { projects, tokens } = server ?? {}
    if (!caller.mayUseFamily('mcp')) return false
    if (projects === undefined && tokens === undefined) return true
    return Boolean(tokens?.includes(caller.token_id) || projects?.includes(caller.project_id ?? ''))
  }
  const all = () => [...upstreams.values()].map(({ upstream }) => upstream)

  return {
    all,
    of: (caller) => all().filter((upstream) => isAllowed(upstream, caller)),
    find(name, caller) {
      const found = upstreams.get(name)?.upstream
      return found && isAllowed(found, caller) ? found : undefined
    },
    toolsOf: ({ name, config: server }, { tools }, caller) =>
      tools.filter((tool) => isOffered(tool.name, server) && caller.mayUseModel(toolId(name, tool.name))),
    approvedOf: approvals.of,
    mayUse: ({ name, config: server }, own, caller) => isOffered(own, server) && caller.mayUseModel(toolId(name, own)),
    apply,
    onChange: (listener) => void listeners.push(listener),
    async close() {
      await Promise.all(all().map((upstream) => upstream.close()))
    },
  }
}

function isOffered(tool: string, { allow, deny = [] }: McpServerConfig = {}): boolean {
  const isListed = allow === undefined || allow.some((pattern) => matchesGlob(pattern, tool))
  return isListed && !deny.some((pattern) => matchesGlob(pattern, tool))
}
