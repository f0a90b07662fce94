/** Claims of tasks: no two claims get the same task, and tokens get fair shares. Also lists the providers with due tasks. */
import { sql } from 'kysely'
import type { Task } from '../../spec/task.ts'
import type { Engine } from '../engine.ts'
import { createStatement } from '../fixed-statements.ts'
import type { Claim } from '../store.ts'
import type { Database, Write } from '../tables.ts'
import { taskOfRow } from './task-row.ts'
import { chunks, skipLocked } from './task-sql.ts'

/** SQLite allows at most 500 queries in a `union all`; here there is one for each token. The next claim gets the rest. */
const MAX_PER_CLAIM = 400

/** Concurrent claims skip the rows that others have locked: with this many candidates some remain. */
const CANDIDATES_PER_CLAIM = 4

export async function claimTasks(engine: Engine, claim: Claim): Promise<Task[]> {
  // Most polls find nothing; they should not wait for the write lock.
  if (claim.limit < 1 || !(await anyDue(engine.db, claim))) return []
  return engine.write((write) => claimRows(engine, write, claim))
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

async function claimRows(engine: Engine, write: Write, claim: Claim): Promise<Task[]> {
  const { provider, now_ms, until_ms: due_ms, by: leased_by } = claim
  const turns = await roundRobin(
    write,
    claim,
    Math.min(MAX_PER_CLAIM, claim.limit * (engine.many_writers ? CANDIDATES_PER_CLAIM : 1)),
  )
  if (turns.length === 0) return [] // another claim was first
  const rows = await skipLocked(
    engine,
    write
      .selectFrom('tasks')
      .selectAll()
      .where('task_id', 'in', turns)
      // Checked again: between the two statements another claim may have got it.
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

/**
 * The oldest due task of each token, then the second oldest of each, and so on: the first `most` of them. Its cost
 * grows with the number of tokens that have waiting tasks and with `most`, not with the length of their queues.
 */
async function roundRobin(write: Write, claim: Claim, most: number): Promise<string[]> {
  const firsts = await firstOfEachToken(write, claim, most)
  if (firsts.length === most) return firsts.map(({ task_id }) => task_id)
  const deepest = most - firsts.length + 1 // every token's first task comes before any second one
  const queues = firsts.map(({ token_id }) => {
    const queue = write
      .selectFrom('tasks')
      .select(['task_id', 'due_ms', 'token_id'])
      .where((row) => row.and({ provider: claim.provider, token_id }))
      .where('due_ms', '<=', claim.now_ms)
      .orderBy('due_ms')
      .orderBy('task_id')
      .limit(deepest)
    return sql`select * from (${queue}) as queue`
  })
  if (queues.length === 0) return []
  const { rows } = await sql<{ task_id: string }>`
    select task_id from (
      select task_id, due_ms, row_number() over (partition by token_id order by due_ms, task_id) as turn
      from (${sql.join(queues, sql` union all `)}) as queues
    ) as turns
    order by turn, due_ms, task_id limit ${most}`.execute(write)
  return rows.map(({ task_id }) => task_id)
}

/** One index lookup for each token that has tasks at this provider, due or not. Oldest first. */
async function firstOfEachToken(write: Write, { provider, now_ms }: Claim, most: number) {
  const { rows } = await sql<{ token_id: string; task_id: string }>`
    with recursive holder(token_id) as (
      select (
        select token_id from tasks where provider = ${provider} and due_ms is not null order by token_id limit 1
      )
      union all
      select (
        select tasks.token_id from tasks
        where tasks.provider = ${provider} and tasks.due_ms is not null and tasks.token_id > holder.token_id
        order by tasks.token_id limit 1
      )
      from holder where holder.token_id is not null
    ),
    first as (
      select (
        select tasks.task_id from tasks
        where tasks.provider = ${provider} and tasks.token_id = holder.token_id and tasks.due_ms <= ${now_ms}
        order by tasks.due_ms, tasks.task_id limit 1
      ) as task_id
      from holder where holder.token_id is not null
    )
    select tasks.token_id, tasks.task_id
    from first join tasks on tasks.task_id = first.task_id
    order by tasks.due_ms, tasks.task_id limit ${most}`.execute(write)
  return rows
}

export async function advanceTaskPolling(engine: Engine, task_ids: string[], now_ms: number): Promise<void> {
  for (const some of chunks(task_ids)) {
    await engine.write((write) => {
      const waiting = skipLocked(
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
 * Each provider with its earliest due time: one index lookup for each, however many tasks wait (a `group by` would
 * read all of them).
 */
export async function queuesOf(db: Database): Promise<{ provider: string; due_ms: number }[]> {
  const { rows } = await selectQueues<{ provider: string; due_ms: number }>(db, [])
  return rows
}

const selectQueues = createStatement(
  () => `
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
    select provider, due_ms from earliest where due_ms is not null order by due_ms, provider`,
)
