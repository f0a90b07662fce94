/** The MCP servers behind the gateway, as the operator writes them. */
import Type from 'typebox'
import { flag, integer, list, mapping, number, oneOf, optional, required, section, text } from '../../spec/fields.ts'
import { mark } from '../../spec/marks.ts'
import { MAX_AMOUNT } from '../../spec/price.ts'
import { rateLimits } from './rate-limit-schema.ts'

const APPROVE = ['auto', 'manual'] as const

/** A name becomes the prefix of tools, `name__tool`, and of the scheme of resources, `name+scheme:`. */
export const MCP_SERVER_NAME = '^[a-z][a-z0-9-]{0,31}$'

const McpTool = section({
  price: number({ minimum: 0, maximum: MAX_AMOUNT }, 'Of a call, in the currency of the ledger. Default 0.'),
  rate_limits: rateLimits('What all calls of the tool together may use.'),
})

/** The settings of a tool, of `prompts/<name>` or of `resources/read`: those of its name, else those of all of its kind. */
export function settingsOfName<Settings>(
  settings: Readonly<Record<string, Settings>> = {},
  name: string,
): Settings | undefined {
  if (Object.hasOwn(settings, name)) return settings[name]
  return settings[`${/^(prompts|resources)\//.exec(name)?.[0] ?? ''}*`]
}

const McpOAuth = section(
  {
    token_url: required({ ...mark.variable, ...mark.sent_to }, 'Where tokens are granted.'),
    client_id: required({ ...mark.variable, minLength: 1 }, 'The gateway at the issuer.'),
    client_secret: required({ ...mark.secret, minLength: 1 }, 'Its secret.'),
    scope: text('Such as `tools.read tools.call`.'),
    resource: text('Of RFC 8707, such as the address of the server.'),
    refresh_token: text(
      { ...mark.secret, minLength: 1 },
      'Uses the grant of this token, in place of `client_credentials`.',
    ),
  },
  'OAuth 2.0, in place of `key`.',
)

const McpOAuthUser = section(
  {
    issuer: text(
      { ...mark.variable, ...mark.sent_to },
      'The authorization server, which may have a private address. Default: the public one that the metadata of the server names (RFC 9728).',
    ),
    client_id: text(
      { ...mark.variable, minLength: 1 },
      'The gateway at the issuer. Default: it registers itself (RFC 7591).',
    ),
    client_secret: text({ ...mark.secret, minLength: 1 }, 'Its secret.'),
    scopes: list(
      Type.String({ pattern: '^[\\x21\\x23-\\x5b\\x5d-\\x7e]+$' }),
      'Default: those that the metadata of the server names.',
    ),
    tokens: mapping(
      Type.String({ minLength: 1 }),
      'API tokens that one person alone uses: the id of the token, and the subject (`sub`) of the person at `admin.oidc`. In the file only.',
    ),
  },
  'OAuth 2.1, in place of `key`: each person connects an account of their own. Needs `admin.oidc` and GATEHOUSE_CONTENTS_KEY.',
)

const McpOpenApi = section(
  {
    document: required(mark.variable, 'Address of its OpenAPI document, in JSON, read each minute.'),
    base_url: required(
      { ...mark.origin, ...mark.variable, ...mark.sent_to },
      'Address before the paths, at the origin of the document.',
    ),
    operations: Type.Array(Type.String(), {
      minItems: 1,
      description: 'The `operationId`s that become tools, such as `getOrder` or `search*`.',
    }),
  },
  'Operations of an HTTP API as tools.',
)

const McpSandbox = section({
  read: list(Type.String(), 'Absolute paths.'),
  write: list(Type.String(), 'Absolute paths; read too.'),
  network: oneOf(['any', 'none'], 'Default any.'),
  unix_sockets: flag("Such as Docker's, which runs anything. Default false."),
  memory_mb: integer({ minimum: 64, maximum: 1_048_576 }, 'Of a process. Default 4096.'),
})

