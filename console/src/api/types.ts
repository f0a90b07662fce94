/** The types of the admin API. Generated from the OpenAPI document by `npm run docs:reference`; do not edit. */

export type AdminBatch = {
  object: 'batch'
  batch_id: string
  token_id: string
  project_id: string | null
  api: 'openai' | 'anthropic'
  endpoint: string
  model: string | null
  status: 'validating' | 'failed' | 'in_progress' | 'finalizing' | 'completed' | 'expired' | 'cancelling' | 'cancelled'
  created_at: number
  expires_at: number
  ended_at: number | null
  lines: {
  total: number
  succeeded: number
  errored: number
  canceled: number
  expired: number
}
  input_tokens: number
  output_tokens: number
  waiting: {
  code: string
  message: string
  since_ms?: number | undefined
  until_ms: number
} | null
  session: string
  input_file_id: string | null
  output_file_id: string | null
  error_file_id: string | null
  vendor_batches: ({
  id: string | null
  provider: string
  lines: number
})[]
  problems: ({
  code: string
  message: string
  line: number | null
})[]
}

export type AdminBatchList = {
  data: (AdminBatch)[]
  next_cursor: string | null
}

export type AdminBudget = {
  budget: string
  scope: string
  owner: string | null
  project_id: string | null
  window: string
  amount: number | null
  soft: boolean
  used: number
  credit: number
  held: number
  window_start: number
  window_end: number | null
}

export type AdminBudgetList = {
  data: (AdminBudget)[]
  next_cursor: string | null
}

export type AdminFile = {
  file_id: string
  token_id: string
  project_id: string | null
  purpose: 'batch' | 'user_data' | 'vision' | 'batch_output'
  filename: string
  content_type: string
  bytes: number
  created_at: number
  expires_at: number | null
}

export type AdminFileDeleted = {
  file_id: string
  deleted: boolean
}

export type AdminFileList = {
  data: (AdminFile)[]
  next_cursor: string | null
}

export type AdminModel = {
  id: string
  families: (string)[]
  status: string
  deprecated_at: number | null
  retired_at: number | null
  replaced_by: string | null
  created: number
  context_tokens: number | null
  max_output_tokens: number | null
  price: ModelPrice | null
  is_disabled: boolean
  strategy: string
  targets: (Target)[]
}

export type AdminModelList = {
  data: (AdminModel)[]
  next_cursor: string | null
  total: number
  counts: ModelCounts | null
}

export type AdminModelWithSettings = {
  id: string
  families: (string)[]
  status: string
  deprecated_at: number | null
  retired_at: number | null
  replaced_by: string | null
  created: number
  context_tokens: number | null
  max_output_tokens: number | null
  price: ModelPrice | null
  is_disabled: boolean
  strategy: string
  targets: (Target)[]
  prices: (ModelPrice)[]
  capabilities: Record<string, boolean>
  fallbacks: Record<string, (string)[]>
  speech: {
  characters: number | null
  voices: (string)[] | null
  formats: (string)[] | null
}
  settings: (Setting)[]
}

export type AdminProvider = {
  id: string
  kind: string
  found_by: string
  address: string | null
  models: number
  is_list_failing: boolean
  state: string | null
  active_health: string | null
  keys: ({
  name: string
  weight: number
  models: (string)[] | null
  state: string | null
})[]
}

export type AdminProviderList = {
  data: (AdminProvider)[]
  next_cursor: string | null
}

export type AdminProviderWithSettings = {
  id: string
  kind: string
  found_by: string
  address: string | null
  models: number
  is_list_failing: boolean
  state: string | null
  active_health: string | null
  keys: ({
  name: string
  weight: number
  models: (string)[] | null
  state: string | null
})[]
  settings: (Setting)[]
}

export type AdminSession = {
  session_id: string
  actor: string
  role: 'owner' | 'operator' | 'viewer' | 'project_admin' | 'project_member'
  project_id: string | null
  memberships: (Membership)[]
  address: string
  user_agent: string
  created_at: number
  last_used_at: number
  expires_at: number
}

export type AdminTask = {
  task_id: string
  token_id: string
  project_id: string | null
  end_user: string | null
  family: string
  model: string
  status: 'NOT_START' | 'SUBMITTED' | 'QUEUED' | 'IN_PROGRESS' | 'SUCCESS' | 'FAILURE'
  progress: number
  submit_time: number
  start_time: number
  finish_time: number
  fail_code: string
  fail_reason: string
  provider: string
  upstream_model: string
  provider_key: string | null
  sent_at: number | null
  deadline_at: number
}

export type AdminTaskDetail = {
  task_id: string
  token_id: string
  project_id: string | null
  end_user: string | null
  family: string
  model: string
  status: 'NOT_START' | 'SUBMITTED' | 'QUEUED' | 'IN_PROGRESS' | 'SUCCESS' | 'FAILURE'
  progress: number
  submit_time: number
  start_time: number
  finish_time: number
  fail_code: string
  fail_reason: string
  provider: string
  upstream_model: string
  provider_key: string | null
  sent_at: number | null
  deadline_at: number
  operation_id: string | null
  tried: (string)[]
  failures: number
  next_step_ms: number | null
  worker: string
  cancel_requested_at: number | null
  late_outcome: {
  status: 'SUCCESS' | 'FAILURE'
  at: number
  detail: string
} | null
  steps: ({
  at_ms: number
  status: 'NOT_START' | 'SUBMITTED' | 'QUEUED' | 'IN_PROGRESS' | 'SUCCESS' | 'FAILURE'
  provider: string
  upstream_model: string
  provider_key: string | null
  failures: number
  fail_code: string
})[]
  files_to_copy: number
  outputs: ({
  file: string
  content_type: string
  bytes: number | null
})[]
  outputs_expire_at: number | null
  webhook: {
  webhook_id: string
  url: string
  attempts: number
  delivered_at: number | null
  last_status: number | null
} | null
}

export type AdminTaskList = {
  data: (AdminTask)[]
  next_cursor: string | null
}

export type AdminTaskOutputs = {
  object: 'task.outputs'
  task_id: string
  outputs: ({
  content_type: string
  url: string
})[]
  poster: string | null
}

export type AdminTaskResume = {
  deadline_seconds?: number | null | undefined
}

export type AdminToken = {
  admin_token_id: string
  name: string
  role: 'owner' | 'operator' | 'viewer' | 'project_admin' | 'project_member'
  project_id: string | null
  prefix: string
  expires_at: number | null
  disabled: boolean
  declared: boolean
  created_at: number
  last_used_at: number | null
}

export type AdminTokenList = {
  data: (AdminToken)[]
  next_cursor: string | null
}

export type AdminTokenOrder = {
  name: string
  role: 'owner' | 'operator' | 'viewer' | 'project_admin' | 'project_member'
  project_id?: string | null | undefined
  expires_at?: number | null | undefined
}

export type AdminUsage = {
  project_id?: string | undefined
  token_id?: string | undefined
  end_user?: string | undefined
  family?: string | undefined
  model?: string | undefined
  provider?: string | undefined
  upstream_model?: string | undefined
  start?: number | undefined
  requests: number
  errors: number
  estimated: number
  input_tokens: number
  output_tokens: number
  amount: number
  cost: number
  unknown_amounts: number
  unknown_costs: number
  currency: string
}

export type AdminUsageList = {
  data: (AdminUsage)[]
  next_cursor: string | null
  from: number
  to: number
}

export type AdminWebhook = {
  task_id: string
  webhook_id: string
  attempts: number
  delivered_at: number | null
}

export type Administrator = {
  actor: string
  role: 'owner' | 'operator' | 'viewer' | 'project_admin' | 'project_member'
  project_id: string | null
  memberships: (Membership)[]
  via: 'token' | 'session'
  session_id: string | null
  rights: ('read' | 'operate' | 'manage' | 'own' | 'contents' | 'call')[]
  currency: string
}

export type Alert = {
  object: 'alert'
  alert_id: string
  type: string
  message: string
  data: Record<string, unknown>
  state: 'open' | 'past'
  times: number
  raised_at: number
  last_seen_at: number
  open_until: number
  closed_at: number | null
  closed_by: string | null
}

export type AlertList = {
  data: (Alert)[]
  next_cursor: string | null
}

export type AppliedConfiguration = {
  changes: (SettingChange)[]
  needs_restart: (string)[]
  emptied: (string)[]
  file: string
  written: boolean
  backup: string | null
}

export type AuditCheck = {
  rows: number
  last_hash: string
  broken: {
  sequence: number
  trouble: string
} | null
}

export type AuditList = {
  data: (AuditRow)[]
  next_cursor: string | null
}

export type AuditRow = {
  sequence: number
  at_ms: number
  actor: string
  action: string
  object_type: string
  object_id: string
  project_id: string | null
  address: string | null
  request_id: string | null
  before: unknown
  after: unknown
  previous_hash: string
  hash: string
}

export type BreakerReset = {
  target?: string | null | undefined
}

export type BreakerResetResult = {
  reset: number
}

export type Budget = {
  amount: number
  window: 'day' | 'week' | 'month' | 'total'
  time_zone?: string | undefined
  starts_at?: number | undefined
  thresholds?: (number)[] | undefined
  soft?: boolean | undefined
}

