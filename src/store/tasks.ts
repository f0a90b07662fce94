/** Tasks in the database: added, read, changed by the worker that has claimed them, and removed. */
import { sql } from 'kysely'
import type { JsonObject, Task } from '../spec/task.ts'
import type { Engine } from './engine.ts'
import type { Added, NewTask, TaskChange, TaskStore } from './store.ts'
import type { Database, Write } from './tables.ts'
import { advanceTaskPolling, claimTasks, lanesOf } from './task-claims.ts'
import { listTasks } from './task-list.ts'
import { forgetTaskKeys, outputsToRemove, removeOutputs } from './task-removal.ts'
import { reopenTask } from './task-reopen.ts'
import { columnsOfChange, rowOfTask, taskOfRow } from './task-row.ts'
import { atLeast, ENDED, forwardTo, isFinal, UNFINISHED } from './task-sql.ts'
import { addUsage } from './usage.ts'
import { makeWebhookDue } from './webhooks.ts'

export function taskStore(engine: Engine): TaskStore {
  const { db } = engine
  return {
    async add(order) {
      const added = await engine.write((write) => add(write, order))
      if (added.outcome === 'added') engine.tell({ task_id: added.task.task_id, status: added.task.status })
      return added
    },

    async find(task_id, token_id) {
      let query = db.selectFrom('tasks').selectAll().where('task_id', '=', task_id).where('deleted_at', 'is', null)
      if (token_id !== undefined) query = query.where('token_id', '=', token_id)
      const row = await query.executeTakeFirst()
      return row && taskOfRow(row)
    },

    async findByKey(token_id, key, now) {
      const row = await ofKey(db, token_id, key).where('task_keys.expires_at', '>', now).executeTakeFirst()
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
      engine.tell({ task_id: task.task_id, status })
      return true
    },

    advancePolling: (task_ids, now_ms) => advanceTaskPolling(engine, task_ids, now_ms),

    async askCancel(task_id, now) {
      const row = await engine.write((write) => askCancel(write, task_id, now))
      if (!row) return undefined
      engine.tell({ task_id, status: row.status })
      return taskOfRow(row)
    },

    async resume(task_id, { due_ms, deadline_at }) {
      const row = await engine.write((write) =>
        write
          .updateTable('tasks')
          // A claimed task keeps its worker: two workers could order twice. The end of its lease makes it due.
          .set({ deadline_at, due_ms: sql<number>`case when leased_by = '' then ${due_ms} else due_ms end` })
          .where('task_id', '=', task_id)
          .where('deleted_at', 'is', null)
          .where('status', '!=', 'SUCCESS') // nothing is left to be learnt of it
          .returning('status')
          .executeTakeFirst(),
      )
      if (row) engine.tell({ task_id, status: row.status })
      return row !== undefined
    },

    async reopen(task, change) {
      const row = await engine.write((write) => reopenTask(write, task, change))
      if (row) engine.tell({ task_id: task.task_id, status: row.status })
      return row !== undefined
    },

    async remove(task_id, token_id, now) {
      const row = await engine.write((write) => remove(write, { task_id, token_id, now }))
      return row !== undefined
    },

    lanes: () => lanesOf(db),
    outputsToRemove: (now, limit) => outputsToRemove(db, now, limit),
    outputsRemoved: (task_ids) => removeOutputs(engine, task_ids),
    forgetKeys: (now, limit) => forgetTaskKeys(engine, now, limit),

    async health() {
      const [row, lanes] = await Promise.all([
        db
          .selectFrom('tasks')
          .select((of) => [
            of.fn.countAll<number>().as('unfinished'),
            of.fn.min('submit_time').as('oldest_submit_time'),
          ])
          .where(UNFINISHED)
          .executeTakeFirstOrThrow(),
        lanesOf(db),
      ])
      const earliest_due_ms = lanes.length === 0 ? null : Math.min(...lanes.map(({ due_ms }) => due_ms))
      return { ...row, earliest_due_ms }
    },

    watch: (listener) => engine.watch(listener),
  }
}

