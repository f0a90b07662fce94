/** `gatehouse task`: lists, shows, cancels and resumes tasks, whether or not a gateway is running. */
import { nearest } from '../config/nearest.ts'
import { systemClock, unixSeconds } from '../kit/clock.ts'
import type { AdminTaskDetail } from '../routes/admin/task-view.ts'
import type { AuditDraft, AuditOrigin } from '../spec/audit.ts'
import { isEndedStatus, readTaskStatuses, TASK_STATUSES, type Task, type TaskStatus } from '../spec/task.ts'
import type { Store, TaskFilter } from '../store/store.ts'
import { endOf, MAX_DEADLINE_SECONDS, resumeTask } from '../tasks/resume-task.ts'
import { type Action, type RemoteWork, runAction, STORE_OPTIONS_HELP, type Work } from './accounts.ts'
import { API_OPTIONS_HELP, pathWith } from './admin-api.ts'
import { type Arguments, UsageError } from './arguments.ts'
import { type ListedTask, type ShownTask, taskTable, taskText } from './task-text.ts'
import { json, type Terminal } from './terminal.ts'

const HELP = `Usage: gatehouse task <list | show | cancel | resume | retry-delivery> [options]

Works on a running gateway (--url), or on its store: a running gateway applies the change.

Commands:
  list                   show tasks, newest first
      --status <states>      only these, separated by commas: ${TASK_STATUSES.slice(0, 4).join(', ')},
                             SUCCESS, FAILURE, or unfinished for all that have not ended
      --token <token>        only tasks of this token: its id or its name
      --limit <number>       at most this many, 1 to 1000 (default: 50)
      --after <place>        continue where the last page ended
  show <task_id>         show all data of a task except its input media; of a running gateway, without its request
  cancel <task_id>       cancel a task, at its provider too where that is possible
  resume <task_id>       run the next step of an unfinished task now. For a task that failed after its provider
                         finished, retry copying its files. For a task that timed out or was canceled, poll the
                         provider for a day (the client's result does not change). An order is never sent again.
      --deadline <duration>  time limit from now on: 30m, 2h, 1d (the maximum, and the default for files)

  retry-delivery <task_id>
                         deliver the webhook of an ended task again, under the id that it had

Options:
${API_OPTIONS_HELP}
${STORE_OPTIONS_HELP}

Examples:
  gatehouse task list --status unfinished
  gatehouse task list --status FAILURE --token laptop --json
  gatehouse task resume task_0123456789abcdefghijABCDEFGHIJ01 --deadline 2h
`

const WHICH = 'a task: its task_id, as gatehouse task list shows it'

const ACTIONS: Record<string, Action> = {
  list: {
    flags: { status: 'text', token: 'text', limit: 'text', after: 'text' },
    positionals: [],
    run: list,
    remotely: listRemotely,
  },
  show: { flags: {}, positionals: [WHICH], run: show, remotely: showRemotely },
  cancel: { flags: {}, positionals: [WHICH], run: cancel, remotely: cancelRemotely },
  resume: { flags: { deadline: 'text' }, positionals: [WHICH], run: resume, remotely: resumeRemotely },
  'retry-delivery': { flags: {}, positionals: [WHICH], run: retryDelivery, remotely: retryDeliveryRemotely },
}

export const run = (args: string[], terminal: Terminal): Promise<number> =>
  runAction({ command: 'task', help: HELP, actions: ACTIONS }, args, terminal)

type Shown = Pick<Work, 'given' | 'terminal'>

const DEFAULT_LIMIT = 50
const MAX_LISTED = 1_000

async function list({ given, store, tokens, terminal }: Work): Promise<number> {
  const [status, which, after] = [given.text('status'), given.text('token'), given.text('after')]
  const limit = readLimit(given.text('limit'))
  if (after !== undefined) await find(store, after)
  const filter: TaskFilter = {
    limit: limit + 1,
    ...(status === undefined ? {} : { statuses: readStatuses(status) }),
    ...(which === undefined ? {} : { token_id: (await tokens.choose(which)).token_id }),
    ...(after === undefined ? {} : { after }),
  }
  const found = await store.tasks.list(filter)
  const tasks = found.slice(0, limit).map(brief)
  const next = found.length > limit ? tasks.at(-1)?.task_id : undefined
  return showList(tasks, { given, terminal, next, named: await tokens.list() })
}

/** Without fields that may be long. */
const brief = ({ request: _, operation: __, made: ___, ...rest }: Task) => rest

