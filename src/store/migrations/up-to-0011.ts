/** The migrations 0001 to 0011, as statements of SQL. */
import type { Statements } from './statements.ts'

// `bigint` for times and counts: 64 bits on every engine (SQLite would not care, PostgreSQL's `integer` has 32).
export const UP_TO_0011: Record<string, Statements> = {
  // Tokens, their usage, and when models were first seen.
  '0001-first-tables': `
    create table tokens (
      token_id text not null primary key,
      name text not null,
      prefix text not null,
      hash text not null unique,
      models text not null,
      families text,
      expires_at bigint,
      disabled integer not null,
      created_at bigint not null,
      last_used_at bigint,
      added_revision bigint not null
    );
    create table usage (
      token_id text not null,
      model text not null,
      hour bigint not null,
      requests bigint not null,
      errors bigint not null,
      input_tokens bigint not null,
      output_tokens bigint not null,
      estimated bigint not null,
      constraint usage_key primary key (token_id, model, hour)
    );
    create index usage_by_hour on usage (hour);
    create table models (
      id text not null primary key,
      first_seen bigint not null
    );
    create table revisions (
      noun text not null primary key,
      revision bigint not null
    );
    insert into revisions (noun, revision) values ('tokens', 0)`,
  // Tasks with their inputs, idempotency keys and callbacks; and the secrets that all processes share.
  '0002-tasks': `
    create table tasks (
      task_id text not null primary key,
      token_id text not null,
      family text not null,
      model text not null,
      status text not null,
      progress integer not null,
      submit_time bigint not null,
      start_time bigint not null,
      finish_time bigint not null,
      fail_code text not null,
      fail_reason text not null,
      request text not null,
      base_url text not null,
      provider text not null,
      upstream_model text not null,
      tried text not null,
      sent_at bigint,
      operation text,
      made text,
      outputs text not null,
      outputs_expire_at bigint,
      deadline_at bigint not null,
      cancel_asked_at bigint,
      late_outcome text,
      failures integer not null,
      due_ms bigint,
      leased_by text not null,
      fence bigint not null,
      deleted_at bigint
    );
    -- Partial where only some states of a task matter: a million ended tasks cost the worker nothing.
    create index tasks_due on tasks (provider, due_ms) where due_ms is not null;
    create index tasks_due_of_token on tasks (provider, token_id, due_ms, task_id) where due_ms is not null;
    create index tasks_of_token on tasks (token_id, submit_time, task_id);
    create index tasks_by_time on tasks (submit_time, task_id);
    -- With the status, so that they are counted without reading their rows.
    create index tasks_unfinished on tasks (submit_time, task_id, status) where status not in ('SUCCESS', 'FAILURE');
    create index tasks_outputs_to_remove on tasks (outputs_expire_at, task_id) where outputs_expire_at is not null;
    -- Separate from the row that every poll reads: media are megabytes.
    create table task_inputs (
      task_id text not null primary key,
      inputs text not null
    );
    create table task_keys (
      token_id text not null,
      key text not null,
      body_hash text not null,
      task_id text not null,
      expires_at bigint not null,
      constraint task_keys_key primary key (token_id, key)
    );
    create index task_keys_by_end on task_keys (expires_at);
    create table callbacks (
      callback_id text not null primary key,
      task_id text not null unique,
      token_id text not null,
      url text not null,
      attempts integer not null,
      due_ms bigint,
      delivered_at bigint,
      last_status integer
    );
    create index callbacks_due on callbacks (due_ms, callback_id) where due_ms is not null;
    create table secrets (
      name text not null primary key,
      value text not null
    )`,
  // Stored responses, which clients may retrieve and continue.
  '0003-responses': `
    create table responses (
      response_id text not null primary key,
      token_id text not null,
      previous_id text,
      created_at bigint not null,
      expires_at bigint not null,
      input text not null,
      response text not null
    );
    create index responses_by_end on responses (expires_at, response_id)`,
  // Each API lists the tasks of its own families only: the index returns them in order without reading other tasks.
  '0004-task-families': `
    create index tasks_of_family on tasks (token_id, family, submit_time, task_id)`,
  // Background responses: the runs that have not ended, and the events that were streamed so far.
  '0005-response-runs': `
    create table response_runs (
      response_id text not null primary key,
      token_id text not null,
      request text not null,
      attempts integer not null,
      due_ms bigint not null,
      fence bigint not null
    );
    create index response_runs_by_due on response_runs (due_ms);
    create table response_events (
      response_id text not null,
      last_number integer not null,
      events text not null,
      constraint response_events_key primary key (response_id, last_number)
    )`,
  // Where an order was sent, so that one in doubt is not repeated elsewhere.
  '0006-order-destination': `
    alter table tasks add column sent_to text`,
  // Conversations of the Responses API, and their items in order.
  '0007-conversations': `
    create table conversations (
      conversation_id text not null primary key,
      token_id text not null,
      created_at bigint not null,
      expires_at bigint not null,
      metadata text not null,
      revision bigint not null,
      locked_by text,
      locked_until_ms bigint not null
    );
    create index conversations_by_end on conversations (expires_at, conversation_id);
    create table conversation_items (
      conversation_id text not null,
      position bigint not null,
      item_id text not null,
      item text not null,
      constraint conversation_items_key primary key (conversation_id, position)
    );
    create unique index conversation_items_by_id on conversation_items (conversation_id, item_id)`,
  // Finds the orders that were sent to a provider lately: one of them may be the order in doubt.
  '0008-sent-orders': `
    create index tasks_sent on tasks (provider, sent_at) where sent_at is not null`,
  // Indexes that hold the sizes of what each token has stored, so that they are summed without reading the rows.
  '0009-stored-amounts': `
    -- Null in rows of older versions, which are not counted and expire with their responses.
    alter table response_events add column token_id text;
    -- The expressions are those of "stored-amounts.ts": an index is used only if they are the same.
    create index responses_sizes on responses (token_id, (octet_length(input) + octet_length(response)));
    create index response_runs_sizes on response_runs (token_id, (octet_length(request)));
    create index response_events_sizes on response_events (token_id, (octet_length(events)));
    create index conversations_sizes on conversations (token_id, conversation_id, (octet_length(metadata)));
    create index conversation_items_sizes on conversation_items (conversation_id, (octet_length(item)));
    create index tasks_sizes on tasks (token_id, submit_time, (octet_length(request)));
    create index tasks_unfinished_of_token on tasks (token_id, task_id, status) where status not in ('SUCCESS', 'FAILURE')`,
  // Answers of the response cache.
  '0010-cached-answers': `
    create table cached_answers (
      cache_key text not null primary key,
      created_ms bigint not null,
      expires_ms bigint not null,
      bytes bigint not null,
      answer text not null
    );
    create index cached_answers_by_end on cached_answers (expires_ms);
    -- Holds all that the bounds are checked with, so that the answers are not read for it.
    create index cached_answers_by_age on cached_answers (created_ms, cache_key, bytes)`,
  // Projects, and what tokens share with them: labels, limits, budgets and allowed addresses.
  '0011-accounts': `
    create table projects (
      project_id text not null primary key,
      name text not null,
      labels text not null,
      models text not null,
      families text,
      rate_limits text not null,
      budgets text not null,
      end_users text not null,
      allowed_addresses text,
      expires_at bigint,
      disabled integer not null,
      created_at bigint not null,
      deleted_at bigint,
      added_revision bigint not null
    );
    -- The name of a deleted project may be used again.
    create unique index projects_by_name on projects (name) where deleted_at is null;
    alter table tokens add column labels text default '{}' not null;
    alter table tokens add column rate_limits text default '{}' not null;
    alter table tokens add column budgets text default '[]' not null;
    alter table tokens add column end_users text default '{}' not null;
    alter table tokens add column project_id text;
    alter table tokens add column allowed_addresses text;
    alter table tokens add column previous_hash text;
    alter table tokens add column previous_expires_at bigint;
    create unique index tokens_by_previous_hash on tokens (previous_hash);
    create index tokens_of_project on tokens (project_id)`,
}
