/** Secrets that the gateway made for itself, the same for all processes on one database. */
import type { Engine } from './engine.ts'
import type { SecretStore } from './store.ts'

export function secretStore({ db, write }: Engine): SecretStore {
  const known = async (name: string) => {
    const row = await db.selectFrom('secrets').select('value').where('name', '=', name).executeTakeFirst()
    return row?.value
  }
  return {
    async get(name, make) {
      const found = await known(name)
      if (found !== undefined) return found
      // Another process may be first: its value stands, and is what both read.
      await write((rows) =>
        rows
          .insertInto('secrets')
          .values({ name, value: make() })
          .onConflict((conflict) => conflict.column('name').doNothing())
          .execute(),
      )
      const stored = await known(name)
      if (stored === undefined) throw new Error(`the secret "${name}" was stored and is not there`)
      return stored
    },
  }
}