async function listRemotely({ given, api, tokens, terminal }: RemoteWork): Promise<number> {
  const [status, which, after] = [given.text('status'), given.text('token'), given.text('after')]
  const limit = readLimit(given.text('limit'))
  const path = pathWith('/tasks', {
    status: status === undefined ? undefined : readStatuses(status).join(','),
    token_id: which === undefined ? undefined : (await tokens.choose(which)).token_id,
  })
  const { rows, next } = await api.some(path, { limit, after })
  return showList(rows as ListedTask[], { given, terminal, next, named: await tokens.list() })
}

type Page = Shown & { next: string | undefined; named: readonly { token_id: string; name: string }[] }

function showList(tasks: ListedTask[], { given, terminal, next, named }: Page): number {
  if (given.has('json')) {
    terminal.out(json({ tasks, has_more: next !== undefined, next_cursor: next ?? '' }))
  } else if (tasks.length === 0) {
    const isFiltered = given.text('status') !== undefined || given.text('token') !== undefined
    terminal.out(isFiltered ? 'No task matches.\n' : 'There are no tasks.\n')
  } else {
    terminal.out(taskTable(tasks, { names: new Map(named.map(({ token_id, name }) => [token_id, name])), terminal }))
    if (next !== undefined) terminal.err(`There are more tasks; the next page: --after ${next}\n`)
  }
  return 0
}

async function show({ given, store, terminal }: Work): Promise<number> {
  const task = await find(store, given.positionals[0])
  const [callback, token] = await Promise.all([store.webhooks.ofTask(task.task_id), store.tokens.find(task.token_id)])
  if (given.has('json')) terminal.out(json({ task, callback: callback ?? null }))
  else terminal.out(taskText({ task, callback, token_name: token?.name, now_ms: systemClock.now() }))
  return 0
}

async function showRemotely({ given, api, tokens, terminal }: RemoteWork): Promise<number> {
  const { webhook, ...task } = (await api.call(pathOf(given))).body as AdminTaskDetail
  if (given.has('json')) {
    terminal.out(json({ task, callback: webhook }))
    return 0
  }
  const token = (await tokens.list()).find(({ token_id }) => token_id === task.token_id)
  const callback = webhook ? { ...webhook, last_status: webhook.last_status ?? 0 } : undefined
  terminal.out(taskText({ task: shownTask(task), callback, token_name: token?.name, now_ms: systemClock.now() }))
  return 0
}

const shownTask = (task: Omit<AdminTaskDetail, 'webhook'>): ShownTask => ({
  ...task,
  family: task.family as Task['family'],
  fail_code: task.fail_code as Task['fail_code'],
  due_ms: task.next_step_ms,
  leased_by: task.worker,
  cancel_asked_at: task.cancel_requested_at,
  made: { length: task.files_to_copy },
  outputs: task.outputs.map(({ file, content_type, bytes }) => ({
    key: file,
    content_type,
    ...(bytes !== null && { bytes }),
  })),
})

const pathOf = (given: Arguments): string => `/tasks/${encodeURIComponent(given.positionals[0] ?? '')}`

async function cancel({ given, store, terminal, by }: Work): Promise<number> {
  const now = { now: unixSeconds(systemClock), now_ms: systemClock.now() }
  const before = await find(store, given.positionals[0])
  const { task_id } = before
  const task = await store.tasks.requestCancel(task_id, now, ({ status }) => ({
    ...auditOf(before, by, 'task.cancel'),
    before: { status: before.status },
    after: { status, is_cancel_requested: true },
  }))
  if (!task) throw new Error(`${endOf(await find(store, task_id))}: there is nothing to cancel.`)
  return showCanceled(task, { given, terminal })
}

async function cancelRemotely({ given, api, terminal }: RemoteWork): Promise<number> {
  const { body } = await api.call(`${pathOf(given)}/cancel`, { method: 'POST', body: {} })
  return showCanceled(body as { task_id: string }, { given, terminal })
}

function showCanceled(task: { task_id: string }, { given, terminal }: Shown): number {
  if (given.has('json')) terminal.out(json({ task }))
  else terminal.out(`Task ${task.task_id} will be canceled at the next step of a running gateway.\n`)
  return 0
}

const auditOf = ({ task_id, project_id, status, deadline_at }: Task, by: AuditOrigin, action: string): AuditDraft => ({
  ...by,
  at_ms: systemClock.now(),
  action,
  object_type: 'task',
  object_id: task_id,
  project_id,
  before: { status, deadline_at },
})

async function resume({ given, store, terminal, by }: Work): Promise<number> {
  const now = unixSeconds(systemClock)
  const seconds = readDeadline(given)
  const task = await find(store, given.positionals[0])
  const { outcome, deadline_at } = await resumeTask(store.tasks, task, {
    requested: seconds === undefined ? undefined : now + seconds,
    now,
    now_ms: systemClock.now(),
    deadline_name: '--deadline 2h',
    audit: (after) => ({ ...auditOf(task, by, 'task.resume'), after }),
  })
  if (given.has('json')) terminal.out(json({ task: await find(store, task.task_id) }))
  else terminal.out(resumedText(task, outcome, deadline_at))
  return 0
}

