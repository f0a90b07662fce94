/** The condition by which a page of tokens or projects is chosen. */
import { type RawBuilder, sql } from 'kysely'
import { placeNumber } from '../page.ts'
import type { AccountPageOptions } from './account-store.ts'

/** `ids`: the columns whose start is searched beside the name. Throws invalid_value for a cursor that is none. */
export function filteredAccounts(
  { text, is_active, now, newestFirst = false, after }: Omit<AccountPageOptions, 'limit'>,
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
  if (after !== undefined) {
    const place = placeNumber(after[0])
    conditions.push(newestFirst ? sql`added_revision < ${place}` : sql`added_revision > ${place}`)
  }
  return sql<boolean>`${sql.join(conditions, sql` and `)}`
}

const escaped = (text: string): string => text.replace(/[\\%_]/g, '\\$&')
