/** The names of tokens and projects, for lists that hold their ids. */
import type { ProjectStore, TokenStore } from '../../store/tokens/account-store.ts'

/** The id where there is no name. */
export type AccountNames = (kind: 'token' | 'project', id: string) => Promise<string>

type Named = { tokens: Pick<TokenStore, 'find'>; projects: Pick<ProjectStore, 'find'> }

export function accountNames({ tokens, projects }: Named): AccountNames {
  return async (kind, id) => {
    const account = kind === 'token' ? await tokens.find(id) : await projects.find(id)
    return account?.name || id
  }
}
