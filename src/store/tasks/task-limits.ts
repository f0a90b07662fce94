/** Limits of unfinished tasks, checked in the transaction that adds a task. */
import { sql } from 'kysely'
import { GatewayError } from '../../spec/error.ts'
import type { Task } from '../../spec/task.ts'
import type { Write } from '../tables.ts'
import type { TaskLimit } from '../tokens/lease-store.ts'
import { UNFINISHED } from './task-sql.ts'

/** The row that other submissions with limits wait for: two could otherwise take the same place. */
const NOUN = 'task limits'
/** Tasks take seconds to minutes. */
const RETRY_SECONDS = 5

/** Throws rate_limit_exceeded where there are as many unfinished tasks as there may be. */
export async function assertTaskLimits(write: Write, task: Task, limits: readonly TaskLimit[]): Promise<void> {
  await write
    .insertInto('revisions')
    .values({ noun: NOUN, revision: 1 })
    .onConflict((conflict) => conflict.column('noun').doUpdateSet({ revision: sql<number>`revisions.revision + 1` }))
    .execute()
  for (const { name, columns, limit } of limits) {
    let query = write
      .selectFrom('tasks')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .where(UNFINISHED)
    for (const column of columns) query = query.where(column, '=', task[column])
    const { count } = await query.executeTakeFirstOrThrow()
    if (Number(count) < limit) continue
    const message = `Rate limit reached for ${name}: tasks_in_flight is ${limit}. Wait until a task has ended.`
    throw new GatewayError('rate_limit_exceeded', message, { retry_after: RETRY_SECONDS, accepted: 'no' })
  }
}
