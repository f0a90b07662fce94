/** A gateway with an owner, and calls of its admin API. */
import { createAdminSessions } from '../../src/admin/access/sessions.ts'
import type { Clock } from '../../src/kit/clock.ts'
import { createLog } from '../../src/kit/log.ts'
import type { Store } from '../../src/store/store.ts'
import { type CallOptions, startGateway, type TestGateway } from './gateway.ts'

export const OWNER = 'owner-token-of-the-environment'

type AdminCall = CallOptions & { /** Default: the owner token of the environment. */ as?: string }

export type AdminGateway = TestGateway & {
  /** Calls the admin API; `path` is what follows `/admin/v1`. */
  admin(path: string, options?: AdminCall): Promise<Response>
  /** The body of a response with status 200; throws for another. */
  read<T = Record<string, unknown>>(path: string, options?: AdminCall): Promise<T>
}

export async function startAdminGateway(
  settings: Parameters<typeof startGateway>[0] = {},
  parts: Parameters<typeof startGateway>[1] = {},
): Promise<AdminGateway> {
  const gateway = await startGateway({ admin_token: OWNER, ...settings }, parts)
  const admin = (path: string, { as = OWNER, headers, ...options }: AdminCall = {}) =>
    gateway.call(`/admin/v1${path}`, { ...options, headers: { authorization: `Bearer ${as}`, ...headers } })
  return {
    ...gateway,
    admin,
    async read<T>(path: string, options?: AdminCall): Promise<T> {
      const response = await admin(path, options)
      if (response.status !== 200) throw new Error(`${path}: ${response.status} ${await response.text()}`)
      return (await response.json()) as T
    },
  }
}

/** The secret of a session of the console that this person has begun. */
export async function beginSession(store: Pick<Store, 'admin'>, clock: Clock, actor: string): Promise<string> {
  const sessions = createAdminSessions({
    store: store.admin.sessions,
    isActive: async () => true,
    settings: () => ({ session_hours: 8, idle_minutes: 600 }),
    clock,
    log: createLog({ clock, level: 'error', pretty: false, write() {} }),
  })
  return (await sessions.begin({ actor, role: 'owner' }, { address: '127.0.0.1', user_agent: 'test' })).secret
}

/** The status and the error code of a response. */
export async function refusal(response: Response): Promise<[number, string | undefined]> {
  const body = await response.json()
  return [response.status, body.error?.code]
}
