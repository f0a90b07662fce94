/** Checks of MCP servers that a schema cannot express, and what of them only the file on disk may say. */
import { isRecord } from '../../kit/json.ts'
import type { Path } from '../load/read-yaml.ts'
import { MCP_SERVER_NAME } from '../schema/mcp-schema.ts'
import type { FileConfig } from '../schema/schema.ts'
import { addressProblem } from './admin-checks.ts'

type Problem = { path: Path; part: 'key' | 'value'; message: string }

const NAME = new RegExp(MCP_SERVER_NAME)
/** A program runs with the rights of the gateway: who may change a configuration by the API may not run one. */
const PROGRAM = ['command', 'args', 'env'] as const

export function mcpProblems({ mcp, sandbox }: FileConfig): Problem[] {
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
    const strange = 'command' in server ? (['key', 'headers', 'oauth'] as const) : (['args', 'env'] as const)
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

/** Programs that a configuration of the admin API has, and the file on disk has not. */
export function proposedProgramProblems(file: FileConfig, before: unknown): Problem[] {
  const old = isRecord(before) && isRecord(before.mcp) && isRecord(before.mcp.servers) ? before.mcp.servers : {}
  return Object.entries(file.mcp?.servers ?? {}).flatMap(([name, server]) => {
    if (server?.command === undefined) return []
    const known = Object.hasOwn(old, name) ? old[name] : undefined
    const isSame = PROGRAM.every(
      (member) => JSON.stringify(isRecord(known) ? known[member] : undefined) === JSON.stringify(server[member]),
    )
    const message =
      'cannot be added or changed by the admin API, since it runs on the host; write it into the file itself'
    return isSame ? [] : [{ path: ['mcp', 'servers', name, 'command'], part: 'value' as const, message }]
  })
}
