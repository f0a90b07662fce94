/** Identifies callers by access tokens of an OpenID provider: a person may use what the project of its claim may. */
import type { McpLogin } from '../config/schema/mcp-schema.ts'
import { CLOCK_SKEW_SECONDS, type VerifyAccessToken } from '../providers/openid-access-tokens.ts'
import { claimAt } from '../providers/openid-client.ts'
import { GatewayError } from '../spec/error.ts'
import type { Caller } from '../spec/token.ts'
import type { Tokens } from './tokens.ts'

type From = {
  header(name: string): string | null
  params: Record<string, string>
  request_id: string
  readonly address: string
  signal: AbortSignal
  access_ends?: number
}
type OAuthParts = { settings(): McpLogin | undefined; tokens: Pick<Tokens, 'playground'>; verify: VerifyAccessToken }

/** Three parts of base64url; no token of the gateway begins with the brace of a header. */
const JWT = /^bearer +(eyJ[\w-]*\.[\w-]*\.[\w-]*)$/i
const MAX_TOKEN = 16_384
const SUBJECT = /^[\x20-\x7e]{1,255}$/

export function createOAuthCallers({ settings, tokens, verify }: OAuthParts) {
  async function callerOf(token: string, from: From, login: McpLogin): Promise<Caller> {
    const { params, request_id, address, signal } = from
    const { issuer, resource, claim, projects } = login
    const { audiences = [resource, ...(params.server === undefined ? [] : [`${resource}/${params.server}`])] } = login
    const claims = await verify(token, { issuer, audiences })
    const { sub = '', exp } = claims
    if (exp !== undefined) from.access_ends = exp + CLOCK_SKEW_SECONDS
    const found = claimAt(claims, claim)
    const values = new Set(Array.isArray(found) ? found : [found])
    const [, project_id] = Object.entries(projects).find(([value]) => values.has(value)) ?? []
    if (project_id === undefined || !SUBJECT.test(sub)) {
      const message = `This account may not use the gateway: none of the values of its claim "${claim}" has a project (mcp.oauth.projects).`
      throw new GatewayError('permission_denied', message)
    }
    const actor = `oauth:${sub}@${URL.parse(issuer)?.host}`
    return tokens.playground({ actor, project_id, name: actor }, { address, signal }, { actor, address, request_id })
  }

  /** Undefined: what the request presents is no such token, or they are not accepted. */
  return (from: From): Promise<Caller> | undefined => {
    const login = settings()
    if (!login) return undefined
    const token = JWT.exec(from.header('authorization') ?? '')?.[1]
    return token === undefined || token.length > MAX_TOKEN ? undefined : callerOf(token, from, login)
  }
}
