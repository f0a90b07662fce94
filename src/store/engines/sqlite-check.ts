/** Checks a SQLite file with SQLite's own check, and changes nothing. */
import { Database } from 'bun:sqlite'
import { statSync } from 'node:fs'
import type { StoreCheck } from '../store.ts'

/** A process that starts may hold the file for a moment. */
const BUSY_MILLISECONDS = 10_000

export function checkSqlite(path: string, { is_quick }: { is_quick: boolean }): StoreCheck {
  const pragma = is_quick ? 'quick_check' : 'integrity_check'
  const found = (problems: string[]): StoreCheck => ({ engine: 'sqlite', checked: [pragma], problems })
  // SQLite takes an empty file for a sound database without tables.
  if (statSync(path).size === 0) return found(['the file is empty'])
  let file: Database | undefined
  try {
    file = new Database(path, { readonly: true })
    file.run(`pragma busy_timeout = ${BUSY_MILLISECONDS}`)
    const rows = file.query<Record<string, string>, []>(`pragma ${pragma}`).all()
    // The text of one row may have several lines.
    const lines = rows.flatMap((row) => Object.values(row)).flatMap((text) => text.split('\n'))
    return found(lines.filter((line) => line !== 'ok'))
  } catch (cause) {
    if (!isDamage(cause)) throw new Error(`Cannot check ${path}: ${cause instanceof Error ? cause.message : cause}.`)
    return found([cause.message])
  } finally {
    file?.close()
  }
}

/** Damage may also prevent the check from running at all. */
const isDamage = (cause: unknown): cause is Error =>
  cause instanceof Error && 'code' in cause && /^SQLITE_(CORRUPT|NOTADB)/.test(String(cause.code))
