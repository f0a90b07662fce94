/** Who a caller is at MCP servers with `oauth_user`: a subject of `admin.oidc`, or nobody. */
import type { Config } from '../../config/config.ts'
import type { McpServerConfig } from '../../config/schema/mcp-schema.ts'

export type Identified = {
  /** Who has logged in: of a session of the console, or of a token without a secret. */
  actor?: string | undefined
  /** Of an API token. */
  token_id?: string | undefined
}
type Settings = { admin: Pick<Config['admin'], 'oidc'>; mcp: Pick<Config['mcp'], 'oauth'> }

/** Longer subjects, and those with spaces, are of nobody: the name of a session would not hold them whole. */
const SUBJECT = /^[\x21-\x7e]{1,150}$/

/**
 * The subject and its issuer; undefined: the caller is no person. Only these are: who has logged in to the console by
 * `admin.oidc`, who presents an access token of the same issuer at `/mcp`, and an API token that the file gives to one person.
 */
export function personOf(
  { actor, token_id }: Identified,
  { admin, mcp }: Settings,
  server: { oauth_user?: McpServerConfig['oauth_user'] | undefined } | undefined,
): string | undefined {
  const issuer = admin.oidc?.issuer
  const tokens = server?.oauth_user?.tokens ?? {}
  if (issuer === undefined) return undefined
  const subject =
    actor !== undefined
      ? subjectOf(actor, mcp.oauth?.issuer === issuer ? URL.parse(issuer)?.host : undefined)
      : token_id !== undefined && Object.hasOwn(tokens, token_id)
        ? tokens[token_id]
        : undefined
  return subject !== undefined && SUBJECT.test(subject) ? `${subject} ${issuer}` : undefined
}

/** The server by whose name the tools of a person are approved. */
export const pinnedAs = (server: string, person: string): string => `${server}:${encodeURIComponent(person)}`

/** `host`: of the issuer whose access tokens are those of the same people. */
function subjectOf(actor: string, host: string | undefined): string | undefined {
  if (actor.startsWith('oidc:')) return actor.slice('oidc:'.length)
  const end = `@${host}`
  const isSame = host !== undefined && actor.startsWith('oauth:') && actor.endsWith(end)
  return isSame ? actor.slice('oauth:'.length, -end.length) : undefined
}
