/** Decides in which settings a variable of the environment may be filled in. */
import { isFileReference } from '../load/interpolate.ts'
import { schemasAt } from '../schema/schema-at.ts'
import { isListed } from './path-pattern.ts'
import { isSecretPlace } from './secret-places.ts'

type Path = readonly (string | number)[]

/** What is sent to a provider and shown nowhere. */
const UNSHOWN = ['providers.*.request_defaults.**'] as const

/** Addresses, directories and names outside the gateway, which differ from one installation to the next. */
const LOCATIONS = [
  'data_dir',
  'server.host',
  'server.hosts.*',
  'server.base_url',
  'server.files_base_url',
  'server.cors_origins.*',
  'admin.host',
  'admin.oidc.issuer',
  'admin.oidc.client_id',
  'admin.oidc.redirect_uri',
  'mcp.oauth.audiences.*',
  'mcp.oauth.issuer',
  'mcp.oauth.resource',
  'mcp.servers.*.oauth.client_id',
  'mcp.servers.*.oauth.token_url',
  'mcp.servers.*.oauth_user.client_id',
  'mcp.servers.*.oauth_user.issuer',
  'mcp.servers.*.openapi.base_url',
  'mcp.servers.*.openapi.document',
  'mcp.servers.*.sse',
  'mcp.servers.*.url',
  'metrics.host',
  'tasks.callback_origins.*',
  'outputs.directory',
  'outputs.s3.bucket',
  'outputs.s3.region',
  'outputs.s3.endpoint',
  'outputs.s3.prefix',
  'valkey.prefix',
  'request_log.sinks.*.file.path',
  'alerts.email.host',
  'alerts.email.from',
  'alerts.email.to.*',
  'telemetry.otlp.endpoint',
  'providers.*.base_url',
] as const

/** Variables with secrets of the gateway itself: in any setting, they would be sent or shown somewhere else. */
const OWN_SECRETS = [
  'GATEHOUSE_ADMIN_TOKEN',
  'GATEHOUSE_BOOTSTRAP_TOKEN',
  'GATEHOUSE_CONTENTS_KEY',
  'GATEHOUSE_CONTENTS_KEY_OLD',
  'GATEHOUSE_DATABASE_URL',
]

export const isLocation = (path: Path): boolean => isListed(LOCATIONS, path)

/**
 * Why the variables may not be filled in at this place, if so: answers of the APIs show names, labels and texts such as
 * those of models, so only secrets, locations, numbers, booleans and enumerated values take variables.
 */
export function expansionProblem(path: Path, references: readonly string[]): string | undefined {
  const names = references.filter((reference) => !isFileReference(reference))
  if (names.length === 0) return undefined // where a file may stand, `secretFileProblem` decides
  const own = names.find((name) => OWN_SECRETS.includes(name))
  if (own !== undefined) return `may not contain \${${own}}: it is a secret that only the gateway itself reads`
  if (isSecretPlace(path) || isLocation(path) || isListed(UNSHOWN, path)) return undefined
  const schemas = schemasAt(path)
  const isText = schemas.length > 0 && schemas.every(({ type, enum: words }) => type === 'string' && !words)
  if (!isText) return undefined
  return 'may not contain a variable, since the API shows this setting; write the text itself ("$${" stands for "${")'
}
