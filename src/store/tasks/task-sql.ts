/** SQL fragments that several statements share. */
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import { TASK_STATUSES, type TaskStatus } from '../../spec/task.ts'
import type { Engine } from '../engine.ts'

/** Exactly the condition of the index `tasks_unfinished`: SQLite uses a partial index only then. */
export const UNFINISHED = sql<SqlBool>`status not in ('SUCCESS', 'FAILURE')`
export const ENDED = sql<SqlBool>`status in ('SUCCESS', 'FAILURE')`

export const isFinal = (status: TaskStatus): boolean => status === 'SUCCESS' || status === 'FAILURE'

/** The later of the row's status and this one. */
export function laterStatus(status: TaskStatus): RawBuilder<TaskStatus> {
  const later = TASK_STATUSES.slice(TASK_STATUSES.indexOf(status) + 1)
  if (later.length === 0) return sql<TaskStatus>`${status}`
  return sql<TaskStatus>`case when status in (${sql.join(later)}) then status else ${status} end`
}

/** The higher of the row's progress and this one. (The engines name `greatest` differently.) */
export const higherProgress = (progress: number): RawBuilder<number> =>
  sql<number>`case when progress > ${progress} then progress else ${progress} end`

/** Skips rows that another transaction has locked. With one writer at a time there are none. */
export function skipLocked<T extends { forUpdate(): { skipLocked(): T } }>(engine: Engine, query: T): T {
  return engine.many_writers ? query.forUpdate().skipLocked() : query
}

/** Values in one statement are bounded on every engine (SQLite 32,766, PostgreSQL 65,535). */
export function chunks<T>(values: readonly T[], size = 500): T[][] {
  const parts: T[][] = []
  for (let at = 0; at < values.length; at += size) parts.push(values.slice(at, at + size))
  return parts
}
