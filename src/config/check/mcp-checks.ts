/** Checks of MCP servers that a schema cannot express, and what of them only the file on disk may say. */
import { isAbsolute } from 'node:path'
import { isRecord, memberOf } from '../../kit/json.ts'
import type { Config } from '../config.ts'
import type { Path } from '../load/read-yaml.ts'
import { MCP_SERVER_NAME } from '../schema/mcp-schema.ts'
import type { FileConfig } from '../schema/schema.ts'
import { addressProblem } from './admin-checks.ts'

type Problem = { path: Path; part: 'key' | 'value'; message: string }

const NAME = new RegExp(MCP_SERVER_NAME)
/** A program runs with the rights of the gateway: who may change a configuration by the API may not run one. */
const PROGRAM = ['command', 'args', 'env', 'sandbox'] as const

/** A repeated request may reach another worker, which does not know the call that has asked. */
export function mcpWarnings({ mcp, server }: Pick<Config, 'mcp' | 'server'>): string[] {
  const names = Object.keys(mcp.servers).filter((name) => mcp.servers[name]?.per_session)
  if (!mcp.enabled || server.workers === 1 || names.length === 0) return []
  return [`mcp.servers has per_session (${names.join(', ')}), but no server can ask a client: server.workers is not 1`]
}

export function mcpProblems({ mcp, sandbox, admin }: FileConfig): Problem[] {
  const { issuer } = mcp?.oauth ?? {}
  const message = issuer === undefined ? undefined : addressProblem(issuer, 'issuer')
  const oauth: Problem[] = message ? [{ path: ['mcp', 'oauth', 'issuer'], part: 'value', message }] : []
  const servers = Object.entries(mcp?.servers ?? {}).flatMap(([name, server]) => {
    const path = ['mcp', 'servers', name]
    const problems: Problem[] = []
    const report = (message: string, member?: string) =>
      void problems.push({ path: member ? [...path, member] : path, part: member ? 'value' : 'key', message })
    if (!NAME.test(name)) report('a server is named by 1 to 32 of a-z, 0-9 and -, and begins with a letter')
    if (name === 'sandbox' && sandbox !== false) report('is the name of the built-in server; choose another one')
    if (server === undefined) return problems
    const ways = (['url', 'sse', 'command', 'openapi'] as const).filter((way) => way in server)
    if (ways.length !== 1) report('needs exactly one of url, sse, openapi and command')
    for (const way of ['url', 'sse'] as const) {
      const problem = server[way] === undefined ? undefined : serverAddressProblem(server[way])
      if (problem) report(problem, way)
    }
    for (const member of ['document', 'base_url'] as const) {
      const address = server.openapi?.[member]
      const problem = address === undefined ? undefined : serverAddressProblem(address)
      if (problem) problems.push({ path: [...path, 'openapi', member], part: 'value', message: problem })
    }
    if (server.openapi && URL.parse(server.openapi.document)?.origin !== URL.parse(server.openapi.base_url)?.origin) {
      report('must have its document and base_url at the same origin, to which the key is sent', 'openapi')
    }
    if (server.oauth) {
      if ('key' in server) report('has both key and oauth; keep one of them')
      const problem = serverAddressProblem(server.oauth.token_url)
      if (problem) problems.push({ path: [...path, 'oauth', 'token_url'], part: 'value', message: problem })
    }
    if (server.oauth_user) {
      const { issuer, client_id, client_secret } = server.oauth_user
      const at = [...path, 'oauth_user']
      if ('key' in server || 'oauth' in server) report('has oauth_user and another way to log in; keep one of them')
      if (server.url === undefined) report('needs a server with url', 'oauth_user')
      if (admin?.oidc === undefined) report('needs admin.oidc, by which people are known', 'oauth_user')
      if (client_secret !== undefined && client_id === undefined)
        problems.push({ path: [...at, 'client_secret'], part: 'value', message: 'needs client_id' })
      const problem = issuer === undefined ? undefined : addressProblem(issuer, 'issuer')
      if (problem) problems.push({ path: [...at, 'issuer'], part: 'value', message: problem })
    }
    const { read = [], write = [] } = server.sandbox === 'off' ? {} : (server.sandbox ?? {})
    for (const path of [...read, ...write]) {
      if (!isAbsolute(path)) report(`has ${JSON.stringify(path)}, which is no absolute path`, 'sandbox')
    }
    const strange =
      'command' in server ? (['key', 'headers', 'oauth', 'oauth_user'] as const) : (['args', 'env', 'sandbox'] as const)
    for (const member of strange) {
      if (member in server) report(`does not belong to a server with ${ways[0] ?? 'an address'}`, member)
    }
    return problems
  })
  return [...oauth, ...servers]
}

function serverAddressProblem(text: string): string | undefined {
  const url = URL.parse(text)
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    return 'must be an address such as https://mcp.example.com/mcp'
  }
  return url.username || url.password ? 'may not contain a user name or password; use key or headers' : undefined
}

/** Programs, and people of API tokens, that a configuration of the admin API has, and the file on disk has not. */
export function proposedProgramProblems(file: FileConfig, before: unknown): Problem[] {
  const old = isRecord(before) && isRecord(before.mcp) && isRecord(before.mcp.servers) ? before.mcp.servers : {}
  const isKept = (before: unknown, after: unknown) => JSON.stringify(before) === JSON.stringify(after)
  return Object.entries(file.mcp?.servers ?? {}).flatMap(([name, server]) => {
    const known = Object.hasOwn(old, name) ? old[name] : undefined
    const { tokens } = server?.oauth_user ?? {}
    if (tokens !== undefined && !isKept(memberOf(memberOf(known, 'oauth_user'), 'tokens'), tokens)) {
      const message =
        'cannot be added or changed by the admin API, since it lets a token act as a person; write it into the file itself'
      return [{ path: ['mcp', 'servers', name, 'oauth_user', 'tokens'], part: 'value' as const, message }]
    }
    if (server?.command === undefined) return []
    const isSame = PROGRAM.every((member) => isKept(memberOf(known, member), server[member]))
    const message =
      'cannot be added or changed by the admin API, since it runs on the host; write it into the file itself'
    return isSame ? [] : [{ path: ['mcp', 'servers', name, 'command'], part: 'value' as const, message }]
  })
}
