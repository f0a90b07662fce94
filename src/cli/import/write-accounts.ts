/** Projects and tokens of an import as the store takes them. */
import { type AdoptedProject, type AdoptedToken, ORIGIN_LABEL } from '../../accounts/adopt.ts'
import { readSettings } from '../../accounts/settings.ts'
import { type Draft, type ImportedAccount, stableId } from './imported.ts'

type Accounts = {
  projects: AdoptedProject[]
  tokens: AdoptedToken[]
  known: { origin: string; tokens: Map<string, boolean> } | undefined
}

/** An account that is not valid here is left out, which is reported. */
export function accountsOf(draft: Draft): Accounts {
  const { source, origin, listed } = draft
  const idOf = (external_id: string) => stableId('tok', origin, external_id)
  const known = listed?.size
    ? { origin, tokens: new Map([...listed].map(([id, isAllowed]) => [idOf(id), isAllowed])) }
    : undefined
  const accounts: Accounts = { projects: [], tokens: [], known }
  const ids = new Map<string, string>()
  const tokens = draft.tokens.flatMap((token) => {
    const settings = settingsOf(draft, token, 'token')
    return settings ? [{ ...token, settings }] : []
  })
  for (const project of draft.projects) {
    const settings = settingsOf(draft, project, 'project')
    if (!settings) continue
    const project_id = stableId('proj', origin, project.external_id)
    ids.set(project.external_id, project_id)
    const { disabled, used, resets_at } = project
    accounts.projects.push({ project_id, settings, disabled, used, resets_at })
  }
  for (const token of tokens) {
    const project_id = token.project === undefined ? null : ids.get(token.project)
    if (project_id === undefined) continue
    const { external_id, hash, settings, disabled, used, resets_at } = token
    const key = { hash, prefix: 'sk-', mayRotate: source === 'bifrost' }
    accounts.tokens.push({ token_id: idOf(external_id), project_id, ...key, settings, disabled, used, resets_at })
  }
  return accounts
}

function settingsOf(
  draft: Draft,
  { name, settings, labels = {}, external_id }: ImportedAccount,
  kind: 'project' | 'token',
) {
  // The id of a token is the hash of its key.
  const origin = {
    [ORIGIN_LABEL]: draft.origin,
    ...(kind === 'project' && { 'import/id': external_id.slice(0, 256) }),
  }
  const given = { ...settings, name: name.trim().slice(0, 100), labels: { ...labels, ...origin } }
  try {
    readSettings(given, 0)
    return given
  } catch (error) {
    return void draft.dropped(`${kind} ${name}`, (error as Error).message)
  }
}
