/** The names of tokens and projects, for lists that hold their ids. */
import type { ProjectStore, TokenStore } from '../../store/tokens/account-store.ts'

export type NamedAccounts = { tokens: Pick<TokenStore, 'find'>; projects: Pick<ProjectStore, 'find'> }

/** The id where there is no name. */
export async function nameOf(
  { tokens, projects }: NamedAccounts,
  kind: 'token' | 'project',
  id: string,
): Promise<string> {
  const account = kind === 'token' ? await tokens.find(id) : await projects.find(id)
  return account?.name || id
}
