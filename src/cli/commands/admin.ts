/** `gatehouse admin`: administrators of the gateway, on its store. */
import { createAdminAccounts } from '../../admin/access/administrators.ts'
import { createAdminSessions } from '../../admin/access/sessions.ts'
import type { Config } from '../../config/config.ts'
import { systemClock, unixSeconds } from '../../kit/clock.ts'
import { createLog } from '../../kit/log.ts'
import { ADMIN_ROLES, type AdminRole, type AdminToken } from '../../spec/admin.ts'
import { commandOf, STORE_OPTIONS_HELP, type StoreWork, storeAction } from '../accounts.ts'
import { commandLineActor } from '../actor.ts'
import { UsageError } from '../arguments.ts'
import { readExpiry } from '../expiry.ts'
import { secretOutcome } from '../outcome.ts'
import { headedTable, timeText } from '../table.ts'

const HELP = `Usage: gatehouse admin <login | create | list | revoke> [options]

Works on the store, whether or not a gateway is running. The roles are owner, operator, viewer, and for one project
project_admin and project_member.

Commands:
  login              print a link that logs a browser in as owner, once, within 15 minutes
      --url <address>        how the browser reaches the gateway (default: GATEHOUSE_URL, then the configuration)
  create             create an admin token, and print its secret
      --name <name>          what it is for
      --role <role>          ${ADMIN_ROLES.join(', ')}
      --project <project>    of a role of one project: the id or the name of it
      --expires <time>       90d, 12h, 2027-01-31, or never (default)
  list               list admin tokens, revoked ones too
  revoke <id>        revoke an admin token, at once in every process

Options:
  --quiet            print only what a script needs
${STORE_OPTIONS_HELP}

Examples:
  gatehouse admin login
  gatehouse admin create --name dashboard --role viewer
`

export const run = commandOf('admin', HELP, {
  login: storeAction({
    flags: { url: 'text', quiet: 'switch' },
    creates: true,
    has_defaults: true,
    run: login,
  }),
  create: storeAction({
    flags: { name: 'text', role: 'text', project: 'text', expires: 'text', quiet: 'switch' },
    creates: true,
    run: create,
  }),
  list: storeAction({ run: list }),
  revoke: storeAction({ flags: { quiet: 'switch' }, positionals: ['the id of an admin token'], run: revoke }),
})

const clock = systemClock
const quietLog = () => createLog({ clock, level: 'error', pretty: false, write: () => {} })

const accountsOf = ({ store }: StoreWork) =>
  createAdminAccounts({
    store: store.admin.tokens,
    projects: store.projects,
    isApiToken: async () => false,
    admin_token: undefined,
    clock,
    log: quietLog(),
  })

async function login({ given, store, config, terminal }: StoreWork) {
  const url = given.text('url') ?? (terminal.environment.GATEHOUSE_URL || adminUrl(config))
  if (url === undefined || !/^https?:\/\/[^\s/]/.test(url)) {
    throw new UsageError('admin login', 'needs the address of the gateway, as in --url https://gateway.example.com')
  }
  const settings = () => config?.admin ?? { session_hours: 12, idle_minutes: 60 }
  const sessions = createAdminSessions({
    store: store.admin.sessions,
    isActive: async () => false,
    settings,
    clock,
    log: quietLog(),
  })
  const { secret } = await sessions.createLink(commandLineActor())
  const link = `${url.replace(/\/+$/, '')}/console#${secret}`
  const note = 'Open this link in a browser within 15 minutes; it works once, and leads to the console:\n'
  return secretOutcome({ link, expires_in_seconds: 900 }, link, { note, terminal })
}

/** Of the admin API's own listener, where it has one. */
function adminUrl(config: Config | undefined): string | undefined {
  if (!config) return undefined
  const { admin, server } = config
  if (admin.port === undefined && server.base_url !== undefined) return server.base_url
  const host = (admin.port === undefined ? undefined : admin.host) ?? server.host
  const reached = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  return `http://${reached.includes(':') ? `[${reached}]` : reached}:${admin.port ?? server.port}`
}

async function create(work: StoreWork) {
  const { given, projects, terminal } = work
  const [name, which] = [given.text('name')?.trim(), given.text('project')]
  if (!name) throw new UsageError('admin create', 'needs a name, as in --name dashboard')
  const role = roleOf(given.text('role'))
  const expires = given.text('expires')
  const expires_at = expires === undefined ? null : readExpiry(expires, unixSeconds(clock))
  if (typeof expires_at === 'string') throw new UsageError('admin create', `--expires: ${expires_at}`)
  const project_id = which === undefined ? null : (await projects.choose(which)).project_id
  const { token, secret } = await accountsOf(work).issue({ name, role, project_id, expires_at }, commandLineActor())
  const note = `Admin token ${token.admin_token_id} (${name}, ${role}) is created. Its secret, shown this once:\n`
  return secretOutcome({ admin_token: token, secret }, secret, { note, terminal })
}

function roleOf(text: string | undefined): AdminRole {
  const role = ADMIN_ROLES.find((one) => one === text)
  if (role) return role
  throw new UsageError('admin create', `needs a role, as in --role viewer; roles are ${ADMIN_ROLES.join(', ')}`)
}

const PAGE = 200

async function list(work: StoreWork) {
  const accounts = accountsOf(work)
  const rows: AdminToken[] = []
  for (let after: string[] | undefined = []; after; ) {
    const page = await accounts.page({ limit: PAGE, ...(after.length > 0 && { after }) })
    rows.push(...page.rows)
    after = page.next
  }
  const text = () => {
    if (rows.length === 0) return 'There are no admin tokens.\n'
    const head = ['ID', 'NAME', 'ROLE', 'PROJECT', 'SECRET', 'STATUS', 'CREATED', 'LAST USED', 'EXPIRES']
    const body = rows.map((row) => [
      row.admin_token_id,
      row.name,
      row.role,
      row.project_id ?? '-',
      `${row.prefix}...`,
      row.disabled ? 'revoked' : 'active',
      timeText(row.created_at),
      timeText(row.last_used_at),
      timeText(row.expires_at),
    ])
    return headedTable(head, body, work.terminal)
  }
  return { data: { admin_tokens: rows }, text }
}

async function revoke(work: StoreWork) {
  const [id = ''] = work.given.positionals
  const token = await accountsOf(work).revoke(id, commandLineActor())
  if (!token) throw new Error(`There is no admin token ${JSON.stringify(id)}; see: gatehouse admin list`)
  const text = () => `Admin token ${token.admin_token_id} (${token.name}) is revoked.\n`
  return { data: { admin_token: token }, text, quiet: '' }
}