async function resumeRemotely({ given, api, terminal }: RemoteWork): Promise<number> {
  const deadline_seconds = readDeadline(given)
  const before = (await api.call(pathOf(given))).body as AdminTaskDetail
  const body = deadline_seconds === undefined ? {} : { deadline_seconds }
  const task = (await api.call(`${pathOf(given)}/resume`, { method: 'POST', body })).body as AdminTaskDetail
  if (given.has('json')) terminal.out(json({ task }))
  else {
    const isOver = isEndedStatus(before.status)
    const outcome = !isOver ? 'due' : isEndedStatus(task.status) ? 'watched' : 'copied'
    terminal.out(resumedText(before, outcome, task.deadline_at))
  }
  return 0
}

async function retryDelivery({ given, store, terminal, by }: Work): Promise<number> {
  const task = await find(store, given.positionals[0])
  const { task_id } = task
  if (!(await store.webhooks.retry(task_id, systemClock.now(), auditOf(task, by, 'task.retry_delivery')))) {
    throw new Error(`The task ${task_id} has no webhook to deliver: it was submitted without one, or has not ended.`)
  }
  const webhook = await store.webhooks.ofTask(task_id)
  return showDelivery({ task_id, webhook_id: webhook?.callback_id ?? '' }, { given, terminal })
}

async function retryDeliveryRemotely({ given, api, terminal }: RemoteWork): Promise<number> {
  const { body } = await api.call(`${pathOf(given)}/retry-delivery`, { method: 'POST', body: {} })
  const { task_id, webhook_id } = body as { task_id: string; webhook_id: string }
  return showDelivery({ task_id, webhook_id }, { given, terminal })
}

function showDelivery(delivery: { task_id: string; webhook_id: string }, { given, terminal }: Shown): number {
  const { task_id, webhook_id } = delivery
  if (given.has('json')) terminal.out(json(delivery))
  else terminal.out(`A running gateway delivers the webhook of task ${task_id} again, as ${webhook_id}.\n`)
  return 0
}

function resumedText(
  { task_id, provider, status, fail_code }: Pick<AdminTaskDetail, 'task_id' | 'provider' | 'status' | 'fail_code'>,
  outcome: Awaited<ReturnType<typeof resumeTask>>['outcome'],
  deadline_at: number,
): string {
  if (outcome === 'copied')
    return `Task ${task_id} is IN_PROGRESS again: its files are copied from ${provider} until ${timeOf(deadline_at)}.\n`
  if (outcome === 'due') return `The next step of task ${task_id} is due now; its deadline is ${timeOf(deadline_at)}.\n`
  const again = fail_code === 'timeout' ? ' Resume the task once more when the provider has finished it.' : ''
  return `Task ${task_id} stays ${status} (${fail_code}); its state at ${provider} is polled again.${again}\n`
}

const timeOf = (at: number): string => `${new Date(at * 1000).toISOString().slice(0, 19).replace('T', ' ')} UTC`

async function find(store: Store, task_id = ''): Promise<Task> {
  const task = await store.tasks.find(task_id)
  if (!task) throw new Error(`There is no task ${JSON.stringify(task_id)} in this store. See: gatehouse task list`)
  return task
}

function readStatuses(text: string): TaskStatus[] {
  const { statuses, unknown } = readTaskStatuses(text)
  if (unknown === undefined) return statuses
  const known = [...TASK_STATUSES, 'unfinished']
  const suggestion = nearest(unknown.toUpperCase(), known)
  const hint = suggestion === undefined ? '' : `; did you mean "${suggestion}"?`
  const found = JSON.stringify(unknown)
  throw new UsageError('task list', `--status: found ${found}, must be one of ${known.join(', ')}${hint}`)
}

function readLimit(text: string | undefined): number {
  if (text === undefined) return DEFAULT_LIMIT
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= MAX_LISTED) return limit
  throw new UsageError('task list', `--limit: found ${JSON.stringify(text)}, must be a number from 1 to ${MAX_LISTED}`)
}

const UNIT_SECONDS: Record<string, number> = { s: 1, m: 60, h: 3_600, d: 86_400 }

/** In seconds; undefined: none is given. */
function readDeadline(given: Arguments): number | undefined {
  const text = given.text('deadline')
  if (text === undefined) return undefined
  const [, count, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  const seconds = Number(count) * (UNIT_SECONDS[unit] ?? 0)
  if (seconds >= 1 && seconds <= MAX_DEADLINE_SECONDS) return seconds
  throw new UsageError('task resume', `--deadline: found ${JSON.stringify(text)}, must be like 30m or 2h, at most 1d`)
}
