/** Takes back what migrations have created: a database is then as an earlier version left it. */
import { MIGRATIONS } from '../../src/store/migrate.ts'

/** What each migration created, so that it can be dropped. */
export const UNDO: Record<string, string> = {
  '0002-tasks':
    'drop table tasks; drop table task_inputs; drop table task_keys; drop table callbacks; drop table secrets;',
  '0003-responses': 'drop table responses;',
  '0004-task-families': 'drop index tasks_of_family;',
  '0005-response-runs': 'drop table response_runs; drop table response_events;',
  '0006-order-destination': 'alter table tasks drop column sent_to;',
  '0007-conversations': 'drop table conversations; drop table conversation_items;',
  '0008-sent-orders': 'drop index tasks_sent;',
  '0009-stored-amounts': `
    drop index responses_sizes; drop index response_runs_sizes; drop index response_events_sizes;
    drop index conversations_sizes; drop index conversation_items_sizes; drop index tasks_sizes;
    drop index tasks_unfinished_of_token; alter table response_events drop column token_id;`,
  '0010-cached-answers': 'drop table cached_answers;',
  '0011-accounts': `drop table projects; drop index tokens_of_project; drop index tokens_by_previous_hash;
    ${['project_id', 'labels', 'rate_limits', 'budgets', 'end_users', 'allowed_addresses', 'previous_hash', 'previous_expires_at'].map((column) => `alter table tokens drop column ${column};`).join(' ')}`,
  '0016-rate-limit-leases': 'drop table rate_limit_leases;',
  '0017-alert-channels': 'alter table alerts drop column channel; drop table alert_marks;',
  '0021-audit': `drop table audit; drop table admin_sessions; drop table admin_links;
    delete from revisions where noun = 'audit';`,
  '0019-administration': `drop table admin_tokens; drop table admin_keys; drop index projects_by_revision;
    drop index tokens_by_revision;`,
  '0012-ledger': `drop table ledger_entries; drop table ledger_sums; drop table ledger_end_users;
    drop table ledger_end_user_counts; drop table open_calls; drop table ledger_processes; drop table ledger_starts;
    alter table tasks drop column project_id; alter table tasks drop column end_user;
    create table usage (token_id text not null, model text not null, hour bigint not null, requests bigint not null,
      errors bigint not null, input_tokens bigint not null, output_tokens bigint not null, estimated bigint not null,
      primary key (token_id, model, hour));`,
  '0013-run-end-users': 'alter table response_runs drop column end_user;',
  '0014-order-routing': 'alter table tasks drop column provider_key; alter table tasks drop column call_options;',
  '0020-task-traces': 'alter table tasks drop column trace;',
  '0015-budgets': `drop table budget_accounts; drop table budget_leases; drop table budget_holds; drop table alerts;
    drop index ledger_credits; delete from revisions where noun = 'budgets';`,
  '0027-request-classes': 'drop index request_log_by_class;',
  '0028-contents-end-users':
    'drop index responses_by_user; drop index conversation_items_by_user; alter table responses drop column end_user; alter table conversation_items drop column end_user;',
  '0031-request-sums':
    "drop table request_minutes; drop table request_sums; delete from revisions where noun in ('request_hours', 'request_days', 'request_sums');",
  '0039-files': 'drop table files;',
  '0040-batches': 'drop table batches; drop table batch_lines; drop table batch_parts;',
  '0046-oldest-reason': 'alter table schema_compatibility drop column reason;',
  '0045-mcp-connection-use': 'alter table mcp_connections drop column last_used_at;',
  '0044-mcp-connections': 'drop table mcp_connections;',
  '0043-file-problems': 'alter table files drop column problems;',
  '0042-account-guards': 'alter table tokens drop column guards; alter table projects drop column guards;',
  '0041-mcp-tools': 'drop table mcp_tools;',
  '0038-live-followers':
    'drop table live_followers; alter table live_events drop column process_id; alter table live_events drop column number; alter table live_events drop column late;',
  '0037-task-steps': 'drop table task_steps;',
  '0036-config-versions': 'drop table config_versions;',
  '0035-live-events': "drop table live_events; delete from revisions where noun in ('live_events', 'live_followed');",
  '0034-webhook-attempts': `drop table webhook_attempts; drop index callbacks_by_end; drop index callbacks_by_project;
    drop index callbacks_given_up; drop index callbacks_pending; alter table callbacks drop column project_id;
    alter table callbacks drop column ended_ms;`,
  '0033-alert-history': 'drop table alert_history;',
  '0032-session-memberships': `alter table admin_sessions drop column memberships;
    alter table admin_sessions drop column token_hash; alter table admin_links drop column person;`,
  '0030-fewer-request-indexes': 'create index request_log_by_target on request_log (target);',
  '0029-size-indexes': '', // it leaves the indexes of 0009, by the same names
  '0022-request-log':
    "drop table request_log; drop table request_tags; drop table request_feedback; delete from revisions where noun = 'request_log';",
  '0023-request-contents': 'drop table request_contents;',
  '0026-log-contents': 'alter table projects drop column log_contents;',
  '0025-declared-admin-tokens': 'alter table admin_tokens drop column declared;',
  '0024-declared-accounts': 'alter table projects drop column declared; alter table tokens drop column declared;',
  '0018-routing-overrides': "drop table routing_overrides; delete from revisions where noun = 'routing_overrides';",
}

export const [LAST = ''] = Object.keys(MIGRATIONS).slice(-1)
/** Statements that take back the newest migration. */
export const UNDO_LAST = `${UNDO[LAST]} delete from kysely_migration where name = '${LAST}'`
