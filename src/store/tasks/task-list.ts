/** Pages of tasks, ordered by submission time. */
import { sql } from 'kysely'
import type { EndpointFamily } from '../../spec/endpoint-family.ts'
import { invalidValue } from '../../spec/error.ts'
import { TASK_STATUSES, type Task } from '../../spec/task.ts'
import type { TaskFilter } from '../store.ts'
import type { Database } from '../tables.ts'
import { taskOfRow } from './task-row.ts'
import { isFinal, UNFINISHED } from './task-sql.ts'

export async function listTasks(db: Database, filter: TaskFilter): Promise<Task[]> {
  const { families, statuses, after, limit, order = 'desc' } = filter
  if (families?.length === 0 || statuses?.length === 0) return []
  const last = after === undefined ? undefined : await place(db, after, filter)
  if (after !== undefined && !last) throw unknownCursor()
  const page = (family?: EndpointFamily) => {
    const query = pageOf(db, filter, last)
    const ofFamily = family === undefined ? query : query.where('family', '=', family)
    return ofFamily.orderBy('submit_time', order).orderBy('task_id', order).limit(limit)
  }
  const [first, ...others] = families ?? []
  // Each family's page comes sorted from its index; only these few rows are then merged.
  const pages = others.reduce(
    (all, family) => all.unionAll(db.selectFrom(page(family).as('of_family')).selectAll()),
    db.selectFrom(page(first).as('of_family')).selectAll(),
  )
  const rows =
    others.length === 0
      ? await page(first).execute()
      : await db
          .selectFrom(pages.as('pages'))
          .selectAll()
          .orderBy('submit_time', order)
          .orderBy('task_id', order)
          .limit(limit)
          .execute()
  return rows.map(taskOfRow)
}

const unknownCursor = () => invalidValue('after', '"after" must be the id of a task of this list.')

type Place = { submit_time: number; task_id: string }

function pageOf(db: Database, filter: TaskFilter, last: Place | undefined) {
  const { token_id, project_id, model, statuses, order = 'desc' } = filter
  let query = db.selectFrom('tasks').selectAll().where('deleted_at', 'is', null)
  if (token_id !== undefined) query = query.where('token_id', '=', token_id)
  if (project_id !== undefined) query = query.where('project_id', '=', project_id)
  if (model !== undefined) query = query.where('model', '=', model)
  if (statuses !== undefined) {
    if (TASK_STATUSES.some((status) => !statuses.includes(status))) query = query.where('status', 'in', statuses)
    // Repeated as the condition of the index: few tasks are unfinished, however many have ended.
    if (!statuses.some(isFinal)) query = query.where(UNFINISHED)
  }
  if (!last) return query
  const beyond = sql.raw(order === 'desc' ? '<' : '>')
  return query.where(sql<boolean>`(submit_time, task_id) ${beyond} (${last.submit_time}, ${last.task_id})`)
}

/** A deleted task still works as a cursor: a client may delete what it has just listed. */
function place(db: Database, task_id: string, { token_id, families }: TaskFilter): Promise<Place | undefined> {
  let query = db.selectFrom('tasks').select(['submit_time', 'task_id']).where('task_id', '=', task_id)
  if (token_id !== undefined) query = query.where('token_id', '=', token_id)
  if (families !== undefined) query = query.where('family', 'in', families)
  return query.executeTakeFirst()
}
