/** Creates the administration: admin accounts and their rights, and the routes of the admin API. */
import type { Projects } from '../accounts/projects.ts'
import type { LimitsRouteParts } from '../accounts/routes/limits-route.ts'
import type { Tokens } from '../accounts/tokens.ts'
import { ADMIN_PREFIX, createAdminAccounts } from '../admin/access/administrators.ts'
import { createFailedLogins } from '../admin/access/failed-logins.ts'
import { inNamedProject, membershipIn } from '../admin/access/memberships.ts'
import { createOidcLogin } from '../admin/access/oidc.ts'
import { createPace } from '../admin/access/pace.ts'
import { assertInstallation, assertRight } from '../admin/access/rights.ts'
import { type AdminSessions, createAdminSessions } from '../admin/access/sessions.ts'
import { type Audit, createAudit } from '../admin/audit/audit.ts'
import { createConfigHistory } from '../admin/config-history.ts'
import type { ReadinessRouteParts } from '../admin/routes/readiness.ts'
import { adminRoutes } from '../admin/routes/table.ts'
import type { Config, ServerSettings } from '../config/config.ts'
import { settingChanges } from '../config/edit/effective.ts'
import { requestBaseUrl } from '../families/tasks/routes/request-parameters.ts'
import type { AdminAccess, Context, Route } from '../http/context.ts'
import { presentedHeader } from '../http/request-parts.ts'
import { assertSameOrigin, sessionCookie } from '../http/session-cookie.ts'
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import { isSameText, sha256 } from '../kit/secret.ts'
import type { LiveEvents } from '../observe/requests/live-events.ts'
import type { RequestReader } from '../observe/requests/request-reader.ts'
import type { Summaries } from '../observe/requests/summaries.ts'
import { consoleRoutes } from '../site/console-routes.ts'
import type { AdminCaller } from '../spec/admin.ts'
import { BY_GATEWAY } from '../spec/audit.ts'
import { GatewayError, invalidValue } from '../spec/error.ts'
import type { Store } from '../store/store.ts'
import type { Metering } from './metering.ts'

type AdministrationParts = ReadinessRouteParts & {
  store: Pick<Store, 'admin' | 'audit' | 'projects' | 'tokens' | 'engine' | 'configVersions'>
  /** Of the process. */
  environment: Readonly<Record<string, string | undefined>>
  metering: Pick<Metering, 'scrape'> | undefined
  projects: Projects
  requests: RequestReader
  summaries: Summaries
  live: LiveEvents
  tokens: Tokens
  /** What a token may still use. */
  reports: LimitsRouteParts
  config(): Config
  settings: ServerSettings
  /** The routes with which operators control the gateway. */
  controls(audit: Audit): Route[]
  clock: Clock
  log: Log
}

type Administration = {
  routes: Route[]
  app: {
    /** Identifies the caller of a route of the admin API, and checks its rights. */
    admitAdmin(context: Context, access: AdminAccess): Promise<void>
    hasAdminListener: boolean
  }
  /** The secret of a link for the first login; undefined where the admin API is off. */
  firstLogin(): Promise<string | undefined>
  audit: Audit
  /** Declares the admin tokens of the file. */
  start(): Promise<void>
  /** The same for another configuration, which is recorded. */
  reloaded(before: Config, after: Config): Promise<void>
  sessions: AdminSessions
}

/** Why a secret is refused as an API token, where it is that of an administrator. */
export function apiRefusal(admin_token: string | undefined): (secret: string) => string | undefined {
  const own_hash = admin_token === undefined ? undefined : sha256(admin_token)
  return (secret) => {
    const isAdmin = secret.startsWith(ADMIN_PREFIX) || (own_hash !== undefined && isSameText(sha256(secret), own_hash))
    return isAdmin ? ADMIN_TOKEN : undefined
  }
}

/** Of one reload, in the audit log. */
const MAX_CHANGES = 200
const ADMIN_TOKEN =
  'This is an admin token, which is accepted only below /admin: send an API token (gatehouse token create makes one).'

/** PostgreSQL refuses NUL in a text. No id has one, and no filter can match one. */
function assertNoNul(context: Context): void {
  const isInPath = Object.values(context.params).some((value) => value.includes('\0'))
  if (isInPath) throw new GatewayError('object_not_found', 'There is no such object.')
  for (const [param, value] of context.query()) {
    const message = `"${param.replaceAll('\0', '').slice(0, 100)}" contains a NUL character, which is not allowed.`
    if (`${param}${value}`.includes('\0')) throw invalidValue(param, message)
  }
}

