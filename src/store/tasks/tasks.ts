/** Tasks in the database: adding, reading, saving by the worker that has claimed them, and removing. */
import { sql } from 'kysely'
import type { JsonObject, Task } from '../../spec/task.ts'
import { addAlerts } from '../admin/alerts.ts'
import { appendAudit } from '../admin/audit-append.ts'
import type { Engine } from '../engine.ts'
import { appendEntries, holdForTask } from '../ledger/ledger-append.ts'
import type { Added, NewTask, TaskChange, TaskStore } from '../store.ts'
import type { Database, Write } from '../tables.ts'
import { assertMoves } from './due-times.ts'
import { advanceTaskPolling, claimTasks, queuesOf } from './task-claims.ts'
import { assertTaskLimits } from './task-limits.ts'
import { listTasks } from './task-list.ts'
import { deleteExpiredTaskKeys, outputsToRemove, removeOutputs } from './task-removal.ts'
import { reopenTask } from './task-reopen.ts'
import { columnsOf, rowOfTask, taskOfRow } from './task-row.ts'
import { sentTasks } from './task-sent.ts'
import { ENDED, higherProgress, isFinal, laterStatus, UNFINISHED } from './task-sql.ts'
import { addStep, STEP_COLUMNS, stepsOf } from './task-steps.ts'
import { makeWebhookDue } from './webhooks.ts'

export function taskStore(engine: Engine): TaskStore {
  const { db } = engine
  return {
    async add(order) {
      const added = await engine.write((write) => add(write, order))
      if (added.outcome === 'added') engine.notify({ task_id: added.task.task_id, status: added.task.status })
      return added
    },

    async find(task_id, token_id) {
      let query = db.selectFrom('tasks').selectAll().where('task_id', '=', task_id).where('deleted_at', 'is', null)
      if (token_id !== undefined) query = query.where('token_id', '=', token_id)
      const row = await query.executeTakeFirst()
      return row && taskOfRow(row)
    },

    async findByKey(token_id, key, now) {
      const find = (rows: Database | Write) =>
        taskOfKey(rows, token_id, key).where('task_keys.expires_at', '>', now).executeTakeFirst()
      if (!(await find(db))) return undefined
      // In a write, which ends once the row is on the disk: the client is told that its task exists.
      const row = await engine.write(find)
      if (!row) return undefined
      const { body_hash, ...task } = row
      return { task: taskOfRow(task), body_hash }
    },

    async inputs(task_id) {
      const row = await db.selectFrom('task_inputs').select('inputs').where('task_id', '=', task_id).executeTakeFirst()
      return row && (JSON.parse(row.inputs) as JsonObject)
    },

    list: (filter) => listTasks(db, filter),
    claim: (claim) => claimTasks(engine, claim),

    async save(task, change) {
      const status = await engine.write((write) => save(write, task, change))
      if (status === undefined) return false
      engine.notify({ task_id: task.task_id, status })
      return true
    },

    steps: (task_id) => stepsOf(db, task_id),
    sentSince: (filter) => sentTasks(db, filter),
    advancePolling: (task_ids, now_ms) => advanceTaskPolling(engine, task_ids, now_ms),

    async requestCancel(task_id, now, audit) {
      const task = await engine.write(async (write) => {
        const row = await requestCancel(write, task_id, now)
        if (row && audit) await appendAudit(write, audit(taskOfRow(row)))
        return row && taskOfRow(row)
      })
      if (task) engine.notify({ task_id, status: task.status })
      return task
    },

    async resume(task_id, { due_ms, deadline_at }, audit) {
      const row = await engine.write(async (write) => {
        const changed = await write
          .updateTable('tasks')
          // A claimed task keeps its worker, since two workers could order twice. The end of its lease makes it due.
          .set({ deadline_at, due_ms: sql<number>`case when leased_by = '' then ${due_ms} else due_ms end` })
          .where('task_id', '=', task_id)
          .where('deleted_at', 'is', null)
          .where('status', '!=', 'SUCCESS') // there is nothing left to do
          .returning('status')
          .executeTakeFirst()
        if (changed && audit) await appendAudit(write, audit)
        return changed
      })
      if (row) engine.notify({ task_id, status: row.status })
      return row !== undefined
    },

    async reopen(task, change, audit) {
      const row = await engine.write(async (write) => {
        const changed = await reopenTask(write, task, change)
        if (changed && audit) await appendAudit(write, audit)
        return changed
      })
      if (row) engine.notify({ task_id: task.task_id, status: row.status })
      return row !== undefined
    },

    async remove(task_id, token_id, now) {
      const row = await engine.write((write) => remove(write, { task_id, token_id, now }))
      return row !== undefined
    },

    queues: () => queuesOf(db),
    outputsToRemove: (now, limit) => outputsToRemove(db, now, limit),
    outputsRemoved: (task_ids) => removeOutputs(engine, task_ids),
    deleteExpiredKeys: (now, limit) => deleteExpiredTaskKeys(engine, now, limit),

    async health() {
      const [row, queues] = await Promise.all([
        db
          .selectFrom('tasks')
          .select((of) => [
            of.fn.countAll<number>().as('unfinished'),
            of.fn.min('submit_time').as('oldest_submit_time'),
          ])
          .where(UNFINISHED)
          .executeTakeFirstOrThrow(),
        queuesOf(db),
      ])
      const earliest_due_ms = queues.length === 0 ? null : Math.min(...queues.map(({ due_ms }) => due_ms))
      return { ...row, earliest_due_ms }
    },

    watch: (listener) => engine.watch(listener),
  }
}