const McpServer = section({
  url: text({ ...mark.origin, ...mark.variable, ...mark.sent_to }, 'Streamable HTTP.'),
  sse: text({ ...mark.origin, ...mark.variable, ...mark.sent_to }, 'The older HTTP+SSE.'),
  openapi: optional(McpOpenApi),
  command: text(
    { minLength: 1 },
    'Program that speaks MCP by stdio, with PATH, HOME, TMPDIR, USER, SHELL, TERM and `env` only. In the file only.',
  ),
  args: list(Type.String(), 'Its arguments.'),
  env: mapping(Type.String(), mark.secret, 'Further variables of the program.'),
  sandbox: optional(
    Type.Union([Type.Literal('off'), McpSandbox], {
      description: 'Of the program, which is confined; `off`: it is not. In the file only.',
    }),
  ),
  key: text({ ...mark.secret, minLength: 1 }, 'Sent as `Authorization: Bearer`.'),
  oauth: optional(McpOAuth),
  oauth_user: optional(McpOAuthUser),
  headers: mapping(Type.String(), mark.secret, 'Sent with every request.'),
  allow: list(
    Type.String(),
    'Only these tools, such as `get_*`, prompts (`prompts/<name>`) and its resources (`resources/read`). Default: all.',
  ),
  deny: list(Type.String(), 'Not these.'),
  projects: list(Type.String(), 'Ids of projects that may use it. Without `projects` and `tokens`: all.'),
  tokens: list(Type.String(), 'Ids of tokens that may use it.'),
  tools: mapping(
    McpTool,
    'Prices and limits by tool, `prompts/<name>` or `resources/read`; `*`, `prompts/*`: of those that are not named.',
  ),
  per_session: flag(
    'A connection or process for each session of a client, or each open call of one without, which sampling, elicitation and log messages reach. Default false.',
  ),
  approve: oneOf(APPROVE, 'Default: mcp.approve.'),
  connect_seconds: number({ exclusiveMinimum: 0, maximum: 300 }, 'To connect and list what it has. Default 15.'),
  call_seconds: number({ exclusiveMinimum: 0, maximum: 3600 }, 'The longest call. Default 120.'),
  max_result_bytes: integer({ minimum: 1024, maximum: 67_108_864 }, 'The largest message from it. Default 4194304.'),
})
export type McpServerConfig = Type.Static<typeof McpServer>

/** How its program is confined, in one line; null: it is none. `isPossible`: here. */
export function sandboxText({ command, sandbox = {} }: McpServerConfig, isPossible: boolean): string | null {
  if (command === undefined) return null
  if (sandbox === 'off') return 'off'
  if (!isPossible) return 'not possible here (no Landlock): it does not start'
  const { network = 'any', unix_sockets = false, read = [], write = [] } = sandbox
  const paths = [...read.map((path) => `reads ${path}`), ...write.map((path) => `writes ${path}`)]
  return [`on: network ${network}`, ...(unix_sockets ? ['Unix sockets'] : []), ...paths].join(', ')
}

const McpLogin = section(
  {
    issuer: required(
      { ...mark.origin, ...mark.variable, ...mark.sent_to, pattern: '^https?://' },
      'Address above /.well-known/openid-configuration; http only on this machine.',
    ),
    resource: required(
      { ...mark.origin, ...mark.variable, pattern: '^https?://[^/?#@]+/mcp$' },
      'The address of `/mcp` as clients know it. Tokens must be issued for it.',
    ),
    audiences: list(
      Type.String({ minLength: 1 }),
      { ...mark.shown, ...mark.variable, minItems: 1 },
      'What `aud` of a token must contain one of, where the provider does not know `resource`.',
    ),
    scopes: list(
      Type.String({ pattern: '^[\\x21\\x23-\\x5b\\x5d-\\x7e]+$' }),
      mark.shown,
      'What clients ask the provider for.',
    ),
    claim: required(
      { ...mark.shown, minLength: 1 },
      'The claim that decides, such as `groups`, `realm_access.roles` or `sub`.',
    ),
    projects: Type.Record(Type.String({ minLength: 1 }), Type.String({ minLength: 1 }), {
      ...mark.shown,
      description:
        'The id of the project of each value of the claim; the first that fits counts. Who has none of these is refused.',
    }),
  },
  'Clients may log in at an OpenID provider, and call `/mcp` with its access tokens (JWT).',
)
export type McpLogin = Type.Static<typeof McpLogin>

/** The section `mcp`. */
export const McpConfig = section(
  {
    enabled: flag('Serve `/mcp`. Default true.'),
    approve: oneOf(
      APPROVE,
      'Of new tools: auto: when first seen; manual: by `gatehouse mcp approve`, as all changed ones. Default auto.',
    ),
    max_sessions: integer({ minimum: 1, maximum: 100_000 }, 'Open sessions. Default 2000.'),
    max_token_sessions: integer(
      { minimum: 1, maximum: 100_000 },
      'Of one token; a further one closes its oldest. Default 200.',
    ),
    idle_minutes: number({ exclusiveMinimum: 0, maximum: 1440 }, 'After which a session ends. Default 30.'),
    max_chat_rounds: integer(
      { minimum: 1, maximum: 100 },
      'Calls of the model for one response with tools. Default 10.',
    ),
    max_chat_calls: integer({ minimum: 1, maximum: 1000 }, 'Calls of tools for one such response. Default 50.'),
    max_chat_seconds: number(
      { exclusiveMinimum: 0, maximum: 3600 },
      'After which no further round begins, and calls of tools end. Default 300.',
    ),
    max_chat_cost: number(
      { exclusiveMinimum: 0, maximum: MAX_AMOUNT },
      'In the currency of the ledger, after which no tools are offered. Default: no limit.',
    ),
    oauth: optional(McpLogin),
    servers: mapping(McpServer, 'MCP servers by name.'),
  },
  'MCP servers, which clients reach at `/mcp`.',
)
export type McpConfig = Type.Static<typeof McpConfig>
