/** What administers the gateway: admin accounts and their rights, and the routes of the admin API. */
import type { Projects } from './accounts/projects.ts'
import { ADMIN_PREFIX, createAdminAccounts } from './admin/accounts.ts'
import { createPace } from './admin/pace.ts'
import { assertInstallation, assertRight } from './admin/rights.ts'
import type { Config, ServerSettings } from './config/config.ts'
import type { AdminAccess, Context, Route } from './http/context.ts'
import { presentedHeader } from './http/presented-secret.ts'
import type { Clock } from './kit/clock.ts'
import type { Log } from './kit/log.ts'
import { isSameText, sha256 } from './kit/secret.ts'
import { adminRoutes } from './routes/admin/table.ts'
import { GatewayError } from './spec/error.ts'
import type { Store } from './store/store.ts'

type AdministrationParts = {
  store: Pick<Store, 'admin' | 'projects' | 'tokens'>
  projects: Projects
  /** The configuration now. */
  config(): Config
  settings: ServerSettings
  clock: Clock
  log: Log
}

type Administration = {
  routes: Route[]
  /** Identifies the caller of a route of the admin API, and checks its rights. */
  admit(context: Context, access: AdminAccess): Promise<void>
}

/** Why a secret is refused as an API token, where it is that of an administrator. */
export function apiRefusal(admin_token: string | undefined): (secret: string) => string | undefined {
  const own_hash = admin_token === undefined ? undefined : sha256(admin_token)
  return (secret) => {
    const isAdmin = secret.startsWith(ADMIN_PREFIX) || (own_hash !== undefined && isSameText(sha256(secret), own_hash))
    return isAdmin ? ADMIN_TOKEN : undefined
  }
}

const ADMIN_TOKEN =
  'This is an admin token, which is accepted only below /admin: send an API token (gatehouse token create makes one).'

export function createAdministration(parts: AdministrationParts): Administration {
  const { store, config, settings, projects, clock, log } = parts
  const { admin_token } = config()
  const accounts = createAdminAccounts({
    store: store.admin.tokens,
    projects: store.projects,
    isApiToken: async (secret) =>
      secret.startsWith('sk-') || (await store.tokens.findByHash(sha256(secret))) !== undefined,
    admin_token,
    clock,
    log,
  })
  const countRequest = createPace({ requests_per_minute: () => config().admin.requests_per_minute, clock })
  const secretOf = ({ request }: Context): string => presentedHeader(request) ?? ''

  async function admit(context: Context, { right, project }: AdminAccess): Promise<void> {
    const caller = await accounts.authenticate(presentedHeader(context.request), context)
    context.admin = caller
    countRequest(caller.actor)
    assertRight(caller, right)
    if (project === undefined) assertInstallation(caller)
    else if (project !== 'own' && caller.project_id !== undefined) {
      // The same answer for what is not there and for what belongs to another project.
      if ((await project(context)) !== caller.project_id) {
        throw new GatewayError('object_not_found', 'There is no such object.')
      }
    }
  }

  const routes = config().admin.enabled
    ? adminRoutes({ projects, adminKeys: store.admin.keys, secretOf, settings, clock })
    : []
  return { routes, admit }
}
