/** The migrations 0012 to 0022, as statements of SQL. */
import { inOrder, rowId, type Statements } from './statements.ts'

/** The rows are stored in the order of the key on SQLite, so that a range of time is one contiguous read. */
const inKeyOrder = (isSqlite: boolean): string => (isSqlite ? ' without rowid' : '')

/** Of both tables of sums. */
const SUM_COLUMNS = `\
      family text not null,
      model text not null,
      provider text not null,
      upstream_model text not null,
      entries bigint not null,
      requests bigint not null,
      errors bigint not null,
      estimated bigint not null,
      input_tokens bigint not null,
      output_tokens bigint not null,
      amount bigint not null,
      cost bigint not null,
      unknown_amounts bigint not null,
      unknown_costs bigint not null,
`

/** The rows of the former table of usage, summed by this many seconds. */
const sumsOfUsage = (period: number, first: string, empty: string): string => `
      select ${first}hour / ${period} * ${period}, token_id, ${empty}, model, '', '', count(*), sum(requests),
        sum(errors), sum(estimated), sum(input_tokens), sum(output_tokens), 0, 0, sum(requests), sum(requests)
      from usage group by token_id, model, hour / ${period} * ${period}`

export const UP_TO_0022: Record<string, Statements> = {
  // The ledger, its sums by minute, hour and day, and its open calls. The sums of earlier versions become entries.
  '0012-ledger': (isSqlite) => `
    create table ledger_entries (
      entry_id text not null primary key,
      at_ms bigint not null,
      project_id text,
      end_user text,
      amount bigint,
      cost bigint,
      price text,
      kind text not null,
      call_id text not null,
      token_id text not null,
      family text not null,
      model text not null,
      provider text not null,
      upstream_model text not null,
      units text not null,
      requests bigint not null,
      errors bigint not null,
      estimated bigint not null,
      input_tokens bigint not null,
      output_tokens bigint not null
    );
    create index ledger_entries_by_time on ledger_entries (at_ms);
    -- Only tasks are looked up: their last entry is reversed when they are resumed.
    create index ledger_entries_of_task on ledger_entries (call_id, kind) where kind in ('task', 'reversal');
    create table ledger_sums (
      period bigint not null,
      start bigint not null,
      token_id text not null,
      project_id text not null,
${SUM_COLUMNS}      constraint ledger_sums_key primary key (period, start, token_id, project_id, family, model, provider, upstream_model)
    )${inKeyOrder(isSqlite)};
    create table ledger_end_users (
      start bigint not null,
      token_id text not null,
      end_user text not null,
      project_id text not null,
${SUM_COLUMNS}      constraint ledger_end_users_key primary key (start, token_id, end_user, project_id, family, model, provider, upstream_model)
    )${inKeyOrder(isSqlite)};
    create table ledger_end_user_counts (
      start bigint not null,
      token_id text not null,
      end_users bigint not null,
      constraint ledger_end_user_counts_key primary key (start, token_id)
    );
    create table open_calls (
      entry_id text not null primary key,
      entry text not null,
      process text not null
    );
    create index open_calls_of_process on open_calls (process);
    create table ledger_processes (
      process text not null primary key,
      until_ms bigint not null
    );
    create table ledger_starts (
      noun text not null primary key,
      start bigint not null
    );
    alter table tasks add column project_id text;
    alter table tasks add column end_user text;
    -- One entry for each row: a token, a model and an hour. Their prices are unknown.
    insert into ledger_entries (entry_id, kind, at_ms, call_id, token_id, family, model, provider, upstream_model, units,
        requests, errors, estimated, input_tokens, output_tokens)
      select 'usage_' || hour || '_' || token_id || '_' || model, 'adjustment', hour * 1000, '', token_id, '', model, '', '',
        '{"input_tokens":' || input_tokens || ',"output_tokens":' || output_tokens || '}',
        requests, errors, estimated, input_tokens, output_tokens
      from usage;
    ${[60, 3_600, 86_400].map((period) => `insert into ledger_sums ${sumsOfUsage(period, `${period}, `, "'', ''")}`).join(';\n')};
    insert into ledger_end_users ${sumsOfUsage(86_400, '', "'', '', ''")};
    insert into ledger_starts values ('tasks', ${Math.ceil(Date.now() / 1000)});
    drop table usage`,
  // For whom a background response is generated: the end user that its request named.
  '0013-run-end-users': `
    alter table response_runs add column end_user text`,
  // The key that an order is sent with, and what its caller asked of the routing.
  '0014-order-routing': `
    alter table tasks add column provider_key text;
    alter table tasks add column call_options text`,
  // Budgets: what was charged, and what processes and tasks hold; alerts to the operator.
  '0015-budgets': `
    create table budget_accounts (
      account_key text not null,
      start_ms bigint not null,
      end_ms bigint not null,
      scope_key text not null,
      settled bigint not null,
      credit bigint not null,
      held bigint not null,
      notified double precision not null,
      constraint budget_accounts_key primary key (account_key, start_ms)
    );
    create index budget_accounts_by_scope on budget_accounts (scope_key, end_ms);
    create table budget_leases (
      process_id text not null,
      account_key text not null,
      start_ms bigint not null,
      amount bigint not null,
      expires_ms bigint not null,
      constraint budget_leases_key primary key (process_id, account_key, start_ms)
    );
    create index budget_leases_by_end on budget_leases (expires_ms);
    create table budget_holds (
      call_id text not null,
      account_key text not null,
      start_ms bigint not null,
      amount bigint not null,
      constraint budget_holds_key primary key (call_id, account_key, start_ms)
    );
    create index ledger_credits on ledger_entries (at_ms) where kind = 'credit';
    create table alerts (
      alert_id text not null primary key,
      created_at bigint not null,
      body text not null,
      attempts integer not null,
      due_ms bigint not null
    );
    insert into revisions (noun, revision) values ('budgets', 0)`,
  // Leases of rate limits.
  '0016-rate-limit-leases': `
    create table rate_limit_leases (
      counter text not null,
      process_id text not null,
      held double precision not null,
      used text not null,
      window_ms bigint not null,
      renewed_ms bigint not null,
      ends_ms bigint not null,
      constraint rate_limit_leases_pk primary key (counter, process_id)
    );
    create index rate_limit_leases_by_end on rate_limit_leases (ends_ms);
    create index rate_limit_leases_by_renewal on rate_limit_leases (renewed_ms, process_id)`,
  // Alerts by several channels, and what was alerted lately.
  '0017-alert-channels': `
    alter table alerts add column channel text default 'webhook' not null;
    create table alert_marks (
      mark_key text not null primary key,
      until_ms bigint not null
    )`,
  // Runtime overrides of routing.
  '0018-routing-overrides': `
    create table routing_overrides (
      kind text not null,
      name text not null,
      weight double precision,
      state text,
      set_by text not null,
      set_at bigint not null,
      constraint routing_overrides_key primary key (kind, name)
    );
    insert into revisions (noun, revision) values ('routing_overrides', 0)`,
  // Administrators: their tokens, their sessions, their idempotency keys, and the audit log.
  '0019-administration': `
    create table admin_tokens (
      admin_token_id text primary key,
      name text not null,
      role text not null,
      project_id text,
      prefix text not null,
      hash text not null unique,
      expires_at bigint,
      disabled integer not null,
      created_at bigint not null,
      last_used_at bigint
    );
    create index admin_tokens_by_creation on admin_tokens (created_at, admin_token_id);
    create table admin_keys (
      scope text not null,
      key text not null,
      body_hash text not null,
      status integer,
      answer text,
      expires_at bigint not null,
      constraint admin_keys_key primary key (scope, key)
    );
    create index admin_keys_by_end on admin_keys (expires_at);
    create index projects_by_revision on projects (added_revision);
    create index tokens_by_revision on tokens (added_revision)`,
  // The trace that a task was submitted in.
  '0020-task-traces': `
    alter table tasks add column trace text`,
  // The audit log, and the sessions and login links of administrators.
  '0021-audit': `
    create table audit (
      sequence bigint primary key,
      at_ms bigint not null,
      actor text not null,
      action text not null,
      object_type text not null,
      object_id text not null,
      project_id text,
      address text,
      request_id text,
      before text,
      after text,
      previous_hash text not null,
      hash text not null
    );
    create index audit_by_object_id on audit (object_id, sequence);
    create index audit_by_project_id on audit (project_id, sequence);
    create index audit_by_actor on audit (actor, sequence);
    create index audit_by_action on audit (action, sequence);
    insert into revisions (noun, revision) values ('audit', 0);
    create table admin_sessions (
      session_id text primary key,
      hash text not null unique,
      actor text not null,
      role text not null,
      project_id text,
      address text not null,
      user_agent text not null,
      created_at bigint not null,
      last_used_at bigint not null,
      expires_at bigint not null
    );
    create index admin_sessions_by_creation on admin_sessions (created_at, session_id);
    create index admin_sessions_by_end on admin_sessions (expires_at);
    create table admin_links (
      hash text primary key,
      actor text not null,
      expires_at bigint not null
    )`,
  // The request log: rows, their tags, and feedback on them.
  '0022-request-log': (isSqlite) => `
    create table request_log (
      row_id ${rowId(isSqlite)} not null primary key,
      at_ms bigint not null,
      request_id text not null,
      token_id text not null,
      project_id text,
      end_user text,
      session text,
      trace_id text,
      family text not null,
      model text not null,
      provider text not null,
      target text not null,
      status integer not null,
      error text,
      total_ms double precision not null,
      cost bigint,
      tags text,
      detail text not null
    );
    create index request_log_by_time on request_log (${inOrder(isSqlite)});
    create index request_log_by_request on request_log (request_id);
    -- Columns of equality, each in the order of time. Those that are often null take no place in the index then.
    create index request_log_by_token on request_log (token_id, ${inOrder(isSqlite)});
    create index request_log_by_model on request_log (model, ${inOrder(isSqlite)});
    create index request_log_by_target on request_log (target, ${inOrder(isSqlite)});
    create index request_log_by_provider on request_log (provider, ${inOrder(isSqlite)});
    create index request_log_by_project on request_log (project_id, ${inOrder(isSqlite)}) where project_id is not null;
    create index request_log_by_user on request_log (end_user, ${inOrder(isSqlite)}) where end_user is not null;
    create index request_log_by_session on request_log (session, ${inOrder(isSqlite)}) where session is not null;
    create index request_log_by_trace on request_log (trace_id, ${inOrder(isSqlite)}) where trace_id is not null;
    create index request_log_by_error on request_log (error, ${inOrder(isSqlite)}) where error is not null;
    create index request_log_errors on request_log (${inOrder(isSqlite)}) where error is not null;
    create index request_log_by_status on request_log (status, ${inOrder(isSqlite)}) where status >= 300;
    -- Of the expensive and slow ones only: rows in no order of time are the dear ones to add.
    create index request_log_by_cost on request_log (cost) where cost >= 10000000;
    create index request_log_by_duration on request_log (total_ms) where total_ms >= 10000;
    create table request_tags (
      tag text not null,
      at_ms bigint not null,
      row_id bigint not null,
      constraint request_tags_pk primary key (tag, at_ms, row_id)
    );
    create table request_feedback (
      row_id ${rowId(isSqlite)} not null primary key,
      score double precision,
      text text,
      created_ms bigint not null
    );
    insert into revisions (noun, revision) values ('request_log', 0)`,
}
