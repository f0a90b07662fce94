/** Tasks one page after another, by the time they were submitted. */
import { sql } from 'kysely'
import { TASK_STATUSES, type Task } from '../spec/task.ts'
import type { TaskFilter } from './store.ts'
import type { Database } from './tables.ts'
import { taskOfRow } from './task-row.ts'
import { isFinal, UNFINISHED } from './task-sql.ts'

export async function listTasks(db: Database, filter: TaskFilter): Promise<Task[]> {
  const { token_id, families, statuses, after, limit, order = 'desc' } = filter
  let query = db.selectFrom('tasks').selectAll().where('deleted_at', 'is', null)
  if (token_id !== undefined) query = query.where('token_id', '=', token_id)
  if (families !== undefined) {
    if (families.length === 0) return []
    query = query.where('family', 'in', families)
  }
  if (statuses !== undefined) {
    if (statuses.length === 0) return []
    if (TASK_STATUSES.some((status) => !statuses.includes(status))) query = query.where('status', 'in', statuses)
    // Said again in the index's words: few tasks are unfinished, however many have ended.
    if (!statuses.some(isFinal)) query = query.where(UNFINISHED)
  }
  if (after !== undefined) {
    const last = await place(db, after, token_id)
    if (!last) return []
    const beyond = sql.raw(order === 'desc' ? '<' : '>')
    query = query.where(sql<boolean>`(submit_time, task_id) ${beyond} (${last.submit_time}, ${after})`)
  }
  const rows = await query.orderBy('submit_time', order).orderBy('task_id', order).limit(limit).execute()
  return rows.map(taskOfRow)
}

/** A deleted task still marks its place: a client may delete what it has just listed. */
function place(db: Database, task_id: string, token_id: string | undefined) {
  let query = db.selectFrom('tasks').select('submit_time').where('task_id', '=', task_id)
  if (token_id !== undefined) query = query.where('token_id', '=', token_id)
  return query.executeTakeFirst()
}
