/** `gatehouse task`: lists, shows, cancels and resumes tasks, whether or not a gateway is running. */
import { chooseToken } from '../accounts/choose.ts'
import { nearest } from '../config/nearest.ts'
import { systemClock, unixSeconds } from '../kit/clock.ts'
import { TASK_STATUSES, type Task, type TaskStatus } from '../spec/task.ts'
import { openStore } from '../store/open-store.ts'
import type { Store, TaskFilter } from '../store/store.ts'
import { endOf, MAX_DEADLINE_SECONDS, resumeTask } from '../tasks/resume-task.ts'
import { type Arguments, type FlagTable, readArguments, UsageError, unknownCommand } from './arguments.ts'
import { storeToRead } from './store-location.ts'
import { taskTable, taskText, UNFINISHED } from './task-text.ts'
import { json, type Terminal } from './terminal.ts'

const HELP = `Usage: gatehouse task <list | show | cancel | resume> [options]

Works on the store, whether or not a gateway is running; a running one applies the change.

Commands:
  list                   show tasks, newest first
      --status <states>      only these, separated by commas: ${TASK_STATUSES.slice(0, 4).join(', ')},
                             SUCCESS, FAILURE, or unfinished for all that have not ended
      --token <token>        only tasks of this token: its id or its name
      --limit <number>       at most this many, 1 to 1000 (default: 50)
      --after <task_id>      continue after this task
  show <task_id>         show all data of a task except its input media
  cancel <task_id>       cancel a task, at its provider too where that is possible
  resume <task_id>       run the next step of an unfinished task now. For a task that failed after its provider
                         finished, retry copying its files. For a task that timed out or was canceled, poll the
                         provider for a day (the client's result does not change). An order is never sent again.
      --deadline <duration>  time limit from now on: 30m, 2h, 1d (the maximum, and the default for files)

Options:
  --data-dir <directory>  the data directory (default: GATEHOUSE_DATA_DIR, then data_dir of the configuration file,
                          then ./data); not used with GATEHOUSE_DATABASE_URL
  --config <file>         the configuration file (default: GATEHOUSE_CONFIG, then ./gatehouse.yaml)
  --json                  print the result as one line of JSON

Examples:
  gatehouse task list --status unfinished
  gatehouse task list --status FAILURE --token laptop --json
  gatehouse task resume task_0123456789abcdefghijABCDEFGHIJ01 --deadline 2h
`

type Work = { given: Arguments; store: Store; terminal: Terminal }
type Action = { flags: FlagTable; positionals: string[]; run(work: Work): Promise<number> }

const WHICH = 'a task: its task_id, as gatehouse task list shows it'

const ACTIONS: Record<string, Action> = {
  list: { flags: { status: 'text', token: 'text', limit: 'text', after: 'text' }, positionals: [], run: list },
  show: { flags: {}, positionals: [WHICH], run: show },
  cancel: { flags: {}, positionals: [WHICH], run: cancel },
  resume: { flags: { deadline: 'text' }, positionals: [WHICH], run: resume },
}

export async function run([name, ...args]: string[], terminal: Terminal): Promise<number> {
  if (name === '--help' || name === '-h') {
    terminal.out(HELP)
    return 0
  }
  const known = Object.keys(ACTIONS)
  if (name === undefined) throw new UsageError('task', `needs a command: ${known.join(', ')}`)
  const action = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined
  if (!action) throw new UsageError('task', unknownCommand(name, known))
  const { flags, positionals } = action
  const given = readArguments({
    command: `task ${name}`,
    args,
    flags: { ...flags, config: 'text', 'data-dir': 'text' },
    positionals,
  })
  if (given.has('help')) {
    terminal.out(HELP)
    return 0
  }
  const store = await openStore({ url: storeToRead(given, terminal) })
  try {
    return await action.run({ given, store, terminal })
  } finally {
    await store.close()
  }
}

const DEFAULT_LIMIT = 50
const MAX_LISTED = 1_000

