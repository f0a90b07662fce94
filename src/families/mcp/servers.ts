/** The MCP servers behind the gateway, and what of them a caller may see and use. */
import type { Config } from '../../config/config.ts'
import type { McpServerConfig } from '../../config/schema/mcp-schema.ts'
import { matchesGlob } from '../../kit/glob.ts'
import { canonicalJson } from '../../kit/json.ts'
import { createUpstream, type McpOffer, type McpUpstream, type UpstreamParts } from '../../providers/mcp/upstream.ts'
import type { Caller } from '../../spec/token.ts'
import type { Store } from '../../store/store.ts'
import { type Approvals, createApprovals } from './approvals.ts'
import type { McpConnections } from './connections.ts'
import { toolId } from './names.ts'
import { createPersonUpstream } from './person-upstream.ts'

const SANDBOX_SERVER = 'sandbox'
/** Of one server, whose connections are kept; that of the person who has not used it for the longest time is closed. */
const MAX_PEOPLE = 1_000

type Entry = {
  key: string
  upstream: McpUpstream
  /** Undefined: all share the connection. */
  people: { known: Map<string, McpUpstream>; create(person: string): McpUpstream } | undefined
}

type OnChange = (server: string, person?: string) => void

export type McpServers = {
  /** By name; those that the caller may use. */
  of(caller: Caller): McpUpstream[]
  /** Undefined: there is none of this name that the caller may use. */
  find(name: string, caller: Caller): McpUpstream | undefined
  /** Whose connection the caller would use at this server; undefined: that of all, or nobody's. */
  personOf(caller: Caller, server: string): string | undefined
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
  /** Called with the name of a server whose offer has changed. `person`: for that one only. */
  onChange(listener: OnChange): void
  close(): Promise<void>
}

type ServersParts = Pick<UpstreamParts, 'transport' | 'version' | 'clock' | 'log' | 'programs'> & {
  config(): Pick<Config, 'mcp' | 'sandbox'>
  connections: McpConnections
  store: Pick<Store, 'mcpTools'>
}

export function createMcpServers({ config, store, connections, ...parts }: ServersParts): McpServers {
  const approvals = createApprovals({ ...parts, store: store.mcpTools, settings: () => config().mcp })
  let upstreams = new Map<string, Entry>()
  const listeners: OnChange[] = []
  const idle_ms = () => config().mcp.idle_minutes * 60_000

  function entryOf(key: string, own: UpstreamParts): Entry {
    const { config: server } = own
    if (!server?.oauth_user) return { key, upstream: createUpstream(own), people: undefined }
    const onPersonChanged = (person: string) => changed(own.name, person)
    const personal = { ...own, config: server, idle_ms, onPersonChanged }
    const create = (person?: string) => createPersonUpstream(personal, person, connections)
    return { key, upstream: create(), people: { known: new Map(), create } }
  }

  function changed(server: string, person?: string): void {
    for (const listener of listeners) listener(server, person)
  }

  async function close({ upstream, people }: Entry): Promise<void> {
    await Promise.all([upstream, ...(people?.known.values() ?? [])].map((one) => one.close()))
  }

  const personAt = (config: McpServerConfig | undefined, { playground: actor, token_id }: Caller) =>
    connections.personOf({ actor, token_id }, config)

  /** That of the caller, where each person has a connection of their own. */
  function ownOf({ upstream, people }: Entry, caller: Caller): McpUpstream {
    const person = people && personAt(upstream.config, caller)
    if (!people || person === undefined) return upstream
    const own = people.known.get(person) ?? people.create(person)
    people.known.delete(person)
    people.known.set(person, own)
    const [oldest] = people.known.size > MAX_PEOPLE ? people.known : []
    if (oldest) {
      people.known.delete(oldest[0])
      void oldest[1].close()
    }
    return own
  }

  function apply(): void {
    const { mcp, sandbox } = config()
    const configured: [string, McpServerConfig | undefined][] = mcp.enabled
      ? [...(sandbox ? [[SANDBOX_SERVER, undefined] as [string, undefined]] : []), ...Object.entries(mcp.servers)]
      : []
    const next: typeof upstreams = new Map()
    for (const [name, server] of configured.toSorted(([a], [b]) => (a < b ? -1 : 1))) {
      const key = canonicalJson(server ?? null)
      const old = upstreams.get(name)
      const onChanged = () => changed(name)
      next.set(name, old?.key === key ? old : entryOf(key, { ...parts, name, config: server, onChanged }))
    }
    const gone = [...upstreams.values()].filter((one) => ![...next.values()].includes(one))
    upstreams = next
    for (const entry of gone) void close(entry)
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
    personOf: (caller, server) => personAt(upstreams.get(server)?.upstream.config, caller),
    of: (caller) =>
      [...upstreams.values()].filter(({ upstream }) => isAllowed(upstream, caller)).map((one) => ownOf(one, caller)),
    find(name, caller) {
      const found = upstreams.get(name)
      return found && isAllowed(found.upstream, caller) ? ownOf(found, caller) : undefined
    },
    toolsOf: ({ name, config: server }, { tools }, caller) =>
      tools.filter((tool) => isOffered(tool.name, server) && caller.mayUseModel(toolId(name, tool.name))),
    approvedOf: approvals.of,
    mayUse: ({ name, config: server }, own, caller) => isOffered(own, server) && caller.mayUseModel(toolId(name, own)),
    apply,
    onChange: (listener) => void listeners.push(listener),
    async close() {
      await Promise.all([...upstreams.values()].map(close))
    },
  }
}

function isOffered(tool: string, { allow, deny = [] }: McpServerConfig = {}): boolean {
  const isListed = allow === undefined || allow.some((pattern) => matchesGlob(pattern, tool))
  return isListed && !deny.some((pattern) => matchesGlob(pattern, tool))
}