async function add(write: Write, { task, inputs, callback, idempotency }: NewTask): Promise<Added> {
  if (idempotency) {
    const earlier = await takeKey(write, task, idempotency)
    if (earlier) return earlier
  }
  await write.insertInto('tasks').values(rowOfTask(task)).execute()
  const { task_id, token_id } = task
  if (inputs)
    await write
      .insertInto('task_inputs')
      .values({ task_id, inputs: JSON.stringify(inputs) })
      .execute()
  if (callback) {
    const waiting = { attempts: 0, due_ms: null, delivered_at: null, last_status: null }
    await write
      .insertInto('callbacks')
      .values({ ...callback, task_id, token_id, ...waiting })
      .execute()
  }
  return { outcome: 'added', task }
}

const ofKey = (db: Database | Write, token_id: string, key: string) =>
  db
    .selectFrom('task_keys')
    .innerJoin('tasks', 'tasks.task_id', 'task_keys.task_id')
    .selectAll('tasks')
    .select('task_keys.body_hash')
    .where('task_keys.token_id', '=', token_id)
    .where('task_keys.key', '=', key)

/**
 * The key is this task's from now on, or `undefined` is not the answer. On every engine a second transaction with the
 * same key waits in this insert for the first one's end, and then meets its row.
 */
async function takeKey(
  write: Write,
  { task_id, token_id, submit_time }: Task,
  { key, body_hash, expires_at }: NonNullable<NewTask['idempotency']>,
): Promise<Added | undefined> {
  const taken = await write
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
  if (taken) return undefined
  const earlier = await ofKey(write, token_id, key).executeTakeFirstOrThrow()
  const { body_hash: first, ...row } = earlier
  // Also when the task was deleted since: the client who repeats itself must not pay for a second one.
  return first === body_hash ? { outcome: 'replayed', task: taskOfRow(row) } : { outcome: 'conflict' }
}

/** The status that the row has now; `undefined` when nothing was written. */
async function save(
  write: Write,
  { task_id, fence }: Pick<Task, 'task_id' | 'fence'>,
  { drop_inputs, keep_lease, usage, ...fields }: TaskChange,
): Promise<Task['status'] | undefined> {
  const { status, progress } = fields
  let query = write
    .updateTable('tasks')
    .set({
      ...columnsOfChange(fields),
      ...(status === undefined ? {} : { status: forwardTo(status) }),
      ...(progress === undefined ? {} : { progress: atLeast(progress) }),
      ...(keep_lease ? { fence } : { leased_by: '' }), // the fence as it is: a statement has to set something
    })
    .where('task_id', '=', task_id)
    .where('fence', '=', fence)
  if (status !== undefined) query = query.where(UNFINISHED) // an end is final, whatever a step believes
  const row = await query.returning(['status', 'finish_time']).executeTakeFirst()
  if (!row) return undefined
  const ends = status !== undefined && isFinal(status)
  if (drop_inputs || ends) await write.deleteFrom('task_inputs').where('task_id', '=', task_id).execute()
  if (ends) await makeWebhookDue(write, task_id, row.finish_time * 1000)
  if (usage) await addUsage(write, [usage])
  return row.status
}

function askCancel(write: Write, task_id: string, { now, now_ms }: { now: number; now_ms: number }) {
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

/** A worker that has claimed it (for a late outcome) loses its lease: the fence grows. */
function remove(write: Write, { task_id, token_id, now }: { task_id: string; token_id: string; now: number }) {
  return write
    .updateTable('tasks')
    .set((row) => ({
      deleted_at: now,
      outputs_expire_at: now,
      due_ms: null,
      leased_by: '',
      fence: row('fence', '+', 1),
    }))
    .where('task_id', '=', task_id)
    .where('token_id', '=', token_id)
    .where('deleted_at', 'is', null)
    .where(ENDED)
    .returning('task_id')
    .executeTakeFirst()
}
