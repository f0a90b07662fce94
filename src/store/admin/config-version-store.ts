/** Contract of the stored configurations that were in force. */
import type { StorePage } from '../page.ts'

export type ConfigVersion = {
  version_id: string
  at_ms: number
  actor: string
  file: string
  /** Of the text with its secrets. */
  hash: string
  /** With masks for what may be a secret. */
  text: string
  /** What differs from the one before, as the admin API shows it. */
  changes: object[]
}

export type ConfigVersionStore = {
  /** Whether the last one of the file has this hash. */
  isLast(version: Pick<ConfigVersion, 'file' | 'hash'>): Promise<boolean>
  /** Unless it is the last one: false then. Keeps the newest 200. */
  add(version: ConfigVersion): Promise<boolean>
  /** Newest first, without texts. */
  page(options: { limit: number; after?: string[] }): Promise<StorePage<Omit<ConfigVersion, 'text'>>>
  find(version_id: string): Promise<ConfigVersion | undefined>
}