export type BudgetState = {
  amount: number
  window: 'day' | 'week' | 'month' | 'total'
  time_zone?: string | undefined
  starts_at?: number | undefined
  thresholds?: (number)[] | undefined
  soft?: boolean | undefined
  used: number
  credit: number
  held: number
  remaining: number
  window_start: number
  window_end: number | null
}

export type CachePurge = {
  model: string | null
  project_id: string | null
  entries: number | null
}

export type CachePurgeRequest = {
  model?: string | null | undefined
  project_id?: string | null | undefined
}

export type CacheSize = {
  storage: 'memory' | 'database' | 'valkey'
  entries: number | null
  bytes: number | null
}

export type ConfigurationDifference = {
  changes: (SettingChange)[]
  needs_restart: (string)[]
  emptied: (string)[]
}

export type ConfigurationSchema = Record<string, unknown>

export type ConfigurationText = {
  file: string
  text: string | null
  version: string
}

export type ConfigurationValidation = {
  valid: boolean
  problems: ({
  line: number | null
  column: number | null
  path: string
  message: string
})[]
}

export type ConfigurationVersion = {
  object: 'config.version'
  version_id: string
  at: number
  actor: string
  file: string
  version: string
  changes: (SettingChange)[]
}

export type ConfigurationVersionList = {
  data: (ConfigurationVersion)[]
  next_cursor: string | null
}

export type ConfigurationVersionText = {
  object: 'config.version'
  version_id: string
  at: number
  actor: string
  file: string
  version: string
  changes: (SettingChange)[]
  text: string
  base: string
}

export type ContentsPart = {
  type: string
  id?: string | undefined
  name?: string | undefined
  text?: string | undefined
}

export type Credit = {
  entry_id: string
  amount: number
  currency: string
  token_id: string | null
  project_id: string | null
  warnings: (string)[]
}

export type CreditRequest = {
  amount: number
  token_id?: string | null | undefined
  project_id?: string | null | undefined
  note?: string | null | undefined
}

export type Diagnostics = {
  made_at: number
  version: string
  process: Record<string, unknown>
  store: {
  engine: string
}
  environment: (string)[]
  readiness: Record<string, unknown>
  providers: (Record<string, unknown>)[] | {
  unavailable: string
}
  models: (Record<string, unknown>)[] | {
  unavailable: string
}
  overrides: (Record<string, unknown>)[] | {
  unavailable: string
}
  configuration: (Record<string, unknown>)[] | {
  unavailable: string
}
  failed_requests: (Record<string, unknown>)[] | {
  unavailable: string
}
  metrics: string | null
}

export type EditedConfiguration = {
  text: string
}

export type EndUserLimits = {
  rate_limits?: {
  requests_per_second?: number | undefined
  requests_per_minute?: number | undefined
  requests_per_hour?: number | undefined
  requests_per_day?: number | undefined
  input_tokens_per_second?: number | undefined
  input_tokens_per_minute?: number | undefined
  input_tokens_per_hour?: number | undefined
  input_tokens_per_day?: number | undefined
  output_tokens_per_second?: number | undefined
  output_tokens_per_minute?: number | undefined
  output_tokens_per_hour?: number | undefined
  output_tokens_per_day?: number | undefined
  tokens_per_second?: number | undefined
  tokens_per_minute?: number | undefined
  tokens_per_hour?: number | undefined
  tokens_per_day?: number | undefined
  images_per_second?: number | undefined
  images_per_minute?: number | undefined
  images_per_hour?: number | undefined
  images_per_day?: number | undefined
  videos_per_second?: number | undefined
  videos_per_minute?: number | undefined
  videos_per_hour?: number | undefined
  videos_per_day?: number | undefined
  video_seconds_per_second?: number | undefined
  video_seconds_per_minute?: number | undefined
  video_seconds_per_hour?: number | undefined
  video_seconds_per_day?: number | undefined
  three_d_per_second?: number | undefined
  three_d_per_minute?: number | undefined
  three_d_per_hour?: number | undefined
  three_d_per_day?: number | undefined
  audio_seconds_per_second?: number | undefined
  audio_seconds_per_minute?: number | undefined
  audio_seconds_per_hour?: number | undefined
  audio_seconds_per_day?: number | undefined
  concurrent_requests?: number | undefined
  tasks_in_flight?: number | undefined
} | undefined
  budgets?: (Budget)[] | undefined
}

export type GuardList = {
  object: 'guards'
  data: ({
  name: string
  kind: string | null
  mode: string | null
  on: ('input' | 'output')[]
  outcomes: ({
  on: string
  outcome: string
  requests: number
})[]
})[]
  requests: number
  partial: boolean
}

export type GuardTest = {
  text: string
  on?: 'input' | 'output' | null | undefined
  guards?: (string)[] | null | undefined
  model?: string | null | undefined
}

export type GuardTestResult = {
  on: 'input' | 'output'
  results: ({
  name: string
  outcome: 'passed' | 'would_replace' | 'replaced' | 'would_block' | 'failed' | 'blocked' | null
  text: string | null
})[]
}

export type Health = {
  status: 'ok'
  version: string
  commit?: string | undefined
  date?: string | undefined
}

export type IssuedAdminToken = {
  admin_token_id: string
  name: string
  role: 'owner' | 'operator' | 'viewer' | 'project_admin' | 'project_member'
  project_id: string | null
  prefix: string
  expires_at: number | null
  disabled: boolean
  declared: boolean
  created_at: number
  last_used_at: number | null
  secret: string
}

export type IssuedToken = {
  token_id: string
  project_id: string | null
  prefix: string
  previous_expires_at: number | null
  name: string
  labels: Record<string, string>
  models: (string)[]
  families: ('chatcompat' | 'chatcompat-response' | 'messages-compat' | 'contentgen-compat' | 'rerank' | 'embeddings' | 'moderations' | 'audio-speech' | 'audio-transcription' | 'realtime' | 'image-generation' | 'video-generation' | '3d-generation' | 'chatcompat-video' | 'mcp' | 'passthrough')[] | null
  rate_limits: {
  requests_per_second?: number | undefined
  requests_per_minute?: number | undefined
  requests_per_hour?: number | undefined
  requests_per_day?: number | undefined
  input_tokens_per_second?: number | undefined
  input_tokens_per_minute?: number | undefined
  input_tokens_per_hour?: number | undefined
  input_tokens_per_day?: number | undefined
  output_tokens_per_second?: number | undefined
  output_tokens_per_minute?: number | undefined
  output_tokens_per_hour?: number | undefined
  output_tokens_per_day?: number | undefined
  tokens_per_second?: number | undefined
  tokens_per_minute?: number | undefined
  tokens_per_hour?: number | undefined
  tokens_per_day?: number | undefined
  images_per_second?: number | undefined
  images_per_minute?: number | undefined
  images_per_hour?: number | undefined
  images_per_day?: number | undefined
  videos_per_second?: number | undefined
  videos_per_minute?: number | undefined
  videos_per_hour?: number | undefined
  videos_per_day?: number | undefined
  video_seconds_per_second?: number | undefined
  video_seconds_per_minute?: number | undefined
  video_seconds_per_hour?: number | undefined
  video_seconds_per_day?: number | undefined
  three_d_per_second?: number | undefined
  three_d_per_minute?: number | undefined
  three_d_per_hour?: number | undefined
  three_d_per_day?: number | undefined
  audio_seconds_per_second?: number | undefined
  audio_seconds_per_minute?: number | undefined
  audio_seconds_per_hour?: number | undefined
  audio_seconds_per_day?: number | undefined
  concurrent_requests?: number | undefined
  tasks_in_flight?: number | undefined
}
  budgets: (Budget)[]
  end_users: EndUserLimits
  allowed_addresses: (string)[] | null
  guards: (string)[]
  expires_at: number | null
  disabled: boolean
  declared?: boolean | undefined
  created_at: number
  last_used_at: number | null
  playground?: string | undefined
  secret: string
}

export type LedgerCheck = {
  from: number
  to: number
  difference: number
  differences: ({
  what: string
  at: number
  of: (string)[]
  count: string
  difference: string
})[]
  requests: number
  amount: number
  cost: number
  unknown_costs: number
  currency: string
}

export type Login = {
  link?: string | null | undefined
  token?: string | null | undefined
}

export type LoginLink = {
  link: string
  expires_at: number
}

export type LoginLinkOrder = {
  name: string
  role: 'owner' | 'operator' | 'viewer' | 'project_admin' | 'project_member'
  project_id?: string | null | undefined
  valid_seconds?: number | null | undefined
}

export type LoginMethods = {
  methods: (string)[]
}

export type McpConnection = {
  server: string
  state: 'connected' | 'ended' | 'none'
  connected_at: number | null
}

export type McpConnectionBegun = {
  location: string
}

export type McpConnectionEnded = {
  revoked: boolean
}

export type McpConnectionFinish = {
  query: string
}

export type McpConnectionList = {
  data: (McpConnection)[]
  next_cursor: string | null
}

export type McpConnectionMade = {
  server: string
}

export type McpPerson = {
  connection_id: string
  server: string
  subject: string
  issuer: string
  state: 'connected' | 'ended'
  connected_at: number | null
  last_used_at: number | null
}

export type McpPersonList = {
  data: (McpPerson)[]
  next_cursor: string | null
}

