/** In which of its projects a person acts: one request is of one project. */
import type { AdminCaller, Membership } from '../../spec/admin.ts'
import { GatewayError } from '../../spec/error.ts'

export const PROJECT_HEADER = 'x-gatehouse-project'
/** Filters of lists, and the project of a file of the playground, name it too. */
const PROJECT_PARAMETERS = ['project', 'project_id']

/** What a request says of the project. */
type NamingRequest = { header(name: string): string | null; query(): URLSearchParams }

/** The caller in the project that the request names. Throws object_not_found where a person of projects is not in it. */
export function inNamedProject(caller: AdminCaller, request: NamingRequest): AdminCaller {
  if (caller.project_id === undefined) return caller
  const given = request.header(PROJECT_HEADER)
  if (given !== null) {
    const membership = membershipIn(caller, given)
    if (membership) return { ...caller, ...membership }
    throw new GatewayError('object_not_found', `There is no project ${JSON.stringify(given.slice(0, 100))}.`)
  }
  if (!caller.memberships) return caller
  const query = request.query()
  const filter = PROJECT_PARAMETERS.map((name) => query.get(name)).find((one) => one !== null) ?? null
  return { ...caller, ...membershipIn(caller, filter) }
}

/** What the caller is in this project; undefined: nothing. */
export function membershipIn(caller: AdminCaller, project_id: string | null): Partial<Membership> | undefined {
  const { memberships } = caller
  if (memberships) return memberships.find((one) => one.project_id === project_id)
  return project_id !== null && project_id === caller.project_id ? {} : undefined
}