export function createAdministration(parts: AdministrationParts): Administration {
  const { store, config, settings, projects, tokens, controls, clock, log } = parts
  const { admin_token } = config()
  const audit = createAudit({ store: store.audit, clock })
  const accounts = createAdminAccounts({
    store: store.admin.tokens,
    projects: store.projects,
    isApiToken: async (secret) =>
      secret.startsWith('sk-') || (await store.tokens.findByHash(sha256(secret))) !== undefined,
    admin_token,
    onFailure: createFailedLogins({ audit, clock, log }),
    clock,
    log,
  })
  const history = createConfigHistory({ store: store.configVersions, file: config().file, clock, log })
  const countRequest = createPace({ requests_per_minute: () => config().admin.requests_per_minute, clock })
  const sessions = createAdminSessions({
    store: store.admin.sessions,
    isActive: accounts.isActive,
    settings: () => config().admin,
    clock,
    log,
  })
  const secretOf = ({ request }: Context): string => presentedHeader(request) ?? sessionCookie(request) ?? ''
  const hostsOf = ({ request }: Context): string[] =>
    [request.headers.get('host') ?? '', new URL(requestBaseUrl(request, settings)).host].filter(Boolean)

  /** A token in a header counts before a cookie, which a browser adds by itself. */
  async function identify(context: Context): Promise<AdminCaller> {
    const { request } = context
    const [secret, cookie] = [presentedHeader(request), sessionCookie(request)]
    if (secret !== undefined || cookie === undefined)
      return ofPresentProject(inNamedProject(await accounts.authenticate(secret, context), context), context)
    assertSameOrigin(request, hostsOf(context))
    const found = await sessions.callerOf(cookie)
    const caller = found && inNamedProject(found, context)
    return caller ? ofPresentProject(caller, context) : accounts.refuse(context, 'The session has ended: log in again.')
  }

  /** Who is bound to a project is an administrator for as long as the project is there. */
  async function ofPresentProject(caller: AdminCaller, context: Context): Promise<AdminCaller> {
    if (caller.project_id === undefined || (await projects.find(caller.project_id))) return caller
    return accounts.refuse(context, 'The project of this administrator was deleted.')
  }

  async function admit(context: Context, { right, project }: AdminAccess): Promise<void> {
    const caller = await identify(context)
    assertNoNul(context)
    context.admin = caller
    countRequest(caller.actor)
    // Who is in several projects has the right of that of the object.
    const isPlaced = typeof project === 'function' && caller.memberships !== undefined
    if (!isPlaced) assertRight(caller, right)
    if (project === undefined) assertInstallation(caller)
    else if (project !== 'own' && caller.project_id !== undefined) {
      // The same answer for what is not there and for what belongs to another project.
      const project_id = await project(context)
      const membership = membershipIn(caller, project_id)
      if (!membership) throw new GatewayError('object_not_found', 'There is no such object.')
      context.admin = { ...caller, ...membership }
      assertRight(context.admin, right)
    }
  }

  const routes = config().admin.enabled
    ? adminRoutes({
        controls: controls(audit),
        projects,
        requests: parts.requests,
        summaries: parts.summaries,
        named: store,
        live: parts.live,
        limits: parts.reports.limits,
        ready: parts.ready,
        health: parts.health,
        version: parts.version,
        engine: store.engine,
        guardNames: () => Object.keys(config().guards),
        contentsProblem: () =>
          config().contents_key === undefined || !config().request_log.enabled
            ? 'Contents are stored only encrypted, with a row of the request log: the gateway needs GATEHOUSE_CONTENTS_KEY and request_log.enabled.'
            : undefined,
        environment: parts.environment,
        scrape: parts.metering?.scrape,
        admit,
        tokens,
        accounts,
        currency: () => config().ledger.currency,
        sessions,
        audit,
        oidc: createOidcLogin({ settings: () => config().admin.oidc, projects: store.projects, clock, log }),
        refuseSecret: accounts.refuse,
        refuseLogin: (context) => accounts.refuse(context, 'The link is not valid: it was used, or has expired.'),
        hostsOf,
        adminKeys: store.admin.keys,
        secretOf,
        settings,
        clock,
        log,
      })
    : []
  async function declare({ admin_tokens }: Config): Promise<void> {
    const known = Object.keys(admin_tokens).length === 0 ? [] : await projects.list()
    await accounts.declare(admin_tokens, (name) => known.find((project) => project.name === name)?.project_id)
  }

  async function reloaded(before: Config, after: Config): Promise<void> {
    await declare(after)
    const changes = settingChanges({ config: before }, { config: after }).slice(0, MAX_CHANGES)
    const event = {
      ...BY_GATEWAY,
      action: 'config.reload',
      object_type: 'configuration',
      object_id: after.file ?? '',
      before: Object.fromEntries(changes.map((change) => [change.path, change.before])),
      after: Object.fromEntries(changes.map((change) => [change.path, change.after])),
    }
    await history.record({ actor: BY_GATEWAY.actor, changes })
    await audit.record(event).catch((error: unknown) => log.error('a reload was not recorded', {}, error))
  }

  return {
    routes: config().admin.enabled ? [...routes, ...consoleRoutes()] : [],
    app: { admitAdmin: admit, hasAdminListener: config().admin.port !== undefined },
    firstLogin: async () => (config().admin.enabled ? (await sessions.createLink(BY_GATEWAY)).secret : undefined),
    audit,
    sessions,
    async start() {
      await declare(config())
      await history.record({ actor: BY_GATEWAY.actor, changes: [] })
    },
    reloaded,
  }
}
