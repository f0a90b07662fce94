/** Says in words what a task is, in which state it is, and what can be done with it. */
import type { AdminTask, AdminTaskDetail } from '../../api/types.ts'

type Tone = 'ok' | 'warn' | 'danger' | 'info' | 'plain'
export type TaskStatus = AdminTask['status']

const STATES: Record<TaskStatus, { label: string; tone: Tone }> = {
  NOT_START: { label: 'Not started', tone: 'plain' },
  SUBMITTED: { label: 'Submitted', tone: 'info' },
  QUEUED: { label: 'Queued', tone: 'info' },
  IN_PROGRESS: { label: 'In progress', tone: 'info' },
  SUCCESS: { label: 'Done', tone: 'ok' },
  FAILURE: { label: 'Failed', tone: 'danger' },
}

export const stateOf = (status: TaskStatus) => STATES[status]
export const isEnded = (status: TaskStatus): boolean => status === 'SUCCESS' || status === 'FAILURE'

const FAMILIES: Record<string, string> = {
  'video-generation': 'Video',
  'chatcompat-video': 'Video',
  '3d-generation': '3D model',
  'image-generation': 'Image',
}
export const kindOf = (family: string): string => FAMILIES[family] ?? family

/** The states that a task passes, each with the time at which it was reached, where that is known. */
export type Step = { label: string; at: number | null; state: 'done' | 'now' | 'ahead' | 'failed' }

export function stepsOf(task: AdminTask): Step[] {
  const { status, submit_time, sent_at, start_time, finish_time } = task
  const end: Step =
    status === 'FAILURE'
      ? { label: 'Failed', at: finish_time, state: 'failed' }
      : { label: 'Done', at: finish_time || null, state: status === 'SUCCESS' ? 'done' : 'ahead' }
  const middle: [string, number | null][] = [
    ['Accepted', submit_time],
    ['Sent to the provider', sent_at],
    ['Generating', start_time || null],
  ]
  const steps = middle.map(([label, at]): Step => ({ label, at, state: at === null ? 'ahead' : 'done' }))
  if (isEnded(status)) {
    // What did not happen before a failure is left out; what was not noted before a success is not.
    const passed = status === 'FAILURE' ? steps.filter(({ at }) => at !== null) : steps
    return [...passed.map((step): Step => ({ ...step, state: 'done' })), end]
  }
  const last = steps.findLastIndex(({ at }) => at !== null)
  return [...steps.map((step, index): Step => (index === last ? { ...step, state: 'now' } : step)), end]
}

/** What can be done with a task now. A failed task is continued where its provider may still have its files. */
export const actsOf = ({ status, fail_code, cancel_requested_at, webhook, files_to_copy }: AdminTaskDetail) => ({
  canCancel: !isEnded(status) && cancel_requested_at === null,
  canResume: !isEnded(status) || (status === 'FAILURE' && (RESUMABLE.has(fail_code) || files_to_copy > 0)),
  canDeliver: isEnded(status) && webhook !== null,
})
const RESUMABLE = new Set(['timeout', 'canceled', 'output_expired', 'output_invalid'])

/** What became of a webhook. */
export function deliveryOf(webhook: NonNullable<AdminTaskDetail['webhook']>): { text: string; tone: Tone } {
  const { attempts, delivered_at, last_status } = webhook
  if (delivered_at !== null) return { text: 'Delivered', tone: 'ok' }
  if (attempts === 0) return { text: 'Not sent yet', tone: 'plain' }
  const answer = last_status === 0 || last_status === null ? 'no response' : `status ${last_status}`
  return { text: `Not delivered: ${answer}`, tone: 'danger' }
}
