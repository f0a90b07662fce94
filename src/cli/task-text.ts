/** Text output of tasks: a table of many, all data of one. */
import { withoutQuery } from '../admin/routes/task-view.ts'
import { isEndedStatus, type Task } from '../spec/task.ts'
import type { WebhookStore } from '../store/store.ts'
import { headedTable, table, timeText } from './table.ts'
import type { Terminal } from './terminal.ts'

type CallbackState =
  | Pick<NonNullable<Awaited<ReturnType<WebhookStore['ofTask']>>>, 'url' | 'attempts' | 'delivered_at' | 'last_status'>
  | undefined

/** A task; over the admin API without its request and what its provider answered. */
export type ShownTask = ListedTask &
  Pick<Task, 'family' | 'provider_key' | 'fail_reason' | 'upstream_model' | 'tried' | 'sent_at' | 'start_time'> &
  Pick<Task, 'deadline_at' | 'cancel_asked_at' | 'failures' | 'due_ms' | 'leased_by' | 'outputs' | 'late_outcome'> &
  Pick<Task, 'outputs_expire_at'> &
  Partial<Pick<Task, 'operation' | 'request' | 'base_url'>> & { made: { length: number } | null }

export type ListedTask = Pick<
  Task,
  'task_id' | 'status' | 'progress' | 'model' | 'provider' | 'token_id' | 'submit_time' | 'finish_time' | 'fail_code'
>

const isEnded = ({ status }: Pick<Task, 'status'>): boolean => isEndedStatus(status)

/** How long webhooks are retried after the end of the task; documented in the manual. */
const CALLBACK_SECONDS = 86_400

export function taskTable(
  tasks: ListedTask[],
  { names, terminal }: { names: Map<string, string>; terminal: Terminal },
) {
  const head = ['TASK', 'STATUS', 'PROGRESS', 'MODEL', 'PROVIDER', 'TOKEN', 'ACCEPTED', 'ENDED', 'FAIL CODE']
  const body = tasks.map((task) => [
    task.task_id,
    task.status,
    `${task.progress}%`,
    task.model,
    task.provider || '-',
    names.get(task.token_id) ?? task.token_id,
    timeText(task.submit_time),
    timeText(task.finish_time || null),
    task.fail_code,
  ])
  return headedTable(head, body, terminal)
}

type Shown = { task: ShownTask; callback: CallbackState; token_name: string | undefined; now_ms: number }

export function taskText(shown: Shown): string {
  const { task, callback, token_name, now_ms } = shown
  const now = Math.floor(now_ms / 1000)
  const time = (at: number | null) =>
    at ? `${new Date(at * 1000).toISOString().slice(0, 19).replace('T', ' ')} UTC` : '-'
  const { tried, made, outputs, late_outcome, cancel_asked_at, outputs_expire_at } = task
  const key = task.provider_key === null ? '' : `, with the key ${task.provider_key}`
  const rows: [string, string | undefined][] = [
    ['task', task.task_id],
    ['status', `${task.status}, ${task.progress}%`],
    ['fail code', task.fail_code ? `${task.fail_code}: ${task.fail_reason}` : undefined],
    ['model', `${task.model} (${task.family})`],
    ['token', token_name === undefined ? task.token_id : `${task.token_id} (${token_name})`],
    ['accepted', time(task.submit_time)],
    ['provider', task.provider ? `${task.provider}, as ${task.upstream_model}${key}` : 'not chosen yet'],
    ['refused by', tried.length > 0 ? tried.join(', ') : undefined],
    ['sent', task.sent_at === null ? 'not yet' : time(task.sent_at)],
    ['order', task.operation == null ? undefined : JSON.stringify(task.operation)],
    ['started', time(task.start_time)],
    ['ended', time(task.finish_time)],
    ['deadline', `${time(task.deadline_at)}${!isEnded(task) && task.deadline_at <= now ? ', passed' : ''}`],
    ['cancel', cancel_asked_at === null ? undefined : `requested ${time(cancel_asked_at)}`],
    ['failures', task.failures === 0 ? undefined : `${task.failures} failed steps in a row`],
    ['next step', nextStep(task, now_ms)],
    ['to copy', made === null || made.length === 0 ? undefined : `${made.length} file(s)`],
    ['outputs', outputs.length === 0 ? undefined : outputs.map(outputText).join(', ')],
    ['kept until', outputs_expire_at === null ? undefined : time(outputs_expire_at)],
    ['late end', late_outcome ? `${late_outcome.status}, ${time(late_outcome.at)}: ${late_outcome.detail}` : undefined],
    ['callback', callback && callbackText(callback, { task, now })],
    ['address', task.base_url],
    ['request', task.request && JSON.stringify(task.request)],
  ]
  return table(rows.flatMap(([name, text]) => (text === undefined ? [] : [[name, text.replaceAll(/\s+/g, ' ')]])))
}

function nextStep({ due_ms, leased_by }: Pick<Task, 'due_ms' | 'leased_by'>, now_ms: number): string {
  if (due_ms === null) return 'none'
  const seconds = Math.ceil((due_ms - now_ms) / 1000)
  if (leased_by !== '')
    return `running at ${leased_by}; another process takes over ${seconds > 0 ? `in ${seconds} s` : 'now'}`
  return seconds > 0 ? `in ${seconds} s` : `due since ${-seconds} s`
}

const outputText = ({ key, url, content_type, bytes }: Task['outputs'][number]): string =>
  `${key ?? withoutQuery(url ?? '')} (${content_type}${bytes === undefined ? '' : `, ${bytes} bytes`})`

function callbackText(callback: NonNullable<CallbackState>, { task, now }: { task: ShownTask; now: number }): string {
  const { url, attempts, delivered_at, last_status } = callback
  const last = last_status === 0 ? 'no response' : `status ${last_status}`
  const tries = attempts === 1 ? '1 attempt' : `${attempts} attempts`
  const state = !isEnded(task)
    ? 'waits for the end of the task'
    : delivered_at !== null
      ? `delivered ${timeText(delivered_at)} UTC, after ${tries} (${last})`
      : last_status === 410
        ? 'stopped by the receiver (status 410)'
        : attempts === 0
          ? 'about to be sent'
          : `${now > task.finish_time + CALLBACK_SECONDS ? 'given up' : 'not delivered yet'}, after ${tries} (last: ${last})`
  return `${withoutQuery(url)} ${state}`
}
