/** Admin tokens: create, list, revoke, authenticate. */
import { isSecret } from '../../accounts/issue.ts'
import { readSettings } from '../../accounts/settings.ts'
import { createSlowDown } from '../../accounts/slow-down.ts'
import type { Config } from '../../config/config.ts'
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import { isSameText, randomAlphanumerics, sha256 } from '../../kit/secret.ts'
import { type AdminCaller, type AdminRole, type AdminToken, isProjectRole, PROJECT_ROLES } from '../../spec/admin.ts'
import { type AuditOrigin, BY_GATEWAY } from '../../spec/audit.ts'
import { GatewayError, invalidValue } from '../../spec/error.ts'
import type { AdminTokenStore, StoredAdminToken } from '../../store/admin/admin-store.ts'
import type { StorePage } from '../../store/page.ts'
import type { ProjectStore } from '../../store/tokens/account-store.ts'

type From = { readonly address: string; signal: AbortSignal; readonly request_id?: string }

type AdminTokenOrder = {
  name: string
  role: AdminRole
  /** Of a role that is bound to a project, and of no other. */
  project_id?: string | null
  /** Unix seconds; null: never. */
  expires_at?: number | null
}

export type AdminAccounts = {
  /** The administrator with this secret. Throws invalid_api_key, after a delay that grows with the failures of an address. */
  authenticate(secret: string | undefined, from: From): Promise<AdminCaller>
  /** Throws invalid_value where the role needs a project, or has none. */
  assertProject(order: Pick<AdminTokenOrder, 'role' | 'project_id'>): Promise<void>
  isActive(hash: string): Promise<boolean>
  /** Refuses a wrong secret of another kind: with the same delay. */
  refuse(from: From, message?: string): Promise<never>
  /** Throws invalid_value, naming the field. The secret is shown only once. */
  issue(order: AdminTokenOrder, by: AuditOrigin): Promise<{ token: AdminToken; secret: string }>
  page(options: { limit: number; after?: string[] }): Promise<StorePage<AdminToken>>
  /** Undefined if there is none. */
  find(admin_token_id: string): Promise<AdminToken | undefined>
  /** Throws permission_denied for one of the configuration file. */
  revoke(admin_token_id: string, by: AuditOrigin): Promise<AdminToken | undefined>
  /** Makes the tokens of the file equal to these. `projectId`: of a project of the file, by its name. */
  declare(declared: Config['admin_tokens'], projectId: (name: string) => string | undefined): Promise<void>
}

type AccountParts = {
  store: AdminTokenStore
  projects: Pick<ProjectStore, 'find'>
  isApiToken(secret: string): Promise<boolean>
  /** The owner token of the environment; undefined: there is none. */
  admin_token: string | undefined
  /** Called for each wrong secret. */
  onFailure?(from: From): Promise<void>
  clock: Clock
  log: Log
}

export const ADMIN_PREFIX = 'gha-'
const SECRET_LENGTH = 48
const VISIBLE_LENGTH = 10
/** A time of last use is written at most so often. */
const TOUCH_SECONDS = 60

const REFUSAL = 'Missing or invalid admin token. Send it as "Authorization: Bearer <admin token>".'
const API_TOKEN =
  'This is an API token, which the admin API does not accept: send an admin token (gha-...), or the value of GATEHOUSE_ADMIN_TOKEN.'

