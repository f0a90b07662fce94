/** Erases what is stored of an end user, and renames what the ledger has to keep. */
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import type { Engine } from '../engine.ts'
import { eraseFromSums } from '../requests/erase-sums.ts'
import { eraseRequests } from '../requests/request-log.ts'
import { removeItems } from '../responses/conversations.ts'
import { removeRuns } from '../responses/responses.ts'
import { hasRowLocks } from '../row-locks.ts'
import type { Database, Write } from '../tables.ts'
import { chunks, ENDED, UNFINISHED } from '../tasks/task-sql.ts'
import type { EndUser, EndUserRest, EndUserRows, EndUserStore } from './end-user-store.ts'

/** Of each kind in one transaction. */
const ROWS_PER_BATCH = 500
/** What processes append while the entries are looked for is not older. */
const RECENT_MILLISECONDS = 86_400_000

export function endUserStore({ db, write }: Engine): EndUserStore {
  return {
    async count(user) {
      const { rows } = await sql<Record<keyof (EndUserRows & EndUserRest), number | string | null>>`
        select (select count(*) from request_log where ${isOf(user)}) as requests,
          (select count(*) from request_contents where ${isOf(user)}) as contents,
          (select count(*) from responses where ${isOfToken(user)}) as responses,
          (select count(distinct conversation_id) from conversation_items where ${isInConversation(user)}) as conversations,
          (select count(*) from tasks where ${isOf(user)} and ${ENDED}) as tasks,
          (select count(*) from tasks where ${isOf(user)} and ${UNFINISHED}) as unfinished_tasks,
          (select cast(sum(entries) as bigint) from ledger_end_users where ${isOf(user)}) as ledger_entries`.execute(db)
      const counts = Object.entries(rows[0] ?? {}).map(([kind, count]) => [kind, Number(count)])
      return Object.fromEntries(counts) as EndUserRows & EndUserRest
    },

    async erase(user, now) {
      const erased = await write(async (rows) => ({
        ...(await eraseRequests(rows, user)),
        responses: await eraseResponses(rows, user),
        conversations: await eraseConversations(rows, user),
        tasks: await eraseTasks(rows, user, now),
      }))
      // With the last batch, since all sums are read for it.
      if (erased.requests === 0) await eraseFromSums({ db, write }, user)
      return erased
    },

    async pseudonymise(user, { pseudonym, now_ms }) {
      const recent_ms = now_ms - RECENT_MILLISECONDS
      // Read before the transaction, since the whole ledger is read for it.
      const earlier = await entriesOf(db, user, sql`at_ms < ${recent_ms}`)
      return write(async (rows) => {
        const recent = await entriesOf(rows, user, sql`at_ms >= ${recent_ms}`)
        const entry_ids = [...earlier, ...recent]
        await renameBudgets(rows, user, pseudonym)
        for (const some of chunks(entry_ids))
          await rows.updateTable('ledger_entries').set({ end_user: pseudonym }).where('entry_id', 'in', some).execute()
        await sql`update ledger_end_users set end_user = ${pseudonym} where ${isOf(user)}`.execute(rows)
        return entry_ids.length
      })
    },
  }
}

/** `within`: the rows of a project. */
const isOf = (
  { end_user, project_id }: EndUser,
  within = (id: string): RawBuilder<unknown> => sql`project_id = ${id}`,
): RawBuilder<SqlBool> =>
  project_id === undefined ? sql`end_user = ${end_user}` : sql`end_user = ${end_user} and ${within(project_id)}`

/** Where a row names its token only. */
const isOfToken = (user: EndUser) => isOf(user, (project_id) => sql`token_id in ${tokensOf(project_id)}`)

const isInConversation = (user: EndUser) =>
  isOf(
    user,
    (project_id) =>
      sql`conversation_id in (select conversation_id from conversations where token_id in ${tokensOf(project_id)})`,
  )

const tokensOf = (project_id: string) => sql`(select token_id from tokens where project_id = ${project_id})`