export type McpServer = {
  server: string
  kind: 'built in' | 'http' | 'sse' | 'openapi' | 'program'
  address: string | null
  sandbox: string | null
  per_session: boolean
  state: 'connected' | 'failing' | 'idle'
  failing_since: number | null
  error: string | null
  tools: number | null
}

export type McpServerList = {
  data: (McpServer)[]
  next_cursor: string | null
}

export type McpTool = {
  server: string
  tool: string
  state: 'approved' | 'pending' | 'changed'
  hash: string
  description: string
  definition: unknown
  changes: ({
  member: string
  before: unknown
  after: unknown
})[]
  seen_at: number
  approved_at: number | null
  approved_by: string | null
}

export type McpToolApproval = {
  server: string
  tool: string
  hash: string
}

export type McpToolList = {
  data: (McpTool)[]
  next_cursor: string | null
}

export type Membership = {
  project_id: string
  role: 'project_admin' | 'project_member'
}

export type ModelCounts = {
  family: Record<string, number>
  status: Record<string, number>
}

export type ModelPrice = {
  from: number | null
  input: number | null
  cached_input: number | null
  cache_write: number | null
  output: number | null
  reasoning: number | null
  output_audio: number | null
  tiers: ({
  above: number
  input: number | null
  output: number | null
})[]
  image: number | null
  video: number | null
  video_second: number | null
  three_d: number | null
  search: number | null
  speech_characters: number | null
  audio_minute: number | null
  request: number | null
}

export type PlaygroundRequest = Record<string, unknown>

export type Project = {
  project_id: string
  name: string
  labels: Record<string, string>
  models: (string)[]
  families: ('chatcompat' | 'chatcompat-response' | 'messages-compat' | 'contentgen-compat' | 'rerank' | 'embeddings' | 'moderations' | 'audio-speech' | 'audio-transcription' | 'realtime' | 'image-generation' | 'video-generation' | '3d-generation' | 'chatcompat-video' | 'mcp' | 'passthrough')[] | null
  rate_limits: {
  requests_per_second?: number | undefined
  requests_per_minute?: number | undefined
  requests_per_hour?: number | undefined
  requests_per_day?: number | undefined
  input_tokens_per_second?: number | undefined
  input_tokens_per_minute?: number | undefined
  input_tokens_per_hour?: number | undefined
  input_tokens_per_day?: number | undefined
  output_tokens_per_second?: number | undefined
  output_tokens_per_minute?: number | undefined
  output_tokens_per_hour?: number | undefined
  output_tokens_per_day?: number | undefined
  tokens_per_second?: number | undefined
  tokens_per_minute?: number | undefined
  tokens_per_hour?: number | undefined
  tokens_per_day?: number | undefined
  images_per_second?: number | undefined
  images_per_minute?: number | undefined
  images_per_hour?: number | undefined
  images_per_day?: number | undefined
  videos_per_second?: number | undefined
  videos_per_minute?: number | undefined
  videos_per_hour?: number | undefined
  videos_per_day?: number | undefined
  video_seconds_per_second?: number | undefined
  video_seconds_per_minute?: number | undefined
  video_seconds_per_hour?: number | undefined
  video_seconds_per_day?: number | undefined
  three_d_per_second?: number | undefined
  three_d_per_minute?: number | undefined
  three_d_per_hour?: number | undefined
  three_d_per_day?: number | undefined
  audio_seconds_per_second?: number | undefined
  audio_seconds_per_minute?: number | undefined
  audio_seconds_per_hour?: number | undefined
  audio_seconds_per_day?: number | undefined
  concurrent_requests?: number | undefined
  tasks_in_flight?: number | undefined
}
  budgets: (Budget)[]
  end_users: EndUserLimits
  allowed_addresses: (string)[] | null
  guards: (string)[]
  expires_at: number | null
  disabled: boolean
  declared?: boolean | undefined
  created_at: number
  log_contents: 'on' | 'off' | 'header' | null
}

export type ProjectChange = {
  name?: string | null | undefined
  labels?: Record<string, string> | null | undefined
  models?: (string)[] | null | undefined
  families?: ('chatcompat' | 'chatcompat-response' | 'messages-compat' | 'contentgen-compat' | 'rerank' | 'embeddings' | 'moderations' | 'audio-speech' | 'audio-transcription' | 'realtime' | 'image-generation' | 'video-generation' | '3d-generation' | 'chatcompat-video' | 'mcp' | 'passthrough')[] | null | undefined
  rate_limits?: {
  requests_per_second?: number | undefined
  requests_per_minute?: number | undefined
  requests_per_hour?: number | undefined
  requests_per_day?: number | undefined
  input_tokens_per_second?: number | undefined
  input_tokens_per_minute?: number | undefined
  input_tokens_per_hour?: number | undefined
  input_tokens_per_day?: number | undefined
  output_tokens_per_second?: number | undefined
  output_tokens_per_minute?: number | undefined
  output_tokens_per_hour?: number | undefined
  output_tokens_per_day?: number | undefined
  tokens_per_second?: number | undefined
  tokens_per_minute?: number | undefined
  tokens_per_hour?: number | undefined
  tokens_per_day?: number | undefined
  images_per_second?: number | undefined
  images_per_minute?: number | undefined
  images_per_hour?: number | undefined
  images_per_day?: number | undefined
  videos_per_second?: number | undefined
  videos_per_minute?: number | undefined
  videos_per_hour?: number | undefined
  videos_per_day?: number | undefined
  video_seconds_per_second?: number | undefined
  video_seconds_per_minute?: number | undefined
  video_seconds_per_hour?: number | undefined
  video_seconds_per_day?: number | undefined
  three_d_per_second?: number | undefined
  three_d_per_minute?: number | undefined
  three_d_per_hour?: number | undefined
  three_d_per_day?: number | undefined
  audio_seconds_per_second?: number | undefined
  audio_seconds_per_minute?: number | undefined
  audio_seconds_per_hour?: number | undefined
  audio_seconds_per_day?: number | undefined
  concurrent_requests?: number | undefined
  tasks_in_flight?: number | undefined
} | undefined
  budgets?: ({
  amount: number
  window: 'day' | 'week' | 'month' | 'total'
  time_zone?: string | undefined
  starts_at?: number | undefined
  thresholds?: (number)[] | undefined
  soft?: boolean | undefined
})[] | null | undefined
  end_users?: {
  rate_limits?: {
  requests_per_second?: number | undefined
  requests_per_minute?: number | undefined
  requests_per_hour?: number | undefined
  requests_per_day?: number | undefined
  input_tokens_per_second?: number | undefined
  input_tokens_per_minute?: number | undefined
  input_tokens_per_hour?: number | undefined
  input_tokens_per_day?: number | undefined
  output_tokens_per_second?: number | undefined
  output_tokens_per_minute?: number | undefined
  output_tokens_per_hour?: number | undefined
  output_tokens_per_day?: number | undefined
  tokens_per_second?: number | undefined
  tokens_per_minute?: number | undefined
  tokens_per_hour?: number | undefined
  tokens_per_day?: number | undefined
  images_per_second?: number | undefined
  images_per_minute?: number | undefined
  images_per_hour?: number | undefined
  images_per_day?: number | undefined
  videos_per_second?: number | undefined
  videos_per_minute?: number | undefined
  videos_per_hour?: number | undefined
  videos_per_day?: number | undefined
  video_seconds_per_second?: number | undefined
  video_seconds_per_minute?: number | undefined
  video_seconds_per_hour?: number | undefined
  video_seconds_per_day?: number | undefined
  three_d_per_second?: number | undefined
  three_d_per_minute?: number | undefined
  three_d_per_hour?: number | undefined
  three_d_per_day?: number | undefined
  audio_seconds_per_second?: number | undefined
  audio_seconds_per_minute?: number | undefined
  audio_seconds_per_hour?: number | undefined
  audio_seconds_per_day?: number | undefined
  concurrent_requests?: number | undefined
  tasks_in_flight?: number | undefined
} | undefined
  budgets?: ({
  amount: number
  window: 'day' | 'week' | 'month' | 'total'
  time_zone?: string | undefined
  starts_at?: number | undefined
  thresholds?: (number)[] | undefined
  soft?: boolean | undefined
})[] | undefined
} | undefined
  allowed_addresses?: (string)[] | null | undefined
  guards?: (string)[] | null | undefined
  expires_at?: number | null | undefined
  log_contents?: 'on' | 'off' | 'header' | null | undefined
  disabled?: boolean | null | undefined
}

export type ProjectList = {
  data: (Project)[]
  next_cursor: string | null
}

