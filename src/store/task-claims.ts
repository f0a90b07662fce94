/** Which tasks are worked on next: claims that no two get alike and that are fair between tokens, and where work waits. */
import { sql } from 'kysely'
import type { Task } from '../spec/task.ts'
import type { Engine } from './engine.ts'
import type { Claim } from './store.ts'
import type { Database, Write } from './tables.ts'
import { taskOfRow } from './task-row.ts'
import { passOverLocked, portions } from './task-sql.ts'

/** Of several who claim at once each passes over what the others hold: with that many candidates some are left. */
const CANDIDATES_A_WANTED = 4

export async function claimTasks(engine: Engine, claim: Claim): Promise<Task[]> {
  // Most looks find nothing; they should not stand in line for the write lock.
  if (claim.limit < 1 || !(await anyDue(engine.db, claim))) return []
  return engine.write((write) => take(engine, write, claim))
}

async function anyDue(db: Database, { provider, now_ms }: Claim): Promise<boolean> {
  const row = await db
    .selectFrom('tasks')
    .select('task_id')
    .where('provider', '=', provider)
    .where('due_ms', '<=', now_ms)
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

async function take(engine: Engine, write: Write, claim: Claim): Promise<Task[]> {
  const { provider, now_ms, until_ms: due_ms, by: leased_by } = claim
  const turns = await fairTurns(write, claim, engine.many_writers ? CANDIDATES_A_WANTED : 1)
  const rows = await passOverLocked(
    engine,
    write
      .selectFrom('tasks')
      .selectAll()
      .where('task_id', 'in', turns)
      // Once more: between the two statements another one may have taken it.
      .where('provider', '=', provider)
      .where('due_ms', '<=', now_ms),
  ).execute()
  const place = new Map(turns.map((task_id, index) => [task_id, index]))
  const mine = rows.sort((a, b) => (place.get(a.task_id) ?? 0) - (place.get(b.task_id) ?? 0)).slice(0, claim.limit)
  const task_ids = mine.map(({ task_id }) => task_id)
  if (task_ids.length === 0) return []
  await write
    .updateTable('tasks')
    .set((row) => ({ due_ms, leased_by, fence: row('fence', '+', 1) }))
    .where('task_id', 'in', task_ids)
    .execute()
  return mine.map((row) => taskOfRow({ ...row, due_ms, leased_by, fence: row.fence + 1 }))
}

/** The oldest due task of each token, then the second oldest of each, and so on. Answered from the index alone. */
async function fairTurns(write: Write, claim: Claim, candidates: number): Promise<string[]> {
  const due = write
    .selectFrom('tasks')
    .select((of) => [
      'task_id',
      'due_ms',
      of.fn
        .agg<number>('row_number')
        .over((window) => window.partitionBy('token_id').orderBy('due_ms').orderBy('task_id'))
        .as('turn'),
    ])
    .where('provider', '=', claim.provider)
    .where('due_ms', '<=', claim.now_ms)
  const rows = await write
    .selectFrom(due.as('due'))
    .select('task_id')
    .orderBy('turn')
    .orderBy('due_ms')
    .orderBy('task_id')
    .limit(claim.limit * candidates)
    .execute()
  return rows.map(({ task_id }) => task_id)
}

export async function hastenTasks(engine: Engine, task_ids: string[], now_ms: number): Promise<void> {
  for (const some of portions(task_ids)) {
    await engine.write((write) => {
      const waiting = passOverLocked(
        engine,
        write
          .selectFrom('tasks')
          .select('task_id')
          .where('task_id', 'in', some)
          .where('leased_by', '=', '')
          .where('due_ms', '>', now_ms),
      )
      return write.updateTable('tasks').set({ due_ms: now_ms }).where('task_id', 'in', waiting).execute()
    })
  }
}

/**
 * Each provider with its earliest due time: one look into the index for each, whatever number of tasks waits
 * (a `group by` would walk over all of them).
 */
export async function lanesOf(db: Database): Promise<{ provider: string; due_ms: number }[]> {
  const { rows } = await sql<{ provider: string; due_ms: number }>`
    with recursive lane(provider) as (
      select (select provider from tasks where due_ms is not null order by provider limit 1)
      union all
      select (
        select tasks.provider from tasks
        where tasks.due_ms is not null and tasks.provider > lane.provider
        order by tasks.provider limit 1
      )
      from lane where lane.provider is not null
    ),
    earliest as (
      select lane.provider, (
        select tasks.due_ms from tasks
        where tasks.provider = lane.provider and tasks.due_ms is not null
        order by tasks.due_ms limit 1
      ) as due_ms
      from lane where lane.provider is not null
    )
    select provider, due_ms from earliest where due_ms is not null order by due_ms, provider`.execute(db)
  return rows
}
