/** A token of the configuration file as it is stored, and what it forbids to others. */
import type { AuditOrigin } from '../spec/audit.ts'
import { GatewayError } from '../spec/error.ts'
import type { StoredToken, TokenStore } from '../store/tokens/account-store.ts'
import { formatOf, makeToken } from './issue.ts'
import { type AccountSettings, importLabels, readSettings } from './settings.ts'

/** For the configuration file: the token with this secret, or of this name, is like this, and nobody else changes it. */
export type DeclareToken = (
  order: AccountSettings & { project_id: string | null },
  given: { secret: string; hash: string },
  by: AuditOrigin,
) => Promise<{ token_id: string; isAdopted: boolean }>

type DeclareParts = {
  store: Pick<TokenStore, 'findByHash' | 'list'>
  add(token: StoredToken, by: AuditOrigin): Promise<void>
  change(
    token_id: string,
    change: { fields: (present: StoredToken) => Partial<StoredToken>; action: 'token.update'; by: AuditOrigin },
  ): Promise<unknown>
  now(): number
}

export const declareToken =
  ({ store, add, change, now }: DeclareParts): DeclareToken =>
  async ({ project_id, ...settings }, { secret, hash }, by) => {
    // Nobody else may know a secret of it, such as the one before a rotation.
    const previous = { previous_hash: null, previous_expires_at: null }
    const declared = { ...readSettings(settings, 0), project_id, ...previous, disabled: false, declared: true }
    const isSame = isNamed(settings.name, project_id)
    const earlier = (await store.findByHash(hash)) ?? (await store.list()).find(isSame)
    if (!earlier) {
      const { token } = makeToken({ name: settings.name, secret }, { defaults: {}, now: now() })
      try {
        await add({ ...token, ...declared }, by)
        return { token_id: token.token_id, isAdopted: false }
      } catch (cause) {
        // Another process has created it meanwhile.
        if (!(await store.findByHash(hash))) throw cause
      }
    }
    const found = earlier ?? (await store.findByHash(hash))
    if (!found) throw new GatewayError('storage_unavailable', 'The tokens change too fast; try again.')
    const { token_id } = found
    const fields = (present: StoredToken) =>
      differing(present, {
        ...declared,
        labels: { ...settings.labels, ...importLabels(present.labels) },
        ...(present.hash !== hash && formatOf(secret)),
      })
    await change(token_id, { fields, action: 'token.update', by })
    return { token_id, isAdopted: earlier !== undefined && !earlier.declared }
  }

/** One of another project is not adopted: its administrator would have a token of this one. */
const isNamed =
  (expected: string, expected_project: string | null) =>
  ({ name, project_id, declared, disabled, playground }: StoredToken) =>
    name === expected &&
    !disabled &&
    playground === undefined &&
    (declared === true || project_id === null || project_id === expected_project)

/** The members that differ, so that nothing is written, and nothing recorded, where none does. */
export function differing<T extends object>(present: T, next: Partial<T>): Partial<T> {
  const changed = Object.entries(next).filter(
    ([name, value]) => JSON.stringify(present[name as keyof T] ?? null) !== JSON.stringify(value ?? null),
  )
  return Object.fromEntries(changed) as Partial<T>
}

/** Throws permission_denied for what only the file may change. */
export function assertNotDeclared(
  kind: 'project' | 'token',
  { name, declared }: { name: string; declared?: boolean },
): void {
  if (!declared) return
  const place = `${kind === 'project' ? 'projects' : 'api_tokens'}.${name}`
  throw new GatewayError(
    'permission_denied',
    `The ${kind} ${JSON.stringify(name)} is declared in the configuration file (${place}): change it there.`,
  )
}