export type ProjectOrder = {
  name: string
  labels?: Record<string, string> | null | undefined
  models?: (string)[] | null | undefined
  families?: ('chatcompat' | 'chatcompat-response' | 'messages-compat' | 'contentgen-compat' | 'rerank' | 'embeddings' | 'moderations' | 'audio-speech' | 'audio-transcription' | 'realtime' | 'image-generation' | 'video-generation' | '3d-generation' | 'chatcompat-video' | 'mcp' | 'passthrough')[] | null | undefined
  rate_limits?: {
  requests_per_second?: number | undefined
  requests_per_minute?: number | undefined
  requests_per_hour?: number | undefined
  requests_per_day?: number | undefined
  input_tokens_per_second?: number | undefined
  input_tokens_per_minute?: number | undefined
  input_tokens_per_hour?: number | undefined
  input_tokens_per_day?: number | undefined
  output_tokens_per_second?: number | undefined
  output_tokens_per_minute?: number | undefined
  output_tokens_per_hour?: number | undefined
  output_tokens_per_day?: number | undefined
  tokens_per_second?: number | undefined
  tokens_per_minute?: number | undefined
  tokens_per_hour?: number | undefined
  tokens_per_day?: number | undefined
  images_per_second?: number | undefined
  images_per_minute?: number | undefined
  images_per_hour?: number | undefined
  images_per_day?: number | undefined
  videos_per_second?: number | undefined
  videos_per_minute?: number | undefined
  videos_per_hour?: number | undefined
  videos_per_day?: number | undefined
  video_seconds_per_second?: number | undefined
  video_seconds_per_minute?: number | undefined
  video_seconds_per_hour?: number | undefined
  video_seconds_per_day?: number | undefined
  three_d_per_second?: number | undefined
  three_d_per_minute?: number | undefined
  three_d_per_hour?: number | undefined
  three_d_per_day?: number | undefined
  audio_seconds_per_second?: number | undefined
  audio_seconds_per_minute?: number | undefined
  audio_seconds_per_hour?: number | undefined
  audio_seconds_per_day?: number | undefined
  concurrent_requests?: number | undefined
  tasks_in_flight?: number | undefined
} | undefined
  budgets?: ({
  amount: number
  window: 'day' | 'week' | 'month' | 'total'
  time_zone?: string | undefined
  starts_at?: number | undefined
  thresholds?: (number)[] | undefined
  soft?: boolean | undefined
})[] | null | undefined
  end_users?: {
  rate_limits?: {
  requests_per_second?: number | undefined
  requests_per_minute?: number | undefined
  requests_per_hour?: number | undefined
  requests_per_day?: number | undefined
  input_tokens_per_second?: number | undefined
  input_tokens_per_minute?: number | undefined
  input_tokens_per_hour?: number | undefined
  input_tokens_per_day?: number | undefined
  output_tokens_per_second?: number | undefined
  output_tokens_per_minute?: number | undefined
  output_tokens_per_hour?: number | undefined
  output_tokens_per_day?: number | undefined
  tokens_per_second?: number | undefined
  tokens_per_minute?: number | undefined
  tokens_per_hour?: number | undefined
  tokens_per_day?: number | undefined
  images_per_second?: number | undefined
  images_per_minute?: number | undefined
  images_per_hour?: number | undefined
  images_per_day?: number | undefined
  videos_per_second?: number | undefined
  videos_per_minute?: number | undefined
  videos_per_hour?: number | undefined
  videos_per_day?: number | undefined
  video_seconds_per_second?: number | undefined
  video_seconds_per_minute?: number | undefined
  video_seconds_per_hour?: number | undefined
  video_seconds_per_day?: number | undefined
  three_d_per_second?: number | undefined
  three_d_per_minute?: number | undefined
  three_d_per_hour?: number | undefined
  three_d_per_day?: number | undefined
  audio_seconds_per_second?: number | undefined
  audio_seconds_per_minute?: number | undefined
  audio_seconds_per_hour?: number | undefined
  audio_seconds_per_day?: number | undefined
  concurrent_requests?: number | undefined
  tasks_in_flight?: number | undefined
} | undefined
  budgets?: ({
  amount: number
  window: 'day' | 'week' | 'month' | 'total'
  time_zone?: string | undefined
  starts_at?: number | undefined
  thresholds?: (number)[] | undefined
  soft?: boolean | undefined
})[] | undefined
} | undefined
  allowed_addresses?: (string)[] | null | undefined
  guards?: (string)[] | null | undefined
  expires_at?: number | null | undefined
  log_contents?: 'on' | 'off' | 'header' | null | undefined
}

export type ProposedConfiguration = {
  text: string
  base?: string | null | undefined
}

export type ProviderDraft = {
  id: string
  settings?: {
  preset?: string | undefined
  kind?: string | undefined
  base_url?: string | undefined
  key?: string | undefined
  key_file?: string | undefined
  headers?: Record<string, string> | undefined
  discover?: boolean | undefined
} | undefined
  new_key?: {
  name: string
  key?: string | undefined
  key_file?: string | undefined
} | undefined
  models?: ({
  model: string
  families?: ('chatcompat' | 'chatcompat-response' | 'messages-compat' | 'contentgen-compat' | 'rerank' | 'embeddings' | 'moderations' | 'audio-speech' | 'audio-transcription' | 'realtime' | 'image-generation' | 'video-generation' | '3d-generation' | 'chatcompat-video')[] | undefined
})[] | null | undefined
  base?: string | null | undefined
}

export type ProviderDraftDifference = {
  changes: (SettingChange)[]
  needs_restart: (string)[]
  emptied: (string)[]
  yaml: string
  version: string
  file: string | null
  reason: string | null
}

export type ProviderDraftTest = {
  provider: string
  key: string | null
  kind: string
  result: string
  models: number | null
  milliseconds: number | null
  upstream_status: number | null
  message: string
  list: ({
  model: string
  families?: ('chatcompat' | 'chatcompat-response' | 'messages-compat' | 'contentgen-compat' | 'rerank' | 'embeddings' | 'moderations' | 'audio-speech' | 'audio-transcription' | 'realtime' | 'image-generation' | 'video-generation' | '3d-generation' | 'chatcompat-video')[] | undefined
})[]
  list_is_cut: boolean
}

export type ProviderPresets = {
  object: 'provider_presets'
  presets: ({
  id: string
  kind: string
  base_url: string
  variables: (string)[]
  has_variable: boolean
})[]
  kinds: ({
  id: string
  calls: string
  variables: (string)[]
})[]
}

export type ProviderTest = {
  key?: string | null | undefined
}

export type ProviderTestResult = {
  provider: string
  key: string | null
  kind: string
  result: string
  models: number | null
  milliseconds: number | null
  upstream_status: number | null
  message: string
}

export type RateLimitState = {
  limit: 'requests_per_second' | 'requests_per_minute' | 'requests_per_hour' | 'requests_per_day' | 'input_tokens_per_second' | 'input_tokens_per_minute' | 'input_tokens_per_hour' | 'input_tokens_per_day' | 'output_tokens_per_second' | 'output_tokens_per_minute' | 'output_tokens_per_hour' | 'output_tokens_per_day' | 'tokens_per_second' | 'tokens_per_minute' | 'tokens_per_hour' | 'tokens_per_day' | 'images_per_second' | 'images_per_minute' | 'images_per_hour' | 'images_per_day' | 'videos_per_second' | 'videos_per_minute' | 'videos_per_hour' | 'videos_per_day' | 'video_seconds_per_second' | 'video_seconds_per_minute' | 'video_seconds_per_hour' | 'video_seconds_per_day' | 'three_d_per_second' | 'three_d_per_minute' | 'three_d_per_hour' | 'three_d_per_day' | 'audio_seconds_per_second' | 'audio_seconds_per_minute' | 'audio_seconds_per_hour' | 'audio_seconds_per_day' | 'concurrent_requests' | 'tasks_in_flight'
  amount: number
  remaining: number
  reset_seconds: number | null
}

export type Readiness = {
  status: 'ready' | 'not ready'
  reason: string | null
  version: string
  open_requests: number
  ledger: {
  queued: number
  lag_seconds: number
  spool_bytes: number
  lost: number
  is_store_away: boolean
}
  tasks: {
  unfinished: number
  oldest_seconds: number
  lag_seconds: number
} | null
}

export type Ready = {
  status: 'ready'
  tasks?: TaskHealth | undefined
}

export type Request = {
  object: 'request'
  id: string
  request_id: string
  created_at: number
  at_ms: number
  token_id: string
  project_id: string | null
  end_user: string | null
  session: string | null
  trace_id: string | null
  tags: (string)[]
  family: string
  model: string
  provider: string
  target: string
  status: number
  error: string | null
  total_ms: number
  input_tokens: number
  output_tokens: number
  cost: number | null
  provider_cost: number | null
  attempts: (RequestAttempt)[]
  playground?: string | undefined
  feedback: RequestFeedback | null
  method?: string | undefined
  path?: string | undefined
  outcome?: string | undefined
  requested_model?: string | undefined
  key?: string | undefined
  stream?: boolean | undefined
  queued_ms?: number | undefined
  first_byte_ms?: number | undefined
  cache?: string | undefined
  cache_similarity?: number | undefined
  upstream_status?: number | undefined
  guards?: ({
  name: string
  on: string
  outcome: string
})[] | undefined
  units?: Record<string, unknown> | undefined
  metadata?: Record<string, string> | undefined
  task_id?: string | undefined
  websocket?: string | undefined
}

export type RequestAttempt = {
  target: string
  key?: string | undefined
  start_ms?: number | undefined
  ms?: number | undefined
  error?: string | undefined
  upstream_status?: number | undefined
  hedge?: boolean | undefined
  lost?: boolean | undefined
  next?: string | undefined
}

