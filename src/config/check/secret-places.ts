/** Lists the settings that hold secrets, and decides where a configuration may take one from a file. */
import { isListed } from './path-pattern.ts'

type Path = readonly (string | number)[]

/** `*` is any one step, and `**` at the end one or more. No API shows what stands there. */
export const SECRET_PLACES = [
  'admin.oidc.client_secret',
  'admin_tokens.*.secret',
  'alerts.email.password',
  'alerts.email.user',
  'alerts.slack.url',
  'alerts.webhook.secret',
  'alerts.webhook.url',
  'api_tokens.*.secret',
  'guards.*.aws.access_key_id',
  'guards.*.aws.secret_access_key',
  'guards.*.aws.session_token',
  'guards.*.key',
  'guards.*.secret',
  'guards.*.url',
  'mcp.servers.*.env.*',
  'mcp.servers.*.headers.*',
  'mcp.servers.*.key',
  'mcp.servers.*.oauth.client_secret',
  'mcp.servers.*.oauth.refresh_token',
  'mcp.servers.*.oauth_user.client_secret',
  'outputs.s3.access_key_id',
  'outputs.s3.secret_access_key',
  'providers.*.headers.*',
  'providers.*.key',
  'providers.*.keys.*.key',
  'providers.*.options.**',
  'request_log.sinks.*.clickhouse.password',
  'request_log.sinks.*.clickhouse.url',
  'request_log.sinks.*.http.headers.*',
  'request_log.sinks.*.http.url',
  'telemetry.otlp.headers.*',
  'valkey.url',
] as const

export const isSecretPlace = (path: Path): boolean => isListed(SECRET_PLACES, path)

/** A file that a setting names, as it is written there, and the path of the setting that gets its content. */
export type SecretFile = { path: Path; file: string }

/** Where a text of the configuration comes from: the file on disk, or a request of the admin API. */
export type ConfigOrigin =
  | { from: 'disk' }
  /** `present`: the secret files that the configuration file on disk names, each with its place. */
  | { from: 'api'; present: readonly SecretFile[] }

/**
 * Why the content of a file may not be put there; undefined: it may. Every `${file:...}` and `key_file` is decided here.
 * Who may send a configuration to the admin API must not read files of the host by it, nor have them sent elsewhere: only
 * those count that the file on disk already names, for the same provider or in the same setting.
 */
export function secretFileProblem({ path, file }: SecretFile, origin: ConfigOrigin): string | undefined {
  if (!isSecretPlace(path)) return 'a file may stand only where a secret does, such as in a key or a header'
  if (origin.from === 'disk' || origin.present.some((one) => one.file === file && isSameUse(one.path, path)))
    return undefined
  return 'the configuration file on disk does not name it here, and the admin API reads no other files'
}

/** What one provider has in a key, it may have in a header: both go to the same address. */
function isSameUse(one: Path, other: Path): boolean {
  const steps = one[0] === 'providers' ? 2 : Math.max(one.length, other.length)
  return one.slice(0, steps).join('\n') === other.slice(0, steps).join('\n')
}
