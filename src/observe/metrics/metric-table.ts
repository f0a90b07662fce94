/**
 * Every metric of the gateway: the reference page and the dashboards are checked against this table. `gen_ai_*` are those
 * of OpenTelemetry's semantic conventions for generative AI, as Prometheus names them; the rest is ours. Counters and
 * histograms are of one gateway, all its workers together: their sums over several gateways are right. What is read from the database says so.
 */
import type { MetricDefinition } from './metrics.ts'

/** Those that the conventions recommend (semantic conventions 1.41). */
const DURATIONS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
const FIRST_TOKEN = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]
const PER_TOKEN = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5]
const TOKENS = [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864]
/** From a millisecond to half a minute: the database, and the event loop. */
const SHORT = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
/** Of tasks: from a second to two hours. */
const LONG = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200]
const SIMILARITY = [0.8, 0.85, 0.9, 0.92, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99, 1]

const MODELS = ['gen_ai_request_model', 'gen_ai_response_model'] as const
const GEN_AI = ['gen_ai_operation_name', 'gen_ai_provider_name', ...MODELS] as const
/** The ids of the configuration: the provider, and its own name of the model. */
const TARGET = ['provider', 'upstream_model'] as const

const define = <const Row extends MetricDefinition>(row: Row): Row => row
const counter = (name: string, labels: readonly string[], help: string) =>
  define({ name, type: 'counter', labels, help })
const gauge = (name: string, labels: readonly string[], help: string) => define({ name, type: 'gauge', labels, help })
/** Of which each of several processes has a part. */
const divided = (name: string, labels: readonly string[], help: string) =>
  define({ ...gauge(name, labels, help), is_divided: true })
const histogram = (name: string, labels: readonly string[], buckets: readonly number[], help: string) =>
  define({ name, type: 'histogram', labels, buckets, help })

/** Counted in nano-units, as the ledger does. */
const money = (name: string, labels: readonly string[], help: string) =>
  define({ ...counter(name, labels, help), divide_by: 1e9 })

/** What is in the database is the same in every process that uses it. */
const SHARED = 'The same in every process: take the maximum.'