export type RequestContents = {
  object: 'request.contents'
  id: string
  request_id: string
  key_id: string
  input: ({
  role: string
  parts: (ContentsPart)[]
})[]
  output: ({
  index: number
  finish_reason: string | null
  parts: (ContentsPart)[]
})[] | null
  is_cut: boolean
  note: string | null
}

export type RequestFacets = {
  object: 'facets'
  partial: boolean
  rows: number
  from: number | null
  facets: ({
  filter: string
  values: ({
  value: string
  name: string
  count: number
})[]
  more: boolean
})[]
}

export type RequestFeedback = {
  score: number | null
  text: string | null
  created_ms: number
}

export type RequestList = {
  data: (Request)[]
  next_cursor: string | null
}

export type RequestNeighbors = {
  object: 'request.neighbors'
  newer: string | null
  older: string | null
  is_partial: boolean
}

export type RequestSession = {
  session: string
  project_id: string | null
  token_id: string
  end_user: string | null
  requests: number
  errors: number
  models: (string)[]
  input_tokens: number
  output_tokens: number
  cost: number | null
  first_at: number
  last_at: number
}

export type RequestSessionList = {
  object: 'request.sessions'
  data: (RequestSession)[]
  partial: boolean
}

export type RoutingExplanation = {
  requested: string
  model: string
  family: string
  status: string
  fallbacks: Record<string, (string)[]>
  plan: {
  gates: (string)[]
  guards: (string)[]
  cache: string
  headers: Record<string, string>
}
  strategy: string
  sticky: string | null
  hedge: boolean
  tries: number
  deadline_seconds: number | null
  order: string
  targets: ({
  target: string
  key?: string | undefined
  priority: number
  weight: number
  order: number | null
  available: boolean
  reason?: string | undefined
  available_in_seconds?: number | undefined
  first_byte_seconds: number
  latency_ms?: number | undefined
  open_calls: number
  expected_cost?: number | null | undefined
  is_full?: boolean | undefined
})[]
}

export type RoutingExplanationOrder = {
  model: string
  family?: 'chatcompat' | 'chatcompat-response' | 'messages-compat' | 'contentgen-compat' | 'rerank' | 'embeddings' | 'moderations' | 'audio-speech' | 'audio-transcription' | 'realtime' | 'image-generation' | 'video-generation' | '3d-generation' | 'chatcompat-video' | null | undefined
  stream?: boolean | null | undefined
  body?: Record<string, unknown> | null | undefined
  tags?: (string)[] | null | undefined
  token_id?: string | null | undefined
}

export type RoutingOverride = {
  kind: 'model' | 'provider' | 'key' | 'target'
  name: string
  weight: number | null
  state: 'drained' | 'disabled' | null
  set_by: string
  set_at: number
}

export type RoutingOverrideChange = {
  weight?: number | null | undefined
  state?: 'drained' | 'disabled' | null | undefined
}

export type RoutingOverrideList = {
  data: (RoutingOverride)[]
  next_cursor: string | null
}

export type SessionList = {
  data: (AdminSession)[]
  next_cursor: string | null
}

export type SessionsEnded = {
  ended: number
}

export type Setting = {
  path: string
  value: unknown
  source: {
  from: string
  file?: string | undefined
  line?: number | undefined
  name?: string | undefined
}
}

export type SettingChange = {
  path: string
  kind: string
  before: unknown
  after: unknown
}

export type SettingList = {
  data: (Setting)[]
  next_cursor: string | null
}

export type Summary = {
  object: 'summary'
  start: number
  end: number
  step: 'minute' | 'hour' | 'day'
  by: 'project' | 'token' | 'model' | 'provider' | 'user' | 'tag' | 'none'
  series: (SummarySeries)[]
  other: boolean
  total: {
  calls: number
  errors: Record<string, number>
  input_tokens: number
  output_tokens: number
  cost: number
  charge: number
  cache_hits: number
  duration: {
  p50: number | null
  p95: number | null
}
  first_byte: {
  p50: number | null
  p95: number | null
}
}
}

export type SummarySeries = {
  key: string | null
  name: string
  points: ({
  time: number
  calls: number
  errors: Record<string, number>
  input_tokens: number
  output_tokens: number
  cost: number
  charge: number
  cache_hits: number
  duration: {
  p50: number | null
  p95: number | null
}
  first_byte: {
  p50: number | null
  p95: number | null
}
})[]
  total: {
  calls: number
  errors: Record<string, number>
  input_tokens: number
  output_tokens: number
  cost: number
  charge: number
  cache_hits: number
  duration: {
  p50: number | null
  p95: number | null
}
  first_byte: {
  p50: number | null
  p95: number | null
}
}
}

export type Target = {
  id: string
  provider: string
  model: string
  key: string | null
  priority: number
  weight: number
  weight_from: string
  is_full: boolean
  health: TargetHealth
}

export type TargetHealth = {
  state: string
  since: number | null
  until: number | null
  open_calls: number
  latency_ms: number | null
  expected_latency_ms: number | null
  recent: {
  succeeded: number
  failed: number
  error_rate: number | null
}
  consecutive_failures: number
  ejections: number
  active_health: string | null
  last_ok_at: number | null
  last_error: {
  at: number
  code: string
  upstream_status: number | null
  message: string
} | null
}

export type TaskHealth = {
  unfinished: number
  oldest_seconds: number
  lag_seconds: number
}

export type Token = {
  token_id: string
  project_id: string | null
  prefix: string
  previous_expires_at: number | null
  name: string
  labels: Record<string, string>
  models: (string)[]
  families: ('chatcompat' | 'chatcompat-response' | 'messages-compat' | 'contentgen-compat' | 'rerank' | 'embeddings' | 'moderations' | 'audio-speech' | 'audio-transcription' | 'realtime' | 'image-generation' | 'video-generation' | '3d-generation' | 'chatcompat-video' | 'mcp' | 'passthrough')[] | null
  rate_limits: {
  requests_per_second?: number | undefined
  requests_per_minute?: number | undefined
  requests_per_hour?: number | undefined
  requests_per_day?: number | undefined
  input_tokens_per_second?: number | undefined
  input_tokens_per_minute?: number | undefined
  input_tokens_per_hour?: number | undefined
  input_tokens_per_day?: number | undefined
  output_tokens_per_second?: number | undefined
  output_tokens_per_minute?: number | undefined
  output_tokens_per_hour?: number | undefined
  output_tokens_per_day?: number | undefined
  tokens_per_second?: number | undefined
  tokens_per_minute?: number | undefined
  tokens_per_hour?: number | undefined
  tokens_per_day?: number | undefined
  images_per_second?: number | undefined
  images_per_minute?: number | undefined
  images_per_hour?: number | undefined
  images_per_day?: number | undefined
  videos_per_second?: number | undefined
  videos_per_minute?: number | undefined
  videos_per_hour?: number | undefined
  videos_per_day?: number | undefined
  video_seconds_per_second?: number | undefined
  video_seconds_per_minute?: number | undefined
  video_seconds_per_hour?: number | undefined
  video_seconds_per_day?: number | undefined
  three_d_per_second?: number | undefined
  three_d_per_minute?: number | undefined
  three_d_per_hour?: number | undefined
  three_d_per_day?: number | undefined
  audio_seconds_per_second?: number | undefined
  audio_seconds_per_minute?: number | undefined
  audio_seconds_per_hour?: number | undefined
  audio_seconds_per_day?: number | undefined
  concurrent_requests?: number | undefined
  tasks_in_flight?: number | undefined
}
  budgets: (Budget)[]
  end_users: EndUserLimits
  allowed_addresses: (string)[] | null
  guards: (string)[]
  expires_at: number | null
  disabled: boolean
  declared?: boolean | undefined
  created_at: number
  last_used_at: number | null
  playground?: string | undefined
}

