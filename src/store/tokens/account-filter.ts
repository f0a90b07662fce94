/** The condition by which a page of tokens or projects is chosen. */
import { type RawBuilder, sql } from 'kysely'
import type { AccountPageOptions } from './account-store.ts'

/** `ids`: the columns whose start is searched beside the name. */
export function filteredAccounts(
  { text, is_active, now }: Pick<AccountPageOptions, 'text' | 'is_active' | 'now'>,
  ids: string[],
): RawBuilder<boolean> {
  const conditions: RawBuilder<unknown>[] = [sql`1 = 1`]
  if (text !== undefined) {
    const part = escaped(text.toLowerCase())
    const starts = ids.map((column) => sql`${sql.ref(column)} like ${`${escaped(text)}%`} escape '\\'`)
    conditions.push(sql`(${sql.join([sql`lower(name) like ${`%${part}%`} escape '\\'`, ...starts], sql` or `)})`)
  }
  if (is_active !== undefined) {
    const ended = sql`(disabled <> 0 or (expires_at is not null and expires_at <= ${now}))`
    conditions.push(is_active ? sql`not ${ended}` : ended)
  }
  return sql<boolean>`${sql.join(conditions, sql` and `)}`
}

const escaped = (text: string): string => text.replace(/[\\%_]/g, '\\$&')
