/** Which values of a configuration may be shown: by a list of what is no secret, so that a new setting is hidden at first. */
import { ACCOUNT_SETTINGS } from '../../spec/account-settings.ts'
import { isListed } from '../check/path-pattern.ts'
import { schemasAt } from '../schema/schema-at.ts'

/** What stands for a value that is not shown. */
export const MASKED = '***'

type Path = readonly (string | number)[]

const plainTexts = (section: string): string[] =>
  Object.values(ACCOUNT_SETTINGS).flatMap((row) => ('plain_text' in row ? [`${section}.*.${row.plain_text}`] : []))

/**
 * Free text that is no secret: names that the operator gives, and names at providers. `*` is any one step. All numbers,
 * booleans and words of a closed list that the schema knows are shown besides.
 */
export const SHOWN_TEXT = [
  '$schema',
  'file',
  'data_dir',
  'log_level',
  'server.host',
  'server.hosts.*',
  'server.metadata_hosts.*',
  'server.explain_tokens.*',
  'server.caller_routing.*',
  'admin.host',
  'admin.config_variables.*',
  'admin.oidc.client_id',
  'admin.oidc.scopes.*',
  'admin.oidc.role_claim',
  'admin.oidc.roles.*.project',
  'mcp.oauth.audiences.*',
  'mcp.oauth.claim',
  'mcp.oauth.projects.*',
  'mcp.oauth.scopes.*',
  'tokens.models.*',
  ...plainTexts('projects'),
  'api_tokens.*.project',
  'admin_tokens.*.project',
  ...plainTexts('api_tokens'),
  'guards.*.model',
  'guards.*.categories.*',
  'guards.*.aws.region',
  'guards.*.language',
  'guards.*.project',
  'guards.*.languages.*',
  'guards.*.link_hosts.*',
  'guards.*.when.projects.*',
  'guards.*.when.models.*',
  'guards.*.when.tags.*',
  'ledger.currency',
  'outputs.directory',
  'outputs.s3.region',
  'outputs.s3.bucket',
  'outputs.s3.prefix',
  'valkey.prefix',
  'providers.*.kind',
  'providers.*.preset',
  'providers.*.key_file',
  'providers.*.keys.*.key_file',
  'providers.*.keys.*.name',
  'providers.*.keys.*.models.*',
  'providers.*.fields.allow.*',
  'providers.*.fields.drop.*',
  'providers.*.fields.rename.*',
  'providers.*.health.path',
  'models.*.targets.*.provider',
  'models.*.targets.*.model',
  'models.*.targets.*.when.tags.*',
  'models.*.targets.*.when.projects.*',
  'models.*.alias_of',
  'models.*.guards.*',
  'models.*.replaced_by',
  'models.*.fallbacks.*',
  'models.*.fallbacks.*.*',
  'models.*.prices.currency',
  'models.*.prices.from',
  'models.*.prices.as_of',
  'models.*.prices.*.currency',
  'models.*.prices.*.from',
  'models.*.prices.*.as_of',
] as const

/** Addresses: scheme, host and port are shown; a user, a path and a query may be secrets. */
export const SHOWN_ORIGINS = [
  'store_url',
  'server.base_url',
  'server.files_base_url',
  'server.cors_origins.*',
  'providers.*.base_url',
  'outputs.s3.endpoint',
  'tasks.callback_origins.*',
  'valkey.url',
  'alerts.webhook.url',
  'guards.*.url',
  'admin.oidc.issuer',
  'admin.oidc.redirect_uri',
  'mcp.servers.*.url',
  'mcp.servers.*.sse',
  'mcp.servers.*.openapi.base_url',
  'mcp.oauth.issuer',
  'mcp.oauth.resource',
] as const

/** `source`: the text in the file, where a variable was filled in. */
export function shownValue(path: Path, value: unknown, source?: string): unknown {
  if (value === null || value === undefined) return null
  if (typeof value === 'object' && Object.keys(value).length === 0) return value // there is nothing in it
  if (source !== undefined && typeof value === 'string') {
    // A default within the reference may be a secret.
    return /^\$\{([A-Za-z_]\w*|file:[^}]+)\}$/.test(source) ? source : MASKED
  }
  if (isListed(SHOWN_TEXT, path)) return value
  if (isListed(SHOWN_ORIGINS, path)) return originOf(value)
  return isClosed(path, value) ? value : MASKED
}

function originOf(value: unknown): string {
  if (typeof value !== 'string') return MASKED
  if (value.startsWith('sqlite:') || value === '*') return value
  try {
    const { protocol, host } = new URL(value)
    return host === '' ? MASKED : `${protocol}//${host}`
  } catch {
    return MASKED
  }
}

/** Whether the schema allows only a number, a boolean, or words of a list at this place, and this is one. */
function isClosed(path: Path, value: unknown): boolean {
  return schemasAt(path).some((schema) => {
    if (schema.enum) return schema.enum.includes(value)
    if (schema.const !== undefined) return schema.const === value
    if (schema.type === 'number' || schema.type === 'integer') return typeof value === 'number'
    return schema.type === 'boolean' && typeof value === 'boolean'
  })
}