export type TokenChange = {
  name?: string | null | undefined
  labels?: Record<string, string> | null | undefined
  models?: (string)[] | null | undefined
  families?: ('chatcompat' | 'chatcompat-response' | 'messages-compat' | 'contentgen-compat' | 'rerank' | 'embeddings' | 'moderations' | 'audio-speech' | 'audio-transcription' | 'realtime' | 'image-generation' | 'video-generation' | '3d-generation' | 'chatcompat-video' | 'mcp' | 'passthrough')[] | null | undefined
  rate_limits?: {
  requests_per_second?: number | undefined
  requests_per_minute?: number | undefined
  requests_per_hour?: number | undefined
  requests_per_day?: number | undefined
  input_tokens_per_second?: number | undefined
  input_tokens_per_minute?: number | undefined
  input_tokens_per_hour?: number | undefined
  input_tokens_per_day?: number | undefined
  output_tokens_per_second?: number | undefined
  output_tokens_per_minute?: number | undefined
  output_tokens_per_hour?: number | undefined
  output_tokens_per_day?: number | undefined
  tokens_per_second?: number | undefined
  tokens_per_minute?: number | undefined
  tokens_per_hour?: number | undefined
  tokens_per_day?: number | undefined
  images_per_second?: number | undefined
  images_per_minute?: number | undefined
  images_per_hour?: number | undefined
  images_per_day?: number | undefined
  videos_per_second?: number | undefined
  videos_per_minute?: number | undefined
  videos_per_hour?: number | undefined
  videos_per_day?: number | undefined
  video_seconds_per_second?: number | undefined
  video_seconds_per_minute?: number | undefined
  video_seconds_per_hour?: number | undefined
  video_seconds_per_day?: number | undefined
  three_d_per_second?: number | undefined
  three_d_per_minute?: number | undefined
  three_d_per_hour?: number | undefined
  three_d_per_day?: number | undefined
  audio_seconds_per_second?: number | undefined
  audio_seconds_per_minute?: number | undefined
  audio_seconds_per_hour?: number | undefined
  audio_seconds_per_day?: number | undefined
  concurrent_requests?: number | undefined
  tasks_in_flight?: number | undefined
} | undefined
  budgets?: ({
  amount: number
  window: 'day' | 'week' | 'month' | 'total'
  time_zone?: string | undefined
  starts_at?: number | undefined
  thresholds?: (number)[] | undefined
  soft?: boolean | undefined
})[] | null | undefined
  end_users?: {
  rate_limits?: {
  requests_per_second?: number | undefined
  requests_per_minute?: number | undefined
  requests_per_hour?: number | undefined
  requests_per_day?: number | undefined
  input_tokens_per_second?: number | undefined
  input_tokens_per_minute?: number | undefined
  input_tokens_per_hour?: number | undefined
  input_tokens_per_day?: number | undefined
  output_tokens_per_second?: number | undefined
  output_tokens_per_minute?: number | undefined
  output_tokens_per_hour?: number | undefined
  output_tokens_per_day?: number | undefined
  tokens_per_second?: number | undefined
  tokens_per_minute?: number | undefined
  tokens_per_hour?: number | undefined
  tokens_per_day?: number | undefined
  images_per_second?: number | undefined
  images_per_minute?: number | undefined
  images_per_hour?: number | undefined
  images_per_day?: number | undefined
  videos_per_second?: number | undefined
  videos_per_minute?: number | undefined
  videos_per_hour?: number | undefined
  videos_per_day?: number | undefined
  video_seconds_per_second?: number | undefined
  video_seconds_per_minute?: number | undefined
  video_seconds_per_hour?: number | undefined
  video_seconds_per_day?: number | undefined
  three_d_per_second?: number | undefined
  three_d_per_minute?: number | undefined
  three_d_per_hour?: number | undefined
  three_d_per_day?: number | undefined
  audio_seconds_per_second?: number | undefined
  audio_seconds_per_minute?: number | undefined
  audio_seconds_per_hour?: number | undefined
  audio_seconds_per_day?: number | undefined
  concurrent_requests?: number | undefined
  tasks_in_flight?: number | undefined
} | undefined
  budgets?: ({
  amount: number
  window: 'day' | 'week' | 'month' | 'total'
  time_zone?: string | undefined
  starts_at?: number | undefined
  thresholds?: (number)[] | undefined
  soft?: boolean | undefined
})[] | undefined
} | undefined
  allowed_addresses?: (string)[] | null | undefined
  guards?: (string)[] | null | undefined
  expires_at?: number | null | undefined
  project_id?: string | null | undefined
}

export type TokenLimits = {
  object: 'limits'
  token_id: string
  currency: string
  rate_limits: (RateLimitState)[]
  budgets: (BudgetState)[]
  project: {
  project_id: string
  rate_limits: (RateLimitState)[]
  budgets: (BudgetState)[]
} | null
}

export type TokenList = {
  data: (Token)[]
  next_cursor: string | null
}

export type TokenOrder = {
  name: string
  labels?: Record<string, string> | null | undefined
  models?: (string)[] | null | undefined
  families?: ('chatcompat' | 'chatcompat-response' | 'messages-compat' | 'contentgen-compat' | 'rerank' | 'embeddings' | 'moderations' | 'audio-speech' | 'audio-transcription' | 'realtime' | 'image-generation' | 'video-generation' | '3d-generation' | 'chatcompat-video' | 'mcp' | 'passthrough')[] | null | undefined
  rate_limits?: {
  requests_per_second?: number | undefined
  requests_per_minute?: number | undefined
  requests_per_hour?: number | undefined
  requests_per_day?: number | undefined
  input_tokens_per_second?: number | undefined
  input_tokens_per_minute?: number | undefined
  input_tokens_per_hour?: number | undefined
  input_tokens_per_day?: number | undefined
  output_tokens_per_second?: number | undefined
  output_tokens_per_minute?: number | undefined
  output_tokens_per_hour?: number | undefined
  output_tokens_per_day?: number | undefined
  tokens_per_second?: number | undefined
  tokens_per_minute?: number | undefined
  tokens_per_hour?: number | undefined
  tokens_per_day?: number | undefined
  images_per_second?: number | undefined
  images_per_minute?: number | undefined
  images_per_hour?: number | undefined
  images_per_day?: number | undefined
  videos_per_second?: number | undefined
  videos_per_minute?: number | undefined
  videos_per_hour?: number | undefined
  videos_per_day?: number | undefined
  video_seconds_per_second?: number | undefined
  video_seconds_per_minute?: number | undefined
  video_seconds_per_hour?: number | undefined
  video_seconds_per_day?: number | undefined
  three_d_per_second?: number | undefined
  three_d_per_minute?: number | undefined
  three_d_per_hour?: number | undefined
  three_d_per_day?: number | undefined
  audio_seconds_per_second?: number | undefined
  audio_seconds_per_minute?: number | undefined
  audio_seconds_per_hour?: number | undefined
  audio_seconds_per_day?: number | undefined
  concurrent_requests?: number | undefined
  tasks_in_flight?: number | undefined
} | undefined
  budgets?: ({
  amount: number
  window: 'day' | 'week' | 'month' | 'total'
  time_zone?: string | undefined
  starts_at?: number | undefined
  thresholds?: (number)[] | undefined
  soft?: boolean | undefined
})[] | null | undefined
  end_users?: {
  rate_limits?: {
  requests_per_second?: number | undefined
  requests_per_minute?: number | undefined
  requests_per_hour?: number | undefined
  requests_per_day?: number | undefined
  input_tokens_per_second?: number | undefined
  input_tokens_per_minute?: number | undefined
  input_tokens_per_hour?: number | undefined
  input_tokens_per_day?: number | undefined
  output_tokens_per_second?: number | undefined
  output_tokens_per_minute?: number | undefined
  output_tokens_per_hour?: number | undefined
  output_tokens_per_day?: number | undefined
  tokens_per_second?: number | undefined
  tokens_per_minute?: number | undefined
  tokens_per_hour?: number | undefined
  tokens_per_day?: number | undefined
  images_per_second?: number | undefined
  images_per_minute?: number | undefined
  images_per_hour?: number | undefined
  images_per_day?: number | undefined
  videos_per_second?: number | undefined
  videos_per_minute?: number | undefined
  videos_per_hour?: number | undefined
  videos_per_day?: number | undefined
  video_seconds_per_second?: number | undefined
  video_seconds_per_minute?: number | undefined
  video_seconds_per_hour?: number | undefined
  video_seconds_per_day?: number | undefined
  three_d_per_second?: number | undefined
  three_d_per_minute?: number | undefined
  three_d_per_hour?: number | undefined
  three_d_per_day?: number | undefined
  audio_seconds_per_second?: number | undefined
  audio_seconds_per_minute?: number | undefined
  audio_seconds_per_hour?: number | undefined
  audio_seconds_per_day?: number | undefined
  concurrent_requests?: number | undefined
  tasks_in_flight?: number | undefined
} | undefined
  budgets?: ({
  amount: number
  window: 'day' | 'week' | 'month' | 'total'
  time_zone?: string | undefined
  starts_at?: number | undefined
  thresholds?: (number)[] | undefined
  soft?: boolean | undefined
})[] | undefined
} | undefined
  allowed_addresses?: (string)[] | null | undefined
  guards?: (string)[] | null | undefined
  expires_at?: number | null | undefined
  project_id?: string | null | undefined
}

export type TokenRotation = {
  overlap_seconds?: number | null | undefined
}

export type Webhook = {
  object: 'webhook'
  webhook_id: string
  task_id: string
  token_id: string
  project_id: string | null
  url: string
  state: 'pending' | 'delivered' | 'given_up'
  ended_at: number
  next_attempt_at: number | null
  delivered_at: number | null
  attempts: ({
  at_ms: number
  status: number
  error: string | null
  took_ms: number
})[]
}

export type WebhookList = {
  data: (Webhook)[]
  next_cursor: string | null
}

