/** The schema of `gatehouse.yaml`: one TypeBox definition for the type, the validation and the editor's schema. */
import Type from 'typebox'
import { EXTRA_FIELDS } from '../../spec/chat-request.ts'
import { EndpointFamily } from '../../spec/endpoint-family.ts'
import {
  closedObject,
  flag,
  integer,
  LATEST_TIME,
  list,
  mapping,
  number,
  oneOf,
  optional,
  required,
  section,
  text,
} from '../../spec/fields.ts'
import { mark } from '../../spec/marks.ts'
import { MODEL_STATUSES } from '../../spec/model.ts'
import { InstallationBudgets, TokenDefaults } from './account-schema.ts'
import { AdminConfig } from './admin-schema.ts'
import { AlertsConfig } from './alerts-schema.ts'
import { CacheConfig, ModelCache } from './cache-schema.ts'
import { DeclaredAdminTokens, DeclaredProjects, DeclaredTokens } from './declared-schema.ts'
import { Guards, guardNames } from './guard-schema.ts'
import { LedgerConfig } from './ledger-schema.ts'
import { Capabilities, EmbeddingLimits, ImageLimits, Limits, SpeechLimits } from './limits-schema.ts'
import { McpConfig } from './mcp-schema.ts'
import { PassthroughPath } from './passthrough-schema.ts'
import { Prices } from './price-schema.ts'
import { PROVIDER_KINDS, TEXT_APIS } from './provider-kinds.ts'
import { Passthrough, Quirks } from './quirks.ts'
import { LimitsConfig, rateLimits } from './rate-limit-schema.ts'
import { RequestLogConfig } from './request-log-schema.ts'
import {
  CallLimits,
  Fallbacks,
  HealthConfig,
  KeyFile,
  ProviderKey,
  RoutingConfig,
  TargetRouting,
} from './routing-schema.ts'
import { CallsConfig, ServerConfig } from './server-schema.ts'
import { StoreConfig, ValkeyConfig } from './store-schema.ts'
import {
  BatchesConfig,
  FilesConfig,
  OutputsConfig,
  ResponsesConfig,
  TasksConfig,
  ThreeDLimits,
  VideoLimits,
} from './task-schema.ts'
import { MetricsConfig, TelemetryConfig } from './telemetry-schema.ts'

const seconds = (description: string, maximum = 86_400) => number({ exclusiveMinimum: 0, maximum }, description)
const unixTime = (description: string) => integer({ minimum: 0, maximum: LATEST_TIME }, description)

export const Timeouts = section({
  connect_seconds: seconds('Time to establish the connection. Default 10.'),
  first_byte_seconds: seconds('From the request to the first byte. Default 300.'),
  idle_seconds: seconds('Longest silence within a stream. Default 300.'),
  total_seconds: seconds('Of a whole response. Default 600.'),
})
export type Timeouts = Type.Static<typeof Timeouts>

const OUTPUT_MODES = ['copy', 'passthrough'] as const

export const ProviderConfig = section({
  kind: oneOf(PROVIDER_KINDS, mark.shown, 'The API that it has. Default: the kind of its preset, else chatcompat.'),
  preset: text(mark.shown, 'A known provider; sets what is not written here.'),
  base_url: text(
    { ...mark.origin, ...mark.variable, ...mark.sent_to },
    'With its version, such as https://api.example.com/v1. Default: that of the preset.',
  ),
  key: text(
    { ...mark.secret, minLength: 1 },
    'Such as ${NAME} or ${file:path}. Default: the variable of preset or kind.',
  ),
  key_file: optional(KeyFile),
  keys: list(ProviderKey, { minItems: 1, maxItems: 100 }, 'Several API keys, which share the calls, instead of `key`.'),
  headers: mapping(Type.String(), mark.secret, 'Sent with every request.'),
  apis: list(
    Type.Enum([...TEXT_APIS]),
    'Further APIs at the same address, passed through. Default: those of the preset, without base_url.',
  ),
  request_defaults: mapping(Type.Unknown(), mark.variable, 'Body fields to send where the request has none.'),
  fields: optional(
    section({
      allow: list(Type.String(), mark.shown, 'Additional body fields to forward.'),
      drop: list(Type.String(), mark.shown, 'Body fields not to send.'),
      rename: mapping(Type.String(), mark.shown, 'Such as max_tokens: max_completion_tokens.'),
    }),
  ),
  quirks: optional(Quirks),
  timeouts: optional(Timeouts),
  options: mapping(Type.Unknown(), mark.secret, 'Of this kind alone; see provider-kinds in the manual.'),
  concurrency: integer({ minimum: 1, maximum: 1024 }, 'Its tasks at a time. Default: tasks.concurrency.'),
  calls: optional(CallLimits),
  rate_limits: rateLimits('What all calls to it may use; others go to the next target.'),
  health: optional(HealthConfig),
  outputs: oneOf(OUTPUT_MODES, 'Copy finished files, or pass links through. Default copy.'),
  passthrough: optional(Passthrough),
  passthrough_paths: list(
    PassthroughPath,
    { minItems: 1, maxItems: 100 },
    'What clients may call below /passthrough/<provider>; the first fitting entry counts. Default: nothing.',
  ),
  private_addresses: flag('Fetch files from such addresses. Default false.'),
  discover: flag("Add models of the provider's list. Default false."),
})
export type ProviderConfig = Type.Static<typeof ProviderConfig>