export const CALL_METRICS = {
  duration: histogram(
    'gen_ai_server_request_duration_seconds',
    [...GEN_AI, 'error_type'],
    DURATIONS,
    'Of a whole call, refused ones included; error_type is empty where it succeeded.',
  ),
  first_token: histogram(
    'gen_ai_server_time_to_first_token_seconds',
    GEN_AI,
    FIRST_TOKEN,
    'To the first part of a streamed response.',
  ),
  per_token: histogram(
    'gen_ai_server_time_per_output_token_seconds',
    GEN_AI,
    PER_TOKEN,
    'For each further output token of streamed calls.',
  ),
  token_usage: histogram(
    'gen_ai_client_token_usage',
    [...GEN_AI, 'gen_ai_token_type'],
    TOKENS,
    'Tokens of a call, input or output.',
  ),
  requests: counter(
    'gatehouse_http_requests_total',
    ['method', 'route', 'status', 'outcome'],
    'HTTP requests; outcome: done, client_gone or cut.',
  ),
  tokens: counter('gatehouse_tokens_total', [...TARGET, 'model', 'token_type'], 'Tokens in the ledger.'),
  charged: money('gatehouse_charged_amount_total', [...TARGET, 'model', 'currency'], 'What callers were charged.'),
  cost: money('gatehouse_provider_cost_total', [...TARGET, 'model', 'currency'], 'What providers charge.'),
  entries: counter('gatehouse_ledger_entries_total', ['kind'], 'Entries of the ledger.'),
  ledger_requests: counter('gatehouse_ledger_requests_total', ['model'], 'Requests in these entries.'),
  ledger_errors: counter('gatehouse_ledger_errors_total', ['model'], 'Requests in these entries that failed.'),
  unpriced: counter('gatehouse_unpriced_entries_total', [...TARGET, 'model'], 'Entries without a known price or cost.'),
  project_calls: counter('gatehouse_project_calls_total', ['project'], 'Calls by project; empty: none.'),
  project_charged: money(
    'gatehouse_project_charged_amount_total',
    ['project', 'currency'],
    'What calls were charged, without tasks.',
  ),
  token_calls: counter('gatehouse_token_calls_total', ['token'], 'Calls by the id of their API token.'),
  token_charged: money(
    'gatehouse_token_charged_amount_total',
    ['token', 'currency'],
    'What calls were charged, without tasks.',
  ),
  attempts: counter(
    'gatehouse_attempts_total',
    [...TARGET, 'key', 'outcome', 'error_type'],
    'Requests to providers. outcome: served, failed, broken (after its first part), lost (another was faster), abandoned (the client had left).',
  ),
  attempt_duration: histogram(
    'gatehouse_attempt_duration_seconds',
    TARGET,
    DURATIONS,
    'To the first byte, or whole answer, of a provider.',
  ),
  next: counter(
    'gatehouse_attempts_followed_total',
    [...TARGET, 'next'],
    'What followed attempts that did not serve, or why nothing did.',
  ),
  cache: counter(
    'gatehouse_cache_requests_total',
    ['gen_ai_request_model', 'result'],
    'Calls with a response cache: hit, miss, or bypass.',
  ),
  guard_checks: counter(
    'gatehouse_guard_checks_total',
    ['guard', 'on', 'outcome'],
    'Calls that a guard has checked. outcome: passed, would_replace, replaced, would_block, failed or blocked.',
  ),
  similarity: histogram('gatehouse_cache_similarity', [], SIMILARITY, 'Similarity of semantic hits.'),
  queue_wait: histogram('gatehouse_limit_wait_seconds', [], SHORT, 'How long calls waited for a rate limit.'),
} as const

export const WORK_METRICS = {
  refusals: counter('gatehouse_limit_refusals_total', ['scope', 'limit'], 'Refusals by a rate limit or a budget.'),
  tasks_ended: counter(
    'gatehouse_tasks_ended_total',
    ['family', 'provider', 'model', 'status', 'fail_code'],
    'Tasks that have ended.',
  ),
  task_state: histogram(
    'gatehouse_task_state_seconds',
    ['family', 'provider', 'state'],
    LONG,
    'How long ended tasks were waiting and generating.',
  ),
  outcomes_unknown: counter(
    'gatehouse_tasks_outcome_unknown_total',
    ['provider'],
    'Tasks whose order may have been charged.',
  ),
  output_files: counter('gatehouse_output_files_total', ['content_type'], 'Files that were stored.'),
  output_bytes: counter('gatehouse_output_bytes_total', ['content_type'], 'Bytes of these files.'),
  store_operations: histogram(
    'gatehouse_store_operation_seconds',
    ['store', 'operation'],
    SHORT,
    'Time of operations of the database.',
  ),
  store_errors: counter(
    'gatehouse_store_errors_total',
    ['store', 'operation'],
    'Operations of the database that failed.',
  ),
  loop_delay: histogram('gatehouse_event_loop_delay_seconds', [], SHORT, 'By how much timers are late.'),
} as const

