/** Finds or makes the token by which a person calls models in the console: one for each person and project, without a secret. */
import type { AuditOrigin } from '../spec/audit.ts'
import { GatewayError } from '../spec/error.ts'
import type { StoredToken, TokenStore } from '../store/tokens/account-store.ts'
import { playgroundKey } from '../store/tokens/playground-key.ts'
import type { Grant } from './grant.ts'
import { makeToken } from './issue.ts'
import type { KnownTokens } from './known.ts'

/** `project_id` null: of no project, for who administers the whole installation. */
export type PlaygroundPerson = {
  actor: string
  project_id: string | null
  /** Of the token. Default: of the playground. */
  name?: string
}

type PlaygroundParts = {
  store: Pick<TokenStore, 'findByHash'>
  known: Pick<KnownTokens, 'recall' | 'find'>
  add(token: StoredToken, by: AuditOrigin): Promise<void>
  /** Throws invalid_value for a project that is not there. */
  assertProject(project_id: string | null): Promise<void>
  now(): number
}

const PREFIX = 'playground'
const MAX_NAME = 100

export function createPlaygroundTokens({ store, known, add, assertProject, now }: PlaygroundParts) {
  async function make(
    { actor, project_id, name = `${PREFIX} of ${actor}` }: PlaygroundPerson,
    hash: string,
    by: AuditOrigin,
  ): Promise<void> {
    await assertProject(project_id)
    // What it may use is what its project may: the defaults are for tokens that leave the gateway.
    const { token } = makeToken(
      { name: name.slice(0, MAX_NAME), project_id, models: ['*'], families: null, expires_at: null },
      { defaults: {}, now: now() },
    )
    await add({ ...token, hash, prefix: PREFIX, playground: actor }, by)
  }

  return async (person: PlaygroundPerson, by: AuditOrigin): Promise<Grant> => {
    const key = playgroundKey(person)
    const present = known.recall(key) ?? (await known.find(key))
    if (present) return present
    const stored = await store.findByHash(key)
    if (stored) assertActive(stored)
    else {
      await make(person, key, by).catch(async (cause) => {
        // Another request has made it meanwhile.
        if (!(await store.findByHash(key))) throw cause
      })
    }
    const made = await known.find(key)
    if (made) return made
    throw new GatewayError('storage_unavailable', 'The token of the playground could not be read; try again.')
  }
}

function assertActive({ token_id, disabled }: StoredToken): void {
  if (!disabled) return
  const message = `Your token of the playground in this project, ${token_id}, is revoked.`
  throw new GatewayError('permission_denied', message)
}

/** Throws permission_denied for a token of the playground: it has no secret, and belongs to its person and project. */
export function assertNotPlayground({ token_id, playground }: Pick<StoredToken, 'token_id' | 'playground'>): void {
  if (playground === undefined) return
  const message = `The token ${token_id} is that of ${playground} in the playground: it has no secret, and stays in its project.`
  throw new GatewayError('permission_denied', message)
}