export function createAdminAccounts(parts: AccountParts): AdminAccounts {
  const { store, projects, isApiToken, admin_token, onFailure = async () => {}, clock, log } = parts
  const slowDown = createSlowDown({ clock, log })
  const now = () => unixSeconds(clock)
  const own_hash = admin_token === undefined ? undefined : sha256(admin_token)

  const draft = (by: AuditOrigin, action: string, states: { before?: AdminToken; after: AdminToken }) => ({
    ...by,
    at_ms: clock.now(),
    action,
    object_type: 'admin_token',
    object_id: states.after.admin_token_id,
    project_id: states.after.project_id,
    ...states,
  })

  async function refuse(from: From, message = REFUSAL): Promise<never> {
    const recorded = onFailure(from)
    await slowDown.failed(from.address, from.signal)
    await recorded
    throw new GatewayError('invalid_api_key', message)
  }

  async function touch({ admin_token_id, last_used_at }: StoredAdminToken): Promise<void> {
    if (last_used_at !== null && now() - last_used_at < TOUCH_SECONDS) return
    await store.touch(admin_token_id, now()).catch((error: unknown) => {
      log.error('the last use of an admin token was not stored', { admin_token_id }, error)
    })
  }

  /** Those of the file as they are now; declared ones that are not in it any more are revoked. */
  async function declare(declared: Config['admin_tokens'], projectId: (name: string) => string | undefined) {
    const kept = new Set<string>()
    for (const [name, { secret, role, project, expires_at = null }] of Object.entries(declared)) {
      const project_id = project === undefined ? null : (projectId(project) ?? null)
      const settings = { name, role, project_id, expires_at, disabled: false, declared: true }
      const token = await store.declare({ ...made(secret), ...settings }, (before, after) =>
        draft(BY_GATEWAY, before ? 'admin_token.update' : 'admin_token.create', {
          ...(before && { before: shown(before) }),
          after: shown(after),
        }),
      )
      kept.add(token.admin_token_id)
    }
    for (const { admin_token_id, name } of await store.declared()) {
      if (kept.has(admin_token_id)) continue
      await revoke(admin_token_id, BY_GATEWAY)
      log.warn('an admin token was revoked: it is not in the file any more', { admin_token: name, admin_token_id })
    }
  }

  async function revoke(admin_token_id: string, by: AuditOrigin): Promise<AdminToken | undefined> {
    const token = await store.revoke(admin_token_id, (before, after) =>
      draft(by, 'admin_token.revoke', { before: shown(before), after: shown(after) }),
    )
    return token && shown(token)
  }

  const made = (secret: string) => ({
    admin_token_id: `adm_${randomAlphanumerics(16)}`,
    prefix: secret.slice(0, VISIBLE_LENGTH),
    hash: sha256(secret),
    created_at: now(),
    last_used_at: null,
  })

  async function assertProject({ role, project_id }: Pick<AdminTokenOrder, 'role' | 'project_id'>): Promise<void> {
    if (!isProjectRole(role)) {
      if (project_id === undefined || project_id === null) return
      throw invalidProject(`only ${PROJECT_ROLES.join(' and ')} are bound to a project; ${role} is not`)
    }
    const project = project_id ? await projects.find(project_id) : undefined
    if (!project_id) throw invalidProject(`a ${role} needs the project that it is bound to`)
    if (!project || project.deleted_at !== null)
      throw invalidProject(`there is no project ${JSON.stringify(project_id)}`)
  }

  const isValid = ({ disabled, expires_at }: StoredAdminToken): boolean =>
    !disabled && (expires_at === null || expires_at > now())

  return {
    refuse,
    assertProject,

    async isActive(hash) {
      if (own_hash !== undefined && isSameText(hash, own_hash)) return true
      const token = await store.findByHash(hash)
      return token !== undefined && isValid(token)
    },

    async authenticate(secret, from) {
      // Nothing was guessed, so there is no delay.
      if (secret === undefined || secret === '') throw new GatewayError('invalid_api_key', REFUSAL)
      if (!isSecret(secret)) return refuse(from)
      const hash = sha256(secret)
      if (own_hash !== undefined && isSameText(hash, own_hash)) {
        return { actor: 'environment', role: 'owner', via: 'token' }
      }
      // The hash of a guess says nothing about how near it is, so a search by it needs no constant time.
      const found = await store.findByHash(hash)
      if (!found || !isValid(found)) return refuse(from, (await isApiToken(secret)) ? API_TOKEN : REFUSAL)
      await touch(found)
      const { admin_token_id, role, project_id } = found
      return { actor: `admin:${admin_token_id}`, role, via: 'token', ...(project_id !== null && { project_id }) }
    },

    async issue(order, by) {
      await assertProject(order)
      const { name = '', expires_at = null } = readSettings(
        { name: order.name, expires_at: order.expires_at ?? null },
        now(),
      )
      const secret = `${ADMIN_PREFIX}${randomAlphanumerics(SECRET_LENGTH)}`
      const { role, project_id = null } = order
      const settings = { name, role, project_id, expires_at, disabled: false, declared: false }
      const token: StoredAdminToken = { ...made(secret), ...settings }
      await store.add(token, draft(by, 'admin_token.create', { after: shown(token) }))
      return { token: shown(token), secret }
    },

    async page(options) {
      const { rows, next } = await store.page(options)
      return { rows: rows.map(shown), next }
    },

    async find(admin_token_id) {
      const token = await store.find(admin_token_id)
      return token && shown(token)
    },

    async revoke(admin_token_id, by) {
      const present = await store.find(admin_token_id)
      if (present?.declared && !present.disabled) throw declaredInFile(present.name)
      return revoke(admin_token_id, by)
    },
    declare,
  }
}

const declaredInFile = (name: string) =>
  new GatewayError(
    'permission_denied',
    `The admin token ${JSON.stringify(name)} is declared in the configuration file (admin_tokens.${name}): change it there.`,
  )

function shown({ hash: _, ...token }: StoredAdminToken): AdminToken {
  return token
}

const invalidProject = (trouble: string) => invalidValue('project_id', `project_id: ${trouble}.`)