async function list({ given, store, terminal }: Work): Promise<number> {
  const tokens = await store.tokens.list()
  const [status, which, after] = [given.text('status'), given.text('token'), given.text('after')]
  const limit = readLimit(given.text('limit'))
  if (after !== undefined) await find(store, after)
  const filter: TaskFilter = {
    limit: limit + 1,
    ...(status === undefined ? {} : { statuses: readStatuses(status) }),
    ...(which === undefined ? {} : { token_id: chooseToken(tokens, which).token_id }),
    ...(after === undefined ? {} : { after }),
  }
  const found = await store.tasks.list(filter)
  const tasks = found.slice(0, limit)
  const has_more = found.length > limit
  if (given.has('json')) {
    terminal.out(json({ tasks: tasks.map(brief), has_more, next_cursor: has_more ? tasks.at(-1)?.task_id : '' }))
  } else if (tasks.length === 0) {
    terminal.out(status === undefined && which === undefined ? 'There are no tasks.\n' : 'No task matches.\n')
  } else {
    terminal.out(taskTable(tasks, { names: new Map(tokens.map(({ token_id, name }) => [token_id, name])), terminal }))
    if (has_more) terminal.err(`There are more tasks; the next page: --after ${tasks.at(-1)?.task_id}\n`)
  }
  return 0
}

/** Without fields that may be long. */
const brief = ({ request: _, operation: __, made: ___, ...rest }: Task) => rest

async function show({ given, store, terminal }: Work): Promise<number> {
  const task = await find(store, given.positionals[0])
  const [callback, token] = await Promise.all([store.webhooks.ofTask(task.task_id), store.tokens.find(task.token_id)])
  if (given.has('json')) terminal.out(json({ task, callback: callback ?? null }))
  else terminal.out(taskText({ task, callback, token_name: token?.name, now_ms: systemClock.now() }))
  return 0
}

async function cancel({ given, store, terminal }: Work): Promise<number> {
  const now = { now: unixSeconds(systemClock), now_ms: systemClock.now() }
  const { task_id } = await find(store, given.positionals[0])
  const task = await store.tasks.requestCancel(task_id, now)
  if (!task) throw new Error(`${endOf(await find(store, task_id))}: there is nothing to cancel.`)
  if (given.has('json')) terminal.out(json({ task }))
  else terminal.out(`Task ${task_id} will be canceled at the next step of a running gateway.\n`)
  return 0
}

async function resume({ given, store, terminal }: Work): Promise<number> {
  const now = unixSeconds(systemClock)
  const text = given.text('deadline')
  const requested = text === undefined ? undefined : now + readDuration(text)
  const task = await find(store, given.positionals[0])
  const { outcome, deadline_at } = await resumeTask(store.tasks, task, {
    requested,
    now,
    now_ms: systemClock.now(),
    deadline_name: '--deadline 2h',
  })
  if (given.has('json')) terminal.out(json({ task: await find(store, task.task_id) }))
  else terminal.out(resumedText(task, outcome, deadline_at))
  return 0
}

function resumedText(
  { task_id, provider, status, fail_code }: Task,
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
  if (!task) throw unknown(task_id)
  return task
}

const unknown = (task_id: string) =>
  new Error(`There is no task ${JSON.stringify(task_id)} in this store. See: gatehouse task list`)

function readStatuses(text: string): TaskStatus[] {
  const known = [...TASK_STATUSES, 'unfinished']
  return text.split(',').flatMap((part) => {
    const word = part.trim()
    if (word.toLowerCase() === 'unfinished') return [...UNFINISHED]
    const status = TASK_STATUSES.find((name) => name === word.toUpperCase())
    if (status) return [status]
    const suggestion = nearest(word.toUpperCase(), known)
    const hint = suggestion === undefined ? '' : `; did you mean "${suggestion}"?`
    throw new UsageError(
      'task list',
      `--status: found ${JSON.stringify(word)}, must be one of ${known.join(', ')}${hint}`,
    )
  })
}

function readLimit(text: string | undefined): number {
  if (text === undefined) return DEFAULT_LIMIT
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= MAX_LISTED) return limit
  throw new UsageError('task list', `--limit: found ${JSON.stringify(text)}, must be a number from 1 to ${MAX_LISTED}`)
}

const UNIT_SECONDS: Record<string, number> = { s: 1, m: 60, h: 3_600, d: 86_400 }

function readDuration(text: string): number {
  const [, count, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  const seconds = Number(count) * (UNIT_SECONDS[unit] ?? 0)
  if (seconds >= 1 && seconds <= MAX_DEADLINE_SECONDS) return seconds
  throw new UsageError('task resume', `--deadline: found ${JSON.stringify(text)}, must be like 30m or 2h, at most 1d`)
}
