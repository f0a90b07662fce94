/** Values that the first process writes and all others read: when each model was first seen, and the gateway's secrets. */
import type { Engine } from './engine.ts'
import type { ModelStore, SecretStore } from './store.ts'
import type { Database } from './tables.ts'
import { chunks } from './tasks/task-sql.ts'

export function modelStore({ db, write: inTransaction }: Engine): ModelStore {
  return {
    async firstSeen(ids, now) {
      const unique_ids = [...new Set(ids)]
      const times = await firstSeenOf(db, unique_ids)
      const missing = unique_ids.filter((id) => !times.has(id))
      if (missing.length === 0) return times // the usual start: nothing is written
      await inTransaction(async (write) => {
        for (const some of chunks(missing)) {
          const rows = some.map((id) => ({ id, first_seen: now }))
          // Another process may have been first: its time is kept, and the second read below finds it.
          await write
            .insertInto('models')
            .values(rows)
            .onConflict((conflict) => conflict.column('id').doNothing())
            .execute()
        }
      })
      return firstSeenOf(db, unique_ids)
    },
    async ids() {
      const rows = await db.selectFrom('models').select('id').orderBy('id').execute()
      return rows.map(({ id }) => id)
    },
  }
}

async function firstSeenOf(db: Database, ids: string[]): Promise<Map<string, number>> {
  const times = new Map<string, number>()
  for (const some of chunks(ids)) {
    const rows = await db.selectFrom('models').selectAll().where('id', 'in', some).execute()
    for (const row of rows) times.set(row.id, row.first_seen)
  }
  return times
}

export function secretStore({ db, write }: Engine): SecretStore {
  const find = async (name: string) => {
    const row = await db.selectFrom('secrets').select('value').where('name', '=', name).executeTakeFirst()
    return row?.value
  }
  return {
    async get(name, make) {
      const found = await find(name)
      if (found !== undefined) return found
      // Another process may be first: its value is kept, and both read it.
      await write((rows) =>
        rows
          .insertInto('secrets')
          .values({ name, value: make() })
          .onConflict((conflict) => conflict.column('name').doNothing())
          .execute(),
      )
      const stored = await find(name)
      if (stored === undefined) throw new Error(`The secret "${name}" was stored but cannot be found.`)
      return stored
    },
  }
}
