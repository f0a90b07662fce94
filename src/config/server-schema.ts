/** The section `server` of `gatehouse.yaml`: the address of the gateway, and the limits of a request. */
import Type, { type TSchema } from 'typebox'

const closed = { additionalProperties: false } as const
const optional = <T extends TSchema>(schema: T) => Type.Optional(schema)
const seconds = (description: string, maximum = 86_400) =>
  optional(Type.Number({ exclusiveMinimum: 0, maximum, description }))

/** Each has its own memory, connections to the store and background work. */
const MAX_WORKERS = 128

export const ServerConfig = Type.Object(
  {
    host: optional(Type.String({ description: 'Address to listen on. Default 127.0.0.1.' })),
    port: optional(
      Type.Integer({
        minimum: 0,
        maximum: 65_535,
        description: 'Port to listen on; 0 takes a free one. Default 8787.',
      }),
    ),
    workers: optional(
      Type.Union([Type.Literal('auto'), Type.Integer({ minimum: 1, maximum: MAX_WORKERS })], {
        description: 'Processes that share the port and the store; `auto`: as many as there are cores. Default 1.',
      }),
    ),
    base_url: optional(
      Type.String({ description: 'The address that clients use, where it differs from the one listened on.' }),
    ),
    files_base_url: optional(
      Type.String({ description: 'A separate address of this gateway that serves stored files and nothing else.' }),
    ),
    hosts: optional(
      Type.Array(Type.String(), {
        maxItems: 50,
        description:
          'Names in Host at which pages without a token are served, beside addresses, localhost, names without a dot or below .internal, and the hosts of base_url and files_base_url; others get 404. Default: any name, but /metrics without a token is read at these only where the gateway listens on loopback.',
      }),
    ),
    max_body_bytes: optional(
      Type.Integer({
        minimum: 1024,
        maximum: 1_073_741_824,
        description: 'Larger request bodies are rejected with 413. Default 32 MiB.',
      }),
    ),
    max_text_body_bytes: optional(
      Type.Integer({
        minimum: 1024,
        maximum: 1_073_741_824,
        description: 'The same for requests of other families than chat and the generation of media. Default 8 MiB.',
      }),
    ),
    body_seconds: seconds('Time in which a request body must arrive. Default 60.'),
    keep_alive_seconds: seconds(
      'Silence on a stream after which the gateway sends a keep-alive comment. Default 15.',
      300,
    ),
    shutdown_seconds: optional(
      Type.Number({
        minimum: 0,
        maximum: 3600,
        description: 'Time in which open requests may finish when the gateway stops. Default 25.',
      }),
    ),
    drain_seconds: optional(
      Type.Number({
        minimum: 0,
        maximum: 3600,
        description:
          'Time after SIGTERM in which /readyz fails and connections close after their responses, before the port closes. Part of shutdown_seconds. Default 5 where several processes share the port or the store, which are workers and gateways with PostgreSQL or Valkey; else 0.',
      }),
    ),
    metadata_hosts: optional(
      Type.Array(Type.String({ minLength: 1 }), {
        maxItems: 20,
        description:
          'Hosts of metadata services, and other link-local addresses, that addresses of this file may name, such as 169.254.169.254. Default: none.',
      }),
    ),
    cors_origins: optional(
      Type.Array(Type.String(), {
        description: 'Origins of web pages that may call the gateway; `*` is any. Default: none.',
      }),
    ),
    trust_proxy: optional(
      Type.Boolean({ description: "Take the client's address from x-forwarded-for. Default false." }),
    ),
    delta_mirror: optional(
      Type.Boolean({ description: 'Whole chat responses repeat `message` as `delta`. Default true.' }),
    ),
    families: optional(
      Type.Enum(['all', 'specified'], {
        description: 'The families in `supported_endpoint_types`: all, or the ten of the specification. Default all.',
      }),
    ),
    max_bytes_in_flight: optional(
      Type.Integer({
        minimum: 1024,
        description:
          'Bytes of request bodies and unread answers in memory; beyond it requests get 503. ' +
          'Default: a quarter of the memory of the machine or container, at least 256 MiB.',
      }),
    ),
    max_token_bytes_in_flight: optional(
      Type.Integer({
        minimum: 1024,
        description: 'The same for each token; beyond it its requests get 429. Default: half of max_bytes_in_flight.',
      }),
    ),
    max_delay_ms: optional(
      Type.Integer({
        minimum: 0,
        maximum: 60_000,
        description:
          'When the event loop is late by more than this for a second, some new requests get 503, those of the busiest ' +
          'tokens first; 0 refuses none. Default 250.',
      }),
    ),
    http_client: optional(
      Type.Enum(['sockets', 'fetch'], {
        description: 'Has no effect; accepted for earlier configurations.',
      }),
    ),
    end_revoked_calls: optional(
      Type.Boolean({
        description:
          'End the open calls and streams of a token within a second of its revocation or expiry. Default true.',
      }),
    ),
    explain_tokens: optional(
      Type.Array(Type.String({ pattern: '^(\\*|tok_[A-Za-z0-9]+)$' }), {
        description:
          'Ids of tokens that get the routing decision with `x-gatehouse-explain: 1`; `*`: all. Default: none.',
      }),
    ),
    caller_routing: optional(
      Type.Union([Type.Boolean(), Type.Array(Type.String({ pattern: '^(tok|proj)_[A-Za-z0-9]+$' }))], {
        description:
          'Whether requests may have `models`, `provider`, `x-gatehouse-timeout` and `x-gatehouse-no-fallback`; else 400. A list of ids: only these tokens, and those of these projects. Default true.',
      }),
    ),
    show_target: optional(
      Type.Boolean({
        description: 'Responses have `x-gatehouse-target` and `x-gatehouse-attempts`. Default true.',
      }),
    ),
    show_cost: optional(
      Type.Boolean({
        description:
          'Whole responses have `x-gatehouse-cost`, in the currency of the ledger, or unknown. Default true.',
      }),
    ),
  },
  closed,
)
