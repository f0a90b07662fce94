/** Checks of MCP servers that a schema cannot express, and what of them only the file on disk may say. */
import { isAbsolute } from 'node:path'
import { isRecord, memberOf } from '../../kit/json.ts'
import type { Config } from '../config.ts'
import { MCP_SERVER_NAME } from '../schema/mcp-schema.ts'
import type { FileConfig } from '../schema/schema.ts'
import type { Report } from './problem.ts'

const NAME = new RegExp(MCP_SERVER_NAME)
/** A program runs with the rights of the gateway: who may change a configuration by the API may not run one. */
const PROGRAM = ['command', 'args', 'env', 'sandbox'] as const

/** A repeated request may reach another worker, which does not know the call that has asked. */
export function mcpWarnings({ mcp, server }: Pick<Config, 'mcp' | 'server'>): string[] {
  const names = Object.keys(mcp.servers).filter((name) => mcp.servers[name]?.per_session)
  if (!mcp.enabled || server.workers === 1 || names.length === 0) return []
  return [`mcp.servers has per_session (${names.join(', ')}), but no server can ask a client: server.workers is not 1`]
}

export function checkMcp({ mcp, sandbox, admin }: FileConfig, reportAt: Report): void {
  for (const [name, server] of Object.entries(mcp?.servers ?? {})) {
    const path = ['mcp', 'servers', name]
    const report = (message: string, ...members: string[]) =>
      reportAt([...path, ...members], message, members.length > 0 ? 'value' : 'key')
    if (!NAME.test(name)) report('a server is named by 1 to 32 of a-z, 0-9 and -, and begins with a letter')
    if (name === 'sandbox' && sandbox !== false) report('is the name of the built-in server; choose another one')
    if (server === undefined) continue
    const ways = (['url', 'sse', 'command', 'openapi'] as const).filter((way) => way in server)
    if (ways.length !== 1) report('needs exactly one of url, sse, openapi and command')
    const { openapi, oauth, oauth_user } = server
    if (openapi && URL.parse(openapi.document)?.origin !== URL.parse(openapi.base_url)?.origin) {
      report('must have its document and base_url at the same origin, to which the key is sent', 'openapi')
    }
    if (oauth && 'key' in server) report('has both key and oauth; keep one of them')
    if (oauth_user) {
      const { client_id, client_secret } = oauth_user
      if ('key' in server || 'oauth' in server) report('has oauth_user and another way to log in; keep one of them')
      if (server.url === undefined) report('needs a server with url', 'oauth_user')
      if (admin?.oidc === undefined) report('needs admin.oidc, by which people are known', 'oauth_user')
      if (client_secret !== undefined && client_id === undefined)
        report('needs client_id', 'oauth_user', 'client_secret')
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
  }
}

export function serverAddressProblem(text: string): string | undefined {
  const url = URL.parse(text)
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    return 'must be an address such as https://mcp.example.com/mcp'
  }
  return url.username || url.password ? 'may not contain a user name or password; use key or headers' : undefined
}

/** Programs, and people of API tokens, that a configuration of the admin API has, and the file on disk has not. */
export function checkProposedPrograms(file: FileConfig, before: unknown, report: Report): void {
  const old = memberOf(memberOf(before, 'mcp'), 'servers')
  const isKept = (before: unknown, after: unknown) => JSON.stringify(before) === JSON.stringify(after)
  for (const [name, server] of Object.entries(file.mcp?.servers ?? {})) {
    const path = ['mcp', 'servers', name]
    const known = isRecord(old) && Object.hasOwn(old, name) ? old[name] : undefined
    const { tokens } = server?.oauth_user ?? {}
    if (tokens !== undefined && !isKept(memberOf(memberOf(known, 'oauth_user'), 'tokens'), tokens)) {
      const why = 'since it lets a token act as a person; write it into the file itself'
      report([...path, 'oauth_user', 'tokens'], `cannot be added or changed by the admin API, ${why}`)
    } else if (server?.command !== undefined && !PROGRAM.every((one) => isKept(memberOf(known, one), server[one]))) {
      const why = 'since it runs on the host; write it into the file itself'
      report([...path, 'command'], `cannot be added or changed by the admin API, ${why}`)
    }
  }
}