/** Each endpoint by its method and path. */
export type Api = {
  'GET /admin/v1/projects': {
    params: {}
    query: { limit?: number | undefined; cursor?: string | undefined; q?: string | undefined; active?: 'true' | 'false' | undefined; order?: 'newest' | 'oldest' | undefined }
    body: undefined
    response: ProjectList
  }
  'POST /admin/v1/projects': {
    params: {}
    query: {}
    body: ProjectOrder
    response: Project
  }
  'GET /admin/v1/projects/{project_id}': {
    params: { project_id: string }
    query: {}
    body: undefined
    response: Project
  }
  'PATCH /admin/v1/projects/{project_id}': {
    params: { project_id: string }
    query: {}
    body: ProjectChange
    response: Project
  }
  'DELETE /admin/v1/projects/{project_id}': {
    params: { project_id: string }
    query: {}
    body: undefined
    response: Project
  }
  'GET /admin/v1/tokens': {
    params: {}
    query: { limit?: number | undefined; cursor?: string | undefined; q?: string | undefined; active?: 'true' | 'false' | undefined; order?: 'newest' | 'oldest' | undefined; project_id?: string | undefined }
    body: undefined
    response: TokenList
  }
  'POST /admin/v1/tokens': {
    params: {}
    query: {}
    body: TokenOrder
    response: IssuedToken
  }
  'GET /admin/v1/tokens/{token_id}': {
    params: { token_id: string }
    query: {}
    body: undefined
    response: Token
  }
  'PATCH /admin/v1/tokens/{token_id}': {
    params: { token_id: string }
    query: {}
    body: TokenChange
    response: Token
  }
  'DELETE /admin/v1/tokens/{token_id}': {
    params: { token_id: string }
    query: {}
    body: undefined
    response: Token
  }
  'GET /admin/v1/tokens/{token_id}/limits': {
    params: { token_id: string }
    query: {}
    body: undefined
    response: TokenLimits
  }
  'POST /admin/v1/tokens/{token_id}/rotate': {
    params: { token_id: string }
    query: {}
    body: TokenRotation
    response: IssuedToken
  }
  'GET /admin/v1/me': {
    params: {}
    query: {}
    body: undefined
    response: Administrator
  }
  'GET /admin/v1/admin-tokens': {
    params: {}
    query: { limit?: number | undefined; cursor?: string | undefined }
    body: undefined
    response: AdminTokenList
  }
  'POST /admin/v1/admin-tokens': {
    params: {}
    query: {}
    body: AdminTokenOrder
    response: IssuedAdminToken
  }
  'GET /admin/v1/admin-tokens/{admin_token_id}': {
    params: { admin_token_id: string }
    query: {}
    body: undefined
    response: AdminToken
  }
  'DELETE /admin/v1/admin-tokens/{admin_token_id}': {
    params: { admin_token_id: string }
    query: {}
    body: undefined
    response: AdminToken
  }
  'POST /admin/v1/login': {
    params: {}
    query: {}
    body: Login
    response: AdminSession
  }
  'GET /admin/v1/login': {
    params: {}
    query: {}
    body: undefined
    response: LoginMethods
  }
  'POST /admin/v1/login-links': {
    params: {}
    query: {}
    body: LoginLinkOrder
    response: LoginLink
  }
  'POST /admin/v1/logout': {
    params: {}
    query: {}
    body: undefined
    response: SessionsEnded
  }
  'GET /admin/v1/sessions': {
    params: {}
    query: { limit?: number | undefined; cursor?: string | undefined }
    body: undefined
    response: SessionList
  }
  'DELETE /admin/v1/sessions': {
    params: {}
    query: {}
    body: undefined
    response: SessionsEnded
  }
  'DELETE /admin/v1/sessions/{session_id}': {
    params: { session_id: string }
    query: {}
    body: undefined
    response: SessionsEnded
  }
  'GET /admin/v1/login/oidc': {
    params: {}
    query: { return_to?: string | undefined }
    body: undefined
    response: unknown
  }
  'GET /admin/v1/audit': {
    params: {}
    query: { limit?: number | undefined; cursor?: string | undefined; actor?: string | undefined; action?: string | undefined; object_id?: string | undefined; project_id?: string | undefined; from?: number | undefined; to?: number | undefined }
    body: undefined
    response: AuditList
  }
  'GET /admin/v1/audit/verify': {
    params: {}
    query: {}
    body: undefined
    response: AuditCheck
  }
  'GET /admin/v1/audit/{sequence}': {
    params: { sequence: string }
    query: {}
    body: undefined
    response: AuditRow
  }
  'GET /admin/v1/requests': {
    params: {}
    query: { limit?: number | undefined; cursor?: string | undefined; request_id?: string | undefined; token?: string | undefined; project?: string | undefined; model?: string | undefined; target?: string | undefined; provider?: string | undefined; status?: string | undefined; error?: string | undefined; user?: string | undefined; session?: string | undefined; tag?: string | undefined; trace_id?: string | undefined; min_cost?: string | undefined; min_ms?: string | undefined; from?: number | undefined; to?: number | undefined }
    body: undefined
    response: RequestList
  }
  'GET /admin/v1/requests/{request_row}': {
    params: { request_row: string }
    query: {}
    body: undefined
    response: Request
  }
  'GET /admin/v1/requests/{request_row}/neighbors': {
    params: { request_row: string }
    query: { request_id?: string | undefined; token?: string | undefined; project?: string | undefined; model?: string | undefined; target?: string | undefined; provider?: string | undefined; status?: string | undefined; error?: string | undefined; user?: string | undefined; session?: string | undefined; tag?: string | undefined; trace_id?: string | undefined; min_cost?: string | undefined; min_ms?: string | undefined; from?: number | undefined; to?: number | undefined }
    body: undefined
    response: RequestNeighbors
  }
  'GET /admin/v1/requests/{request_row}/contents': {
    params: { request_row: string }
    query: {}
    body: undefined
    response: RequestContents
  }
  'GET /admin/v1/request-sessions': {
    params: {}
    query: { request_id?: string | undefined; token?: string | undefined; project?: string | undefined; model?: string | undefined; target?: string | undefined; provider?: string | undefined; status?: string | undefined; error?: string | undefined; user?: string | undefined; session?: string | undefined; tag?: string | undefined; trace_id?: string | undefined; min_cost?: string | undefined; min_ms?: string | undefined; from?: number | undefined; to?: number | undefined }
    body: undefined
    response: RequestSessionList
  }
  'GET /admin/v1/requests/facets': {
    params: {}
    query: { request_id?: string | undefined; token?: string | undefined; project?: string | undefined; model?: string | undefined; target?: string | undefined; provider?: string | undefined; status?: string | undefined; error?: string | undefined; user?: string | undefined; session?: string | undefined; tag?: string | undefined; trace_id?: string | undefined; min_cost?: string | undefined; min_ms?: string | undefined; from?: number | undefined; to?: number | undefined }
    body: undefined
    response: RequestFacets
  }
  'GET /admin/v1/summary': {
    params: {}
    query: { start?: string | undefined; end?: string | undefined; from?: string | undefined; to?: string | undefined; step?: 'minute' | 'hour' | 'day' | undefined; by?: 'project' | 'token' | 'model' | 'provider' | 'user' | 'tag' | 'none' | undefined; project?: string | undefined; token?: string | undefined; model?: string | undefined; provider?: string | undefined; user?: string | undefined; tag?: string | undefined; order?: 'calls' | 'charge' | 'cost' | undefined; points?: 'true' | 'false' | undefined; limit?: number | undefined }
    body: undefined
    response: Summary
  }
  'GET /admin/v1/events': {
    params: {}
    query: { types?: string | undefined; newest?: number | undefined }
    body: undefined
    response: unknown
  }
  'GET /admin/v1/readiness': {
    params: {}
    query: {}
    body: undefined
    response: Readiness
  }
  'GET /admin/v1/models': {
    params: {}
    query: { limit?: number | undefined; cursor?: string | undefined; q?: string | undefined; provider?: string | undefined; family?: string | undefined; status?: string | undefined; ending?: 'true' | 'false' | undefined; counts?: 'true' | 'false' | undefined; order?: 'id' | '-id' | 'context' | '-context' | 'output' | '-output' | 'price' | '-price' | 'status' | '-status' | undefined }
    body: undefined
    response: AdminModelList
  }
  'GET /admin/v1/models/{model}': {
    params: { model: string }
    query: {}
    body: undefined
    response: AdminModelWithSettings
  }
  'GET /admin/v1/providers': {
    params: {}
    query: { limit?: number | undefined; cursor?: string | undefined }
    body: undefined
    response: AdminProviderList
  }
  'GET /admin/v1/providers/{provider}': {
    params: { provider: string }
    query: {}
    body: undefined
    response: AdminProviderWithSettings
  }
  'POST /admin/v1/providers/{provider}/test': {
    params: { provider: string }
    query: {}
    body: ProviderTest
    response: ProviderTestResult
  }
  'POST /admin/v1/providers/{provider}/reset': {
    params: { provider: string }
    query: {}
    body: BreakerReset
    response: BreakerResetResult
  }
  'GET /admin/v1/provider-presets': {
    params: {}
    query: {}
    body: undefined
    response: ProviderPresets
  }
  'POST /admin/v1/provider-drafts/test': {
    params: {}
    query: {}
    body: ProviderDraft
    response: ProviderDraftTest
  }
  'POST /admin/v1/provider-drafts/diff': {
    params: {}
    query: {}
    body: ProviderDraft
    response: ProviderDraftDifference
  }
  'POST /admin/v1/provider-drafts/apply': {
    params: {}
    query: {}
    body: ProviderDraft
    response: AppliedConfiguration
  }
  'GET /admin/v1/overrides': {
    params: {}
    query: { limit?: number | undefined; cursor?: string | undefined }
    body: undefined
    response: RoutingOverrideList
  }
  'GET /admin/v1/overrides/{kind}/{name}': {
    params: { kind: string; name: string }
    query: {}
    body: undefined
    response: RoutingOverride
  }
  'PATCH /admin/v1/overrides/{kind}/{name}': {
    params: { kind: string; name: string }
    query: {}
    body: RoutingOverrideChange
    response: RoutingOverride
  }
  'DELETE /admin/v1/overrides/{kind}/{name}': {
    params: { kind: string; name: string }
    query: {}
    body: undefined
    response: RoutingOverride
  }
  'POST /admin/v1/routing/explain': {
    params: {}
    query: {}
    body: RoutingExplanationOrder
    response: RoutingExplanation
  }
  'GET /admin/v1/config': {
    params: {}
    query: { limit?: number | undefined; cursor?: string | undefined; path?: string | undefined; from?: string | undefined }
    body: undefined
    response: SettingList
  }
  'POST /admin/v1/config/text': {
    params: {}
    query: {}
    body: EditedConfiguration
    response: ConfigurationText
  }
  'GET /admin/v1/config/text': {
    params: {}
    query: {}
    body: undefined
    response: ConfigurationText
  }
  'POST /admin/v1/config/validate': {
    params: {}
    query: {}
    body: ProposedConfiguration
    response: ConfigurationValidation
  }
  'POST /admin/v1/config/diff': {
    params: {}
    query: {}
    body: ProposedConfiguration
    response: ConfigurationDifference
  }
  'POST /admin/v1/config/apply': {
    params: {}
    query: {}
    body: ProposedConfiguration
    response: AppliedConfiguration
  }
  'GET /admin/v1/config/schema': {
    params: {}
    query: {}
    body: undefined
    response: ConfigurationSchema
  }
  'GET /admin/v1/config/history': {
    params: {}
    query: { limit?: number | undefined; cursor?: string | undefined }
    body: undefined
    response: ConfigurationVersionList
  }
  'GET /admin/v1/config/history/{version_id}': {
    params: { version_id: string }
    query: {}
    body: undefined
    response: ConfigurationVersionText
  }
  'GET /admin/v1/budgets': {
    params: {}
    query: { limit?: number | undefined; cursor?: string | undefined; project_id?: string | undefined }
    body: undefined
    response: AdminBudgetList
  }
  'POST /admin/v1/budgets/credit': {
    params: {}
    query: {}
    body: CreditRequest
    response: Credit
  }
  'GET /admin/v1/cache': {
    params: {}
    query: {}
    body: undefined
    response: CacheSize
  }
  'POST /admin/v1/cache/purge': {
    params: {}
    query: {}
    body: CachePurgeRequest
    response: CachePurge
  }
  'GET /admin/v1/batches': {
    params: {}
    query: { limit?: number | undefined; cursor?: string | undefined; status?: string | undefined; token_id?: string | undefined; project_id?: string | undefined }
    body: undefined
    response: AdminBatchList
  }
  'GET /admin/v1/batches/{batch_id}': {
    params: { batch_id: string }
    query: {}
    body: undefined
    response: AdminBatch
  }
  'POST /admin/v1/batches/{batch_id}/cancel': {
    params: { batch_id: string }
    query: {}
    body: undefined
    response: AdminBatch
  }
  'GET /admin/v1/tasks': {
    params: {}
    query: { limit?: number | undefined; cursor?: string | undefined; status?: string | undefined; kind?: 'video' | '3d' | 'image' | undefined; model?: string | undefined; token_id?: string | undefined; project_id?: string | undefined }
    body: undefined
    response: AdminTaskList
  }
  'GET /admin/v1/tasks/{task_id}': {
    params: { task_id: string }
    query: {}
    body: undefined
    response: AdminTaskDetail
  }
  'POST /admin/v1/tasks/{task_id}/cancel': {
    params: { task_id: string }
    query: {}
    body: undefined
    response: AdminTask
  }
  'POST /admin/v1/tasks/{task_id}/resume': {
    params: { task_id: string }
    query: {}
    body: AdminTaskResume
    response: AdminTask
  }
  'POST /admin/v1/tasks/{task_id}/retry-delivery': {
    params: { task_id: string }
    query: {}
    body: undefined
    response: AdminWebhook
  }
  'GET /admin/v1/tasks/{task_id}/outputs': {
    params: { task_id: string }
    query: {}
    body: undefined
    response: AdminTaskOutputs
  }
  'GET /admin/v1/files': {
    params: {}
    query: { limit?: number | undefined; cursor?: string | undefined; purpose?: 'batch' | 'user_data' | 'vision' | 'batch_output' | undefined; token_id?: string | undefined; project_id?: string | undefined }
    body: undefined
    response: AdminFileList
  }
  'GET /admin/v1/files/{file_id}': {
    params: { file_id: string }
    query: {}
    body: undefined
    response: AdminFile
  }
  'DELETE /admin/v1/files/{file_id}': {
    params: { file_id: string }
    query: {}
    body: undefined
    response: AdminFileDeleted
  }
  'GET /admin/v1/files/{file_id}/content': {
    params: { file_id: string }
    query: {}
    body: undefined
    response: unknown
  }
  'GET /admin/v1/usage': {
    params: {}
    query: { by?: string | undefined; from?: string | undefined; to?: string | undefined; token_id?: string | undefined; project_id?: string | undefined; format?: 'json' | 'csv' | undefined }
    body: undefined
    response: AdminUsageList
  }
  'GET /admin/v1/ledger/reconcile': {
    params: {}
    query: { from?: string | undefined; to?: string | undefined }
    body: undefined
    response: LedgerCheck
  }
  'GET /admin/v1/alerts': {
    params: {}
    query: { limit?: number | undefined; cursor?: string | undefined; state?: 'open' | 'past' | undefined; type?: string | undefined }
    body: undefined
    response: AlertList
  }
  'POST /admin/v1/alerts/{alert_id}/close': {
    params: { alert_id: string }
    query: {}
    body: undefined
    response: Alert
  }
  'GET /admin/v1/webhooks': {
    params: {}
    query: { limit?: number | undefined; cursor?: string | undefined; state?: 'pending' | 'delivered' | 'given_up' | undefined; project_id?: string | undefined }
    body: undefined
    response: WebhookList
  }
  'GET /admin/v1/webhooks/{webhook_id}': {
    params: { webhook_id: string }
    query: {}
    body: undefined
    response: Webhook
  }
  'POST /admin/v1/webhooks/{webhook_id}/redeliver': {
    params: { webhook_id: string }
    query: {}
    body: undefined
    response: Webhook
  }
  'GET /admin/v1/mcp/servers': {
    params: {}
    query: { limit?: number | undefined; cursor?: string | undefined }
    body: undefined
    response: McpServerList
  }
  'POST /admin/v1/mcp/servers/{server}/connect': {
    params: { server: string }
    query: {}
    body: undefined
    response: McpServer
  }
  'GET /admin/v1/mcp/connections': {
    params: {}
    query: { limit?: number | undefined; cursor?: string | undefined }
    body: undefined
    response: McpConnectionList
  }
  'POST /admin/v1/mcp/connections': {
    params: {}
    query: {}
    body: McpConnectionFinish
    response: McpConnectionMade
  }
  'POST /admin/v1/mcp/connections/{server}': {
    params: { server: string }
    query: {}
    body: undefined
    response: McpConnectionBegun
  }
  'DELETE /admin/v1/mcp/connections/{server}': {
    params: { server: string }
    query: {}
    body: undefined
    response: McpConnectionEnded
  }
  'GET /admin/v1/mcp/people': {
    params: {}
    query: { limit?: number | undefined; cursor?: string | undefined }
    body: undefined
    response: McpPersonList
  }
  'DELETE /admin/v1/mcp/people/{connection_id}': {
    params: { connection_id: string }
    query: {}
    body: undefined
    response: McpConnectionEnded
  }
  'GET /admin/v1/mcp/tools': {
    params: {}
    query: { limit?: number | undefined; cursor?: string | undefined }
    body: undefined
    response: McpToolList
  }
  'POST /admin/v1/mcp/tools/approve': {
    params: {}
    query: {}
    body: McpToolApproval
    response: McpTool
  }
  'GET /admin/v1/guards': {
    params: {}
    query: { request_id?: string | undefined; token?: string | undefined; project?: string | undefined; model?: string | undefined; target?: string | undefined; provider?: string | undefined; status?: string | undefined; error?: string | undefined; user?: string | undefined; session?: string | undefined; tag?: string | undefined; trace_id?: string | undefined; min_cost?: string | undefined; min_ms?: string | undefined; from?: number | undefined; to?: number | undefined }
    body: undefined
    response: GuardList
  }
  'POST /admin/v1/guards/test': {
    params: {}
    query: {}
    body: GuardTest
    response: GuardTestResult
  }
  'GET /admin/v1/diagnostics': {
    params: {}
    query: {}
    body: undefined
    response: Diagnostics
  }
  'POST /admin/v1/playground/{path}': {
    params: { path: string }
    query: { project?: string | undefined }
    body: PlaygroundRequest
    response: unknown
  }
  'GET /admin/v1/playground/{path}': {
    params: { path: string }
    query: { project?: string | undefined }
    body: undefined
    response: unknown
  }
  'DELETE /admin/v1/playground/{path}': {
    params: { path: string }
    query: { project?: string | undefined }
    body: undefined
    response: unknown
  }
  'GET /healthz': {
    params: {}
    query: {}
    body: undefined
    response: Health
  }
  'GET /readyz': {
    params: {}
    query: {}
    body: undefined
    response: Ready
  }
}
