/** Stores operators' changes of routing at run time in the database. */
import type { Selectable } from 'kysely'
import type { Engine } from '../engine.ts'
import { addToRevision, requireRevision } from '../revisions.ts'
import type { Tables } from '../tables.ts'
import { appendAudit } from './audit-append.ts'
import type { Override, OverrideStore } from './override-store.ts'

/** The row of `revisions` that counts the changes. */
const NOUN = 'routing_overrides'

export function overrideStore({ db, write }: Engine): OverrideStore {
  return {
    list: async () =>
      (await db.selectFrom('routing_overrides').selectAll().orderBy('kind').orderBy('name').execute()).map(fromRow),

    set: ({ kind, name }, change, by, { check, audit } = {}) =>
      write(async (rows) => {
        // Written first: two changes of one override wait for each other here.
        await addToRevision(rows, NOUN, 1)
        const found = await rows
          .selectFrom('routing_overrides')
          .selectAll()
          .where((row) => row.and({ kind, name }))
          .executeTakeFirst()
        const before = found && fromRow(found)
        check?.(before)
        const { weight = before?.weight ?? null, state = before?.state ?? null } = change
        if (before) {
          await rows
            .deleteFrom('routing_overrides')
            .where((row) => row.and({ kind, name }))
            .execute()
        }
        const isSet = weight !== null || state !== null
        const after: Override | undefined = isSet ? { kind, name, weight, state, ...by } : undefined
        if (after) await rows.insertInto('routing_overrides').values(after).execute()
        if (audit) await appendAudit(rows, audit({ before, after }))
        return { before, after }
      }),

    revision: () => requireRevision(db, NOUN),
  }
}

const fromRow = ({ kind, name, weight, state, set_by, set_at }: Selectable<Tables['routing_overrides']>): Override => ({
  kind,
  name,
  weight,
  state,
  set_by,
  set_at,
})
