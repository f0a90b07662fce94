/** Alerts the operator when a task ends that may have been paid for without a result. */
import type { Alerts } from '../../observe/alerts/alerts.ts'
import type { Task } from '../../spec/task.ts'
import type { Alert } from '../../store/admin/alert-store.ts'
import type { Ending } from './lifecycle.ts'

export function unknownOutcomeAlerts(
  alerts: Pick<Alerts, 'make' | 'note'>,
  task: Task,
  ending: Ending,
): readonly Alert[] {
  if (ending.status !== 'FAILURE' || ending.fail_code !== 'submit_outcome_unknown') return []
  const { task_id, token_id, project_id, family, model, provider, upstream_model, provider_key } = task
  const sent_at = task.sent_at === null ? undefined : new Date(task.sent_at * 1000).toISOString()
  const event = {
    type: 'task.outcome_unknown' as const,
    message: `It is not known whether ${provider} has accepted an order of ${model}; it may have been charged.`,
    data: {
      task_id,
      token_id,
      ...(project_id !== null && { project_id }),
      family,
      model,
      provider,
      upstream_model,
      ...(provider_key !== null && { key: provider_key }),
      sent_at,
      reason: ending.fail_reason,
    },
  }
  alerts.note({ ...event, key: `${event.type} ${task_id}`, again_seconds: 86_400 })
  return alerts.make(event)
}
