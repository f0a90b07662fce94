/** Background responses in the database: their claims and their stored events. */
import { parseRequestJson } from '../../kit/json.ts'
import { createEarliestDue } from '../earliest-due.ts'
import type { Engine } from '../engine.ts'
import type { Write } from '../tables.ts'
import { dueInTurns } from '../turns.ts'
import { appendItems } from './conversations.ts'
import type { ResponseRun, ResponseRunStore, StoredEvents } from './response-store.ts'
import { addResponse, storedOf } from './responses.ts'

const earliestDue = createEarliestDue('response_runs')

export function responseRunStore(engine: Engine): ResponseRunStore {
  const { db, write } = engine
  return {
    add: ({ response, request, end_user = null, events, due_ms }, previous_ids) =>
      write(async (rows) => {
        await addResponse(rows, response, previous_ids)
        const { response_id, token_id } = response
        const text = JSON.stringify(request)
        const run = { response_id, token_id, end_user, request: text, attempts: 0, due_ms, fence: 0 }
        await rows.insertInto('response_runs').values(run).execute()
        await log(rows, response_id, events)
      }),

    async claim(claim) {
      const due = db.selectFrom('response_runs').select('response_id').where('due_ms', '<=', claim.now_ms).limit(1)
      if (claim.limit < 1 || !(await due.executeTakeFirst())) return [] // most polls find nothing
      return write((rows) => claimRows(engine, rows, claim))
    },

    async renew({ response_id, fence }, due_ms) {
      const [renewed] = await write((rows) =>
        rows
          .updateTable('response_runs')
          .set({ due_ms })
          .where((row) => row.and({ response_id, fence }))
          .execute(),
      )
      return (renewed?.numUpdatedRows ?? 0n) > 0n
    },

    save: (run, { response, events }) =>
      write(async (rows) => {
        const is_owner = await ownsLease(engine, rows, run)
        if (!is_owner) return false
        if (response) await change(rows, run.response_id, response)
        await log(rows, run.response_id, events)
        return true
      }),

    end: ({ response_id, fence }, { response, events, appending }) =>
      write(async (rows) => {
        const ended = rows.deleteFrom('response_runs').where('response_id', '=', response_id).where('fence', '=', fence)
        const [removed] = await ended.execute()
        if (!removed?.numDeletedRows) return false
        await change(rows, response_id, response)
        await log(rows, response_id, events)
        if (appending) await appendItems(rows, appending)
        return true
      }),

    async release({ response_id, fence }, due_ms) {
      await write((rows) =>
        rows
          .updateTable('response_runs')
          .set((row) => ({ due_ms, attempts: row('attempts', '-', 1), fence: row('fence', '+', 1) }))
          .where((row) => row.and({ response_id, fence }))
          .execute(),
      )
    },

    cancel: (response_id, token_id, response) =>
      write(async (rows) => {
        const own = rows
          .selectFrom('responses')
          .select('response_id')
          .where((row) => row.and({ response_id, token_id }))
        const [removed] = await rows.deleteFrom('response_runs').where('response_id', 'in', own).execute()
        if (!removed?.numDeletedRows) return false
        await change(rows, response_id, response)
        return true
      }),

    async isRunning(response_id) {
      const run = db.selectFrom('response_runs').select('response_id').where('response_id', '=', response_id)
      return (await run.executeTakeFirst()) !== undefined
    },

    async waiting(token_id) {
      const all = db.selectFrom('response_runs').select(({ fn }) => fn.countAll<number | string>().as('runs'))
      return Number((await all.where('token_id', '=', token_id).executeTakeFirstOrThrow()).runs)
    },

    events: (response_id, after) =>
      db
        .selectFrom('response_events')
        .select(['last_number', 'events'])
        .where('response_id', '=', response_id)
        .where('last_number', '>', after)
        .orderBy('last_number')
        .execute(),

    earliest: () => earliestDue(db),
  }
}

type Claim = Parameters<ResponseRunStore['claim']>[0]

async function claimRows(engine: Engine, rows: Write, { now_ms, until_ms, limit }: Claim): Promise<ResponseRun[]> {
  const runs = await dueInTurns(engine, rows, { table: 'response_runs', id: 'response_id', now_ms, limit })
  const claimed: ResponseRun[] = []
  for (const { response_id, request, end_user, attempts, fence } of runs) {
    await rows
      .updateTable('response_runs')
      .set({ due_ms: until_ms, attempts: attempts + 1, fence: fence + 1 })
      .where('response_id', '=', response_id)
      .execute()
    const row = await rows
      .selectFrom('responses')
      .selectAll()
      .where('response_id', '=', response_id)
      .executeTakeFirstOrThrow()
    const last = await rows
      .selectFrom('response_events')
      .select('last_number')
      .where('response_id', '=', response_id)
      .orderBy('last_number', 'desc')
      .limit(1)
      .executeTakeFirst()
    claimed.push({
      response: storedOf(row),
      request: parseRequestJson(request) as ResponseRun['request'],
      ...(end_user !== null && { end_user }),
      attempts: attempts + 1,
      fence: fence + 1,
      last_number: last?.last_number ?? -1,
    })
  }
  return claimed
}

/** Whether this claim still owns the run; it does until the end of the transaction. */
async function ownsLease({ many_writers }: Engine, rows: Write, run: { response_id: string; fence: number }) {
  const is_owner = rows
    .selectFrom('response_runs')
    .select('fence')
    .where((row) => row.and({ response_id: run.response_id, fence: run.fence }))
  return (many_writers ? is_owner.forUpdate() : is_owner).executeTakeFirst()
}

async function change(rows: Write, response_id: string, response: object): Promise<void> {
  await rows
    .updateTable('responses')
    .set({ response: JSON.stringify(response) })
    .where('response_id', '=', response_id)
    .execute()
}

async function log(rows: Write, response_id: string, events: StoredEvents | undefined): Promise<void> {
  if (!events) return
  const token_id = rows.selectFrom('responses').select('token_id').where('response_id', '=', response_id)
  await rows
    .insertInto('response_events')
    .values({ response_id, token_id, ...events })
    .execute()
}