async function eraseResponses(rows: Write, user: EndUser): Promise<number> {
  const { rows: erased } = await sql<{ response_id: string }>`
    delete from responses where response_id in
      (select response_id from responses where ${isOfToken(user)} limit ${ROWS_PER_BATCH})
    returning response_id`.execute(rows)
  await removeRuns(
    rows,
    erased.map(({ response_id }) => response_id),
  )
  return erased.length
}

async function eraseConversations(rows: Write, user: EndUser): Promise<number> {
  const { rows: found } = await sql<{ conversation_id: string }>`
    select distinct conversation_id from conversation_items where ${isInConversation(user)}
    limit ${ROWS_PER_BATCH}`.execute(rows)
  const ids = found.map(({ conversation_id }) => conversation_id)
  if (ids.length === 0) return 0
  await rows.deleteFrom('conversations').where('conversation_id', 'in', ids).execute()
  await removeItems(rows, ids)
  return ids.length
}

/** The files are removed by the gateway, as those of a deleted task. */
async function eraseTasks(rows: Write, user: EndUser, now: number): Promise<number> {
  const { rows: erased } = await sql<{ task_id: string }>`
    update tasks set deleted_at = coalesce(deleted_at, ${now}), request = '{}', outputs_expire_at = ${now}, due_ms = null,
      leased_by = '', fence = fence + 1, end_user = null
    where task_id in (select task_id from tasks where ${isOf(user)} and ${ENDED} limit ${ROWS_PER_BATCH})
    returning task_id`.execute(rows)
  return erased.length
}

async function entriesOf(rows: Database | Write, user: EndUser, range: RawBuilder<SqlBool>): Promise<string[]> {
  const found = await sql<{ entry_id: string }>`
    select entry_id from ledger_entries where ${range} and ${isOf(user)}`.execute(rows)
  return found.rows.map(({ entry_id }) => entry_id)
}

/** Budgets of the end user, and what processes and tasks hold of them. Locked in the order of budgets.ts. */
async function renameBudgets(rows: Write, { end_user, project_id }: EndUser, pseudonym: string): Promise<void> {
  await sql`update revisions set revision = revision + 1 where noun = 'budgets'`.execute(rows)
  const pattern = `user:%/${end_user.replace(/[\\%_]/g, '\\$&')}`
  const found = await sql<{ account_key: string; scope_key: string }>`
    select account_key, scope_key from budget_accounts where scope_key like ${pattern} escape '\\'
    order by account_key, start_ms ${hasRowLocks(rows) ? sql`for update` : sql``}`.execute(rows)
  const owners = project_id === undefined ? undefined : await ownersIn(rows, project_id)
  for (const { account_key, scope_key } of found.rows) {
    const [owner = '', name] = splitScope(scope_key)
    // The pattern takes names that end with it, and on SQLite those in other case.
    if (name !== end_user || owners?.has(owner) === false) continue
    const scope = `user:${owner}/${pseudonym}`
    const key = scope + account_key.slice(scope_key.length)
    await rows
      .updateTable('budget_accounts')
      .set({ account_key: key, scope_key: scope })
      .where('account_key', '=', account_key)
      .execute()
    for (const table of ['budget_leases', 'budget_holds'] as const)
      await rows.updateTable(table).set({ account_key: key }).where('account_key', '=', account_key).execute()
  }
}

async function ownersIn(rows: Write, project_id: string): Promise<Set<string>> {
  const tokens = await rows.selectFrom('tokens').select('token_id').where('project_id', '=', project_id).execute()
  return new Set([project_id, ...tokens.map(({ token_id }) => token_id)])
}

/** `user:<id of the token or project>/<end user>`: an id holds no slash. */
function splitScope(scope_key: string): [owner: string, end_user: string] {
  const at = scope_key.indexOf('/')
  return [scope_key.slice('user:'.length, at), scope_key.slice(at + 1)]
}
