/** The sections `server` and `calls` of `gatehouse.yaml`: the address of the gateway, and limits of requests and calls. */
import Type from 'typebox'
import { flag, integer, list, number, oneOf, optional, section, text } from '../../spec/fields.ts'
import { mark } from '../../spec/marks.ts'

const seconds = (description: string, maximum = 86_400) => number({ exclusiveMinimum: 0, maximum }, description)

/** Each has its own memory, connections to the store and background work. */
const MAX_WORKERS = 128

export const ServerConfig = section({
  host: text({ ...mark.shown, ...mark.variable, ...mark.restart }, 'Address to listen on. Default 127.0.0.1.'),
  port: integer(
    { ...mark.restart, minimum: 0, maximum: 65_535 },
    'Port to listen on; 0 takes a free one. Default 8787.',
  ),
  workers: optional(
    Type.Union([Type.Literal('auto'), Type.Integer({ minimum: 1, maximum: MAX_WORKERS })], {
      ...mark.restart,
      description: 'Processes; auto: one for each core. Default 1.',
    }),
  ),
  base_url: text({ ...mark.origin, ...mark.variable }, 'The address that clients use.'),
  files_base_url: text({ ...mark.origin, ...mark.variable }, 'An address that serves only stored files.'),
  hosts: list(
    Type.String(),
    { ...mark.shown, ...mark.variable, maxItems: 50 },
    'Names in Host for pages without a token; others get 404. Addresses, localhost, names without a dot or below .internal, base_url and files_base_url always may. Default: any; for /metrics without a token only these.',
  ),
  max_body_bytes: integer(
    { minimum: 1024, maximum: 1_073_741_824 },
    'Larger request bodies are rejected with 413. Default 32 MiB.',
  ),
  max_text_body_bytes: integer(
    { minimum: 1024, maximum: 1_073_741_824 },
    'The same without chat and media. Default 8 MiB.',
  ),
  body_seconds: seconds('Time for a request body. Default 60.'),
  keep_alive_seconds: seconds('Silence of a stream before a keep-alive comment. Default 15.', 300),
  shutdown_seconds: number({ minimum: 0, maximum: 3600 }, 'Time for open requests when the gateway stops. Default 25.'),
  drain_seconds: number(
    { minimum: 0, maximum: 3600 },
    'Part of shutdown_seconds in which /readyz fails and connections close after their responses. Default 5 with workers, PostgreSQL or Valkey, else 0.',
  ),
  metadata_hosts: list(
    Type.String({ minLength: 1 }),
    { ...mark.shown, maxItems: 20 },
    'Link-local hosts, such as 169.254.169.254, that this file may name. Default: none.',
  ),
  cors_origins: list(
    Type.String(),
    { ...mark.origin, ...mark.variable },
    'Origins of web pages that may call the gateway; `*`: any. Default: none.',
  ),
  trust_proxy: flag("Take the client's address from x-forwarded-for. Default false."),
  delta_mirror: flag('Whole chat responses repeat `message` as `delta`. Default true.'),
  families: oneOf(
    ['all', 'specified'],
    'Families in `supported_endpoint_types`: all, or those of the specification. Default all.',
  ),
  max_bytes_in_flight: integer(
    { minimum: 1024 },
    'Bytes of request bodies and unread answers in memory; beyond: 503. Default: a quarter of the memory, at least 256 MiB.',
  ),
  max_token_bytes_in_flight: integer(
    { minimum: 1024 },
    'The same for each token; beyond: 429. Default: half of max_bytes_in_flight.',
  ),
  max_delay_ms: integer(
    { minimum: 0, maximum: 60_000 },
    'An event loop that is later for a second refuses some requests, 503; 0: never. Default 250.',
  ),
  http_client: oneOf(['sockets', 'fetch'], 'Has no effect.'),
  end_revoked_calls: flag('End open calls of a token that is revoked or expires. Default true.'),
  explain_tokens: list(
    Type.String({ pattern: '^(\\*|tok_[A-Za-z0-9]+)$' }),
    mark.shown,
    'Ids of tokens that may send `x-gatehouse-explain: 1`; `*`: all. Default: none.',
  ),
  caller_routing: optional(
    Type.Union([Type.Boolean(), Type.Array(Type.String({ ...mark.shown, pattern: '^(tok|proj)_[A-Za-z0-9]+$' }))], {
      description:
        'Whether requests (or of which tokens and projects) may have `models`, `provider`, `x-gatehouse-timeout` and `x-gatehouse-no-fallback`. Default true.',
    }),
  ),
  show_target: flag('Responses have `x-gatehouse-target` and `x-gatehouse-attempts`. Default true.'),
  show_cost: flag('Whole responses have `x-gatehouse-cost`. Default true.'),
})
export type ServerConfig = Type.Static<typeof ServerConfig>

export const CallsConfig = section({
  finish_after_leave_seconds: number(
    { minimum: 0, maximum: 600 },
    'How long a response is read for its usage after its client left. Default 30.',
  ),
})
export type CallsConfig = Type.Static<typeof CallsConfig>
