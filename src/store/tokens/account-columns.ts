/** The columns that tokens and projects have in common, and the revision that counts the changes of both. */
import {
  ACCOUNT_SETTING_NAMES,
  ACCOUNT_SETTINGS,
  type AccountSettingName,
  type AccountValues,
} from '../../spec/account-settings.ts'
import type { Project } from '../../spec/token.ts'
import { addToRevision } from '../revisions.ts'
import type { AccountColumns, SettingColumns, Write } from '../tables.ts'

type Account = Omit<Project, 'project_id' | 'log_contents'>

const toJson = (value: unknown): string | null => (value === null ? null : JSON.stringify(value))

export const toAccountColumns = (account: Account): AccountColumns => ({
  name: account.name,
  ...settingColumns((name) => columnOf(name, account[name])),
  disabled: account.disabled ? 1 : 0,
  declared: account.declared ? 1 : 0,
  created_at: account.created_at,
})

export const fromAccountColumns = (row: AccountColumns): Account => ({
  name: row.name,
  ...settingValues((name) => {
    const value = row[name]
    return ACCOUNT_SETTINGS[name].is_json && typeof value === 'string' ? JSON.parse(value) : value
  }),
  disabled: row.disabled === 1,
  ...(row.declared === 1 && { declared: true }),
  created_at: row.created_at,
})

const settingColumns = (of: (name: AccountSettingName) => unknown) =>
  Object.fromEntries(ACCOUNT_SETTING_NAMES.map((name) => [name, of(name)])) as SettingColumns
const settingValues = (of: (name: AccountSettingName) => unknown) =>
  Object.fromEntries(ACCOUNT_SETTING_NAMES.map((name) => [name, of(name)])) as AccountValues

const isJson = (name: string): boolean =>
  Object.hasOwn(ACCOUNT_SETTINGS, name) && ACCOUNT_SETTINGS[name as AccountSettingName].is_json

function columnOf(name: string, value: unknown): string | number | null {
  if (isJson(name)) return toJson(value)
  return typeof value === 'boolean' ? Number(value) : (value as string | number | null)
}

/** Only the given fields: an absent field must not become null. */
export function changedColumns(change: Record<string, unknown>): Record<string, string | number | null> {
  const columns: Record<string, string | number | null> = {}
  for (const [name, value] of Object.entries(change)) {
    if (value !== undefined) columns[name] = columnOf(name, value)
  }
  return columns
}

/** Counts a change of a token or a project, in the same transaction: no reader sees one without the other. */
export const bumpRevision = (write: Write): Promise<number> => addToRevision(write, 'tokens', 1)

/** Changes nothing, but is written: the changes of other transactions wait for this one. */
export const lockRevision = (write: Write): Promise<number> => addToRevision(write, 'tokens', 0)