/** Read at each scrape. */
export const STATE_METRICS = {
  info: gauge('gatehouse_build_info', ['version', 'engine'], 'Always 1.'),
  target_state: gauge(
    'gatehouse_target_state',
    [...TARGET, 'key', 'state'],
    '1 for the state of a target and key, 0 for others.',
  ),
  target_open: divided('gatehouse_target_open_calls', [...TARGET, 'key'], 'Calls that are open at a target.'),
  limit_waiting: divided('gatehouse_limit_waiting_calls', [], 'Calls that wait for a rate limit.'),
  budget_limit: gauge(
    'gatehouse_budget_limit',
    ['scope', 'owner', 'window', 'currency'],
    `Budgets with calls in the window, with their credit. ${SHARED}`,
  ),
  budget_used: gauge(
    'gatehouse_budget_used',
    ['scope', 'owner', 'window', 'currency'],
    `What is used of them. ${SHARED}`,
  ),
  budget_held: divided(
    'gatehouse_budget_held',
    ['scope', 'owner', 'window', 'currency'],
    'What open calls of this process may cost.',
  ),
  budget_refusing: gauge(
    'gatehouse_budget_refusing',
    ['scope', 'owner', 'window', 'currency'],
    '1 if a call was refused in the last 5 minutes.',
  ),
  ledger_queued: divided('gatehouse_ledger_queued_entries', [], 'Entries that wait in memory for their commit.'),
  ledger_lag: gauge('gatehouse_ledger_lag_seconds', [], 'Age of the oldest of them.'),
  ledger_spool: divided('gatehouse_ledger_spool_bytes', [], 'Entries on the local disk.'),
  ledger_away: gauge('gatehouse_ledger_store_away', [], '1 while entries go to the local disk.'),
  ledger_lost: counter('gatehouse_ledger_lost_entries_total', [], 'Entries that were lost.'),
  tasks_unfinished: gauge('gatehouse_tasks_unfinished', [], `Tasks that have not ended. ${SHARED}`),
  tasks_oldest: gauge('gatehouse_tasks_oldest_age_seconds', [], `Age of the oldest. ${SHARED}`),
  tasks_lag: gauge('gatehouse_tasks_poll_lag_seconds', [], `How late the most overdue step is. ${SHARED}`),
  batches_unfinished: gauge('gatehouse_batches_unfinished', ['status'], `Batches that have not ended. ${SHARED}`),
  batch_calls: divided('gatehouse_batch_calls', [], 'Lines that are executed now.'),
  open_requests: divided('gatehouse_open_requests', [], 'Requests whose response is not sent yet.'),
  open_sockets: divided('gatehouse_open_websockets', [], 'WebSockets that are open.'),
  bytes: divided('gatehouse_bytes_in_flight', [], 'Bytes of request bodies and unread answers.'),
  exported: counter('gatehouse_telemetry_items_total', ['signal', 'result'], 'Exported, failed, or dropped.'),
  export_queue: divided('gatehouse_telemetry_queue_items', ['signal'], 'What waits to be exported.'),
  rows_queue: divided('gatehouse_request_log_queue_rows', ['sink'], 'Rows that wait to be written.'),
  rows: counter(
    'gatehouse_request_log_rows_total',
    ['sink', 'result'],
    'Rows of the request log: written, or dropped.',
  ),
  rows_suppressed: counter(
    'gatehouse_request_log_suppressed_rows_total',
    [],
    'Refused requests beyond 600 a minute of a token, which got no row.',
  ),
  contents_queue: divided(
    'gatehouse_request_contents_queue_characters',
    [],
    'Contents in memory that wait to be written.',
  ),
  contents: counter('gatehouse_request_contents_total', ['result'], 'Recorded contents: written, or dropped.'),
  overflows: counter('gatehouse_metrics_label_overflows_total', ['label'], 'Label values shown as "other".'),
  failed: counter('gatehouse_metrics_read_errors_total', [], 'Metrics left out of a scrape.'),
  cpu: counter('process_cpu_seconds_total', [], 'Processor time of the process.'),
  started: gauge('process_start_time_seconds', [], 'Start of the process, in unix seconds.'),
  resident: divided('process_resident_memory_bytes', [], 'Resident memory of the process.'),
  heap: divided('gatehouse_heap_used_bytes', [], 'Memory that JavaScript objects use.'),
  open_fds: divided('process_open_fds', [], 'Open file descriptors, connections included.'),
  max_fds: divided('process_max_fds', [], 'File descriptors that the process may open.'),
} as const

export const METRIC_GROUPS = { calls: CALL_METRICS, work: WORK_METRICS, state: STATE_METRICS } as const
