/** Sessions of administrators, and the links that begin them, in the database. */
import type { Engine } from '../engine.ts'
import { readPage } from '../page.ts'
import type { SessionsTable, Write } from '../tables.ts'
import type { AdminSessionStore, LinkPerson, StoredSession } from './admin-store.ts'
import { appendAudit } from './audit-append.ts'

export function adminSessionStore({ db, write }: Engine): AdminSessionStore {
  /** With the deletion of those that have ended: there are few. */
  async function insert(rows: Write, session: StoredSession): Promise<void> {
    await rows.deleteFrom('admin_sessions').where('expires_at', '<=', session.created_at).execute()
    await rows.insertInto('admin_sessions').values(toRow(session)).execute()
  }

  return {
    async addLink(link, audit) {
      await write(async (rows) => {
        await rows
          .deleteFrom('admin_links')
          .where('expires_at', '<=', Math.floor(audit.at_ms / 1000))
          .execute()
        await rows
          .insertInto('admin_links')
          .values({ ...link, person: link.person && JSON.stringify(link.person) })
          .execute()
        await appendAudit(rows, audit)
      })
    },

    async login({ hash, now }, make) {
      // Read first: a guess opens no transaction.
      const isKnown = await db.selectFrom('admin_links').select('hash').where('hash', '=', hash).executeTakeFirst()
      if (!isKnown) return undefined
      return write(async (rows) => {
        // The deletion takes the row's lock: another login with this link waits, and then finds no row.
        const link = await rows
          .deleteFrom('admin_links')
          .where('hash', '=', hash)
          .where('expires_at', '>', now)
          .returning(['actor', 'person'])
          .executeTakeFirst()
        if (!link) return undefined
        const { session, audit } = make(link.person === null ? null : (JSON.parse(link.person) as LinkPerson))
        await insert(rows, session)
        await appendAudit(rows, { ...audit, before: { link_of: link.actor } })
        return session
      })
    },

    async add(session, audit) {
      await write(async (rows) => {
        await insert(rows, session)
        await appendAudit(rows, audit)
      })
    },

    async findByHash(hash) {
      const row = await db.selectFrom('admin_sessions').selectAll().where('hash', '=', hash).executeTakeFirst()
      return row && fromRow(row)
    },

    page({ now, ...page }) {
      const open = db.selectFrom('admin_sessions').selectAll().where('expires_at', '>', now)
      return readPage(open, { ...page, by: ['created_at', 'session_id'], fromRow })
    },

    async touch(session_id, last_used_at) {
      await write((rows) =>
        rows
          .updateTable('admin_sessions')
          .set({ last_used_at })
          .where('session_id', '=', session_id)
          .where('last_used_at', '<', last_used_at)
          .execute(),
      )
    },

    end: (which, audit) =>
      write(async (rows) => {
        const ended = await rows
          .deleteFrom('admin_sessions')
          .$if(which !== 'all', (query) => query.where('session_id', '=', which === 'all' ? '' : which.session_id))
          .executeTakeFirst()
        const count = Number(ended.numDeletedRows)
        if (count > 0) await appendAudit(rows, audit)
        return count
      }),
  }
}

const toRow = ({ memberships, ...session }: StoredSession): SessionsTable => ({
  ...session,
  memberships: memberships.length === 0 ? null : JSON.stringify(memberships),
})

const fromRow = ({ memberships, ...row }: SessionsTable): StoredSession => ({
  ...row,
  memberships: memberships === null ? [] : JSON.parse(memberships),
})
