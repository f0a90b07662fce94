/** Takes an end user out of the sums of the request log by end user; those of all calls, which name nobody, stay. */
import { sql } from 'kysely'
import type { Engine } from '../engine.ts'
import type { EndUser } from '../tokens/end-user-store.ts'
import { eraseFromMinutes, namesUser } from './minute-sums.ts'
import { DAY_SECONDS, HOUR_SECONDS } from './sum-rows.ts'

/** Examined by one statement, outside of a transaction: other processes write meanwhile. */
const ROWS_PER_STEP = 4_000

type Parts = Pick<Engine, 'db' | 'write'>
type Place = { scope: string; start: number }
type Sums = { period: number; kind: 'all' | 'project' }

/** Sums of a name over several projects are not divided: all of them go, also where only one project is meant. */
export async function eraseFromSums(engine: Parts, { end_user, project_id }: EndUser): Promise<void> {
  await engine.write((write) => eraseFromMinutes(write, end_user, project_id))
  for (const period of [HOUR_SECONDS, DAY_SECONDS]) {
    await engine.write((write) =>
      write
        .deleteFrom('request_sums')
        .where((row) => row.and({ period, kind: 'user', scope: end_user }))
        .execute(),
    )
    for (const kind of ['all', 'project'] as const) {
      const only = kind === 'project' ? project_id : undefined
      await eachStep(engine, { sums: { period, kind }, end_user, only })
    }
  }
}

type Search = { sums: Sums; end_user: string; only: string | undefined }

async function eachStep(engine: Parts, { sums, end_user, only }: Search): Promise<void> {
  let after: Place = { scope: '', start: -1 }
  for (;;) {
    const rows = await engine.db
      .selectFrom('request_sums')
      .select(['scope', 'start', namesUser(end_user).as('is_named')])
      .where((row) => row.and({ period: sums.period, kind: sums.kind }))
      .where(sql<boolean>`(scope, start) > (${after.scope}, ${after.start})`)
      .$if(only !== undefined, (select) => select.where('scope', '=', only ?? ''))
      .orderBy('scope')
      .orderBy('start')
      .limit(ROWS_PER_STEP)
      .execute()
    for (const { is_named, scope, start } of rows)
      if (is_named) await eraseFromRow(engine, { ...sums, scope, start }, end_user)
    const last = rows.at(-1)
    if (!last || rows.length < ROWS_PER_STEP) return
    after = last
    await new Promise((resolve) => setImmediate(resolve))
  }
}

const eraseFromRow = ({ write }: Parts, { period, kind, scope, start }: Sums & Place, end_user: string) =>
  write(async (rows) => {
    const row = await rows
      .selectFrom('request_sums')
      .select('users')
      .where((row) => row.and({ period, kind, scope, start }))
      .executeTakeFirst()
    const left = (JSON.parse(row?.users ?? '[]') as [string][]).filter(([name]) => name !== end_user)
    await rows
      .updateTable('request_sums')
      .set({ users: left.length === 0 ? null : JSON.stringify(left) })
      .where((row) => row.and({ period, kind, scope, start }))
      .execute()
  })