async function add(
  write: Write,
  { task, inputs, callback, idempotency, budgets = [], limits, moves }: NewTask,
): Promise<Added> {
  await assertMoves(write, moves)
  if (idempotency) {
    const earlier = await reserveKey(write, task, idempotency)
    if (earlier) return earlier
  }
  if (limits && limits.length > 0) await assertTaskLimits(write, task, limits)
  await write.insertInto('tasks').values(rowOfTask(task)).execute()
  const { task_id, token_id } = task
  if (inputs)
    await write
      .insertInto('task_inputs')
      .values({ task_id, inputs: JSON.stringify(inputs) })
      .execute()
  if (callback) {
    const { project_id } = task
    const waiting = { attempts: 0, due_ms: null, delivered_at: null, last_status: null, ended_ms: null, project_id }
    await write
      .insertInto('callbacks')
      .values({ ...callback, task_id, token_id, ...waiting })
      .execute()
  }
  for (const budget of budgets) await holdForTask(write, task_id, budget)
  return { outcome: 'added', task }
}

const taskOfKey = (db: Database | Write, token_id: string, key: string) =>
  db
    .selectFrom('task_keys')
    .innerJoin('tasks', 'tasks.task_id', 'task_keys.task_id')
    .selectAll('tasks')
    .select('task_keys.body_hash')
    .where('task_keys.token_id', '=', token_id)
    .where('task_keys.key', '=', key)

/**
 * Reserves the key for this task and returns undefined, or returns the outcome for a key that is in use. On every engine
 * a second transaction with the same key waits in this insert for the end of the first one, and then finds its row.
 */
async function reserveKey(
  write: Write,
  { task_id, token_id, submit_time }: Task,
  { key, body_hash, expires_at }: NonNullable<NewTask['idempotency']>,
): Promise<Added | undefined> {
  const reserved = await write
    .insertInto('task_keys')
    .values({ token_id, key, body_hash, task_id, expires_at })
    .onConflict((conflict) =>
      conflict
        .columns(['token_id', 'key'])
        .doUpdateSet({ body_hash, task_id, expires_at })
        .where('task_keys.expires_at', '<=', submit_time),
    )
    .returning('task_id')
    .executeTakeFirst()
  if (reserved) return undefined
  const earlier = await taskOfKey(write, token_id, key).executeTakeFirstOrThrow()
  const { body_hash: first, ...row } = earlier
  // Also if the task was deleted since: a client that retries must not pay for a second one.
  return first === body_hash ? { outcome: 'replayed', task: taskOfRow(row) } : { outcome: 'conflict' }
}

/** The new status of the row; `undefined` if nothing was written. */
async function save(
  write: Write,
  { task_id, fence }: Pick<Task, 'task_id' | 'fence'>,
  { drop_inputs, keep_lease, entry, alerts = [], webhook_due_ms, at_ms, ...fields }: TaskChange,
): Promise<Task['status'] | undefined> {
  const { status, progress } = fields
  let query = write
    .updateTable('tasks')
    .set({
      ...columnsOf(fields),
      ...(status === undefined ? {} : { status: laterStatus(status) }),
      ...(progress === undefined ? {} : { progress: higherProgress(progress) }),
      ...(keep_lease ? { fence } : { leased_by: '' }), // unchanged: a statement has to set something
    })
    .where((row) => row.and({ task_id, fence }))
  if (status !== undefined) query = query.where(UNFINISHED) // a final state never changes, whatever a step reports
  const row = await query.returning([...STEP_COLUMNS, 'finish_time']).executeTakeFirst()
  if (!row) return undefined
  if (at_ms !== undefined && isStep(fields)) await addStep(write, task_id, { ...row, at_ms })
  const ends = status !== undefined && isFinal(status)
  if (drop_inputs || ends) await write.deleteFrom('task_inputs').where('task_id', '=', task_id).execute()
  if (ends) await makeWebhookDue(write, task_id, webhook_due_ms ?? row.finish_time * 1000)
  if (entry) await appendEntries(write, [entry])
  await addAlerts(write, alerts)
  return row.status
}

const isStep = ({ status, provider, failures }: Partial<TaskChange>): boolean =>
  status !== undefined || provider !== undefined || (failures ?? 0) > 0

function requestCancel(write: Write, task_id: string, { now, now_ms }: { now: number; now_ms: number }) {
  return write
    .updateTable('tasks')
    .set({
      cancel_asked_at: sql<number>`coalesce(cancel_asked_at, ${now})`,
      // A claimed task keeps its worker, which sees the request at the next step.
      due_ms: sql<number>`case when leased_by = '' and (due_ms is null or due_ms > ${now_ms}) then ${now_ms} else due_ms end`,
    })
    .where('task_id', '=', task_id)
    .where('deleted_at', 'is', null)
    .where(UNFINISHED)
    .returningAll()
    .executeTakeFirst()
}

/** A worker that has claimed it (for a late outcome) loses its lease, since the fence increases. */
function remove(write: Write, { task_id, token_id, now }: { task_id: string; token_id: string; now: number }) {
  return write
    .updateTable('tasks')
    .set((row) => ({
      deleted_at: now,
      request: '{}',
      outputs_expire_at: now,
      due_ms: null,
      leased_by: '',
      fence: row('fence', '+', 1),
    }))
    .where((row) => row.and({ task_id, token_id }))
    .where('deleted_at', 'is', null)
    .where(ENDED)
    .returning('task_id')
    .executeTakeFirst()
}
