/** Describes a change of a token or a project for the audit log. */
import type { AuditDraft, AuditOrigin } from '../spec/audit.ts'

type Event = { action: `${'token' | 'project'}.${string}`; by: AuditOrigin; now_ms: number }

export const accountEvent = ({ action, by, now_ms }: Event, id: string, project_id: string | null): AuditDraft => ({
  ...by,
  at_ms: now_ms,
  action,
  object_type: action.split('.')[0] ?? '',
  object_id: id,
  project_id,
})
