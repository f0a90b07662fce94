/** `gatehouse task`: lists, shows, cancels and resumes tasks, whether or not a gateway is running. */
import { cursorOf } from '../../admin/routes/list.ts'
import type { AdminTaskDetail } from '../../admin/routes/task-view.ts'
import { MAX_DEADLINE_SECONDS, type resumeTask } from '../../families/tasks/resume-task.ts'
import { systemClock } from '../../kit/clock.ts'
import { meantHint } from '../../kit/nearest.ts'
import { isEndedStatus, readTaskStatuses, TASK_STATUSES, type Task, type TaskStatus } from '../../spec/task.ts'
import { commandOf, OPTIONS_HELP, type Work } from '../accounts.ts'
import { GatewayRefusal, pathWith, readLimit } from '../admin-api.ts'
import { type Arguments, UsageError } from '../arguments.ts'
import { type ListedTask, type ShownTask, taskTable, taskText } from '../task-text.ts'
import { json, timeOf } from '../terminal.ts'

const HELP = `Usage: gatehouse task <list | show | cancel | resume | retry-delivery> [options]

Works on a running gateway (--url), or on its store: a running gateway applies the change.

Commands:
  list                   show tasks, newest first
      --status <states>      only these, separated by commas: ${TASK_STATUSES.slice(0, 4).join(', ')},
                             SUCCESS, FAILURE, or unfinished for all that have not ended
      --token <token>        only tasks of this token: its id or its name
      --limit <number>       at most this many, 1 to 1000 (default: 50)
      --after <place>        continue where the last page ended
  show <task_id>         show all data of a task except its input media; with --url without its request
  cancel <task_id>       cancel a task, at its provider too where that is possible
  resume <task_id>       continue a stuck or failed task: run its next step now, or copy its files again; of one that
                         timed out or was canceled, poll the provider for a day. An order is never sent again.
      --deadline <duration>  time limit from now on: 30m, 2h, 1d (the maximum, and the default for files)

  retry-delivery <task_id>
                         deliver the webhook of an ended task again, under the id that it had

Options:
${OPTIONS_HELP}

Examples:
  gatehouse task list --status unfinished
  gatehouse task list --status FAILURE --token laptop --json
  gatehouse task resume task_0123456789abcdefghijABCDEFGHIJ01 --deadline 2h
`

const WHICH = 'a task: its task_id, as gatehouse task list shows it'

export const run = commandOf('task', HELP, {
  list: { flags: { status: 'text', token: 'text', limit: 'text', after: 'text' }, run: list },
  show: { positionals: [WHICH], run: show },
  cancel: { positionals: [WHICH], run: cancel },
  resume: { flags: { deadline: 'text' }, positionals: [WHICH], run: resume },
  'retry-delivery': { positionals: [WHICH], run: retryDelivery },
})

async function list(work: Work): Promise<number> {
  const { given, api, tokens, terminal } = work
  const [status, which, after] = [given.text('status'), given.text('token'), given.text('after')]
  const limit = readLimit('task list', given.text('limit'))
  const path = pathWith('/tasks', {
    status: status === undefined ? undefined : readStatuses(status).join(','),
    token_id: which === undefined ? undefined : (await tokens.choose(which)).token_id,
  })
  if (after !== undefined) await callTask(work, after)
  const page = await api.some(path, { limit, after: after === undefined ? undefined : cursorOf([after]) })
  const tasks = page.rows as ListedTask[]
  const next = page.next === undefined ? undefined : tasks.at(-1)?.task_id
  if (given.has('json')) {
    terminal.out(json({ tasks, has_more: next !== undefined, next_cursor: next ?? '' }))
  } else if (tasks.length === 0) {
    terminal.out(status === undefined && which === undefined ? 'There are no tasks.\n' : 'No task matches.\n')
  } else {
    const names = new Map((await tokens.list()).map(({ token_id, name }) => [token_id, name]))
    terminal.out(taskTable(tasks, { names, terminal }))
    if (next !== undefined) terminal.err(`There are more tasks; the next page: --after ${next}\n`)
  }
  return 0
}

/** On the store, with its request and what its provider answered, which the admin API does not show. */
async function show(work: Work) {
  const { store, tokens } = work
  const { webhook, ...task } = (await callTask(work, idIn(work))) as AdminTaskDetail
  const stored = store && (await store.tasks.find(task.task_id))
  const callback = store ? ((await store.webhooks.ofTask(task.task_id)) ?? null) : webhook
  const text = async () => {
    const token_name = (await tokens.list()).find(({ token_id }) => token_id === task.token_id)?.name
    const state = callback ? { ...callback, last_status: callback.last_status ?? 0 } : undefined
    return taskText({ task: stored ?? shownTask(task), callback: state, token_name, now_ms: systemClock.now() })
  }
  return { data: { task: stored ?? task, callback }, text }
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

const idIn = ({ given: { positionals } }: Work): string => positionals[0] ?? ''

/** Reads the task, or does something to it. What the admin API says of members of a request is said of options here. */
async function callTask({ api, store }: Work, task_id: string, action?: { path: string; body?: object }) {
  const sent = action && { method: 'POST', body: action.body ?? {} }
  const { body } = await api
    .call(`/tasks/${encodeURIComponent(task_id)}${action?.path ?? ''}`, sent)
    .catch((error: Error) => {
      const place = store ? 'in this store' : 'at this gateway'
      if (error instanceof GatewayRefusal && error.status === 404)
        throw new Error(`There is no task ${JSON.stringify(task_id)} ${place}. See: gatehouse task list`)
      throw new Error(
        error.message.replace(/"deadline_seconds":( 7200)?/, (_, value) => `--deadline${value ? ' 2h' : ''}`),
      )
    })
  return body
}

async function cancel(work: Work) {
  const task = await callTask(work, idIn(work), { path: '/cancel' })
  return {
    data: { task },
    text: () => `Task ${task.task_id} will be canceled at the next step of a running gateway.\n`,
  }
}

async function resume(work: Work) {
  const deadline_seconds = readDeadline(work.given)
  const before = (await callTask(work, idIn(work))) as AdminTaskDetail
  const body = deadline_seconds === undefined ? {} : { deadline_seconds }
  const task = (await callTask(work, idIn(work), { path: '/resume', body })) as AdminTaskDetail
  const isOver = isEndedStatus(before.status)
  const outcome = !isOver ? 'due' : isEndedStatus(task.status) ? 'watched' : 'copied'
  return { data: { task }, text: () => resumedText(before, outcome, task.deadline_at) }
}

async function retryDelivery(work: Work) {
  const { task_id, webhook_id } = await callTask(work, idIn(work), { path: '/retry-delivery' })
  const text = () => `A running gateway delivers the webhook of task ${task_id} again, as ${webhook_id}.\n`
  return { data: { task_id, webhook_id }, text }
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

function readStatuses(text: string): TaskStatus[] {
  const { statuses, unknown } = readTaskStatuses(text)
  if (unknown === undefined) return statuses
  const known = [...TASK_STATUSES, 'unfinished']
  const [found, hint] = [JSON.stringify(unknown), meantHint(unknown.toUpperCase(), known)]
  throw new UsageError('task list', `--status: found ${found}, must be one of ${known.join(', ')}${hint}`)
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
