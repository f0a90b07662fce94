/** The migrations 0023 to 0044, as statements of SQL. */
import { inOrder, rowId, type Statements } from './statements.ts'

const bytes = (column: string): string => `length(cast(${column} as blob))`

export const UP_TO_0044: Record<string, Statements> = {
  // Contents of requests, encrypted: apart from the rows of the request log, since they are large and few.
  '0023-request-contents': (isSqlite) => `
    create table request_contents (
      row_id ${rowId(isSqlite)} not null primary key,
      at_ms bigint not null,
      project_id text,
      end_user text,
      key_id text not null,
      sealed text not null
    );
    create index request_contents_by_time on request_contents (at_ms);
    create index request_contents_by_user on request_contents (end_user, row_id)
      where end_user is not null`,
  // Projects and tokens of the configuration file.
  '0024-declared-accounts': `
    alter table projects add column declared integer default 0 not null;
    alter table tokens add column declared integer default 0 not null`,
  // Admin tokens of the configuration file.
  '0025-declared-admin-tokens': `
    alter table admin_tokens add column declared integer default 0 not null`,
  // Whether the contents of a project's calls are recorded.
  '0026-log-contents': `
    alter table projects add column log_contents text`,
  // Searches the request log by a class of statuses in the order of time: the index of statuses is in that of each status.
  '0027-request-classes': (isSqlite) => `
    create index request_log_by_class on request_log ((status / 100), ${inOrder(isSqlite)}) where status >= 300`,
  // For whom responses and the items of conversations are stored, so that they can be erased with their end user.
  '0028-contents-end-users': `
    alter table responses add column end_user text;
    alter table conversation_items add column end_user text;
    create index responses_by_user on responses (end_user) where end_user is not null;
    create index conversation_items_by_user on conversation_items (end_user, conversation_id)
      where end_user is not null`,
  // Replaces the indexes of sizes in SQLite by ones without `octet_length()`, so that older versions of its tools can check the file.
  '0029-size-indexes': (isSqlite) =>
    // SQLite has `octet_length()` since 3.43, and Debian 12 has 3.40. PostgreSQL keeps the indexes of migration 0009.
    !isSqlite
      ? ''
      : [
          // The expressions are those of `stored-amounts.ts`: an index is used only if they are the same.
          ['responses_sizes', `responses (token_id, (${bytes('input')} + ${bytes('response')}))`],
          ['response_runs_sizes', `response_runs (token_id, (${bytes('request')}))`],
          ['response_events_sizes', `response_events (token_id, (${bytes('events')}))`],
          ['conversations_sizes', `conversations (token_id, conversation_id, (${bytes('metadata')}))`],
          ['conversation_items_sizes', `conversation_items (conversation_id, (${bytes('item')}))`],
          ['tasks_sizes', `tasks (token_id, submit_time, (${bytes('request')}))`],
        ]
          .map(([index, columns]) => `drop index ${index};\ncreate index ${index} on ${columns}`)
          .join(';\n'),
  // Removes the index of targets from the request log: a target is found by that of its provider, and each index costs every row.
  '0030-fewer-request-indexes': `
    drop index request_log_by_target`,
  // Sums of the request log: by minute as they are recorded, and by hour and day for each project, token, model and so on.
  '0031-request-sums': `
    create table request_minutes (
      start bigint not null,
      id text not null,
      sums text not null,
      users text,
      tags text,
      constraint request_minutes_pk primary key (start, id)
    );
    create table request_sums (
      period integer not null,
      kind text not null,
      scope text not null,
      start bigint not null,
      total text not null,
      projects text,
      tokens text,
      models text,
      providers text,
      users text,
      tags text,
      constraint request_sums_pk primary key (period, kind, scope, start)
    );
    -- Rows are deleted, and days are made of hours, in the order of time.
    create index request_sums_by_time on request_sums (period, start, kind, scope);
    insert into revisions (noun, revision) values ('request_hours', 0);
    insert into revisions (noun, revision) values ('request_days', 0);
    insert into revisions (noun, revision) values ('request_sums', 0)`,
  // Sessions of persons with several projects or with an admin token, and login links for a person.
  '0032-session-memberships': `
    alter table admin_sessions add column memberships text;
    alter table admin_sessions add column token_hash text;
    alter table admin_links add column person text`,
  // The history of alerts: what the operator was to know of, and until when it is open.
  '0033-alert-history': `
    create table alert_history (
      alert_id text not null primary key,
      -- Of the alert that a further event of the same key continues; null: a new one begins.
      open_key text unique,
      type text not null,
      message text not null,
      data text not null,
      times integer not null,
      first_ms bigint not null,
      last_ms bigint not null,
      open_until_ms bigint not null,
      closed_ms bigint,
      closed_by text
    );
    create index alert_history_by_time on alert_history (first_ms, alert_id);
    create index alert_history_by_end on alert_history (open_until_ms, first_ms)`,
  // Attempts of webhooks, and what lists of webhooks are ordered and filtered by.
  '0034-webhook-attempts': `
    alter table callbacks add column project_id text;
    alter table callbacks add column ended_ms bigint;
    update callbacks set
      project_id = (select project_id from tasks where tasks.task_id = callbacks.task_id),
      ended_ms = (select finish_time * 1000 from tasks
        where tasks.task_id = callbacks.task_id and status in ('SUCCESS', 'FAILURE'));
    create index callbacks_by_end on callbacks (ended_ms, callback_id);
    create index callbacks_by_project on callbacks (project_id, ended_ms, callback_id);
    create index callbacks_given_up on callbacks (ended_ms, callback_id) where due_ms is null and delivered_at is null;
    create index callbacks_pending on callbacks (ended_ms, callback_id) where due_ms is not null;
    create table webhook_attempts (
      callback_id text not null,
      at_ms bigint not null,
      status integer not null,
      error text,
      took_ms integer not null,
      constraint webhook_attempts_key primary key (callback_id, at_ms)
    );
    create index webhook_attempts_by_time on webhook_attempts (at_ms)`,
  // Live events of all processes, and until when somebody follows them.
  '0035-live-events': `
    create table live_events (
      sequence bigint not null primary key,
      at_ms bigint not null,
      type text not null,
      project_id text,
      text text not null
    );
    insert into revisions (noun, revision) values ('live_events', 0), ('live_followed', 0)`,
  // The configurations that were in force, with masks for what may be a secret.
  '0036-config-versions': `
    create table config_versions (
      version_id text not null primary key,
      at_ms bigint not null,
      actor text not null,
      file text not null,
      hash text not null,
      text text not null,
      changes text not null
    );
    create index config_versions_by_time on config_versions (at_ms, version_id);
    create index config_versions_by_file on config_versions (file, at_ms, version_id)`,
  // The states of tasks and their targets, each with the time at which it was first reached.
  '0037-task-steps': `
    create table task_steps (
      task_id text not null,
      status text not null,
      provider text not null,
      upstream_model text not null,
      provider_key text not null,
      failures integer not null,
      fail_code text not null,
      at_ms bigint not null,
      constraint task_steps_key primary key (task_id, status, provider, upstream_model, provider_key, failures)
    )`,
  // The processes in which live events are followed, and of which process an event is.
  '0038-live-followers': `
    create table live_followers (
      process_id text not null primary key,
      until_ms bigint not null
    );
    -- Null: an earlier version has written the event.
    alter table live_events add column process_id text;
    alter table live_events add column number bigint;
    alter table live_events add column late integer`,
  // Files that clients upload, and those that the gateway writes for them; their bytes are where finished files are.
  '0039-files': `
    create table files (
      file_id text not null primary key,
      token_id text not null,
      project_id text,
      purpose text not null,
      filename text not null,
      content_type text not null,
      bytes bigint not null,
      created_at bigint not null,
      expires_at bigint,
      output_key text not null,
      is_ready integer not null
    );
    -- The first two hold the sizes, so that quotas are summed without reading rows.
    create index files_of_token on files (token_id, is_ready, file_id, bytes);
    create index files_of_project on files (project_id, is_ready, file_id, bytes);
    create index files_of_purpose on files (token_id, purpose, is_ready, file_id);
    create index files_by_end on files (expires_at) where expires_at is not null`,
  // Batches, their lines, and the parts of their results.
  '0040-batches': `
    create table batches (
      batch_id text not null primary key,
      token_id text not null,
      project_id text,
      api text not null,
      endpoint text not null,
      status text not null,
      request text not null,
      progress text not null,
      created_at bigint not null,
      expires_at bigint not null,
      cancelling_at bigint,
      deleted_at bigint,
      total bigint not null,
      succeeded bigint not null,
      errored bigint not null,
      canceled bigint not null,
      expired bigint not null,
      input_tokens bigint not null,
      cached_tokens bigint not null,
      output_tokens bigint not null,
      reasoning_tokens bigint not null,
      due_ms bigint,
      leased_by text not null,
      fence bigint not null
    );
    create table batch_lines (
      batch_id text not null,
      line integer not null,
      offset_bytes bigint not null,
      bytes integer not null,
      custom_id text not null,
      state integer not null,
      attempts integer not null,
      called_again integer not null,
      kind text,
      result text,
      constraint batch_lines_key primary key (batch_id, line)
    );
    create table batch_parts (
      batch_id text not null,
      kind text not null,
      part integer not null,
      lines integer not null,
      bytes bigint not null,
      constraint batch_parts_key primary key (batch_id, kind, part)
    );
    create index batches_of_token on batches (token_id, api, created_at, batch_id);
    create index batches_by_time on batches (created_at, batch_id);
    create index batches_of_project on batches (project_id, created_at, batch_id);
    create index batches_by_due on batches (due_ms) where due_ms is not null;
    -- Few lines are open or have a result that is not in a part yet, however many a batch has.
    create index batch_lines_open on batch_lines (batch_id, state, line) where state < 2;
    create index batch_lines_results on batch_lines (batch_id, kind, line) where result is not null`,
  // Tools of MCP servers as they were seen and approved.
  '0041-mcp-tools': `
    create table mcp_tools (
      server text not null,
      tool text not null,
      hash text not null,
      definition text not null,
      seen_at bigint not null,
      -- Null: it was never approved.
      approved_hash text,
      approved_definition text,
      approved_at bigint,
      approved_by text,
      constraint mcp_tools_key primary key (server, tool)
    )`,
  // Guards of tokens and projects, by name.
  '0042-account-guards': `
    alter table tokens add column guards text default '[]' not null;
    alter table projects add column guards text default '[]' not null`,
  // Adds to files what their upload found wrong for a batch of them.
  '0043-file-problems': `
    alter table files add column problems text`,
  // Connections of people to MCP servers, with their encrypted tokens.
  '0044-mcp-connections': `
    create table mcp_connections (
      person text not null,
      server text not null,
      -- Null: the person has begun to connect, and has not yet come back.
      connection_id text,
      -- Null: the connection has ended, as a refused refresh token ends it.
      sealed text,
      version bigint default 0 not null,
      -- Until when one process refreshes the tokens, in unix milliseconds.
      refreshing_until_ms bigint,
      connected_at bigint,
      pending_hash text,
      pending text,
      pending_until bigint,
      constraint mcp_connections_key primary key (person, server)
    )`,
}
