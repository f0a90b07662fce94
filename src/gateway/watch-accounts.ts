/** Wraps the stores of tokens and projects, and calls listeners when their revision has changed. */
import type { Store } from '../store/store.ts'
import type { ProjectStore, TokenStore } from '../store/tokens/account-store.ts'

export type WatchedAccounts = {
  store: TokenStore
  projects: ProjectStore
  /** Called after each look that finds another revision than the one before. */
  onRevision(listener: () => void): void
}

export function watchAccounts({ tokens, projects }: Pick<Store, 'tokens' | 'projects'>): WatchedAccounts {
  let known: number | undefined
  let listener = () => {}
  async function revision(): Promise<number> {
    const now = await tokens.revision()
    if (known !== undefined && now !== known) listener()
    known = now
    return now
  }
  return {
    store: { ...tokens, revision },
    projects,
    onRevision(next) {
      listener = next
    },
  }
}