export const TargetConfig = section({
  provider: required(mark.shown, 'A key of `providers`.'),
  model: required(mark.shown, 'The name of the model at the provider.'),
  ...TargetRouting,
})

const RETIRED_POLICIES = ['refuse', 'serve', 'redirect'] as const

export type TargetConfig = Type.Static<typeof TargetConfig>

export const ModelConfig = section({
  families: list(EndpointFamily, 'Default: embeddings or rerank by its name, else every family of chat.'),
  targets: list(
    TargetConfig,
    { minItems: 1 },
    'The providers that serve it, in order. Default: <provider>/<model> of the id.',
  ),
  alias_of: text(
    { ...mark.shown, minLength: 1 },
    'Full id of the model that serves it, with its settings. The key may contain `*`.',
  ),
  created: unixTime('Unix time. Default: when it first entered the catalogue.'),
  status: oneOf(MODEL_STATUSES, 'Its state. Default: by the dates below, else active.'),
  deprecated_at: unixTime('Unix time from which the model is deprecated.'),
  retired_at: unixTime('Unix time from which the model is retired.'),
  replaced_by: text(mark.shown, 'Model id of the successor.'),
  when_retired: oneOf(RETIRED_POLICIES, 'Default: when_retired of the top level.'),
  limits: optional(Limits),
  context_tokens: integer({ minimum: 1 }, 'Context window, input and output together; not enforced.'),
  fields: list(Type.Enum([...EXTRA_FIELDS]), 'Extra request fields. Default: none.'),
  capabilities: optional(Capabilities),
  embeddings: optional(EmbeddingLimits),
  video: optional(VideoLimits),
  three_d: optional(ThreeDLimits),
  images: optional(ImageLimits),
  speech: optional(SpeechLimits),
  keep_days: number({ exclusiveMinimum: 0 }, 'How long finished files are kept. Default: outputs.keep_days.'),
  routing: optional(RoutingConfig),
  rate_limits: rateLimits('What all calls of the model together may use.'),
  cache: optional(ModelCache),
  batch: oneOf(
    ['gateway', 'native'],
    'Who executes lines of batches: the gateway, or a batch of the vendor, at the prices of `service_tiers.batch`. Default gateway.',
  ),
  guards: guardNames('Names of guards in `guards` that check its requests and answers.'),
  fallbacks: optional({
    ...Fallbacks,
    ...mark.shown,
    description: 'Models that serve what this one cannot: a list is for unavailable and context_length.',
  }),
  prices: optional({
    ...Prices,
    description: 'What callers are charged; a list has several dates. Default: unknown.',
  }),
})
export type ModelConfig = Type.Static<typeof ModelConfig>

export const FileConfig = closedObject('gatehouse.yaml', {
  $schema: optional(Type.String(mark.shown)),
  data_dir: text(
    { ...mark.shown, ...mark.variable, ...mark.restart, minLength: 1 },
    'Store and finished files, relative to this file. Default ./data.',
  ),
  server: optional(ServerConfig),
  sandbox: flag('The built-in simulated provider. Default true.'),
  discover: flag('Find providers by environment keys and on loopback. Default: true without a file.'),
  when_retired: oneOf(RETIRED_POLICIES, 'Calls to a retired model. Default refuse.'),
  tokens: optional(TokenDefaults),
  timeouts: optional(Timeouts),
  calls: optional(CallsConfig),
  tasks: optional(TasksConfig),
  outputs: optional(OutputsConfig),
  responses: optional(ResponsesConfig),
  files: optional(FilesConfig),
  batches: optional(BatchesConfig),
  cache: optional(CacheConfig),
  rate_limits: rateLimits('What all calls together may use.'),
  limits: optional(LimitsConfig),
  store: optional(StoreConfig),
  valkey: optional(ValkeyConfig),
  ledger: optional(LedgerConfig),
  projects: optional(DeclaredProjects),
  api_tokens: optional(DeclaredTokens),
  admin_tokens: optional(DeclaredAdminTokens),
  budgets: optional({
    ...InstallationBudgets,
    description: 'Of all calls together.',
  }),
  request_log: optional(RequestLogConfig),
  alerts: optional(AlertsConfig),
  telemetry: optional(TelemetryConfig),
  metrics: optional(MetricsConfig),
  mcp: optional(McpConfig),
  admin: optional(AdminConfig),
  guards: Guards,
  providers: optional(Type.Record(Type.String(), ProviderConfig)),
  models: optional(Type.Record(Type.String(), ModelConfig)),
})
export type FileConfig = Type.Static<typeof FileConfig>
